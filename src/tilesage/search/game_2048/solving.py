"""Solving endgames (endgames.py), from the largest sum of small tiles to the smallest.

A slide keeps the sum of the tiles and a new tile adds to it, so

    chance(position)   = max over slides of chance(afterstate), 1 where the last link is merged
    chance(afterstate) = Σ probability · chance(position)

counting slides that leave the links in their cells, and, where there is none, a slide from which the opposite one
brings them back at once. Chances are at hand for a few sums only; what stays is which slides are best.
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

from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.games import Game
from tilesage.games.board import ONE, ZERO, Board, tile_at, tiles_above, turn, turn_back, with_tile
from tilesage.games.g2048 import slide_left
from tilesage.networks.files import memory_of_this_machine
from tilesage.search.game_2048 import table_cache as shelf
from tilesage.search.game_2048.endgames import (
    CHAINS,
    SIZES,
    Chain,
    Endgames,
    halves_of,
    kind_of,
    limit_of,
    make_number_of,
    mask_of,
)

KEPT = 3  # sums whose chances are at hand: one, and the two that a new tile leads to
CERTAIN, NONE = np.float32(1), np.float32(0)
WHOLE = 65535  # a chance of 1, where it is kept in 16 bits
PART, HALF = np.float32(1 / WHOLE), np.float32(0.5)
LEAST = (0.6, 0.02)  # with less hope than this beside a snake, beside a block, the search is on its own
CLOSE = 0.0003  # slides whose chances differ by less are equal


class Layout(NamedTuple):
    """The positions of a table, half by half."""

    target: Any  # [1] uint64
    low_boards: Any  # [low halves] uint64, by rank
    low_numbers: Any  # [low halves] int64, by rank
    low_starts: Any  # [sums / 2 + 1] int64, the first rank with a sum
    high_boards: Any  # [high halves] uint64, by number
    high_sums: Any  # [high halves] int64


class Chances(NamedTuple):
    """Chances with the last few sums, in parts of WHOLE. A sum has the room [sum / 2 mod KEPT]."""

    positions: Any  # [KEPT, positions with a sum] uint16
    afterstates: Any  # [KEPT, positions with a sum] uint16
    offsets: Any  # [KEPT, high halves] int64, to be added to the rank of a low half


class Rules(NamedTuple):
    """The small game beside a chain, compiled for a share of fours."""

    expect_in: Callable[..., Any]  # (chances, ranks, layout, total, high, first, step): solve afterstates
    choose_in: Callable[..., Any]  # (endgames, chances, rows, layout, total, high, first, step): solve positions


def least_of(chain: Chain) -> float:
    """The chance from which on a table is followed."""
    return LEAST[kind_of(chain) // 2]


def make_expect_in(chain: Chain, four_rate: float) -> Callable[..., Any]:
    """`expect_in(chances, ranks, layout, total, high, first, step)`: afterstates with a sum and a high half."""
    low_cells, high_cells = halves_of(chain)
    twos, fours = np.float32(1.0 - four_rate), np.float32(four_rate)

    @compiled
    def of_new_tile(chances: Chances, total: int, limit: int, two: int, four: int) -> Number:
        """What a 2 or a 4 in one cell leads to, by the places of the two positions; nothing past the limit."""
        chance = NONE
        if total + 2 <= limit:
            chance += twos * np.float32(chances.positions[(total // 2 + 1) % KEPT, two])
        if total + 4 <= limit:
            chance += fours * np.float32(chances.positions[(total // 2 + 2) % KEPT, four])
        return chance

    @compiled
    def expect_in(
        chances: Chances, ranks: Array, layout: Layout, total: int, high: int, first: int, step: int
    ) -> None:
        """Every `step`-th of them."""
        base, limit = np.int64(layout.target[0]) + 1, limit_of(np.int64(layout.target[0]))
        left = (total - layout.high_sums[high]) // 2
        if left < 0 or left + 1 >= layout.low_starts.size:
            return
        to_two, to_four = chances.offsets[(total // 2 + 1) % KEPT], chances.offsets[(total // 2 + 2) % KEPT]
        rank, end = layout.low_starts[left] + first, layout.low_starts[left + 1]
        while rank < end:
            low, board = layout.low_numbers[rank], layout.low_boards[rank] | layout.high_boards[high]
            mean, empty, digit = NONE, 0, np.int64(1)
            for i in range(len(low_cells)):
                if tile_at(board, low_cells[i]) == ZERO:
                    empty += 1
                    two, four = to_two[high] + ranks[low + digit], to_four[high] + ranks[low + 2 * digit]
                    mean += of_new_tile(chances, total, limit, two, four)
                digit *= base
            digit = np.int64(1)
            for i in range(len(high_cells)):
                if tile_at(board, high_cells[i]) == ZERO:
                    empty += 1
                    two, four = to_two[high + digit] + rank, to_four[high + 2 * digit] + rank
                    mean += of_new_tile(chances, total, limit, two, four)
                digit *= base
            place = chances.offsets[total // 2 % KEPT, high] + rank
            chances.afterstates[total // 2 % KEPT, place] = np.uint16(mean / np.float32(max(empty, 1)) + HALF)
            rank += step

    return expect_in


def make_choose(chain: Chain, four_rate: float) -> Callable[..., Any]:
    """`choose(chances, ranks, rows, board, total)`: the chance of a position, and its best slides as bits."""
    links, others, last = mask_of(chain), mask_of(chain[:-1]), chain[-1]
    twos, fours, number_of = np.float32(1.0 - four_rate), np.float32(four_rate), make_number_of(chain)
    least = np.float32(least_of(chain))

    @compiled
    def in_place(chances: Chances, ranks: Array, before: Board, after: Board, total: int) -> Number:
        """The chance of an afterstate whose links are where they were before, -1 if they are not."""
        target = tile_at(before, last)
        if (after & links) != (before & links):
            merged = (after & others) == (before & others) and tile_at(after, last) == target + ONE
            return CERTAIN if merged else -CERTAIN
        if (tiles_above(after, target) & ~links) != ZERO or total > limit_of(np.int64(target)):
            return NONE  # two targets have merged somewhere else, or it takes too long
        low, high = number_of(after, np.int64(target) + 1)
        now = total // 2 % KEPT
        return np.float32(chances.afterstates[now, chances.offsets[now, high] + ranks[low]]) * PART

    @compiled
    def there_and_back(chances: Chances, ranks: Array, rows: Array, board: Board, total: int, action: int) -> Number:
        """The chance of a slide with the opposite one after it."""
        after, mean, empty = slid(rows, board, action), NONE, 0
        if after == board:
            return -CERTAIN
        for cell in range(16):
            if tile_at(after, cell) == ZERO:
                empty += 1
                for tile in range(1, 3):
                    back = slid(rows, with_tile(after, cell, np.uint64(tile)), action ^ 2)
                    chance = in_place(chances, ranks, board, back, total + 2 * tile)
                    mean += max(chance, NONE) * (twos if tile == 1 else fours)
        return mean / np.float32(empty)

    @compiled
    def choose(chances: Chances, ranks: Array, rows: Array, board: Board, total: int) -> tuple[Number, Number]:
        best, slides = -CERTAIN, 0
        for way in range(2):
            for action in range(4):
                if way == 0:
                    after = slid(rows, board, action)
                    chance = in_place(chances, ranks, board, after, total) if after != board else -CERTAIN
                else:
                    chance = there_and_back(chances, ranks, rows, board, total, action)
                if chance > best + np.float32(CLOSE):
                    slides = 0
                if chance >= NONE and chance >= best - np.float32(CLOSE):
                    slides |= 1 << action
                best = max(best, chance)
            if best >= NONE:
                break
        return max(best, NONE), slides if best >= least else 0

    return choose


def make_choose_in(chain: Chain, four_rate: float) -> Callable[..., Any]:
    """`choose_in(endgames, chances, rows, layout, total, high, first, step)`: positions with sum and high half."""
    choose, kind = make_choose(chain, four_rate), kind_of(chain)
    ones = np.uint64(sum(1 << 4 * cell for cell in chain))
    steps = np.uint64(sum(i << 4 * cell for i, cell in enumerate(reversed(chain))))

    @compiled
    def choose_in(
        endgames: Endgames,
        chances: Chances,
        rows: Array,
        layout: Layout,
        total: int,
        high: int,
        first: int,
        step: int,
    ) -> None:
        """Every `step`-th byte of them."""
        target, now, left = layout.target[0], total // 2 % KEPT, (total - layout.high_sums[high]) // 2
        if left < 0 or left + 1 >= layout.low_starts.size:
            return
        ranks = endgames.ranks[endgames.places[kind, target, 0] :]
        row = endgames.offsets[endgames.places[kind, target, 1] + high] // 2
        fixed = (ones * target + steps) | layout.high_boards[high]
        start, end = layout.low_starts[left], layout.low_starts[left + 1]
        two = start // 2 + first
        while 2 * two < end:
            byte = np.int64(endgames.slides[row + two])
            for half in range(2):
                rank = 2 * two + half
                if start <= rank < end:
                    chance, slides = choose(chances, ranks, rows, fixed | layout.low_boards[rank], total)
                    chances.positions[now, chances.offsets[now, high] + rank] = np.uint16(chance * WHOLE + HALF)
                    byte = (byte & (240 >> 4 * half)) | (slides << 4 * half)
            endgames.slides[row + two] = np.uint8(byte)
            two += step

    return choose_in


@cache
def make_rules(chain: Chain, four_rate: float) -> Rules:
    """The rules of the small game, made once."""
    return Rules(make_expect_in(chain, four_rate), make_choose_in(chain, four_rate))


@compiled
def slid(rows: Array, board: Board, action: int) -> Board:
    """A slide in the loop that solves: without what the game's own does for merges past 32768, where no link gets."""
    return turn_back(slide_left(rows, turn(board, action))[0], action)


def all_halves(target: int, cells: Sequence[int]) -> tuple[Array, Array]:
    """The boards and sums of all halves, by number."""
    base = target + 1
    numbers = np.arange(base ** len(cells))
    boards, sums = np.zeros(numbers.size, np.uint64), np.zeros(numbers.size, np.int64)
    for i, cell in enumerate(cells):
        tiles = numbers // base**i % base
        boards |= tiles.astype(np.uint64) << np.uint64(4 * cell)
        sums += (1 << tiles) & ~1
    return boards, sums


def lay_out(tables: Sequence[tuple[Chain, int]]) -> tuple[Endgames, list[Layout], int]:
    """Tables of (chain, target) with no room for the slides yet, what is in them, and how many bytes they need."""
    layouts: list[Layout] = []
    ranks, offsets, places = [], [], np.full((len(CHAINS), SIZES, 2), -1, np.int64)
    positions = ranked = begun = 0
    for chain, target in tables:
        (low_boards, low_sums), (high_boards, high_sums) = (all_halves(target, cells) for cells in halves_of(chain))
        by_rank, limit = np.argsort(low_sums, kind="stable"), limit_of(target)
        starts = np.searchsorted(low_sums[by_rank], np.arange(0, limit + 4, 2)).astype(np.int64)
        layouts.append(
            Layout(np.array([target], np.uint64), low_boards[by_rank], by_rank, starts, high_boards, high_sums)
        )
        lengths = np.where(high_sums <= limit, starts[np.maximum(limit - high_sums, 0) // 2 + 1], 0)
        ends = positions + np.cumsum(lengths + lengths % 2)
        places[kind_of(chain), target] = ranked, begun
        ranks.append(np.argsort(by_rank, kind="stable").astype(np.int32))
        offsets.append(np.concatenate([[positions], ends[:-1]]))
        positions, ranked, begun = int(ends[-1]), ranked + by_rank.size, begun + high_sums.size
    endgames = Endgames(np.zeros(0, np.uint8), np.concatenate(ranks), np.concatenate(offsets), places)
    return endgames, layouts, positions // 2


def sums_of(layout: Layout) -> range:
    """The sums of small tiles, from the largest."""
    return range(limit_of(int(layout.target[0])), -1, -2)


def by_high_half(layout: Layout, total: int) -> tuple[Array, int]:
    """Where positions with this sum lie, high half by high half (less the rank of the first), and their number."""
    left = (total - layout.high_sums) // 2
    there = (left >= 0) & (left + 1 < layout.low_starts.size)
    first = layout.low_starts[np.where(there, left, 0)]
    ends = np.cumsum(np.where(there, layout.low_starts[np.where(there, left + 1, 0)] - first, 0))
    return np.concatenate([[0], ends[:-1]]) - first, int(ends[-1])


def new_chances(layout: Layout, new: Callable[[Any, Any], Any]) -> Chances:
    """Room for a few sums, by `new(shape, type)`."""
    room = max(by_high_half(layout, total)[1] for total in sums_of(layout))
    positions, afterstates = new((KEPT, room), np.uint16), new((KEPT, room), np.uint16)
    return Chances(positions, afterstates, new((KEPT, layout.high_sums.size), np.int64))


def solve(game: Game, tables: Sequence[tuple[Chain, int]], threads: int = 0, kept: bool = False) -> Endgames:
    """The tables of (chain, target), on the CPU; `kept` on disk, or taken from there."""
    known, layouts, size = lay_out(tables)
    threads = threads or processors()
    if size > memory_of_this_machine() * 0.8:
        raise InputError(
            f"these endgames need {shelf.gigabytes(size)} of memory: take a smaller target, or the device cuda"
        )
    endgames = known._replace(slides=np.zeros(size, np.uint8))
    begins = [int(known.offsets[known.places[kind_of(chain), target, 1]]) // 2 for chain, target in tables]
    parts = [endgames.slides[begin:end] for begin, end in pairwise([*begins, size])]
    names = [name_of(game, *table) for table in tables]
    missing = [i for i, name in enumerate(names) if not (kept and shelf.take(name, parts[i]))]
    if missing:
        sizes = [parts[i].size for i in missing]
        say(sum(sizes), shelf.promise(sizes) if kept else "")
    for i in missing:
        solve_table(game, endgames, *tables[i], layouts[i], threads)
        if kept:
            shelf.keep(names[i], parts[i])
    return endgames


def name_of(game: Game, chain: Chain, target: int) -> str:
    """What a table is called on disk: the cells of its links, its target, the share of fours."""
    return f"{''.join(f'{cell:x}' for cell in chain)}-{1 << target}-{game.parameters['four_rate']:g}"


def solve_table(game: Game, endgames: Endgames, chain: Chain, target: int, layout: Layout, threads: int) -> Chances:
    """Fill in the best slides of one table; returns the chances with the smallest sums."""
    expect, choose = make_loops(chain, game.parameters["four_rate"])
    ranks, chances = endgames.ranks[endgames.places[kind_of(chain), target, 0] :], new_chances(layout, np.zeros)
    parts = list(pairwise(np.linspace(0, layout.high_sums.size, 16 * threads + 1).astype(int)))
    with ThreadPoolExecutor(threads) as pool:
        for total in sums_of(layout):
            chances.offsets[total // 2 % KEPT], _ = by_high_half(layout, total)
            in_turn(pool, parts, expect, chances, ranks, layout, total)
            in_turn(pool, parts, choose, endgames, chances, game.rows, layout, total)
    return chances


def in_turn(pool: ThreadPoolExecutor, parts: Sequence[tuple[int, int]], loop: Callable[..., Any], *rest: Any) -> None:
    """Run a loop on all parts, and wait for it."""
    for done in [pool.submit(loop, *rest, *part) for part in parts]:
        done.result()


@lru_cache(maxsize=1)
def solved_once(game: Game, tables: tuple[tuple[Chain, int], ...]) -> Endgames:
    """The tables on the CPU, for all players of this process, and on disk for the next one."""
    return solve(game, tables, kept=True)


def say(size: int, kept: str = "") -> None:
    """A line while nothing else is to be seen; `kept` says where the tables will be next time."""
    if not os.environ.get("TILESAGE_QUIET"):
        print(f"solving endgames: {2 * size / 1e6:,.0f} million positions …{kept}", file=sys.stderr, flush=True)


@cache
def make_loops(chain: Chain, four_rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops over some of the high halves: afterstates with a sum, then positions with it."""
    expect_in, choose_in = make_rules(chain, four_rate)

    @compiled(title="endgames")
    def expect(chances: Chances, ranks: Array, layout: Layout, total: int, first: int, last: int) -> None:
        for high in range(first, last):
            expect_in(chances, ranks, layout, total, high, 0, 1)

    @compiled(title="endgames")
    def choose(
        endgames: Endgames, chances: Chances, rows: Array, layout: Layout, total: int, first: int, last: int
    ) -> None:
        for high in range(first, last):
            choose_in(endgames, chances, rows, layout, total, high, 0, 1)

    return expect, choose
