"""Board games of the 2048 family: rules, chance, and what every other room builds on.

A new game is one file beside this one and one line in `REGISTRY`. The classes below are imported when first used:
they bring the compiler along, which those who only want a name or an `InputError` should not wait for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from .errors import InputError
from .lazy import lazily

if TYPE_CHECKING:
    from .game import Game, Rules
    from .play import Afterstate, State

__all__ = ["Afterstate", "Game", "InputError", "REGISTRY", "Rules", "State", "get", "names"]

REGISTRY = {
    "2048": "g2048",
    "threes": "threes",
    "threes-phone": "threes_phone",
}
# Parts of a game, to be trained and handed to its players; nobody plays them.
PRACTICE = {"2048-block": "block", "2048-walls": "walls"}
__getattr__ = lazily(__name__, {"Game": ".game", "Rules": ".game", "State": ".play", "Afterstate": ".play"})


def names() -> list[str]:
    return list(REGISTRY)


def get(name: str, **parameters: float) -> Game:
    """The game of this name; 2048 takes `four_rate`, the share of fours among the new tiles."""
    known = REGISTRY | PRACTICE
    if name not in known:
        raise InputError(f"unknown game {name!r}: write one of {', '.join(REGISTRY)}")
    module = importlib.import_module(f".{known[name]}", __package__)
    if parameters and name != "2048":
        raise InputError(f"{name} takes no parameters, 2048 takes four_rate")
    if "four_rate" in parameters and not 0 <= parameters["four_rate"] <= 1:
        raise InputError(f"four_rate is a probability from 0 to 1, not {parameters['four_rate']}")
    return cast("Game", module.game(**parameters))
