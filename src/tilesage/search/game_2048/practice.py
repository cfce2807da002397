"""A second network for a part of the game: a player of 2048 hands boards over to it that it has practised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tilesage.core.errors import InputError
from tilesage.games import Game, walls
from tilesage.search.game_2048.block import as_practised, find_block
from tilesage.search.game_2048.walls import as_walls, find_walls
from tilesage.search.specs import Spec

if TYPE_CHECKING:
    from tilesage.networks.files import Model


class Part(NamedTuple):
    """Which boards are handed over, and what of them is seen."""

    name: str  # of the option, and of the game that is practised, after that of the whole game
    find: Callable[..., Any]  # (rows of 2048, board, aux) -> how to turn it, by `symmetry`; NOWHERE if it is not
    see: Callable[..., Any]  # (turned board) -> the position of the practice
    whole: str = "2048"  # the game that this is a part of


PARTS = (Part("block", find_block, as_practised), Part("walls", find_walls, as_walls))
BEST = {"2048": {"walls": walls.NAME}}  # by game: the parts for which there is a built-in model


def practice_wanted(spec: Spec, game: Game) -> tuple[Part, Model] | None:
    """What a player is to hand over, and to which model: block=FILE or walls=FILE; `best` has the built-in ones."""
    from tilesage.networks.files import BUILT_IN, SUFFIX, load_model

    wanted = {part.name: spec.options[part.name] for part in PARTS if part.name in spec.options}
    if not wanted and spec.best:
        wanted = {part: str(BUILT_IN / f"{name}{SUFFIX}") for part, name in BEST.get(game.name, {}).items()}
    if not wanted:
        return None
    part = next(part for part in PARTS if part.name in wanted)
    if game.name != part.whole:
        raise InputError(f"{part.name} in {spec.text!r}: it is a part of {part.whole}")
    if len(wanted) > 1:
        raise InputError(f"{spec.text!r} hands the same boards over twice: write block=… or walls=…")
    if part.name == "block" and "endgames" not in spec.options:
        raise InputError(
            f"{spec.text!r} lays a block and cannot finish it: add endgames=512, which solves what follows"
        )
    model, practised = load_model(wanted[part.name]), f"{part.whole}-{part.name}"
    if model.game.name != practised:
        raise InputError(
            f"{part.name}={wanted[part.name]} has learnt {model.game.name}: train one with tilesage train {practised}"
        )
    return part, model
