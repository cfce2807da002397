"""`tilesage runs`: what is there, what is made small, what is removed, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilesage.cli import main
from tilesage.learning import Run, TrainConfig, train
from tilesage.networks import load_model

CONFIG = TrainConfig(network="012", games=60, block=20, threads=1, seed=5)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two runs, a broken one, and something else."""
    for name in ("first", "second"):
        train(CONFIG, tmp_path / "runs" / name)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.toml").write_text("games = [")
    (tmp_path / "runs" / "notes").mkdir()
    return tmp_path / "runs"


def test_runs_are_listed_with_size_age_and_strength(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(runs), "--json", "-"]) == 0
    listed = {Path(entry["run"]).name: entry for entry in json.loads(capsys.readouterr().out)["runs"]}
    assert set(listed) == {"first", "second", "broken"}
    first, size = listed["first"], sum(path.stat().st_size for path in (runs / "first").iterdir())
    assert (first["bytes"], first["game"], first["network"], first["games"]) == (size, "2048", "012", 60)
    assert (first["block"], first["seconds_old"] < 3600) == (60, True)
    assert first["mean"] > first["error"] > 0
    assert "is not TOML" in listed["broken"]["broken"]
    assert main(["runs", str(runs / "first")]) == 0
    assert f"{first['mean']:,.0f} ± {first['error']:,.0f}" in capsys.readouterr().out


def test_slim_keeps_what_plays_and_delete_removes_one(runs: Path) -> None:
    before = load_model(runs / "first").weights.tobytes()
    assert main(["runs", str(runs / "first"), "--slim", "--yes"]) == 0
    assert load_model(runs / "first").weights.tobytes() == before
    assert main(["runs", str(runs / "second"), "--delete", "--yes"]) == 0
    assert sorted(path.name for path in runs.iterdir()) == ["broken", "first", "notes"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--delete"], "takes the folders that it is meant for"),
        (["first", "--slim", "--delete"], "takes the folders that it is meant for"),
        (["first", "--slim"], "add --yes"),
        (["notes", "--slim", "--yes"], "is no run, and no folder of runs"),
    ],
    ids=" ".join,
)
def test_nothing_is_touched_without_a_clear_word(
    runs: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in runs.rglob("*.*")}
    monkeypatch.chdir(runs)
    assert main(["runs", *words]) == 2
    assert complaint in capsys.readouterr().err
    assert {path: path.read_bytes() for path in runs.rglob("*.*")} == before


def test_a_run_that_learns_is_left_alone(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.resume(runs / "first", games=80)
    for deed in ("--slim", "--delete"):
        assert main(["runs", str(runs / "first"), deed, "--yes"]) == 2
        assert "trains in" in capsys.readouterr().err
    run.train()
    assert run.progress.games == 80
