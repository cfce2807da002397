"""Games whose tiles slide far and may grow past a nibble: positions and slides that are exact for every board.

A nibble is an index up to 15. Larger tiles keep nibble 15, and the nibble of the same cell in `aux` says how much is
missing; the two that four bits cannot count to, 31 and 32, keep 14 and count from 30 on. While nobody owns a tile
past 15, `aux` is 0 and a slide is four look-ups; otherwise the rows that hold one are spelled out cell by cell, so
that a slide is exact for every board.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.games.board import ROW, S16, S32, S48, ZERO, Board, Whole, largest_nibble, tile_at, turn, turn_back

TOP, SECOND_TOP = np.uint64(15), np.uint64(14)  # the nibbles of tiles past 15, and of the two largest
LARGEST_COUNTED = np.uint64(30)


def table_of(slide_line: Callable[[list[int]], tuple[list[int], int]], unit: int = 1) -> Array:
    """[65536] for every row slid left: the new row in the low half, the reward in units in the high half."""
    table = np.zeros(1 << 16, np.uint32)
    for row in range(1 << 16):
        slid, reward = slide_line([(row >> 4 * i) & 15 for i in range(4)])
        if reward // unit > 0xFFFF:
            raise InputError(f"a row earns {reward}: rewards of a row must fit 16 bits, so take a unit above {unit}")
        table[row] = sum(min(tile, 15) << 4 * i for i, tile in enumerate(slid)) | (reward // unit) << 16
    table.setflags(write=False)
    return table


@compiled
def index_at(board: Board, aux: np.uint64, cell: int) -> np.uint64:
    """The tile on a cell; of boards that are one row, too."""
    tile, more = tile_at(board, cell), tile_at(aux, cell)
    return LARGEST_COUNTED + more if more != ZERO and tile == SECOND_TOP else tile + more


@compiled
def nibble_of(tile: np.uint64) -> np.uint64:
    """What the board keeps of a tile."""
    return SECOND_TOP if tile > LARGEST_COUNTED else min(tile, TOP)


@compiled
def rest_of(tile: np.uint64) -> np.uint64:
    """What `aux` keeps of a tile."""
    return tile - LARGEST_COUNTED if tile > LARGEST_COUNTED else tile - min(tile, TOP)


@compiled
def largest(board: Board, aux: np.uint64) -> Whole:
    """The index of the largest tile."""
    tile = largest_nibble(board)
    if aux != ZERO:
        for cell in range(16):
            tile = max(tile, index_at(board, aux, cell))
    return np.int64(tile)


def write(board: Board, aux: np.uint64) -> tuple[list[int], dict[str, str]]:
    """Indices of the sixteen tiles; these games have nothing else to say."""
    return [int(index_at(board, aux, cell)) for cell in range(16)], {}


def read(cells: list[int], fields: dict[str, str]) -> tuple[Board, np.uint64]:
    """Board and aux of these indices."""
    board = sum(int(nibble_of(np.uint64(tile))) << 4 * cell for cell, tile in enumerate(cells))
    aux = sum(int(rest_of(np.uint64(tile))) << 4 * cell for cell, tile in enumerate(cells))
    return np.uint64(board), np.uint64(aux)


class Slides(NamedTuple):
    """The slides of a game, compiled."""

    row: Callable[..., Any]  # (row, aux of the row) -> the same after, reward: cell by cell, the rule itself
    left: Callable[..., Any]  # (rows, board) -> after, reward; exact while no tile is past 15 before or after
    any: Callable[..., Any]  # (rows, board, aux, action) -> after, after_aux, reward; the move is legal if it changes


def row_slide(made_of: Callable[..., Any], tiles: tuple[int, ...]) -> Callable[..., Any]:
    """The rule itself, cell by cell: `slide_row(row, aux of the row)`. It earns the numbers on the tiles made."""
    numbers = tuple(np.int64(number) for number in tiles)

    @compiled
    def slide_row(row: np.uint64, more: np.uint64) -> tuple[np.uint64, np.uint64, Whole]:
        after, after_more, reward = ZERO, ZERO, np.int64(0)
        held, place = ZERO, ZERO
        for step in range(5):  # the fifth step lays down what is still held
            tile = index_at(row, more, step) if step < 4 else ZERO
            if tile == ZERO and step < 4:
                continue
            made = made_of(held, tile)
            laid = held
            if made != ZERO:
                laid, tile = made, ZERO
                reward += numbers[np.int64(made)]
            if laid != ZERO:
                after |= nibble_of(laid) << place
                after_more |= rest_of(laid) << place
                place += np.uint64(4)
            held = tile
        return after, after_more, reward

    return slide_row


def slides_of(made_of: Callable[..., Any], tiles: tuple[int, ...], unit: int = 1) -> Slides:
    """Slides by the table of rows and by `made_of(held, tile)`: the index that two tiles make, 0 if they stay two."""
    slide_row = row_slide(made_of, tiles)
    first_large, unit_of_table = tiles[16], np.int64(unit)  # a row that earns less has made no tile past 15

    @compiled
    def slide_exactly(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
        """Any slide: rows without a tile past 15 by the table, the others cell by cell."""
        turned, mores = turn(board, action), turn(aux, action)
        after, after_aux, reward = ZERO, ZERO, np.int64(0)
        for line in range(4):
            shift = np.uint64(16 * line)
            row, more = (turned >> shift) & ROW, (mores >> shift) & ROW
            entry = np.uint64(rows[row])
            slid, slid_more = entry & ROW, ZERO
            gained: Whole = np.int64(entry >> S16) * unit_of_table
            if more != ZERO or gained >= first_large:
                slid, slid_more, gained = slide_row(row, more)
            after |= slid << shift
            after_aux |= slid_more << shift
            reward += gained
        return turn_back(after, action), turn_back(after_aux, action), reward

    @compiled
    def slide_left(rows: Array, board: Board) -> tuple[Board, Whole]:
        a, b = np.uint64(rows[board & ROW]), np.uint64(rows[(board >> S16) & ROW])
        c, d = np.uint64(rows[(board >> S32) & ROW]), np.uint64(rows[board >> S48])
        after = (a & ROW) | ((b & ROW) << S16) | ((c & ROW) << S32) | ((d & ROW) << S48)
        return after, np.int64((a >> S16) + (b >> S16) + (c >> S16) + (d >> S16)) * unit_of_table

    @compiled(inline=True)
    def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
        after, reward = slide_left(rows, turn(board, action))
        if aux != ZERO or reward >= first_large:
            return slide_exactly(rows, board, aux, action)
        return turn_back(after, action), aux, reward

    return Slides(slide_row, slide_left, slide)
