"""What a checkpoint says is not believed: compiled loops follow its indices without looking.

A file may be damaged, or made to do harm. Before anything learns from it, every array must have the kind and shape
that this run expects, every number must be finite, every index must stay inside its table, and every position must be
one of the game.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games.game import Game
from tilesage.learning.ahead import PLACES
from tilesage.learning.thread_state import CANDIDATES, LONGEST, NO_GAME

ENTRIES = ("entries", "state_entries", "ring", "age")  # of the tables
STAGED = ("weights", "mean", "looked")  # entries of later stages that were never learnt are NaN
RANGES = {
    "length": (NO_GAME, LONGEST - 2),
    "origin": (0, len(PLACES)),
    "oldest": (0, LONGEST - 2),
    "legal": (0, CANDIDATES),
}


def put_back(ours: Mapping[str, Array], stored: Mapping[str, Array], game: Game, size: int, later: slice) -> None:
    """Copy `stored` into `ours`, the arrays of a fresh trainer of this run, one after another.

    Raises an InputError unless it can take their place; the trainer is of no use then. `size` is that of the tables;
    `later` are the stages after the first, in which not all is learnt.
    """
    for name, found in checked(ours, stored, later):
        np.copyto(ours[name], found)
    for thread in sorted({name.partition(".")[0] for name in ours if "." in name}):
        own = {name.removeprefix(f"{thread}."): ours[name] for name in ours if name.startswith(f"{thread}.")}
        _check_thread(own, size, game)


def checked(ours: Mapping[str, Array], stored: Mapping[str, Array], later: slice) -> Iterator[tuple[str, Array]]:
    """All arrays, one after another: they must be of the kinds and shapes of ours, and hold numbers."""
    for name, array in ours.items():
        if name not in stored:
            raise InputError(f"{name} is missing")
        found = stored[name]
        if found.shape != array.shape or found.dtype != array.dtype:
            raise InputError(f"{name} is {found.dtype}{found.shape}, this run needs {array.dtype}{array.shape}")
        sure, unsure = [found], found[:0]
        if name in STAGED:
            sure, unsure = [found[: later.start], found[later.stop :]], found[later]
        if array.dtype.kind == "f" and not (all(map(_finite, sure)) and not np.isinf(unsure).any()):
            raise InputError(f"{name} holds numbers that are infinite or not numbers at all")
        yield name, found


def _finite(numbers: Array) -> bool:
    return not numbers.size or bool(np.isfinite([numbers.min(), numbers.max()]).all())


def _check_thread(thread: Mapping[str, Array], size: int, game: Game) -> None:
    for name, (low, high) in RANGES.items():
        if thread[name].min() < low or thread[name].max() > high:
            raise InputError(f"{name} is out of range")
    for name in ENTRIES:
        if name in thread and thread[name].size and thread[name].max() >= size:
            raise InputError(f"{name} points outside the tables")
    check_positions(game, thread["board"], thread["aux"])
    if game.hint and thread["path_auxes"].shape[1] == LONGEST:  # the position before the first hint has no table
        for length, auxes in zip(thread["length"], thread["path_auxes"]):
            if not (auxes[: max(0, length)] & np.uint64((1 << game.hint.bits) - 1)).all():
                raise InputError("a position without its next tile")
    for g in range(len(thread["legal"])):
        _check_moves(
            game, {name: thread[name][g] for name in ("board", "aux", "legal", "afters", "auxes", "rewards")}
        )


def check_positions(game: Game, boards: Array, auxes: Array) -> None:
    """Large tiles, hints, bags and decks must be ones that the game can write and read back."""
    used = np.flatnonzero(auxes)
    if game.max_draws == 1:  # no next tile to be known
        pairs = {(int(boards[i]), int(auxes[i])) for i in used}
    else:
        pairs = {(0, aux) for aux in np.unique(auxes[used]).tolist()}
        if (boards[auxes == 0] != 0).any():
            raise InputError("a position without its next tile")
    for board, aux in pairs:
        indices, fields = game.write(np.uint64(board), np.uint64(aux))
        if max(indices) >= len(game.tiles) or [int(x) for x in game.read(indices, fields)] != [board, aux]:
            raise InputError(f"a position that {game.name} does not have")


def _check_moves(game: Game, slot: Mapping[str, Array]) -> None:
    """The legal moves kept with a position must be its legal moves."""
    board, aux, count = slot["board"], slot["aux"], int(slot["legal"])
    if not count:
        return
    slides = [game.rules.slide(game.rows, board, aux, action) for action in range(4)]
    legal = [tuple(map(int, slide)) for slide in slides if slide[0] != board]
    kept = [tuple(int(slot[name][k]) for name in ("afters", "auxes", "rewards")) for k in range(count)]
    if kept != legal:
        raise InputError("moves that do not belong to their position")
