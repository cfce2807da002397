"""Which of the four moves are legal, from eight look-ups and without sliding anything.

One table serves all four directions: it says for every row whether it moves to the left and to the right; the columns
are the rows of the transposed board. The table is asked from the rules themselves, so it holds for every game. Boards
with a nibble of 15 (tiles past 32768 in 2048, the 12288 that ends phone Threes!) are rare and have rules of
their own: they are slid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import (
    LEFT,
    LOW_BITS,
    ONE,
    RIGHT,
    ROW,
    S3,
    S16,
    S32,
    S48,
    TWO,
    ZERO,
    Board,
    Whole,
    transpose,
)
from tilesage.games.game import Game


@compiled
def has_full_nibble(board: Board) -> bool:
    """Is there a tile of index 15 or more?"""
    return bool((board & (board >> ONE) & (board >> TWO) & (board >> S3) & LOW_BITS) != ZERO)


@compiled
def rows_that_move(moving: Array, board: Board) -> np.uint64:
    """Bit RIGHT is set if any row moves to the right, bit LEFT if any moves to the left."""
    return np.uint64(
        moving[board & ROW] | moving[(board >> S16) & ROW] | moving[(board >> S32) & ROW] | moving[board >> S48]
    )


@cache
def moving_rows(game: Game) -> Array:
    """[65536] for every row: bit 1 (right) and bit 3 (left) are set if it moves that way."""
    slide = game.rules.slide

    @compiled(title=f"the legal moves of {game.title}")
    def ask(rows: Array, moving: Array) -> None:
        for row in range(1 << 16):
            board = np.uint64(row)
            for action in (RIGHT, LEFT):
                after, _, _ = slide(rows, board, ZERO, action)
                if after != board:
                    moving[row] |= np.uint8(1 << action)

    moving = np.zeros(1 << 16, np.uint8)
    ask(game.rows, moving)
    moving.setflags(write=False)
    return moving


@cache
def legal_of(game: Game) -> Callable[..., Any]:
    """A compiled function (rows, moving, board, aux) -> the legal moves as four bits."""
    slide, in_aux = game.rules.slide, game.index_at is not None

    @compiled
    def slid(rows: Array, board: Board, aux: np.uint64) -> np.uint64:
        moves = ZERO
        for action in range(4):
            after, _, _ = slide(rows, board, aux, action)
            if after != board:
                moves |= ONE << np.uint64(action)
        return moves

    @compiled
    def legal(rows: Array, moving: Array, board: Board, aux: np.uint64) -> np.uint64:
        if has_full_nibble(board) or (in_aux and aux != ZERO):
            return slid(rows, board, aux)
        across, along = rows_that_move(moving, board), rows_that_move(moving, transpose(board))
        return across | (along >> S3) | ((along & TWO) << ONE)

    return legal


def legal_moves(game: Game, board: Board, aux: np.uint64) -> Whole:
    """The legal moves of a position as four bits.

    >>> from tilesage import games
    >>> state = games.get("2048").parse("1.../2.../3.../4...")
    >>> bin(legal_moves(state.game, state.board, state.aux))
    '0b10'
    """
    return int(legal_of(game)(game.rows, moving_rows(game), board, aux))
