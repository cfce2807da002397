"""The last layer of an expectimax search, where nearly all its time goes: chance, one more move, and the network.

In games in which any empty cell gets a tile of index 1 or 2, it goes line by line. A new tile changes one row and one
column, and the other lines slide as they would without it. So every direction is slid once, and for each empty cell
one line is looked up; tiles that slide to the same place share a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.games import Game
from tilesage.games.board import LOW_BITS, ONE, ROW, S16, ZERO, Board, count, empty_cells, transpose
from tilesage.games.legal import has_full_nibble
from tilesage.networks.functions import ValueFunction, make_placed_value

if TYPE_CHECKING:
    from tilesage.search.expectimax import SearchState

LAST = 1  # its row of the room in `SearchState`; row 0 is free
ALIVE = 1.0  # what being able to move is worth


class Expected(Protocol):
    """The value of an afterstate on the last layer."""

    def __call__(self, state: SearchState, after: Board, aux: np.uint64) -> Number:
        """The expectation of the best r + value after one more move."""


class LeafValue(Protocol):
    """The value of a position on the last layer."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64) -> Number:
        """That of its best move, by the network's word; 0 when no move is legal."""


class LastLayer(NamedTuple):
    """The last layer of a game on some value function."""

    expected: Expected
    leaf_value: LeafValue


def new_lines(game: Game) -> Array:
    """[2, 65536] the row table of a game, sliding left and sliding right; next to nothing where nobody reads it."""

    def mirrored(row: Array) -> Array:
        return (row & 0xF) << 12 | (row & 0xF0) << 4 | (row & 0xF00) >> 4 | (row & 0xF000) >> 12

    if game.second_rate is None:
        return np.zeros((2, 1), np.uint32)
    right = game.rows[mirrored(np.arange(1 << 16))]
    return np.stack([game.rows, mirrored(right & 0xFFFF) | right & ~np.uint32(0xFFFF)])


@cache
def build(game: Game, value: ValueFunction) -> LastLayer:
    """The last layer, compiled for this game and this value function, `value.code`."""
    general = outcome_by_outcome(game, value)
    if game.second_rate is None:
        return general
    return LastLayer(line_by_line(game, value, general.expected), general.leaf_value)


def outcome_by_outcome(game: Game, value: ValueFunction) -> LastLayer:
    """The last layer of any game: all outcomes, and all moves of each."""
    slide, placements, draws = game.rules.slide, game.rules.placements, game.rules.draws
    after_value, reads_hint, placed_value = value.after_value, value.reads_hint, make_placed_value(game)

    @compiled
    def leaf_value(state: SearchState, board: Board, aux: np.uint64) -> Number:
        best = 0.0
        for action in range(4):
            after, after_aux, reward = slide(state.rows, board, aux, action)
            if after != board:
                v = after_value(state.weights, state.notes, after, after_aux)
                best = max(best, reward + max(v, 0.0) + ALIVE)
        return best

    @compiled
    def expected(state: SearchState, after: Board, aux: np.uint64) -> Number:
        boards, auxes, shares = state.boards[LAST], state.auxes[LAST], state.shares[LAST]
        hints, hint_shares = state.hints[LAST], state.hint_shares[LAST]
        value = 0.0
        for i in range(placements(after, aux, boards, auxes, shares)):
            value += shares[i] * placed_value(after, boards[i])
            if reads_hint:
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    value += shares[i] * hint_shares[k] * leaf_value(state, boards[i], hints[k])
            else:
                value += shares[i] * leaf_value(state, boards[i], auxes[i])
        return value

    return LastLayer(expected, leaf_value)


def line_by_line(game: Game, value: ValueFunction, otherwise: Expected) -> Expected:
    """The last layer where tiles of two kinds fall on any empty cell; `otherwise` for boards with a full nibble."""
    second_rate, raise_by = game.second_rate or 0.0, one_direction(game, value)

    @compiled
    def by_lines(state: SearchState, after: Board, aux: np.uint64) -> Number:
        if aux != ZERO or has_full_nibble(after):
            return otherwise(state, after, aux)
        best = state.shares[0]
        best[:] = 0.0
        turned = transpose(after)
        empty, turned_empty = empty_cells(after), empty_cells(turned)
        for side in range(2):
            raise_by(state, state.lines[side], after, empty, False, best)
            raise_by(state, state.lines[side], turned, turned_empty, True, best)
        firsts, seconds = 0.0, 0.0
        for cell in range(16):
            firsts += best[cell]
            seconds += best[16 + cell]
        return ((1.0 - second_rate) * firsts + second_rate * seconds) / float(count(empty))

    return by_lines


def one_direction(game: Game, value: ValueFunction) -> Callable[..., None]:
    """`raise_by(state, table, board, empty, upright, best)`, the part of one direction of the slide."""
    after_value, unit = value.after_value, game.row_unit

    @compiled
    def raise_by(
        state: SearchState, table: Array, board: Board, empty: np.uint64, upright: bool, best: Array
    ) -> None:
        """Raise `best` [cell, tile] by what sliding all rows by `table` gains; `upright`: rows are columns."""
        slid, reward, moving = ZERO, np.int64(0), 0
        for i in range(4):
            shift = np.uint64(16 * i)
            row = (board >> shift) & ROW
            entry = np.uint64(table[row])
            slid |= (entry & ROW) << shift
            reward += np.int64(entry >> S16) * unit
            moving += (entry & ROW) != row
        for i in range(4):
            shift = np.uint64(16 * i)
            free = (empty >> shift) & ROW
            if free == ZERO:
                continue
            row = (board >> shift) & ROW
            entry = np.uint64(table[row])
            others_move = moving - ((entry & ROW) != row) > 0
            others_reward = reward - np.int64(entry >> S16) * unit
            others = slid & ~(ROW << shift)
            for tile in range(2):
                last, value = ROW, 0.0
                left = free
                while left != ZERO:
                    cell = left & (ZERO - left)
                    left ^= cell
                    filled = row | cell << np.uint64(tile)
                    entry = np.uint64(table[filled])
                    line = entry & ROW
                    if line == filled and not others_move:
                        continue
                    if line != last:
                        leaf = others | line << shift
                        if upright:
                            leaf = transpose(leaf)
                        value = max(after_value(state.weights, state.notes, leaf, ZERO), 0.0) + ALIVE
                        last = line
                    gained = value + (others_reward + np.int64(entry >> S16) * unit)
                    j = np.int64(count(cell - ONE & LOW_BITS))
                    place = (4 * j + i if upright else 4 * i + j) + 16 * tile
                    best[place] = max(best[place], gained)

    return raise_by
