"""Run folders: exact resumption, kills, locks, and the commands around them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.learning import Run, TrainConfig, cpu, folders, read_metrics
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.thread_state import GAMES, ThreadState
from tilesage.learning.trainer import Tally
from tilesage.networks import load_model

CONFIG = TrainConfig(network="tiny", rule="td", rate="0.2>0.05", threads=1, games=900, block=100, seed=5)


def finished(folder: Path, config: TrainConfig = CONFIG) -> Path:
    Run.begin(config, folder).train()
    return folder


def weights(folder: Path) -> np.ndarray:
    return np.array(load_model(folder / "last.safetensors").weights)


def without_time(folder: Path) -> list[dict[str, object]]:
    lines = read_metrics(folder)
    return [{k: v for k, v in line.items() if k not in ("seconds", "moves_per_second")} for line in lines]


def test_a_run_leaves_a_whole_folder(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "run.toml",
        "metrics.jsonl",
        "last.safetensors",
        "run.lock",
    }
    lines = read_metrics(folder)
    assert [line["games"] for line in lines] == list(range(100, 1000, 100))
    assert lines[0]["rate"] > lines[-1]["rate"]
    assert TrainConfig.read(folder / "run.toml") == CONFIG
    assert load_model(folder).training["games"] == 900


def test_one_thread_gives_the_same_weights_twice(tmp_path: Path) -> None:
    assert np.array_equal(weights(finished(tmp_path / "a")), weights(finished(tmp_path / "b")))


@pytest.mark.parametrize("stop", [400, 799])  # before the weights are averaged, and between two looks at them
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rule": "tc", "rate": "1", "decay": 0.5},
        {"rule": "td", "direction": "backward"},
        {"rule": "tc", "rate": "1", "stages": "256,512"},
    ],
)
def test_a_stopped_and_resumed_run_equals_a_straight_one(
    tmp_path: Path, settings: dict[str, object], stop: int
) -> None:
    config = TrainConfig(**vars(CONFIG) | settings)  # type: ignore[arg-type]
    straight = finished(tmp_path / "straight", config)
    run = Run.begin(config, tmp_path / "stopped")

    def stop_early(line: object, progress: object) -> None:
        run.stopping = run.progress.games > stop

    run.train(stop_early)
    assert stop < run.progress.games < 900
    Run.resume(tmp_path / "stopped").train()
    assert np.array_equal(weights(tmp_path / "stopped"), weights(straight))
    assert without_time(tmp_path / "stopped") == without_time(straight)


def test_a_model_holds_the_mean_of_the_last_weights(tmp_path: Path) -> None:
    seen: list[np.ndarray] = []
    run = Run.begin(CONFIG, tmp_path / "run")
    trainer = run.trainer
    average = trainer.average

    def looking(afresh: bool = False) -> None:
        seen.append(np.array(trainer.state()["weights"]))
        average(afresh)

    trainer.average = looking  # type: ignore[method-assign]
    run.train()
    assert len(seen) >= 2
    assert np.allclose(weights(tmp_path / "run"), np.mean(seen, axis=0), rtol=1e-4, atol=1e-3)
    plain = TrainConfig(**vars(CONFIG) | {"average": False})
    assert np.array_equal(weights(finished(tmp_path / "plain", plain)), seen[-1])
    longer = Run.resume(tmp_path / "run", games=3000)
    assert np.array_equal(longer.trainer.weights(), seen[-1])  # that mean was of another end
    longer.close()


def begun_elsewhere(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    words = [
        "train",
        "--recipe",
        "plain",
        "--network",
        "tiny",
        "--rule",
        "td",
        "--threads",
        "1",
        "--block",
        "100",
        "--seed",
        "5",
    ]
    environment = os.environ | {"TILESAGE_QUIET": "1"}
    command = [sys.executable, "-m", "tilesage", *words, "--out", str(folder), *flags]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if path.exists():
            return
        assert process.poll() is None, process.stderr.read() if process.stderr else b""
        time.sleep(0.1)
    raise AssertionError(f"{path} never came")


def test_a_killed_run_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    config = TrainConfig(network="tiny", rule="td", threads=1, games=6000, block=100, seed=5)
    straight = finished(tmp_path / "straight", config)
    folder = tmp_path / "killed"
    process = begun_elsewhere(folder, "--games", "6000", "--checkpoint", "0.2")
    wait_for(folder / "last.safetensors", process)
    process.kill()
    process.communicate()
    Run.resume(folder).train()
    assert np.array_equal(weights(folder), weights(straight))
    assert without_time(folder) == without_time(straight)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = begun_elsewhere(folder, "--seconds", "600", "--checkpoint", "0.2")
    wait_for(folder / "last.safetensors", process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"tilesage train --resume {folder}" in out.decode()
    assert load_model(folder).training["games"] > 0


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    run = Run.begin(CONFIG, tmp_path / "run")
    with pytest.raises(InputError, match="another process"):
        Run.resume(tmp_path / "run")
    (tmp_path / "run" / "run.toml").unlink()  # as while the other one begins
    with pytest.raises(InputError, match="another process"):
        Run.begin(CONFIG, tmp_path / "run")
    assert (tmp_path / "run" / "run.lock").exists()
    CONFIG.write(tmp_path / "run" / "run.toml")
    run.train()
    with pytest.raises(InputError, match="already holds a run"):
        Run.begin(CONFIG, tmp_path / "run")


def test_a_longer_budget_goes_on(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    assert main(["train", "2048", "--resume", str(folder), "--games", "1100", "--quiet"]) == 0
    assert [line["games"] for line in read_metrics(folder)][-1] == 1100


TC = TrainConfig(**vars(CONFIG) | {"rule": "tc", "rate": ""})


def test_new_phases_go_on_like_a_run_that_had_them(tmp_path: Path) -> None:
    whole = replace(TC, phases="tc:1:0.5,soften:1:0.25,soften:1>0.1:0.25", games=800)
    straight = finished(tmp_path / "straight", whole)
    half = finished(tmp_path / "half", replace(TC, phases="tc:1:1", games=400))
    Run.resume(half, games=800, phases="soften:1:0.5,soften:1>0.1:0.5").train()
    assert np.array_equal(weights(half), weights(straight))
    assert without_time(half) == without_time(straight)


def test_new_phases_outlive_a_kill_before_the_first_checkpoint(tmp_path: Path) -> None:
    early = replace(TC, phases="tc:1:0.5,soften:1:0.5", games=400)
    straight, killed = finished(tmp_path / "straight", early), finished(tmp_path / "killed", early)
    rest = "soften:1:0.2,tc:1:0.3,soften:1>0.1:0.5"
    Run.resume(straight, games=900, phases=rest).train()
    Run.resume(killed, games=900, phases=rest).close()  # run.toml is written, nothing is learnt
    Run.resume(killed).train()
    assert np.array_equal(weights(killed), weights(straight))
    assert without_time(killed) == without_time(straight)


def test_a_later_end_after_such_a_kill_does_not_bring_back_another_rate(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run", replace(TC, rule="td", rate="0.1>0.02", games=400))
    Run.resume(folder, games=800, phases="tc:0.5:1").close()
    run = Run.resume(folder, games=1600)
    run.step()
    assert run.trainer.rule.name == "td"  # half of its time has been TD's, and still is
    assert run.config.phase_list[0].rate_at(run.done) == pytest.approx(0.06)
    run.close()


def test_new_phases_for_a_run_that_has_learnt_nothing_yet(tmp_path: Path) -> None:
    run = Run.begin(replace(TC, games=400), tmp_path / "run")
    run.stopping = True
    run.train()
    Run.resume(tmp_path / "run", phases="td:0.1:1").train()
    assert np.array_equal(
        weights(tmp_path / "run"), weights(finished(tmp_path / "td", replace(TC, games=400, rule="td")))
    )


@pytest.mark.parametrize("network", ["012\n456", '012\t"\\\x7f', "012"])
def test_settings_are_read_as_they_were_written(tmp_path: Path, network: str) -> None:
    config = replace(CONFIG, game="")  # no game, so that any text will do
    replace(config, network=network).write(tmp_path / "run.toml")
    assert TrainConfig.read(tmp_path / "run.toml").network == network


def test_a_slim_run_plays_but_is_not_begun_again(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    model, size = load_model(folder), (folder / "last.safetensors").stat().st_size
    folders.slim(folder)
    assert np.array_equal(load_model(folder).weights, model.weights)
    assert load_model(folder).training == model.training
    assert (folder / "last.safetensors").stat().st_size < 0.6 * size
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.lock"}
    with pytest.raises(InputError, match="is a model without what a run goes on from"):
        Run.resume(folder, games=2000)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.lock"} == before
    (folder / "last.safetensors").unlink()
    Run.resume(folder).train()
    assert np.array_equal(weights(folder), weights(finished(tmp_path / "other")))


def test_a_plain_run_goes_on_with_phases(tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    Run.resume(folder, games=1200, phases="tc:1:0.66,soften:0.5:0.34").train()
    rates = [line["rate"] for line in read_metrics(folder)[9:]]
    assert rates == [1, 0.5, 0.5]  # tc ends after 1,098 games, and a line says the rate at its end
    assert [phase.name for phase in TrainConfig.read(folder / "run.toml").phase_list] == ["td", "tc", "soften"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--phases", "tc:1:1"], "this run is done"),
        (["--games", "500"], "is past that end, with 900 games"),
        (["--phases", "soften:1:1", "--games", "1000"], "goes on from a tc phase"),
        (["--phases", "tc:1:0.5", "--games", "1000"], "add up to 0.5, not to 1"),
        (["--network", "8x6"], "--network does not go with it"),
        (["--by-age"], "--by-age does not go with it"),
        (["threes"], "learns 2048, not threes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_a_resumed_run_cannot_change_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], complaint: str
) -> None:
    folder = finished(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.lock"}
    assert main(["train", "--resume", str(folder), *flags]) == 2
    assert complaint in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.lock"} == before


def test_two_threads_share_the_games_of_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each plays half of them; both games of a thread may end at its last move."""
    monkeypatch.setattr(cpu, "ALONE", 0)
    parts: list[list[int]] = []
    collect = CpuTrainer._collect

    def counting(trainer: CpuTrainer, threads: list[ThreadState]) -> Tally:
        parts.append([int(thread.tally[GAMES]) for thread in threads])
        return collect(trainer, threads)

    monkeypatch.setattr(CpuTrainer, "_collect", counting)
    folder = finished(tmp_path / "run", replace(CONFIG, threads=2))
    lines = read_metrics(folder)
    assert all(len(part) == 2 and max(part) <= 51 for part in parts)
    one, other = (sum(part) for part in zip(*parts))
    assert one + other == lines[-1]["games"]
    assert 900 <= one + other <= 903
    assert min(one, other) >= 400
    assert len(lines) == 9


@pytest.mark.parametrize("content", ['games = "many"\n', "colour = 1\n", "games = \n", 'rule = "sgd"\n'])
def test_a_broken_run_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.toml").write_text(content)
    with pytest.raises(InputError):
        Run.resume(tmp_path)


# --- commands ------------------------------------------------------------------------------------------------


def test_train_reports_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--network", "tiny", "--rule", "td", "--threads", "1", "--games", "300", "--block", "100"]
    assert main(["train", "2048", *flags, "--out", str(tmp_path / "r"), "--json", "-", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["games"] == 300
    assert result["complete"]
    assert {"moves", "seconds", "moves_per_second", "mean"} <= set(result)


@pytest.mark.parametrize(
    "words",
    [
        ["train", "chess", "--games", "1"],
        ["train", "--games", "1", "--network", "x9"],
        ["train"],
        ["train", "--resume", "/nowhere/at/all"],
        ["plot"],
        ["plot", "/nowhere/at/all"],
        ["networks", "q"],
    ],
    ids=" ".join,
)
def test_wrong_commands_complain_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("tilesage: ")
    assert error.count("\n") == 1


def test_plot_draws_png_and_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = finished(tmp_path / "run")
    assert main(["plot", str(folder), str(folder), "--names", "one,two"]) == 0
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    written = re.findall("<!-- (.+?) -->", (folder / "curve.svg").read_text())  # each text, before its outlines
    assert written[-2:] == ["one", "two"]
    assert {"mean score", "best score", "games that reach 2048 (%)"} <= set(written)


def test_plot_draws_no_two_games_on_one_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for game in ("2048", "threes"):
        (tmp_path / game).mkdir()
        TrainConfig(game=game).write(tmp_path / game / "run.toml")
    assert main(["plot", str(tmp_path / "2048"), str(tmp_path / "threes")]) == 2
    assert f"{tmp_path / '2048'} learns 2048, {tmp_path / 'threes'} threes" in capsys.readouterr().err


@pytest.mark.parametrize("there", [False, True])
def test_a_training_that_is_refused_leaves_nothing_behind(tmp_path: Path, there: bool) -> None:
    def make(config: TrainConfig) -> NoReturn:
        raise InputError("too large")

    folder = tmp_path / "new" / "run"
    if there:
        folder.mkdir(parents=True)
        (folder / "notes").touch()
    with pytest.raises(InputError, match="too large"):
        Run.begin(CONFIG, folder, make=make)
    assert sorted(tmp_path.rglob("*")) == ([folder.parent, folder, folder / "notes"] if there else [])


def test_networks_are_listed_with_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["networks"]) == 0
    out = capsys.readouterr().out
    assert "8x6" in out
    assert "■ ■ ■ ■" in out
    assert main(["networks", "4x6", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["networks"][0]["entries"] == 4 * 16**6
