"""Board games of the 2048 family: rules, chance, and what every other package but core/ builds on.

A new game is one file beside this one and one line in `REGISTRY`; or a file of one's own, found by `module:attribute`
or by an entry point. The classes below are imported when first used: they bring the compiler along, which those who
only want a name or an `InputError` should not wait for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tilesage.core.errors import InputError
from tilesage.core.lazy import lazily
from tilesage.games import outside

if TYPE_CHECKING:
    from tilesage.games.game import Game, Rules
    from tilesage.games.state import Afterstate, State

__all__ = [
    "DEFAULT_GAME",
    "Afterstate",
    "Game",
    "InputError",
    "REGISTRY",
    "Rules",
    "State",
    "get",
    "names",
    "parse_parameters",
]

DEFAULT_GAME = "2048"
REGISTRY = {
    "2048": "g2048",
    "threes": "threes",
    "threes-phone": "threes_phone",
    "fibonacci": "fibonacci",
}
# Games that begin late in another one, to train a specialist network for its endgame; nobody plays them.
PRACTICE_GAMES = {"2048-block": "block", "2048-walls": "walls"}
__getattr__ = lazily(
    __name__,
    {"Game": ".game", "Rules": ".game", "State": ".state", "Afterstate": ".state"},
)


def names() -> list[str]:
    """The games that can be played: those of this package, those that others offer, and those asked for so far."""
    return [*REGISTRY, *outside.names()]


def get(name: str, **parameters: float) -> Game:
    """The game of this name, with these parameters of its rules; 2048 takes `four_rate`, the share of fours.

    The same parameters give the same object, however they are written.
    """
    make = _maker(name)
    game = make()
    for key, value in parameters.items():
        if key not in game.takes:
            known = ", ".join(game.takes) or "none"
            raise InputError(f"{name} has no parameter {key}; it takes: {known}")
        about, low, high = game.takes[key]
        if not low <= value <= high:
            raise InputError(f"{key} is {about}, a number from {low:g} to {high:g}, not {value}")
    others = {key: value for key, value in sorted(parameters.items()) if game.parameters.get(key) != value}
    return make(**others) if others else game


def parse_parameters(text: str) -> dict[str, float]:
    """Parameters of a game as they are written in flags and files.

    >>> parse_parameters("four_rate=0.2")
    {'four_rate': 0.2}
    """
    found = {}
    for word in text.replace(",", " ").split():
        name, _, value = word.partition("=")
        try:
            found[name.replace("-", "_")] = float(value)
        except ValueError:
            raise InputError(f"{word!r} is no parameter of a game: write one such as four_rate=0.2") from None
    return found


def parameters_known(more: Sequence[str] = ()) -> set[str]:
    """The parameters that any game takes, those of `more` games included."""
    return {parameter for game in all_games(more) for parameter in game.takes}


def all_games(more: Sequence[str] = ()) -> list[Game]:
    """Every game that can be played, and `more`; those from outside that cannot be had are left out."""
    found = []
    for name in [*names(), *more]:
        with suppress(InputError):
            found.append(get(name))
    return found


def _maker(name: str) -> Callable[..., Game]:
    known = REGISTRY | PRACTICE_GAMES
    if name in known:
        make: Callable[..., Game] = importlib.import_module(f".{known[name]}", __package__).game
        return make
    from_outside = outside.maker(name)
    if from_outside is None:
        raise InputError(f"unknown game {name!r}: write one of {', '.join(names())}, or my_module:my_game")
    return from_outside
