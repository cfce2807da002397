"""Recipes: data that is whole, the row for a budget, and what is given wins."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilesage import games
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.learning.config import TrainConfig
from tilesage.learning.recipes import Recipe, best_for, completed, presets, recipes

NAMES = [f"{row.game} {row.device} {row.seconds}" for row in recipes()]


@pytest.mark.parametrize("row", recipes(), ids=NAMES)
def test_every_row_is_a_training_that_can_begin(row: Recipe) -> None:
    config = TrainConfig(game=row.game, device=row.device, seconds=row.seconds, **row.settings)
    assert config.memory_needed() > 0
    assert 0 < row.error < row.mean
    assert min(row.moves, row.games, row.played) > 0
    assert row.measured


def test_every_game_has_a_minute_and_ten() -> None:
    for game in games.names():
        budgets = [row.seconds for row in presets(game)]
        assert budgets == sorted(set(budgets))
        assert budgets[0] <= 130, game


def test_the_row_with_the_nearest_budget() -> None:
    minute, ten, *_, longest = presets("2048")
    budgets: dict[str, tuple[dict[str, Any], Recipe]] = {
        "a second": ({"seconds": 1, "threads": 2}, minute),
        "a minute": ({"seconds": 60, "threads": 2}, minute),
        "a minute of twenty cores": ({"seconds": 60, "threads": 20}, ten),
        "ten minutes": ({"seconds": 600, "threads": 2}, ten),
        "moves": ({"moves": 10**6}, minute),
        "many moves": ({"moves": 10**12}, longest),
        "games": ({"games": 100}, minute),
        "no end": ({}, longest),
        "time before games": ({"seconds": 60, "threads": 2, "games": 10**9}, minute),
    }
    for name, (given, row) in budgets.items():
        assert best_for({"game": "2048", **given}) is row, name
    assert best_for({"game": "2048", "device": "cuda"}) is presets("2048", "cuda")[-1]
    assert best_for({"game": "2048-walls"}) is None


WAYS: list[dict[str, Any]] = [
    {"of": "states"},
    {"direction": "backward"},
    {"of": "states", "direction": "backward"},
    {"steps": 3},
    {"rule": "td"},
    {"rate": "0.1"},
    {"rule": "td", "rate": "0.1>0.01"},
    {"phases": "td:0.1:0.9,tc:1:0.1"},
    {"by_hint": False},
    {"stages": ""},
    {"stages": "TILE"},
    {"fold": "TILE"},
    {"network": "once:012,0145"},
    {"exact": True},
    {"learn_end": False, "of": "states", "direction": "backward"},
    {"network": "tiny", "decay": 0.0, "fold": "", "by_age": False, "average": False},
]


@pytest.mark.parametrize("given", WAYS, ids=str)
@pytest.mark.parametrize("row", recipes(), ids=NAMES)
def test_what_is_given_wins_and_goes_with_the_rest(row: Recipe, given: dict[str, Any]) -> None:
    game = games.get(row.game)
    if "TILE" in given.values() and game.name == "fibonacci":
        return  # has one scale, and no tile of ours to divide it at
    given = {name: str(game.tiles[11]) if value == "TILE" else value for name, value in given.items()}
    budget = {"game": row.game, "seconds": row.seconds, "threads": 2}
    found = completed(budget | given)
    assert found.items() >= given.items()
    assert TrainConfig(**found)


def test_plain_adds_nothing() -> None:
    given = {"game": "2048", "seconds": 60}
    assert completed(given, "plain") == given
    assert completed({"game": "2048-walls", "seconds": 60}) == {"game": "2048-walls", "seconds": 60}
    for own in ({"rule": "my_rules:rmsprop"}, {"phases": "td:0.1:0.5,my_rules:rmsprop:10:0.5"}):
        assert completed(given | own) == given | own
    with pytest.raises(InputError, match="a recipe is best or plain, not 'good'"):
        completed(given, "good")


def test_the_command_says_what_it_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Typed with --recipe plain, what it says is the same run."""
    words = ["train", "2048", "--network", "tiny", "--games", "20", "--threads", "1", "--quiet", "--out"]
    assert main([*words, str(tmp_path / "best")]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("learning by the best recipe known here: --")
    assert "--network" not in said
    flags = shlex.split(said.partition(": ")[2])
    assert main([*words, str(tmp_path / "typed"), "--recipe", "plain", *flags]) == 0
    assert "recipe" not in capsys.readouterr().out
    best, typed = ((tmp_path / name / "run.toml").read_text() for name in ("best", "typed"))
    assert best == typed


def test_the_page_has_the_rows_of_the_table() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "recipes.py"
    done = subprocess.run([sys.executable, str(script), "check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
