"""`tilesage runs`: what is there, what is made small, what is removed, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilesage import games
from tilesage.cli import main
from tilesage.cli.hint import table
from tilesage.cli.models import lines
from tilesage.cli.runs import line
from tilesage.evaluation.advice import Advice, MoveAdvice
from tilesage.learning import Run, TrainConfig, train
from tilesage.networks import load_model
from tilesage.search.agents import agent

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
    assert f"{first['mean']:,.0f} ± {first['error']:,.0f} of its last 60 training games" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "size", "told"),
    [(0, 0, "0 kB         new"), (60, 5200, "5 kB    1 minute"), (7300, 2_000_000, "2 MB     2 hours")],
)
def test_ages_and_sizes_are_words(seconds: int, size: int, told: str) -> None:
    assert told in line({"run": "one", "seconds_old": seconds, "bytes": size, "broken": ""})


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


def test_models_tell_their_figures_as_people_read_them() -> None:
    training, strength = {"mean": 26696.1, "games": 60}, {"greedy": {"mean": 214860, "stderr": 3499, "games": 1000}}
    about = {"game": "2048", "network": "012", "of": "afterstates", "bytes": 1 << 20}
    told = lines({"model": "one", **about, "training": training, "strength": strength})
    assert told[2:] == [
        "    made by: mean while training 26,696, games 60",
        "    greedy: mean 214,860 ± 3,499, games 1,000",
    ]


@pytest.mark.parametrize("loss", [0.0, 5.0])
def test_a_hint_explains_brackets_only_where_there_are_some(loss: float) -> None:
    state, player = games.get("2048").parse("2 4 8 16 0 2 4 8 0 0 2 4 0 0 0 2"), agent("random", "2048")
    moves = tuple(MoveAdvice(action, True, 0, 9.0 - loss * action, loss * action) for action in range(4))
    assert ("in brackets" in table(Advice(state, player, moves, 0, None, "figure"))) == (loss > 0)
