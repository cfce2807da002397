"""Games that begin ahead: with large tiles already there.

Play that looks one move ahead hardly ever makes the tiles that a search makes: one game of Threes! (phone) in three
thousand comes to a 6144, where a deep search gets to it in almost every second. What comes after that tile nobody has
practised, and the search walks in the dark. So with `--start ahead` every second game begins with tiles of the stages
on its board, any set of them alike, and a network with stages learns what to do once they are there. (Games from the
beginning are needed, too: each tile by itself in every second game, so that a quarter begin without any of two, was
worse. docs/findings.md has the figures.)

They lie as players put them: the largest in a corner, the next ones beside it along an edge, and on in the row below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import below, draw
from tilesage.games.board import NIBBLE, ONE, TWO, ZERO, symmetry
from tilesage.games.game import Game

PLACES = (0, 1, 2, 3, 7, 6)  # cells, for the largest tile first
EIGHT = np.uint64(8)


def make_ahead(game: Game, stages: tuple[int, ...]) -> Callable[..., Any]:
    """`ahead(rows, rng) -> board, aux, rng, given`: a new game, and how many tiles of the stages it begins with."""
    start, sets = game.rules.start, np.uint64((1 << len(stages)) - 1)  # sets with at least one tile
    largest_first = tuple(np.uint64(stage) for stage in sorted(stages, reverse=True)) or (ZERO,)
    shifts = tuple(np.uint64(4 * cell) for cell in PLACES)

    @compiled
    def ahead(rows: Array, rng: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64, int]:
        board, aux, rng = start(rows, rng)
        bits, rng = draw(rng)
        way, rng = draw(rng)
        which, given = below(bits, TWO * sets), 0
        chosen = which - sets + ONE if which >= sets else ZERO
        for k in range(len(largest_first)):
            if (chosen >> np.uint64(k)) & ONE:
                board = (board & ~(NIBBLE << shifts[given])) | (largest_first[k] << shifts[given])
                given += 1
        return symmetry(board, int(below(way, EIGHT))) if given else board, aux, rng, given

    return ahead
