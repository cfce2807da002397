"""Training as a function: the same runs as the command's, looked at from Python."""

from __future__ import annotations

import doctest
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilesage import cli, games
from tilesage.core.errors import InputError
from tilesage.learning import Run, TrainConfig, begin_training, config, read_metrics, runs, train
from tilesage.networks import load_model

SMALL: dict[str, Any] = {"network": "tiny", "threads": 1, "block": 50}
TIMES = ("seconds", "moves_per_second")


@pytest.mark.parametrize("module", [runs, config])
def test_examples_in_the_docstrings(module: Any) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def without_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name not in TIMES} for line in lines]


def test_it_is_the_run_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same settings in the file, the same weights, the same metrics."""
    flags = "train 2048 --network tiny --moves 30000 --block 50 --threads 1 --seed 7 --rate 0.5 --quiet"
    assert cli.main([*flags.split(), "--out", str(tmp_path / "command")]) == 0
    flags = "--fold 4096 --by-age --decay 0.5"
    assert f"learning by the best recipe known here: {flags}\n" in capsys.readouterr().out
    run = train("2048", out=tmp_path / "library", moves=30_000, seed=7, rate=0.5, **SMALL)
    ours, theirs = ((tmp_path / name / "run.toml").read_text() for name in ("library", "command"))
    assert ours == theirs
    command = load_model(tmp_path / "command" / "last.safetensors")
    assert np.array_equal(run.model.weights, command.weights)
    assert without_times(run.metrics) == without_times(read_metrics(tmp_path / "command"))
    assert run.folder == tmp_path / "library"
    assert capsys.readouterr().out == ""


def test_defaults_are_those_of_the_command() -> None:
    for game in ("2048", "threes"):
        plain = begin_training(game, seconds=1, recipe="plain", **SMALL)
        assert plain.config == TrainConfig(game=game, seconds=1.0, **SMALL)
        assert begin_training(plain.config).config == plain.config


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = train("threes", games=120, **SMALL)
    assert list(tmp_path.iterdir()) == []
    assert run.folder is None
    assert [line["games"] for line in run.metrics] == [50, 100, 120]
    assert run.model is run.model
    assert run.model.game.name == "threes"
    assert run.model.weights.any()
    with pytest.raises(InputError, match="has no folder"):
        load_model(run)


def test_a_run_is_as_good_as_its_folder(tmp_path: Path) -> None:
    run = train(games.get("2048", four_rate=0.5), str(tmp_path / "run"), games=60, recipe="plain", **SMALL)
    assert load_model(run).path == run.model.path == tmp_path / "run" / "last.safetensors"
    assert run.model.game is games.get("2048", four_rate=0.5)
    assert run.config.parameters == "four_rate=0.5"
    assert run.metrics == read_metrics(tmp_path / "run")
    again = train(TrainConfig.read(tmp_path / "run" / "run.toml"), games=40)
    assert again.config == TrainConfig(parameters="four_rate=0.5", games=40, **SMALL)
    resumed = Run.resume(tmp_path / "run", games=160)
    assert [line["games"] for line in resumed.blocks()][-1] == 160
    assert [line["games"] for line in resumed.metrics] == [50, 60, 110, 160]


def test_every_block_is_handed_over_while_it_learns() -> None:
    heard: list[dict[str, Any]] = []
    run = train(games=120, on_block=heard.append, **SMALL)
    assert heard == run.metrics
    assert len(heard) == 3


def test_blocks_may_be_left_and_everything_is_saved(tmp_path: Path) -> None:
    run = begin_training("2048", tmp_path / "run", games=1000, **SMALL)
    assert repr(run) == f"Run({str(tmp_path / 'run')!r}: 2048, tiny, 0 games, 0 % done)"
    for line in run.blocks():
        if line["games"] == 100:
            assert run.model.weights.any()
            break
    del line
    assert run.closed
    assert load_model(tmp_path / "run").training["games"] == 100
    whole = train("2048", games=1000, **SMALL)
    resumed = Run.resume(tmp_path / "run")
    assert resumed.train().games == 1000
    assert np.array_equal(resumed.model.weights, whole.model.weights)
    assert without_times(resumed.metrics) == without_times(whole.metrics)


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_between_blocks_and_within(tmp_path: Path) -> None:
    run = begin_training("2048", tmp_path / "run", games=100_000, **SMALL)
    advance = run.trainer.advance

    def pressed(*budget: Any) -> Any:
        tally = advance(*budget)
        if run.progress.games + tally.games >= 100:
            signal.raise_signal(signal.SIGINT)
        return tally

    run.trainer.advance = pressed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        list(run.blocks())
    assert run.closed
    assert run.progress.games == 100
    assert load_model(run).training["games"] == 100


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"netwrok": "4x6"}, "unknown setting 'netwrok'; known are average, "),
        ({"decay": "much"}, "decay is a float"),
        ({"decay": 2.0}, "λ, a number from 0 to 1"),
        ({"start": "here"}, "start is one of"),
        ({"seconds": 0}, "how long"),
    ],
)
def test_settings_that_are_none(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        train("2048", **{"seconds": 1, **settings})


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """On several threads, and without `if __name__ == "__main__"`."""
    script = tmp_path / "script.py"
    script.write_text(
        "import tilesage\n"
        "run = tilesage.train('2048', network='tiny', games=200, threads=2)\n"
        "print(run.metrics[-1]['games'])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout.split()[0]) >= 200
