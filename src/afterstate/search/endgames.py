"""Endgames of 2048, solved: a chain of large tiles that keeps its place, and ten or eleven cells for the small ones.

A strong player lays its largest tiles out in a snake, each beside the next smaller one:

    16384  8192  4096  2048
        .     .   512  1024
        .     .     .     .
        .     .     .     .

One more tile like the last link, beside it, and they merge, one after the other. Most games of strong players end
before that, within a few dozen moves in the cells that are left. What happens there is a small game of its own, which
can be solved: a slide keeps the sum of the tiles and a new tile adds to it, so from the largest sum to the smallest

    chance(position)   = max over slides of chance(afterstate), 1 where the last link is merged
    chance(afterstate) = Σ probability · chance(position)

counting slides that leave the links in their cells, and slides from which the opposite one brings them back at once.
The size of the links does not matter, only that of the last one, the target: a table serves every chain above it.

Tables hold the positions whose small tiles add up to no more than the target and ROOM. A position is two halves; the
low halves are ranked by their sum, so those that go with a high half are the first ones.

A search that has such a table plays by it once the chain is there (`overrule`): its own values only choose between
moves that are as good.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.board import ONE, ZERO, Board, symmetry, tile_at, tiles_above, turn, turn_back
from afterstate.games.compiler import Array, kernel, rule, rule_for
from afterstate.games.g2048 import slide_left, sum_of_tiles
from afterstate.values.files import memory_of_this_machine

from .kinds import Number

SNAKE = (0, 1, 2, 3, 7, 6)  # the cells of the links, the largest first; the sixth may be left out
FEWEST, MOST = 5, 6  # links
LOW, HIGH = (5, 4, 8, 9, 10, 6), (11, 12, 13, 14, 15)  # the cells of the two halves
SIZES = 16
ROOM = 64  # how far the sum of the small tiles may go beyond the target
CERTAIN, NONE = np.float32(1), np.float32(0)
WHOLE = 65535  # a chance of 1 in a table
PART = np.float32(1 / WHOLE)
LEAST = 0.6  # with less hope than this by the tables, the search is on its own
CLOSE = 0.0003  # chances that differ by less are equal


class Endgames(NamedTuple):
    """The tables of some chains, by their number of links and the exponent of their target."""

    chances: Any  # [positions] uint16, in parts of WHOLE
    ranks: Any  # [low halves of all tables] int32
    offsets: Any  # [high halves of all tables, and one more each] int64, where the chances of a high half begin
    places: Any  # [links - FEWEST, target, 2] int64, where ranks and offsets of a table begin; -1 where there is none


class Layout(NamedTuple):
    """The positions of a table, half by half."""

    target: Any  # [1] uint64
    low_boards: Any  # [low halves] uint64, by rank
    low_starts: Any  # [sums / 2] int32, the first rank with a sum
    high_boards: Any  # [high halves] uint64, by number
    high_sums: Any  # [high halves] int64


@rule
def limit_of(target: Number) -> Number:
    """The largest sum of small tiles that a table knows."""
    return (1 << target) + ROOM


@rule
def falls(board: Board, links: int) -> bool:
    """Is every link smaller than the one before it?"""
    falling = True
    for i in range(1, links):
        falling = falling and bool(tile_at(board, SNAKE[i]) < tile_at(board, SNAKE[i - 1]))
    return falling


class Rules(NamedTuple):
    """The small game beside so many links, compiled for a share of fours."""

    has: Callable[..., Any]  # (endgames, turned) -> is this board in a table?
    of_slide: Callable[..., Any]  # (endgames, rows, board, turning, action) -> the chance, -1 where illegal
    fill_in: Callable[..., Any]  # (endgames, rows, layout, total, high, first, step): solve a part of a sum


def cells_of(links: int, unit: int = 15) -> np.uint64:
    """A mask of the links, or another nibble in each of their cells."""
    return np.uint64(sum(unit << 4 * cell for cell in SNAKE[:links]))


def make_expected(links: int, four_rate: float) -> Callable[..., Any]:
    """`expected(endgames, target, after)`: the chance of an afterstate with every link in its place."""
    kind, low_cells, key = links - FEWEST, len(LOW) - (links - FEWEST), (links, four_rate)
    twos, fours = np.float32(1.0 - four_rate), np.float32(four_rate)

    @rule_for(*key)
    def chance_at(endgames: Endgames, target: np.uint64, low: Number, high: Number) -> Number:
        """The chance of a position; 0 past the limit."""
        ranks, offsets = endgames.places[kind, target, 0], endgames.places[kind, target, 1]
        rank, first = np.int64(endgames.ranks[ranks + low]), endgames.offsets[offsets + high]
        if rank >= endgames.offsets[offsets + high + 1] - first:
            return NONE
        return np.float32(endgames.chances[first + rank]) * PART

    @rule_for(*key)
    def expected(endgames: Endgames, target: np.uint64, after: Board) -> Number:
        """The mean over what the next tile makes of it. The digits of a half's number are its tiles."""
        base = np.int64(target) + 1
        low = high = np.int64(0)
        for i in range(low_cells):
            low = low * base + np.int64(tile_at(after, LOW[low_cells - 1 - i]))
        for i in range(len(HIGH)):
            high = high * base + np.int64(tile_at(after, HIGH[len(HIGH) - 1 - i]))
        total, empty, digit = NONE, 0, np.int64(1)
        for i in range(low_cells):
            if tile_at(after, LOW[i]) == ZERO:
                total += twos * chance_at(endgames, target, low + digit, high)
                total += fours * chance_at(endgames, target, low + 2 * digit, high)
                empty += 1
            digit *= base
        digit = np.int64(1)
        for i in range(len(HIGH)):
            if tile_at(after, HIGH[i]) == ZERO:
                total += twos * chance_at(endgames, target, low, high + digit)
                total += fours * chance_at(endgames, target, low, high + 2 * digit)
                empty += 1
            digit *= base
        return total / np.float32(empty)

    return expected


def make_of_slide(links: int, four_rate: float) -> Callable[..., Any]:
    """`of_slide(endgames, rows, board, turning, action)`: the chance after a slide, -1 where it is illegal."""
    chain, others, last, key = cells_of(links), cells_of(links - 1), SNAKE[links - 1], (links, four_rate)
    twos, fours, expected = np.float32(1.0 - four_rate), np.float32(four_rate), make_expected(links, four_rate)

    @rule_for(*key)
    def in_place(endgames: Endgames, target: np.uint64, before: Board, after: Board) -> Number:
        """The chance of an afterstate whose links are where they were before, -1 if they are not."""
        if (after & chain) == (before & chain):
            if (tiles_above(after, target) & ~chain) != ZERO:  # two targets have merged somewhere else
                return NONE
            return expected(endgames, target, after)
        if (after & others) == (before & others) and tile_at(after, last) == target + ONE:
            return CERTAIN
        return -CERTAIN

    @rule_for(*key)
    def of_slide(endgames: Endgames, rows: Array, board: Board, turning: int, action: int) -> Number:
        """The chance after this slide. `turning` is the symmetry by which the links lie along the snake."""
        before, after = symmetry(board, turning), slid(rows, board, action)
        if after == board:
            return -CERTAIN
        target = tile_at(before, last)
        chance = in_place(endgames, target, before, symmetry(after, turning))
        if chance >= NONE:
            return chance
        total, empty = NONE, 0  # it moves a link: what if the opposite slide comes next?
        for cell in range(16):
            if tile_at(after, cell) == ZERO:
                empty += 1
                for tile in range(2):
                    placed = after | (np.uint64(1 + tile) << np.uint64(4 * cell))
                    back = symmetry(slid(rows, placed, action ^ 2), turning)
                    total += max(in_place(endgames, target, before, back), NONE) * (fours if tile else twos)
        return total / np.float32(empty)

    return of_slide


def make_fill_in(links: int, four_rate: float, of_slide: Callable[..., Any]) -> Callable[..., Any]:
    """`fill_in(endgames, rows, layout, total, high, first, step)`: solve a part of the positions with a sum."""
    kind, ones = links - FEWEST, cells_of(links, 1)
    steps = np.uint64(sum((links - 1 - i) << 4 * cell for i, cell in enumerate(SNAKE[:links])))

    @rule_for(links, four_rate)
    def fill_in(
        endgames: Endgames, rows: Array, layout: Layout, total: int, high: int, first: int, step: int
    ) -> None:
        """The chances of positions with this sum and high half, every `step`-th of them."""
        target, left = layout.target[0], (total - layout.high_sums[high]) // 2
        if left < 0 or left + 1 >= layout.low_starts.size:
            return
        fixed = (ones * target + steps) | layout.high_boards[high]
        row = endgames.offsets[endgames.places[kind, target, 1] + high]
        rank, end = np.int64(layout.low_starts[left]) + first, np.int64(layout.low_starts[left + 1])
        while rank < end:
            best, board = NONE, fixed | layout.low_boards[rank]
            for action in range(4):
                best = max(best, of_slide(endgames, rows, board, 0, action))
            endgames.chances[row + rank] = np.uint16(best * WHOLE + np.float32(0.5))
            rank += step

    return fill_in


@cache
def make_rules(links: int, four_rate: float) -> Rules:
    """The rules of the small game, made once."""
    kind, last, chain, of_slide = links - FEWEST, SNAKE[links - 1], cells_of(links), make_of_slide(links, four_rate)

    @rule_for(links)
    def has(endgames: Endgames, turned: Board) -> bool:
        target = tile_at(turned, last)
        return bool(
            endgames.places[kind, target, 0] >= 0
            and falls(turned, links)
            and (tiles_above(turned, target) & ~chain) == ZERO
            and np.int64(sum_of_tiles(turned & ~chain, ZERO)) <= limit_of(np.int64(target)) - 4
        )

    return Rules(has, of_slide, make_fill_in(links, four_rate, of_slide))


@rule
def slid(rows: Array, board: Board, action: int) -> Board:
    """A slide in the loop that solves: without what the game's own does for merges past 32768, where no link gets."""
    return turn_back(slide_left(rows, turn(board, action))[0], action)


@rule
def leave(endgames: Any, rows: Array, board: Board, values: Array, chances: Array) -> None:
    """What a search without endgames does with its values instead of `overrule`."""


@cache
def make_overrule(four_rate: float) -> Callable[..., Any]:
    """`overrule(endgames, rows, board, values, chances)`: where a table has the board, it decides.

    The value of a move that has less of a chance becomes as much less than that of the best move. `chances` is room
    for four numbers.
    """
    fewer, more = make_rules(FEWEST, four_rate), make_rules(MOST, four_rate)
    has_fewer, of_fewer, has_more, of_more = fewer.has, fewer.of_slide, more.has, more.of_slide

    @rule_for(four_rate)
    def chance_of(endgames: Endgames, rows: Array, board: Board, found: int, action: int) -> Number:
        if found < 8:
            return of_fewer(endgames, rows, board, found, action)
        return of_more(endgames, rows, board, found - 8, action)

    @rule_for(four_rate)
    def find(endgames: Endgames, board: Board) -> int:
        """How to turn the board, 8 more for a chain of more links; -1 where no table has it."""
        for k in range(16):
            turned = symmetry(board, k & 7)
            if has_fewer(endgames, turned) if k < 8 else has_more(endgames, turned):
                return k
        return -1

    @rule_for(four_rate)
    def overrule(endgames: Endgames, rows: Array, board: Board, values: Array, chances: Array) -> None:
        found, most, best = find(endgames, board), -1.0, -np.inf
        for action in range(4 if found >= 0 else 0):
            chances[action] = chance_of(endgames, rows, board, found, action)
            most = max(most, chances[action])
        if most < LEAST:
            return
        for action in range(4):
            if chances[action] >= most - CLOSE:
                best = max(best, values[action])
        for action in range(4):
            if 0.0 <= chances[action] < most - CLOSE:
                values[action] = min(values[action], best * chances[action] / most)

    return overrule


def halves(target: int, cells: Sequence[int]) -> tuple[Array, Array]:
    """The boards and sums of all halves, by number."""
    base = target + 1
    numbers = np.arange(base ** len(cells))
    boards, sums = np.zeros(numbers.size, np.uint64), np.zeros(numbers.size, np.int64)
    for i, cell in enumerate(cells):
        tiles = numbers // base**i % base
        boards |= tiles.astype(np.uint64) << np.uint64(4 * cell)
        sums += (1 << tiles) & ~1
    return boards, sums


def lay_out(tables: Sequence[tuple[int, int]]) -> tuple[Endgames, list[Layout]]:
    """Tables of (links, target) with no room for the chances yet, and what is in them."""
    layouts: list[Layout] = []
    ranks, offsets, places = [], [], np.full((MOST - FEWEST + 1, SIZES, 2), -1, np.int64)
    states = ranked = begun = 0
    for links, target in tables:
        low_boards, low_sums = halves(target, LOW[: len(LOW) - (links - FEWEST)])
        high_boards, high_sums = halves(target, HIGH)
        by_sum, limit = np.argsort(low_sums, kind="stable"), limit_of(target)
        starts = np.searchsorted(low_sums[by_sum], np.arange(0, limit + 4, 2)).astype(np.int32)
        lengths = np.where(high_sums <= limit, starts[np.maximum(limit - high_sums, 0) // 2 + 1], 0)
        layouts.append(Layout(np.array([target], np.uint64), low_boards[by_sum], starts, high_boards, high_sums))
        places[links - FEWEST, target] = ranked, begun
        ranks.append(np.argsort(by_sum, kind="stable").astype(np.int32))
        offsets.append(states + np.concatenate([[0], np.cumsum(lengths)]))
        states, ranked, begun = int(offsets[-1][-1]), ranked + ranks[-1].size, begun + offsets[-1].size
    return Endgames(np.zeros(0, np.uint16), np.concatenate(ranks), np.concatenate(offsets), places), layouts


def solve(game: Game, tables: Sequence[tuple[int, int]], threads: int = 0) -> Endgames:
    """The tables of (links, target), on the CPU. Says so, for it takes minutes."""
    endgames, layouts = lay_out(tables)
    positions, threads = int(endgames.offsets[-1]), threads or os.cpu_count() or 1
    if 2 * positions > memory_of_this_machine() * 0.8:
        raise Mistake(
            f"these endgames need {gigabytes(positions)} of memory: take a smaller target, or --device cuda"
        )
    if not os.environ.get("AFTERSTATE_QUIET"):
        print(f"solving endgames: {positions / 1e6:,.0f} million positions …", file=sys.stderr, flush=True)
    endgames = endgames._replace(chances=np.zeros(positions, np.uint16))
    with ThreadPoolExecutor(threads) as pool:
        for (links, target), layout in zip(tables, layouts):
            fill = make_fill(links, game.parameters["four_rate"])
            bounds = np.linspace(0, layout.high_sums.size, 8 * threads + 1).astype(int)
            for total in range(limit_of(target), -1, -2):
                parts = [pool.submit(fill, endgames, game.rows, layout, total, *part) for part in pairwise(bounds)]
                for part in parts:
                    part.result()
    return endgames


@lru_cache(maxsize=1)
def solved_once(game: Game, tables: tuple[tuple[int, int], ...]) -> Endgames:
    """The tables on the CPU, for all players of this process."""
    return solve(game, tables)


def gigabytes(positions: int) -> str:
    return f"{2 * positions / 2**30:.1f} GB"


@cache
def make_fill(links: int, four_rate: float) -> Callable[..., Any]:
    """The loop over some of the positions with a sum."""
    fill_in = make_rules(links, four_rate).fill_in

    @kernel("fill", links, four_rate, title="endgames")
    def fill(endgames: Endgames, rows: Array, layout: Layout, total: int, first: int, last: int) -> None:
        for high in range(first, last):
            fill_in(endgames, rows, layout, total, high, 0, 1)

    return fill
