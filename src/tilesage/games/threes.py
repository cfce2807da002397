"""Threes!, the course variant: every tile moves at most one cell, and the next tile is known before the move.

Index 1, 2, 3 are the tiles 1, 2, 3; from there every index doubles the tile, up to 14 = 6144, which never merges.
A 1 and a 2 make a 3; from 3 on equal tiles make the next one. The new tile, shown as the hint, enters on the side
opposite to the slide. Tiles come from a bag of {1, 2, 3}, drawn without putting back.

`aux` of a position:      bits 0-1 the hint · bits 2-4 which of 1, 2, 3 are in the bag, which is never empty
`aux` of an afterstate:   also bits 8-9 the direction of the slide, which says where the hint tile may land
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.core.random import below, draw
from tilesage.games.board import (
    DOWN,
    LEFT,
    NIBBLE,
    ONE,
    ROW,
    S4,
    S8,
    S16,
    S32,
    S48,
    TWO,
    UP,
    ZERO,
    Board,
    Whole,
    count,
    empty_cells,
    largest_nibble,
    nth,
    nth_cell,
    turn,
    turn_back,
)
from tilesage.games.game import Game, Hint, Rules

TILES = (0, 1, 2, 3, *(3 * 2**k for k in range(1, 12)))
HIGHEST = 14  # 6144
STARTING_TILES = 9
THREE = np.uint64(3)
FULL_BAG = np.uint64(0b111)
BAG_BITS = np.uint64(0b11100)
TOP_ROW, BOTTOM_ROW = np.uint64(0x1111), np.uint64(0x1111_0000_0000_0000)
LEFT_COLUMN, RIGHT_COLUMN = np.uint64(0x0001_0001_0001_0001), np.uint64(0x1000_1000_1000_1000)


def value_of_tile(index: int) -> int:
    """3 is worth 3, and every doubling of the tile triples its worth; 1 and 2 are worth nothing."""
    return 3 ** (index - 2) if index >= 3 else 0


def merged(a: int, b: int, highest: int) -> int:
    """The index that two tiles make, or 0 if they do not merge."""
    if {a, b} == {1, 2}:
        return 3
    return a + 1 if a == b and 3 <= a < highest else 0


def slide_line(line: list[int], highest: int = HIGHEST) -> tuple[list[int], int]:
    """A line of indices, slid one cell towards its start, and the value gained.

    From the wall on, the first empty cell is filled or the first pair merges, and all behind it move up one.

    >>> slide_line([0, 1, 0, 3])
    ([1, 0, 3, 0], 0)
    >>> slide_line([1, 2, 3, 3])
    ([3, 3, 3, 0], 3)
    >>> slide_line([4, 3, 3, 5])
    ([4, 4, 5, 0], 3)
    >>> slide_line([14, 14, 1, 1])
    ([14, 14, 1, 1], 0)
    """
    for i in range(3):
        behind = [*line[i + 2 :], 0]
        if line[i] == 0:
            return [*line[:i], line[i + 1], *behind], 0
        made = merged(line[i], line[i + 1], highest)
        if made:
            return [*line[:i], made, *behind], value_of_tile(made) - value_of_tile(line[i]) - value_of_tile(
                line[i + 1]
            )
    return line, 0


def row_table(highest: int) -> Array:
    """[65536] for every row slid left: the new row in the low half, the value gained in the high half."""
    table = np.zeros(1 << 16, np.uint64)
    for row in range(1 << 16):
        slid, gained = slide_line([(row >> 4 * i) & 15 for i in range(4)], highest)
        table[row] = sum(tile << 4 * i for i, tile in enumerate(slid)) | gained << 32
    table.setflags(write=False)
    return table


@compiled
def slide_left(rows: Array, board: Board) -> tuple[Board, Whole]:
    """All four rows slid left, and the value gained."""
    a, b = rows[board & ROW], rows[(board >> S16) & ROW]
    c, d = rows[(board >> S32) & ROW], rows[board >> S48]
    after = (a & ROW) | ((b & ROW) << S16) | ((c & ROW) << S32) | ((d & ROW) << S48)
    return after, np.int64((a >> S32) + (b >> S32) + (c >> S32) + (d >> S32))


@compiled
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """The afterstate and the value gained. The move is legal if the board changed."""
    after, reward = slide_left(rows, turn(board, action))
    return turn_back(after, action), aux | (np.uint64(action) << S8), reward


@compiled
def entry_side(action: Whole) -> np.uint64:
    """The border opposite to the slide, as the lowest bits of its cells."""
    if action == UP:
        return BOTTOM_ROW
    if action == DOWN:
        return TOP_ROW
    if action == LEFT:
        return RIGHT_COLUMN
    return LEFT_COLUMN


@compiled
def entry_cells(after: Board, aux: np.uint64) -> np.uint64:
    """The empty cells on which the hint tile may land."""
    return empty_cells(after) & entry_side(np.int64((aux >> S8) & THREE))


@compiled
def hint_of(aux: np.uint64) -> np.uint64:
    """The next tile: 1, 2 or 3."""
    return aux & THREE


@compiled
def bag_without(bag: np.uint64, tile: np.uint64) -> np.uint64:
    """The bag after a tile (its bit) was drawn, filled again when that was the last one."""
    rest = bag ^ tile
    return FULL_BAG if rest == ZERO else rest


@compiled
def tiles_in(bag: np.uint64) -> np.uint64:
    """How many tiles are left in the bag."""
    return (bag & ONE) + ((bag >> ONE) & ONE) + (bag >> TWO)


@compiled
def draw_hint(board: Board, aux: np.uint64, rng: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Draw the next hint from the bag."""
    bag = (aux & BAG_BITS) >> TWO
    bits, rng = draw(rng)
    tile = nth(bag, below(bits, tiles_in(bag)))  # 1, 2 or 4: the bit of the tile 1, 2 or 3
    hint = THREE if tile > TWO else tile
    return hint | (bag_without(bag, tile) << TWO), rng


@compiled
def value_of_index(tile: np.uint64) -> Whole:
    """What a tile adds to the score: 0 for 1 and 2, 3 for a 3, and three times as much for every doubling."""
    value = np.int64(0)
    if tile >= THREE:
        value = np.int64(3)
        for _ in range(np.int64(tile) - 3):
            value *= 3
    return value


@compiled
def spawn(after: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, Whole, np.uint64]:
    """The hint tile lands on a random cell of the entry side, and the next hint is drawn."""
    cells = entry_cells(after, aux)
    bits, rng = draw(rng)
    tile = hint_of(aux)
    board = after | (nth_cell(cells, below(bits, count(cells))) * tile)
    aux, rng = draw_hint(board, aux, rng)
    return board, aux, value_of_index(tile), rng


def starts_of(draw_hint: Callable[..., Any], full: np.uint64, hint_bits: np.uint64) -> tuple[Any, Any]:
    """`start` and `deal`, with hints by `draw_hint(board, aux, rng)`; the first one is drawn with `full` as aux."""

    @compiled
    def deal(board: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        """One tile of the start, on any empty cell; the first one (aux = 0) is drawn from all tiles."""
        if aux == ZERO:
            aux, rng = draw_hint(board, full, rng)
        bits, rng = draw(rng)
        empty = empty_cells(board)
        board |= nth_cell(empty, below(bits, count(empty))) * (aux & hint_bits)
        aux, rng = draw_hint(board, aux, rng)
        return board, aux, rng

    @compiled
    def start(rows: Array, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        """Nine tiles, then the hint."""
        board, aux = ZERO, ZERO
        for _ in range(STARTING_TILES):
            board, aux, rng = deal(board, aux, rng)
        return board, aux, rng

    return start, deal


start, deal = starts_of(draw_hint, BAG_BITS, THREE)


@compiled
def placements(after: Board, aux: np.uint64, boards: Array, auxes: Array, probabilities: Array) -> int:
    """The hint tile on every cell it may land on."""
    cells, n = entry_cells(after, aux), 0
    share = 1.0 / float(count(cells))
    while cells != ZERO:
        cell = cells & (ZERO - cells)
        cells ^= cell
        boards[n], auxes[n], probabilities[n] = after | (cell * hint_of(aux)), aux & BAG_BITS, share
        n += 1
    return n


@compiled
def draws(board: Board, aux: np.uint64, auxes: Array, probabilities: Array) -> int:
    """Every tile of the bag as the next hint."""
    bag, n = aux >> TWO, 0
    for tile in range(1, 4):
        bit = ONE << np.uint64(tile - 1)
        if bag & bit:
            auxes[n], probabilities[n] = np.uint64(tile) | (bag_without(bag, bit) << TWO), 1.0 / float(tiles_in(bag))
            n += 1
    return n


@compiled
def value_of_board(board: Board, aux: np.uint64) -> Whole:
    """The score: the values of all tiles."""
    value = np.int64(0)
    for _ in range(16):
        value += value_of_index(board & NIBBLE)
        board = board >> S4
    return value


@compiled
def largest(board: Board, aux: np.uint64) -> Whole:
    """The index of the largest tile."""
    return np.int64(largest_nibble(board))


@compiled
def sum_of_tiles(board: Board, aux: np.uint64) -> np.uint64:
    """The sum of the numbers on the tiles: a slide keeps it (1 + 2 = 3, 3 + 3 = 6), a new tile adds to it."""
    total = ZERO
    for _ in range(16):
        index = board & NIBBLE
        total += index if index < THREE else THREE << (index - THREE)
        board = board >> S4
    return total


@cache
def game() -> Game:
    """The Threes! of the course: every next tile is known."""
    return Game(
        name="threes",
        key="threes",
        title="Threes!",
        summary="one cell a slide, 1 + 2 = 3, the next tile is known (course variant)",
        tiles=TILES,
        goal=TILES.index(384),
        rows=row_table(HIGHEST),
        rules=Rules(start, deal, slide, spawn, placements, draws, value_of_board, largest, sum_of_tiles),
        starting_tiles=STARTING_TILES,
        score_is_value=True,
        max_placements=4,
        max_draws=3,
        write=write,
        read=read,
        merged=lambda one, other: merged(one, other, HIGHEST),
        slides_far=False,
        hint=Hint(bits=2, copies=1),
        scales=True,
    )


def write(board: Board, aux: np.uint64) -> tuple[list[int], dict[str, str]]:
    """Indices of the sixteen tiles, the hint, and what is left in the bag."""
    bag = "".join(str(tile) for tile in (1, 2, 3) if int(aux) >> (tile + 1) & 1)
    return [int(board) >> 4 * i & 15 for i in range(16)], {"hint": str(int(aux) & 3), "bag": bag}


def read(cells: list[int], fields: dict[str, str]) -> tuple[Board, np.uint64]:
    """Board and aux of these indices, a hint, and what is in the bag; an InputError where they do not fit."""
    hint = fields.get("hint", "")
    if hint not in ("1", "2", "3"):
        raise InputError(f"Threes! needs the next tile: add hint=1, hint=2 or hint=3 (got {hint or 'none'})")
    bag = fields.get("bag", "".join(tile for tile in "123" if tile != hint))
    if not bag or set(bag) - set("123") or len(set(bag)) != len(bag):
        raise InputError(f"bag={bag[:20]} is no bag: write the tiles still in it, such as bag=13 (full: bag=123)")
    board = sum(tile << 4 * i for i, tile in enumerate(cells))
    return np.uint64(board), np.uint64(int(hint) | sum(1 << (int(tile) + 1) for tile in bag))
