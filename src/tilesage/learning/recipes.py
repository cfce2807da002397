"""Recipes: which settings learn best for a game, a device and a budget, as far as it was measured.

In come the settings that somebody gave; out go the same with what the recipe adds. The rows, each with the figure
that it reached, are data: recipes.toml.
"""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from tilesage.core.errors import InputError
from tilesage.learning import registry
from tilesage.learning.config import TrainConfig, rules_in

BEST, PLAIN = "best", "plain"
CORES = 2  # that the rows of the CPU were measured on
DEFAULTS = {field.name: field.default for field in fields(TrainConfig)}
# What the recipe leaves out because a setting that was given does not go with it.
GIVES_WAY = {
    "rule": {"rate", "phases"},
    "rate": {"phases"},
    "phases": {"rule", "rate"},
    "steps": {"decay"},
    "by_hint": {"turned"},
    "stages": {"start", "fold"},
    "fold": {"start", "stages"},
    "of": {"fold", "by_age", "by_hint", "turned", "stages", "start"},
    "direction": {"fold", "by_age"},
}


@dataclass(frozen=True)
class Recipe:
    """One row of the table: what to learn with, on what budget, and what it gave."""

    game: str
    device: str
    seconds: float
    """The budget: of two cores, or of one GPU."""
    moves: int
    games: int
    settings: Mapping[str, Any]
    """Those of `TrainConfig` that are not its defaults."""
    mean: float
    """Mean points of so many greedy games, and one standard error of it."""
    error: float
    played: int
    measured: str
    """Where, and under which seed."""

    @property
    def flags(self) -> str:
        """The settings as they are typed."""
        return flags_of(self.settings)


@cache
def recipes() -> tuple[Recipe, ...]:
    """All rows."""
    text = resources.files(__package__).joinpath("recipes.toml").read_text(encoding="utf-8")
    return tuple(Recipe(**row) for row in tomllib.loads(text)["recipe"])


def presets(game: str, device: str = "cpu") -> list[Recipe]:
    """The rows of a game, the smallest budget first; none for a game that nobody has measured.

    >>> [preset.seconds for preset in presets("2048")][:2]
    [60, 600]
    """
    rows = [row for row in recipes() if (row.game, row.device) == (game, device)]
    return sorted(rows, key=lambda row: row.seconds)


def best_for(settings: Mapping[str, Any]) -> Recipe | None:
    """The row whose budget is nearest to that of the settings, by its logarithm; the largest if there is no end."""
    whole = {**DEFAULTS, **settings}
    rows = presets(whole["game"], whole["device"])
    share = whole["threads"] / CORES if whole["device"] == "cpu" else 1
    budgets = {"seconds": whole["seconds"] * share, "moves": whole["moves"], "games": whole["games"]}
    limit = next((limit for limit, budget in budgets.items() if budget > 0), None)
    if limit is None or not rows:
        return rows[-1] if rows else None
    return min(rows, key=lambda row: abs(math.log(budgets[limit] / getattr(row, limit))))


def completed(given: Mapping[str, Any], recipe: str = BEST) -> dict[str, Any]:
    """The settings that were given, and what the recipe adds to them. What was given wins.

    A rule from outside gets nothing added: no recipe was measured with it.

    >>> completed({"game": "2048", "seconds": 60, "network": "4x6", "direction": "backward"})
    {'network': '4x6', 'decay': 0.5, 'game': '2048', 'seconds': 60, 'direction': 'backward'}
    """
    if recipe not in (BEST, PLAIN):
        raise InputError(f"a recipe is {BEST} or {PLAIN}, not {recipe!r}")
    row = best_for(given) if recipe == BEST and rules_in(dict(given)) <= registry.BUILT_IN.keys() else None
    if row is None:
        return dict(given)
    meant = {**DEFAULTS, **row.settings}
    other = [name for name, value in given.items() if value != meant.get(name)]
    without = set[str]().union(*(GIVES_WAY.get(name, ()) for name in other))
    return {name: value for name, value in row.settings.items() if name not in without} | dict(given)


def flags_of(settings: Mapping[str, Any]) -> str:
    """Settings as they are typed.

    >>> flags_of({"network": "8x6", "by_age": True, "turned": False, "rate": "1>0.05"})
    "--network 8x6 --by-age --no-turned --rate '1>0.05'"
    """
    words = []
    for name, value in settings.items():
        flag = name.replace("_", "-")
        plain = isinstance(value, bool)
        words += [f"--{'no-' if value is False else ''}{flag}"] if plain else [f"--{flag}", shlex.quote(str(value))]
    return " ".join(words)
