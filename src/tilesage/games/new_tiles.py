"""How a tile appears in 2048 and most games like it: index 1, or index 2 at some rate, on a random empty cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import below, chance_of, draw, low_half
from tilesage.games.board import ONE, ZERO, Board, Whole, count, empty_cells, nth_cell


class NewTiles(NamedTuple):
    """The rules of a game that chance follows; their signatures are those of `Rules`."""

    start: Callable[..., Any]
    deal: Callable[..., Any]
    spawn: Callable[..., Any]
    placements: Callable[..., Any]


@compiled
def no_draws(board: Board, aux: np.uint64, auxes: Array, probabilities: Array) -> int:
    """A game without a hint: nothing is drawn."""
    auxes[0] = aux
    probabilities[0] = 1.0
    return 1


@cache
def new_tiles(second_rate: float) -> NewTiles:
    """New tiles of index 2 at this rate, else 1; a game starts with two of them."""
    second = chance_of(second_rate)

    @compiled(inline=True)
    def spawn(after: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, Whole, np.uint64]:
        """A tile on a random empty cell."""
        bits, rng = draw(rng)
        empty = empty_cells(after)
        cell = nth_cell(empty, below(bits, count(empty)))
        if low_half(bits) < second:
            cell = cell << ONE
        return after | cell, aux, np.int64(0), rng

    @compiled
    def deal(board: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        """One tile of the start."""
        board, aux, _, rng = spawn(board, aux, rng)
        return board, aux, rng

    @compiled
    def start(rows: Array, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        board, aux, rng = deal(ZERO, ZERO, rng)
        return deal(board, aux, rng)

    @compiled
    def placements(after: Board, aux: np.uint64, boards: Array, auxes: Array, probabilities: Array) -> int:
        """Every empty cell with a tile of index 1, then with one of index 2."""
        empty, n = empty_cells(after), 0
        cells = float(count(empty))
        while empty != ZERO:
            cell = empty & (ZERO - empty)
            empty ^= cell
            boards[n], auxes[n], probabilities[n] = after | cell, aux, (1.0 - second_rate) / cells
            boards[n + 1], auxes[n + 1], probabilities[n + 1] = after | (cell << ONE), aux, second_rate / cells
            n += 2
        return n

    return NewTiles(start, deal, spawn, placements)
