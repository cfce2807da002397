"""Trainings killed, starved of disk, locked out, interrupted: all that is lost is the time since a checkpoint."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from crash_support import (
    ENVIRONMENT,
    beginning,
    check_folder,
    finish,
    kill_and_resume,
    resuming,
    small_disk,
    strangers,
    training,
    wait_for_training,
    weights_of,
)
from hostile.watch import through_the_command

from tilesage.core.errors import InputError
from tilesage.learning.config import TrainConfig
from tilesage.learning.metrics import read_metrics
from tilesage.learning.runs import Run, train
from tilesage.records.referee import judge

GAMES = 12_000


def small(**settings: object) -> TrainConfig:
    defaults = {"network": "012", "games": 60, "block": 20, "threads": 1}
    return TrainConfig(**{**defaults, **settings})  # type: ignore[arg-type]


def test_five_kills_lose_nothing_and_the_weights_are_those_of_an_undisturbed_run(tmp_path: Path) -> None:
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    kill_and_resume(killed, 5, Random(5), GAMES)
    for folder, words in ((killed, resuming(killed)), (calm, beginning(calm, GAMES))):
        status, _, err = finish(training(*words))
        assert (status, err) == (0, "")
        assert check_folder(folder).games == GAMES
        assert strangers(folder) == []
    assert weights_of(killed) == weights_of(calm)
    figures = [[(line["games"], line["mean"]) for line in read_metrics(folder)] for folder in (killed, calm)]
    assert figures[0] == figures[1]


# --- the disk ----------------------------------------------------------------------------------------------------


def one_line(status: int, err: str, part: str) -> None:
    assert status == 2, err
    assert err.startswith("tilesage: ")
    assert err.count("\n") == 1
    assert part in err


def test_a_full_disk_is_told_in_one_line_and_what_was_saved_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 300) as mounted:
        if not mounted:
            pytest.skip("no right to mount a small disk: see the test with a limit on the size of files")
        folder = tmp_path / "disk" / "run"
        train(small(), folder)
        before = weights_of(folder)
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        (tmp_path / "disk" / "ballast").write_bytes(bytes(free - 12_000))  # room for settings, not for a model
        status, _, err = finish(training("--resume", str(folder), "--games", "200000", "--checkpoint", "0.05"))
        one_line(status, err, "No space left on device")
        assert check_folder(folder).games == 60
        assert weights_of(folder) == before
        (tmp_path / "disk" / "ballast").unlink()
        assert finish(training("--resume", str(folder), "--games", "200"))[0] == 0
        assert check_folder(folder).games == 200
        assert strangers(folder) == []


def test_files_that_may_not_grow_are_told_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(small(), folder)
    before = weights_of(folder)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000));"
        "from tilesage.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "train", "--quiet", "--resume", str(folder), "--games", "500"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False)
    one_line(done.returncode, done.stderr, "File too large")
    assert check_folder(folder).games == 60
    assert weights_of(folder) == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 10_000


@pytest.mark.parametrize("place", ["file/run", "locked/run", "/proc/tilesage"])
def test_a_place_that_cannot_be_written_is_told_in_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "locked").mkdir(mode=0o500)
    if place.startswith("locked") and os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    words = ["train", "2048", "--network", "012", "--games", "5", "--quiet", "--out", str(tmp_path / place)]
    assert through_the_command(words, (2,)) == 2


def test_a_disk_that_became_read_only_is_told_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2000) as mounted:
        if not mounted:
            pytest.skip("no right to mount a small disk")
        folder = tmp_path / "disk" / "run"
        train(small(), folder)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "disk")], check=True)
        assert through_the_command(["train", "--quiet", "--resume", str(folder), "--games", "90"], (2,)) == 2
        assert check_folder(folder).games == 60


# --- two at once, and clocks -------------------------------------------------------------------------------------


def test_the_second_training_in_a_folder_is_told_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(small(), folder)
    first = Run.resume(folder, games=100)
    with pytest.raises(InputError, match=f"another process \\({os.getpid()}\\) trains in"):
        Run.resume(folder)
    status, _, err = finish(training("--resume", str(folder)))
    one_line(status, err, f"another process ({os.getpid()}) trains in")
    first.train()
    assert check_folder(folder).games == 100
    Run.resume(folder).close()


def test_a_run_that_cannot_begin_lets_go_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(small(), folder)
    path = folder / "last.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(InputError, match="cut short"):
        Run.resume(folder)
    path.write_bytes(good)
    Run.resume(folder, games=100).train()
    assert check_folder(folder).games == 100


def test_clocks_that_jump_do_not_reach_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, random = [2e9], Random(1)

    def jumping() -> float:
        now[0] += random.uniform(-1e6, 1e6)
        return now[0]

    monkeypatch.setattr(time, "time", jumping)
    train(small(games=200), tmp_path / "run")
    seconds = [line["seconds"] for line in read_metrics(tmp_path / "run")]
    assert seconds == sorted(seconds)
    assert seconds[-1] < 1000
    records = tmp_path / "records.txt"
    words = ["evaluate", "--agent", "random", "--games", "30", "--save", str(records), "--workers", "2"]
    assert through_the_command(words, (0,)) == 0
    assert judge(records).ok


# --- Ctrl-C ------------------------------------------------------------------------------------------------------


def interrupted(err: str) -> None:
    assert "Traceback" not in err, err
    assert len(err.splitlines()) <= 3, err


def test_ctrl_c_while_compiling(tmp_path: Path) -> None:
    """A cold cache, so that the trainer is compiled; the run can be begun or resumed afterwards."""
    folder, cache = tmp_path / "run", tmp_path / "cache"
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(cache), "TILESAGE_QUIET": ""}
    words = [sys.executable, "-m", "tilesage", "train", "--quiet", *beginning(folder, 50)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert "compiling" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode in (0, 130)  # 0: the few games were played before the run looked up
    if process.returncode == 130:
        interrupted(err)
        again = resuming(folder) if (folder / "run.toml").exists() else beginning(folder, 50)
        assert finish(training(*again))[0] == 0
    assert check_folder(folder).games == 50


@pytest.mark.parametrize("moment", [0.2, 1.2])
def test_ctrl_c_in_the_middle_of_the_compiler(tmp_path: Path, moment: float) -> None:
    """It waits for the end of what is being compiled: in the middle, the compiler prints pages, or swallows it."""
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(tmp_path), "TILESAGE_QUIET": ""}
    words = ["hint", "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2", "--agent", "expectimax:9"]
    with subprocess.Popen(
        [sys.executable, "-m", "tilesage", *words], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert "compiling" in first
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.splitlines()[-2:] == ["stopping when this is compiled …", "stopped"]


def test_ctrl_c_while_it_trains_and_saves(tmp_path: Path) -> None:
    """Checkpoints all the time, and more than one Ctrl-C, as impatient people do."""
    folder = tmp_path / "run"
    process = training(*beginning(folder, 10**7)[:-1], "0.001")
    wait_for_training(process, folder)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    status, _, err = finish(process)
    assert status in (130, -signal.SIGINT)  # the last one may meet a process that has saved all and is leaving
    if status == 130:
        interrupted(err)
    progress = check_folder(folder)
    assert progress.games > 0
    assert [line["games"] for line in read_metrics(folder)][-1] == progress.games - progress.block.games
    assert strangers(folder) == []


def test_ctrl_c_while_evaluating_keeps_the_games_that_were_finished(tmp_path: Path) -> None:
    records = tmp_path / "records.txt"
    words = [sys.executable, "-m", "tilesage", "evaluate", "--agent", "rollouts:10", "--games", "1000000"]
    words += ["--workers", "1", "--save", str(records)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        while not [path for path in tmp_path.iterdir() if path.stat().st_size > 1000]:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    interrupted(err)
    verdict = judge(records)
    assert verdict.ok
    assert f"{verdict.statistics.games:,} game" in out
