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

counting slides that leave the links in their cells, and, where there is none, a slide from which the opposite one
brings them back at once. The size of the links does not matter, only that of the last one, the target: a table serves
every chain above it, and holds the positions whose small tiles add up to no more than the target and ROOM.

What is kept of a position is which slides are best, four bits, none of them where there is little hope. Chances are
at hand for a few sums only. A position is two halves; the low halves are ranked by their sum, so those with a sum
follow each other, and those that go with a high half are the first ones.

A search that has such a table plays by it once the chain is there (`overrule`): its own values only choose between
slides that are as good.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from afterstate.games import Game, Mistake, block
from afterstate.games.board import ONE, ZERO, Board, symmetry, tile_at, tiles_above, turn, turn_back, with_tile
from afterstate.games.compiler import Array, kernel, rule, rule_for
from afterstate.games.g2048 import slide_left, sum_of_tiles
from afterstate.values.files import memory_of_this_machine

from . import shelf
from .kinds import Number

Chain: TypeAlias = tuple[int, ...]  # the cells of the links, the largest link first

SNAKE: Chain = (0, 1, 2, 3, 7, 6)
FEWEST = 5  # links
BLOCK: Chain = block.CELLS
CHAINS = (SNAKE[:FEWEST], SNAKE, BLOCK[:FEWEST], BLOCK)
SIZES = 16
ROOM = 64  # how far the sum of the small tiles may go beyond the target
KEPT = 3  # sums whose chances are at hand: one, and the two that a new tile leads to
CERTAIN, NONE = np.float32(1), np.float32(0)
WHOLE = 65535  # a chance of 1, where it is kept in 16 bits
PART, HALF = np.float32(1 / WHOLE), np.float32(0.5)
LEAST = (0.6, 0.02)  # with less hope than this beside a snake, beside a block, the search is on its own
CLOSE = 0.0003  # slides whose chances differ by less are equal


class Endgames(NamedTuple):
    """The best slides with some chains, by chain and the exponent of its target."""

    slides: Any  # [positions / 2] uint8, a bit for each of the best slides; the lower half of a byte comes first
    ranks: Any  # [low halves of all tables] int32
    offsets: Any  # [high halves of all tables] int64, where the positions of a high half begin: an even number
    places: Any  # [chain, target, 2] int64, where ranks and offsets of a table begin; -1 where there is none


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


@rule
def limit_of(target: Number) -> Number:
    """The largest sum of small tiles that a table knows."""
    return (1 << target) + ROOM


def kind_of(chain: Chain) -> int:
    """Where a chain has its tables; shapes that nobody plays take the place of a snake."""
    return CHAINS.index(chain) if chain in CHAINS else len(chain) - FEWEST


def least_of(chain: Chain) -> float:
    """The chance from which on a table is followed."""
    return LEAST[kind_of(chain) // 2]


def mask_of(chain: Chain) -> np.uint64:
    """The nibbles of the links."""
    return np.uint64(sum(15 << 4 * cell for cell in chain))


def halves_of(chain: Chain) -> tuple[Chain, Chain]:
    """The cells of the small tiles, in two halves."""
    others = tuple(cell for cell in range(16) if cell not in chain)
    return others[:-5], others[-5:]


@cache
def make_number_of(chain: Chain) -> Callable[..., Any]:
    """`number_of(board, base)`: the numbers of its halves. Tiles are their digits, the first cell's the lowest."""
    low_cells, high_cells = halves_of(chain)

    @rule_for(chain)
    def number_of(board: Board, base: Number) -> tuple[Number, Number]:
        low = high = np.int64(0)
        for i in range(len(low_cells)):
            low = low * base + np.int64(tile_at(board, low_cells[len(low_cells) - 1 - i]))
        for i in range(len(high_cells)):
            high = high * base + np.int64(tile_at(board, high_cells[len(high_cells) - 1 - i]))
        return low, high

    return number_of


def make_expect_in(chain: Chain, four_rate: float) -> Callable[..., Any]:
    """`expect_in(chances, ranks, layout, total, high, first, step)`: afterstates with a sum and a high half."""
    (low_cells, high_cells), key = halves_of(chain), (chain, four_rate)
    twos, fours = np.float32(1.0 - four_rate), np.float32(four_rate)

    @rule_for(*key)
    def of_new_tile(chances: Chances, total: int, limit: int, two: int, four: int) -> Number:
        """What a 2 or a 4 in one cell leads to, by the places of the two positions; nothing past the limit."""
        chance = NONE
        if total + 2 <= limit:
            chance += twos * np.float32(chances.positions[(total // 2 + 1) % KEPT, two])
        if total + 4 <= limit:
            chance += fours * np.float32(chances.positions[(total // 2 + 2) % KEPT, four])
        return chance

    @rule_for(*key)
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
    links, others, last, key = mask_of(chain), mask_of(chain[:-1]), chain[-1], (chain, four_rate)
    twos, fours, number_of = np.float32(1.0 - four_rate), np.float32(four_rate), make_number_of(chain)
    least = np.float32(least_of(chain))

    @rule_for(*key)
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

    @rule_for(*key)
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

    @rule_for(*key)
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

    @rule_for(chain, four_rate)
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
def make_look(chain: Chain) -> Callable[..., Any]:
    """`look(endgames, turned)`: the best slides of a board that lies as in the table; 0 where none are known."""
    kind, links, number_of = kind_of(chain), mask_of(chain), make_number_of(chain)
    practised = chain in CHAINS[2:]  # nobody builds a block but who has practised it
    given, third = block.GIVEN, block.THIRD

    @rule_for(chain)
    def look(endgames: Endgames, turned: Board) -> Number:
        target = tile_at(turned, chain[-1])
        known = endgames.places[kind, target, 0] >= 0 and (tiles_above(turned, target) & ~links) == ZERO
        known = known and (not practised or tile_at(turned, chain[given - 1]) >= third)
        for i in range(1, len(chain)):
            known = known and tile_at(turned, chain[i]) < tile_at(turned, chain[i - 1])
        if not known or np.int64(sum_of_tiles(turned & ~links, ZERO)) > limit_of(np.int64(target)):
            return 0
        low, high = number_of(turned, np.int64(target) + 1)
        place = endgames.offsets[endgames.places[kind, target, 1] + high]
        place += endgames.ranks[endgames.places[kind, target, 0] + low]
        return (np.int64(endgames.slides[place // 2]) >> (4 * (place % 2))) & 15

    return look


@cache
def make_rules(chain: Chain, four_rate: float) -> Rules:
    """The rules of the small game, made once."""
    return Rules(make_expect_in(chain, four_rate), make_choose_in(chain, four_rate))


@rule
def slid(rows: Array, board: Board, action: int) -> Board:
    """A slide in the loop that solves: without what the game's own does for merges past 32768, where no link gets."""
    return turn_back(slide_left(rows, turn(board, action))[0], action)


@rule
def turned_action(action: int, k: int) -> int:
    """Where a slide goes on a board that was turned by `symmetry(board, k)`."""
    if k & (2 - (action & 1)):
        action ^= 2
    return 3 - action if k & 4 else action


@cache
def make_best_slides() -> Callable[..., Any]:
    """`best_slides(endgames, board)`: the best slides by the tables, as bits; 0 where none are known."""
    five, six, five_of_block, six_of_block = (make_look(chain) for chain in CHAINS)

    @rule_for()
    def best_slides(endgames: Endgames, board: Board) -> Number:
        for i in range(16):
            k = i & 7
            turned = symmetry(board, k)
            found = five(endgames, turned) if i < 8 else six(endgames, turned)
            if found == 0:
                found = five_of_block(endgames, turned) if i < 8 else six_of_block(endgames, turned)
            if found != 0:
                slides = 0
                for action in range(4):
                    slides |= ((found >> turned_action(action, k)) & 1) << action
                return slides
        return 0

    return best_slides


@rule
def leave(endgames: Any, board: Board, values: Array) -> None:
    """What a search without endgames does with its values instead of `overrule`."""


@cache
def make_overrule() -> Callable[..., Any]:
    """`overrule(endgames, board, values)`: where a table has the board, it decides.

    A slide that is not among the best gets a value below theirs. One that is may be new to the search, which has then
    no value for it (nan).
    """
    best_slides = make_best_slides()

    @rule_for()
    def overrule(endgames: Endgames, board: Board, values: Array) -> None:
        slides, best = best_slides(endgames, board), -np.inf
        for action in range(4):
            if (slides >> action) & 1 and not math.isnan(values[action]):
                best = max(best, values[action])
        for action in range(4):
            if slides != 0 and (slides >> action) & 1 == 0 and values[action] >= best:
                values[action] = best - 1.0 if best > -np.inf else -1.0
        for action in range(4):
            if (slides >> action) & 1 and math.isnan(values[action]):
                values[action] = best - 0.5 if best > -np.inf else 0.0

    return overrule


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
    threads = threads or os.cpu_count() or 1
    if size > memory_of_this_machine() * 0.8:
        raise Mistake(f"these endgames need {gigabytes(size)} of memory: take a smaller target, or --device cuda")
    endgames = known._replace(slides=np.zeros(size, np.uint8))
    begins = [int(known.offsets[known.places[kind_of(chain), target, 1]]) // 2 for chain, target in tables]
    parts = [endgames.slides[begin:end] for begin, end in pairwise([*begins, size])]
    names = [name_of(game, *table) for table in tables]
    missing = [i for i, name in enumerate(names) if not (kept and shelf.take(name, parts[i]))]
    if missing:
        say(sum(parts[i].size for i in missing), shelf.folder() if kept else None)
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


def say(size: int, place: Path | None = None) -> None:
    """A line while nothing else is to be seen, with the folder in which tables are kept."""
    if not os.environ.get("AFTERSTATE_QUIET"):
        where = f" (kept in {place}, {gigabytes(size)})" if place else ""
        print(f"solving endgames: {2 * size / 1e6:,.0f} million positions …{where}", file=sys.stderr, flush=True)


def gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GB"


@cache
def make_loops(chain: Chain, four_rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops over some of the high halves: afterstates with a sum, then positions with it."""
    expect_in, choose_in = make_rules(chain, four_rate)

    @kernel("expect", chain, four_rate, title="endgames")
    def expect(chances: Chances, ranks: Array, layout: Layout, total: int, first: int, last: int) -> None:
        for high in range(first, last):
            expect_in(chances, ranks, layout, total, high, 0, 1)

    @kernel("choose", chain, four_rate, title="endgames")
    def choose(
        endgames: Endgames, chances: Chances, rows: Array, layout: Layout, total: int, first: int, last: int
    ) -> None:
        for high in range(first, last):
            choose_in(endgames, chances, rows, layout, total, high, 0, 1)

    return expect, choose
