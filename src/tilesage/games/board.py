"""The 4×4 board as 64 bits: cell i (row by row from the top left) is nibble i, a nibble is a tile's index.

0 1 2 3
4 5 6 7        up = 0, right = 1, down = 2, left = 3
8 9 a b
c d e f
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tilesage.core.compiler import compiled

Board: TypeAlias = np.uint64
Whole: TypeAlias = int | np.int64

UP, RIGHT, DOWN, LEFT = 0, 1, 2, 3
ACTIONS = ("up", "right", "down", "left")
CELLS = 16

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
S3, S4, S7, S8, S12, S16, S24, S32, S48 = (np.uint64(n) for n in (3, 4, 7, 8, 12, 16, 24, 32, 48))
S56 = np.uint64(56)
NIBBLE, ROW = np.uint64(0xF), np.uint64(0xFFFF)
LOW_BITS = np.uint64(0x1111_1111_1111_1111)
# Of every byte: the lowest bit, the low nibble, the bit above that, and the highest bit.
LOW_BYTES, LOW_NIBBLES = np.uint64(0x0101_0101_0101_0101), np.uint64(0x0F0F_0F0F_0F0F_0F0F)
CARRIES, HIGH_BITS = np.uint64(0x1010_1010_1010_1010), np.uint64(0x8080_8080_8080_8080)
COLUMN_0, COLUMN_1 = np.uint64(0x000F_000F_000F_000F), np.uint64(0x00F0_00F0_00F0_00F0)
COLUMN_2, COLUMN_3 = np.uint64(0x0F00_0F00_0F00_0F00), np.uint64(0xF000_F000_F000_F000)
ROW_1, ROW_2 = np.uint64(0x0000_0000_FFFF_0000), np.uint64(0x0000_FFFF_0000_0000)
# Transposition in two swaps: inside the 2×2 blocks, then of the blocks (Hacker's Delight, 7-3).
SWAP_CELLS, SWAP_BLOCKS = np.uint64(0x0000_F0F0_0000_F0F0), np.uint64(0x0000_0000_FF00_FF00)


@compiled
def mirror(board: Board) -> Board:
    """Left and right exchanged."""
    return (
        ((board & COLUMN_0) << S12)
        | ((board & COLUMN_1) << S4)
        | ((board & COLUMN_2) >> S4)
        | ((board & COLUMN_3) >> S12)
    )


@compiled
def flip(board: Board) -> Board:
    """Top and bottom exchanged."""
    return (board << S48) | ((board & ROW_1) << S16) | ((board & ROW_2) >> S16) | (board >> S48)


@compiled
def transpose(board: Board) -> Board:
    """Rows and columns exchanged."""
    swap = (board ^ (board >> S12)) & SWAP_CELLS
    board = board ^ swap ^ (swap << S12)
    swap = (board ^ (board >> S24)) & SWAP_BLOCKS
    return board ^ swap ^ (swap << S24)


@compiled
def symmetry(board: Board, k: int) -> Board:
    """One of the eight rotations and reflections: bit 0 mirrors, bit 1 flips, bit 2 transposes."""
    if k & 1:
        board = mirror(board)
    if k & 2:
        board = flip(board)
    if k & 4:
        board = transpose(board)
    return board


@compiled
def smallest_symmetric(board: Board) -> Board:
    """The smallest of the eight symmetric boards: the same for all of them."""
    smallest = board
    for k in range(1, 8):
        smallest = min(smallest, symmetry(board, k))
    return smallest


@compiled
def turn(board: Board, action: Whole) -> Board:
    """The board turned so that sliding in the direction of `action` is sliding left."""
    if action == UP or action == DOWN:
        board = transpose(board)
    if action == RIGHT or action == DOWN:
        board = mirror(board)
    return board


@compiled
def turn_back(board: Board, action: Whole) -> Board:
    """Undo `turn`."""
    if action == RIGHT or action == DOWN:
        board = mirror(board)
    if action == UP or action == DOWN:
        board = transpose(board)
    return board


@compiled
def empty_cells(board: Board) -> np.uint64:
    """The lowest bit of every empty cell's nibble."""
    x = board | (board >> TWO)
    return ~(x | (x >> ONE)) & LOW_BITS


@compiled
def count(cells: np.uint64) -> np.uint64:
    """How many of the nibbles' lowest bits are set."""
    pairs = (cells & LOW_BYTES) + ((cells >> S4) & LOW_BYTES)
    return (pairs * LOW_BYTES) >> S56


@compiled
def nth(cells: np.uint64, n: np.uint64) -> np.uint64:
    """The n-th set bit, from 0, alone."""
    while n > ZERO:
        cells &= cells - ONE
        n -= ONE
    return cells & (ZERO - cells)


@compiled
def nth_cell(cells: np.uint64, n: np.uint64) -> np.uint64:
    """`nth` for the nibbles' lowest bits, without a branch that the processor would guess wrong.

    A product counts, for every cell, how many of `cells` lie before it; as many cells have at most n before them as
    there are up to and with the n-th (broadword selection, Vigna 2008).
    """
    before = (cells * LOW_BITS) << S4
    bound = HIGH_BITS | (n * LOW_BYTES)
    even = (bound - (before & LOW_NIBBLES)) & HIGH_BITS
    odd = (bound - ((before >> S4) & LOW_NIBBLES)) & HIGH_BITS
    reached = (((even >> S7) + (odd >> S7)) * LOW_BYTES) >> S56
    return (ONE << ((reached - ONE) << TWO)) & cells


@compiled
def tile_at(board: Board, cell: int) -> np.uint64:
    """The index in a cell."""
    return (board >> (np.uint64(cell) << TWO)) & NIBBLE


@compiled
def with_tile(board: Board, cell: int, tile: np.uint64) -> Board:
    """The board with this tile on an empty cell."""
    return board | (np.uint64(tile) << (np.uint64(cell) << TWO))


@compiled
def holds(board: Board, tile: np.uint64) -> bool:
    """Is this nibble on the board?"""
    x = board ^ (LOW_BITS * tile)
    x |= x >> TWO
    return bool((~(x | (x >> ONE)) & LOW_BITS) != ZERO)


@compiled
def tiles_above(board: Board, tile: np.uint64) -> np.uint64:
    """The lowest bit of every nibble larger than `tile`; even and odd nibbles are compared by a carry."""
    lift = LOW_BYTES * (NIBBLE - tile)
    evens, odds = (board & LOW_NIBBLES) + lift, ((board >> S4) & LOW_NIBBLES) + lift
    return ((evens & CARRIES) >> S4) | (odds & CARRIES)


@compiled
def largest_nibble(board: Board) -> np.uint64:
    """The largest nibble on the board; larger tiles keep it at 15."""
    largest = ZERO
    for _ in range(16):
        largest = max(largest, board & NIBBLE)
        board = board >> S4
    return largest


def pack(cells: list[int]) -> Board:
    """Sixteen indices, row by row, as a board."""
    return np.uint64(sum(tile << 4 * i for i, tile in enumerate(cells)))


def unpack(board: Board) -> list[int]:
    """The sixteen indices of a board."""
    return [(int(board) >> 4 * i) & 15 for i in range(CELLS)]
