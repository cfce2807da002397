"""The last layer of an expectimax search, where nearly all its time goes: chance, one more move, and the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.games import Game
from tilesage.games.board import LOW_BITS, ONE, ROW, S3, S16, TWO, ZERO, Board, count, empty_cells, transpose
from tilesage.networks.functions import ValueFunction, make_placed_value

LAST = 1  # its row of a desk's room
ALIVE = 1.0  # what being able to move is worth


def make_best_leaf(game: Game, leaves: ValueFunction) -> Callable[..., Any]:
    """`best_leaf(desk, board, aux)`: the value of a position by its best move, by the network's word."""
    slide, after_value = game.rules.slide, leaves.after_value

    @compiled
    def best_leaf(desk: Any, board: Board, aux: np.uint64) -> Number:
        best = 0.0
        for action in range(4):
            after, after_aux, reward = slide(desk.rows, board, aux, action)
            if after != board:
                v = after_value(desk.weights, desk.notes, after, after_aux)
                best = max(best, reward + max(v, 0.0) + ALIVE)
        return best

    return best_leaf


def make_last_layer(game: Game, leaves: ValueFunction) -> Callable[..., Any]:
    """`last_layer(desk, after, aux)`: the expectation of the best r + value after one more move."""
    placements, draws, best_leaf = game.rules.placements, game.rules.draws, make_best_leaf(game, leaves)
    reads_hint, placed_value = leaves.reads_hint, make_placed_value(game)

    @compiled
    def last_layer(desk: Any, after: Board, aux: np.uint64) -> Number:
        boards, auxes, shares = desk.boards[LAST], desk.auxes[LAST], desk.shares[LAST]
        hints, hint_shares = desk.hints[LAST], desk.hint_shares[LAST]
        value = 0.0
        for i in range(placements(after, aux, boards, auxes, shares)):
            value += shares[i] * placed_value(after, boards[i])
            if reads_hint:
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    value += shares[i] * hint_shares[k] * best_leaf(desk, boards[i], hints[k])
            else:
                value += shares[i] * best_leaf(desk, boards[i], auxes[i])
        return value

    return make_line_layer(game, leaves, last_layer) if game.second_rate is not None else last_layer


@compiled
def has_full_nibble(board: Board) -> bool:
    """A tile of index 15 or more is on the board, so that a slide may need `aux`."""
    return bool((board & (board >> ONE) & (board >> TWO) & (board >> S3) & LOW_BITS) != ZERO)


def make_line_layer(game: Game, leaves: ValueFunction, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The last layer of games in which any empty cell gets a tile of index 1 or 2, line by line.

    A new tile changes one row and one column, and the other lines slide as they would without it. So every direction
    is slid once, and for each empty cell one line is looked up; tiles that slide to the same place share a leaf.
    """
    after_value, second_rate, unit = leaves.after_value, game.second_rate or 0.0, game.row_unit

    @compiled
    def one_direction(desk: Any, table: Array, board: Board, empty: np.uint64, upright: bool, best: Array) -> None:
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
                        value = max(after_value(desk.weights, desk.notes, leaf, ZERO), 0.0) + ALIVE
                        last = line
                    gained = value + (others_reward + np.int64(entry >> S16) * unit)
                    j = np.int64(count(cell - ONE & LOW_BITS))
                    place = (4 * j + i if upright else 4 * i + j) + 16 * tile
                    best[place] = max(best[place], gained)

    @compiled
    def line_layer(desk: Any, after: Board, aux: np.uint64) -> Number:
        if aux != ZERO or has_full_nibble(after):
            return plain(desk, after, aux)
        best = desk.shares[0]
        best[:] = 0.0
        turned = transpose(after)
        empty, turned_empty = empty_cells(after), empty_cells(turned)
        for side in range(2):
            one_direction(desk, desk.lines[side], after, empty, False, best)
            one_direction(desk, desk.lines[side], turned, turned_empty, True, best)
        firsts, seconds = 0.0, 0.0
        for cell in range(16):
            firsts += best[cell]
            seconds += best[16 + cell]
        return ((1.0 - second_rate) * firsts + second_rate * seconds) / float(count(empty))

    return line_layer


def both_ways(rows: Array) -> Array:
    """[2, 65536] a table of rows, sliding left and sliding right."""

    def mirrored(row: Array) -> Array:
        return (row & 0xF) << 12 | (row & 0xF0) << 4 | (row & 0xF00) >> 4 | (row & 0xF000) >> 12

    right = rows[mirrored(np.arange(1 << 16))]
    return np.stack([rows, mirrored(right & 0xFFFF) | right & ~np.uint32(0xFFFF)])
