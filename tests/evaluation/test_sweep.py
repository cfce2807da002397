"""Sweeps on one machine: what a file means, what a folder remembers, and what is refused."""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilesage.cli import main
from tilesage.cli.sweep import table
from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import evaluate
from tilesage.evaluation.sweep import Sweep, claim, read_sweep
from tilesage.learning.folders import held
from tilesage.networks.files import FORMAT
from tilesage.networks.tensors import Tensors, write_tensors

COMMON = '[evaluate]\ngames = 30\n[train]\nnetwork = "tiny"\nthreads = 1\ngames = 60\nblock = 20\nrule = "td"\n'


def sweep_of(folder: Path, text: str) -> Sweep:
    path = folder / "grid.toml"
    path.write_text(text)
    return read_sweep(path, folder / "out")


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, COMMON + '[grid]\nrate = [0.1, "0.5>0.1"]\nnetwork = ["tiny", "012,456"]\n')
    assert [trial.settings for trial in sweep.trials] == [
        {"rate": rate, "network": network} for rate in ("0.1", "0.5>0.1") for network in ("tiny", "012,456")
    ]
    assert sweep.trials[3].config.rate == "0.5>0.1"
    assert sweep.trials[3].config.games == 60
    assert sweep.trials[3].folder.name == "004-rate=0.5_0.1-network=012_456"


def test_numbers_are_taken_whole(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, COMMON + "[grid]\nrate = [0.123456789, 1.0, 1, 0.00001]\n")
    assert [trial.config.rate for trial in sweep.trials] == ["0.123456789", "1", "1", "1e-05"]
    assert sweep.trials[0].folder.name == "001-rate=0.123456789"


def test_random_draws_stay_in_their_ranges_and_the_same(tmp_path: Path) -> None:
    text = (
        f"{COMMON}[grid]\nseed = [1, 2]\n[random]\ntrials = 50\ndice = 4\nsteps = {{ low = 0, high = 5 }}\n"
        'rate = { low = 0.001, high = 1, log = true }\nof = ["states", "afterstates"]\n'
    )
    sweep = sweep_of(tmp_path, text)
    rates = [float(trial.config.rate) for trial in sweep.trials]
    assert len(sweep.trials) == 100
    assert all(0.001 <= rate <= 1 for rate in rates)
    assert 15 < sum(rate < 0.03 for rate in rates) < 85
    assert {trial.config.steps for trial in sweep.trials} == {0, 1, 2, 3, 4, 5}
    assert {trial.config.of for trial in sweep.trials} == {"states", "afterstates"}
    assert [trial.settings for trial in sweep_of(tmp_path, text).trials] == [t.settings for t in sweep.trials]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[grid", "not TOML"),
        (COMMON, "nothing to sweep over"),
        (f"{COMMON}[grid]\nrate = 0.1\n", "a list of values"),
        (f"{COMMON}[grid]\nrates = [0.1]\n", "unknown setting 'rates'"),
        (f"{COMMON}[grid]\nrate = [0.1, 'fast']\n", "'fast' is not a rate"),
        (f"{COMMON}[grid]\ndecay = [2.0]\n", "number from 0 to 1"),
        (f"{COMMON}[tune]\nrate = [1]\n", "has the parts"),
        (f"{COMMON}[random]\ntrials = 0\n", "trials in"),
        (f"{COMMON}[random]\nthreads = {{ low = 1, high = inf }}\n", "a list of values or"),
        (f"{COMMON}[grid]\nrate = [1]\n".replace("= 30", "= 0"), "how many games a trained network plays"),
        (f"{COMMON}[grid]\nrate = [1]\n".replace("games = 30", "agent = 'best'"), "how many games a trained"),
        (f"{COMMON}[random]\nrate = {{ low = 0, high = 1, log = true }}\n", "a list of values or"),
        ("[grid]\nrate = [0.1]\n", "how long"),
        (f"{COMMON}[grid]\nseed = [{','.join(map(str, range(101)))}]\n[random]\ntrials = 100\n", "too many"),
    ],
)
def test_what_is_not_a_sweep(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        sweep_of(tmp_path, text)


def test_a_sweep_on_this_machine_is_not_done_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(f"{COMMON}[grid]\nrate = [0.1, 0.001]\n")
    words = ["sweep", str(path), "--out", str(out), "--quiet"]
    assert main([*words, "--json", "-"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert [trial["state"] for trial in first["trials"]] == ["finished", "finished"]
    assert first["trials"][0]["mean"] >= first["trials"][1]["mean"]
    for trial in first["trials"]:
        found = evaluate("greedy", 30, model=trial["run"]).statistics
        assert (trial["mean"], trial["stderr"], trial["games"]) == (found.mean, found.stderr, 30)
    assert (out / "summary.png").stat().st_size > 10_000
    written = {file: file.stat().st_mtime_ns for file in out.glob("0*/*")}
    assert main(words) == 0
    assert {file: file.stat().st_mtime_ns for file in out.glob("0*/*")} == written
    assert "finished" in capsys.readouterr().out

    path.write_text(f"{COMMON}[grid]\nrate = [0.2]\n")
    assert main(words) == 2
    assert "holds another sweep" in capsys.readouterr().err


def test_an_interrupted_trial_is_resumed(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, f"{COMMON}[grid]\nrate = [0.1, 0.01]\n")
    run = sweep.trials[0].open()
    while not run.step():
        pass
    run.checkpoint()
    run.close()
    assert sweep.waiting() == sweep.trials
    assert {result["state"] for result in sweep.summary()} == {"begun", "waiting"}
    again = sweep.trials[0].open()
    assert 0 < again.done < 1
    again.train()
    assert sweep.waiting() == sweep.trials  # trained, but it has not played
    assert sweep.trials[0].finish()
    assert sweep.waiting() == sweep.trials[1:]
    games = [line["games"] for line in sweep.trials[0].lines]
    assert games == sorted(set(games))
    assert games[-1] >= 60


def test_trials_are_ranked_by_the_games_that_they_played(tmp_path: Path) -> None:
    """Not by a block of training games, of which the last may hold only a few."""
    sweep = sweep_of(tmp_path, f"{COMMON}[grid]\nrate = [0.1, 0.2, 0.3, 0.4]\n")
    figures = {"moves": 9, "seconds": 1.5, "reach": {}, "moves_per_second": 6, "block": 1, "error": 1}
    for trial, mean in zip(sweep.trials, (200, None, 250, None)):
        trial.folder.mkdir(parents=True)
        line = {"games": 60, "mean": 900 - (mean or 0), "max": 999, **figures}
        (trial.folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
        tiles = {"1024": {"reach": 0.75, "end": 0.5}, "2048": {"reach": 0.25, "end": 0.25}}
        found = {"mean": mean, "stderr": 7, "max": 5 * (mean or 0), "games": 30, "tiles": tiles}
        if mean:
            (trial.folder / "result.json").write_text(json.dumps(found))
    sweep.trials[3].fail("no luck")
    results = sweep.summary()
    assert [result["settings"]["rate"] for result in results] == ["0.3", "0.1", "0.2", "0.4"]
    assert [result["mean"] for result in results] == [250, 200, None, None]
    assert [result["state"] for result in results] == ["finished", "finished", "begun", "failed"]
    assert [row.split() for row in table(sweep, results).splitlines()] == [
        ["rate", "mean", "±", "max", "2048", "games", "trained", "state"],
        ["0.3", "250", "7", "1,250", "25.0", "%", "30", "60", "finished"],
        ["0.1", "200", "7", "1,000", "25.0", "%", "30", "60", "finished"],
        ["0.2", "0", "60", "begun"],
        ["0.4", "0", "60", "failed"],
    ]


def test_a_trial_that_fails_does_not_hold_up_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(f"{COMMON}[grid]\nrate = [100000, 0.1]\n")
    words = ["sweep", str(path), "--out", str(out), "--quiet"]
    assert main(words) == 1
    printed = capsys.readouterr().out
    failed, finished = read_sweep(path, out).trials
    assert (failed.state, finished.state) == ("failed", "finished")
    assert "diverged" in failed.failure
    assert f"rate 100000: failed: {failed.failure} (to try it again, remove {failed.folder}/failed.txt)" in printed
    before = (failed.folder / "failed.txt").stat().st_mtime_ns
    assert main(words) == 1
    assert (failed.folder / "failed.txt").stat().st_mtime_ns == before
    (failed.folder / "failed.txt").unlink()
    assert main(words) == 1
    assert read_sweep(path, out).trials[0].state == "failed"


def test_a_trial_that_another_sweep_trains_has_not_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    path.write_text(f"{COMMON}[grid]\nrate = [0.1]\n")
    (trial,) = read_sweep(path, out).trials
    trial.folder.mkdir(parents=True)
    with held(trial.folder):
        assert main(["sweep", str(path), "--out", str(out), "--quiet"]) == 2
    assert "another process" in capsys.readouterr().err
    assert trial.state == "waiting"
    assert main(["sweep", str(path), "--out", str(out), "--quiet"]) == 0
    assert trial.state == "finished"


@contextlib.contextmanager
def disk_with_room_for(size: int) -> Iterator[None]:
    """Files that may not grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_half_of_a_sweep(tmp_path: Path) -> None:
    sweep, path = sweep_of(tmp_path, f"{COMMON}[grid]\nrate = [0.1]\n"), tmp_path / "grid.toml"
    with disk_with_room_for(10), pytest.raises(InputError, match="File too large"):
        claim(sweep, path)
    assert list(sweep.folder.iterdir()) == []
    claim(sweep, path)
    assert (sweep.folder / "sweep.toml").read_text() == path.read_text()
    claim(sweep, path)


@pytest.mark.parametrize("progress", ["{", "[]", '{"games": -1}', '{"games": 1, "block": {}, "recent": {}}'])
def test_a_damaged_checkpoint_is_one_line(progress: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "grid.toml", tmp_path / "out"
    trial = sweep_of(tmp_path, f"{COMMON}[grid]\nrate = [0.1]\n").trials[0]
    trial.open().train()
    checkpoint = trial.folder / "last.safetensors"
    opened = Tensors.open(checkpoint, FORMAT)
    write_tensors(checkpoint, dict(opened), {**opened.metadata, "progress": progress})
    assert main(["sweep", str(path), "--out", str(out), "--quiet"]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "failed:" in line)
    assert f"{checkpoint} is damaged, or not from this run" in line
