"""Endgames of 2048, solved: a few large tiles that stand like walls, and ten or eleven cells for the small ones.

A strong player lays its largest tiles out side by side, each once:

    16384  8192  4096  2048                 .  16384   8192   4096
        .     .   512  1024                 .    512   1024   2048
        .     .     .     .                 .      .      .      .
        .     .     .     .                 .      .      .      .

One more tile like the smallest of them, the target, and they merge, one after the other. Most games of strong players
end before that, within a few dozen moves in the cells that are left. What happens there is a small game of its own,
which can be solved: a slide keeps the sum of the tiles and a new tile adds to it, so from the largest sum to the
smallest

    chance(position)   = max over slides of chance(afterstate), 1 where the target is made
    chance(afterstate) = Σ probability · chance(position)

The size of the walls does not matter, nor which of the larger ones lies where, only the shape of the cells that they
leave, and in a snake or a block the place of the smallest: a target made elsewhere than beside it is worth less than 1
(APART). They may move, from one shape that is being solved to another; where every slide moves them to an unknown one,
a slide counts by the next one that brings them back. A table holds the positions with a number of walls in some shapes, a
target, and small tiles that add up to no more than the target and ROOM.

What is kept of a position is which slides are best, four bits, none of them where there is little hope. Chances are
at hand for a few sums only. A position is a shape and two halves; the low halves are ranked by their sum, so those
with a sum follow each other, and those that go with a high half are the first ones.

A search that has such a table plays by it once the walls are there (`overrule`): its own values only choose between
slides that are as good.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from afterstate.games import Game, Mistake, block
from afterstate.games.board import (
    NIBBLE,
    ONE,
    ZERO,
    Board,
    cells_with,
    symmetry,
    tile_at,
    turn,
    turn_back,
    with_tile,
)
from afterstate.games.compiler import Array, kernel, rule, rule_for
from afterstate.games.g2048 import row_table, slide_left, sum_of_tiles
from afterstate.values.files import memory_of_this_machine

from .kinds import Number

Shape: TypeAlias = tuple[int, ...]  # the cells of the walls

FEWEST, MOST = 5, 6  # walls
SNAKE: Shape = (0, 1, 2, 3, 7, 6)
BLOCK: Shape = block.CELLS
# What a block may become for a while, and come back from. A list of such shapes is in 2048EndgameTablebase ("L3f").
AROUND_BLOCK: tuple[Shape, ...] = tuple(
    tuple(int(cell, 16) for cell in cells)
    for cells in [
        "124568",
        "12568c",
        "124569",
        "12456a",
        "125689",
        "12569a",
        "01456a",
        "014569",
        "12569c",
        "24569a",
        "024569",
    ]
)
SHAPES = (SNAKE, BLOCK, *AROUND_BLOCK)
SIZES = 16
HALF_CELLS = 5  # of the high half
ROOM = 64  # how far the sum of the small tiles may go beyond the target
KEPT = 3  # sums whose chances are at hand: one, and the two that a new tile leads to
WALL = NIBBLE
CERTAIN, NONE = np.float32(1), np.float32(0)
WHOLE = 65535  # a chance of 1, where it is kept in 16 bits
PART, HALF = np.float32(1 / WHOLE), np.float32(0.5)
LEAST = (0.6, 0.02)  # with less hope than this beside a snake, beside another shape, the search is on its own
APART = np.float32(0.95)  # a target that was made, but not next to the smallest wall
CLOSE = 0.0003  # slides whose chances differ by less are equal
NO_SHAPE = NO_CELL = -1
THIRD = block.GIVEN


class Table(NamedTuple):
    """What is to be solved together: walls may move from one of the shapes to another."""

    target: int  # an exponent
    shapes: tuple[Shape, ...]  # as many walls in each

    @property
    def walls(self) -> int:
        return len(self.shapes[0])


class Endgames(NamedTuple):
    """The best slides beside some walls, by their shape and by the target."""

    slides: Any  # [positions / 2] uint8, a bit for each of the best slides; the lower half of a byte comes first
    ranks: Any  # [low halves of all tables] int32
    offsets: Any  # [high halves of all tables] int64, where the positions of a high half begin: an even number
    places: Any  # [walls, target, 2] int64, where ranks and offsets of a table begin
    starts: Any  # [shape, target] int64, where the positions of a shape begin; -1 where there are none
    cells: Any  # [shape, 11] int64, the cells that the walls leave
    thirds: Any  # [shape] uint64, how large the third of the walls must be at least
    lasts: Any  # [shape] int64, the cell of the smallest wall; NO_CELL where it does not matter
    known: Any  # [65536, 2] int16, for a set of cells the shape of these walls, and how to turn the board into it


class Layout(NamedTuple):
    """The positions of a table, half by half."""

    target: Any  # [1] uint64
    numbers: Any  # [shapes] int64, their numbers among those of all tables
    walls: Any  # [shapes] uint64, boards with nothing but walls
    beside: Any  # [shapes] uint64, the lowest bits of the cells next to the smallest wall, where its place is known
    least: Any  # [shapes] float32, the chance from which on the table is followed
    low_boards: Any  # [shapes, low halves] uint64, by rank
    low_numbers: Any  # [low halves] int64, by rank
    low_starts: Any  # [sums / 2 + 1] int64, the first rank with a sum
    high_boards: Any  # [shapes, high halves] uint64, by number
    high_sums: Any  # [high halves] int64


class Chances(NamedTuple):
    """Chances with the last few sums, in parts of WHOLE. A sum has the room [sum / 2 mod KEPT]."""

    positions: Any  # [KEPT, shapes, positions with a sum] uint16
    afterstates: Any  # [KEPT, shapes, positions with a sum] uint16
    offsets: Any  # [KEPT, high halves] int64, to be added to the rank of a low half
    places: Any  # [shapes of all tables] int64, the place of a shape in these arrays; -1 for those of other tables


class Rules(NamedTuple):
    """The small game beside some walls, compiled for a share of fours."""

    expect_in: Callable[..., Any]  # (endgames, chances, layout, total, shape, high, first, step): solve afterstates
    choose_in: Callable[..., Any]  # (endgames, chances, rows, layout, total, shape, high, first, step): positions


@rule
def limit_of(target: Number) -> Number:
    """The largest sum of small tiles that a table knows."""
    return (1 << target) + ROOM


@cache
def rows_with_walls() -> Array:
    """The row table of the small game: walls do not merge."""
    return row_table(highest=int(WALL))


def is_snake(shape: Shape) -> bool:
    return shape == SNAKE[: len(shape)]


def last_of(shape: Shape) -> int:
    """The cell of the smallest wall, in shapes that are built on purpose; elsewhere walls are only passing by."""
    return shape[-1] if shape in (SNAKE, BLOCK, SNAKE[:FEWEST], BLOCK[:FEWEST]) else NO_CELL


def cells_next_to(cell: int) -> np.uint64:
    """The lowest bits of the cells above, below and beside a cell; none of NO_CELL."""
    row, column = divmod(cell, 4)
    beside = [other for other in range(16) if abs(other // 4 - row) + abs(other % 4 - column) == 1]
    return np.uint64(sum(1 << 4 * other for other in beside) if cell != NO_CELL else 0)


def board_of(cells: Sequence[int]) -> Board:
    """Walls in these cells, and nothing else."""
    return np.uint64(sum(int(WALL) << 4 * cell for cell in cells))


def cells_beside(shape: Shape) -> Shape:
    """The cells of the small tiles."""
    return tuple(cell for cell in range(16) if cell not in shape)


@rule
def set_of(cells: np.uint64) -> Number:
    """Cells, given by their nibbles' lowest bits, as sixteen bits."""
    found = np.int64(0)
    for cell in range(16):
        found |= np.int64((cells >> np.uint64(4 * cell)) & ONE) << cell
    return found


@cache
def make_number_of(walls: int) -> Callable[..., Any]:
    """`number_of(cells, board, base)`: the numbers of its halves. Tiles are digits, the first cell's the lowest."""
    free = 16 - walls
    middle = free - HALF_CELLS

    @rule_for(walls)
    def number_of(cells: Array, board: Board, base: Number) -> tuple[Number, Number]:
        low = high = np.int64(0)
        for i in range(middle):
            low = low * base + np.int64(tile_at(board, cells[middle - 1 - i]))
        for i in range(HALF_CELLS):
            high = high * base + np.int64(tile_at(board, cells[free - 1 - i]))
        return low, high

    return number_of


def make_expect_in(walls: int, four_rate: float) -> Callable[..., Any]:
    """`expect_in(endgames, chances, layout, total, shape, high, first, step)`: afterstates with a sum and a half."""
    middle, key = 16 - walls - HALF_CELLS, (walls, four_rate)
    twos, fours = np.float32(1.0 - four_rate), np.float32(four_rate)

    @rule_for(*key)
    def of_new_tile(chances: Chances, shape: int, total: int, limit: int, two: int, four: int) -> Number:
        """What a 2 or a 4 in one cell leads to, by the places of the two positions; nothing past the limit."""
        chance = NONE
        if total + 2 <= limit:
            chance += twos * np.float32(chances.positions[(total // 2 + 1) % KEPT, shape, two])
        if total + 4 <= limit:
            chance += fours * np.float32(chances.positions[(total // 2 + 2) % KEPT, shape, four])
        return chance

    @rule_for(*key)
    def expect_in(
        endgames: Endgames,
        chances: Chances,
        layout: Layout,
        total: int,
        shape: int,
        high: int,
        first: int,
        step: int,
    ) -> None:
        """Every `step`-th of them."""
        target, left = np.int64(layout.target[0]), (total - layout.high_sums[high]) // 2
        if left < 0 or left + 1 >= layout.low_starts.size:
            return
        ranks, cells = endgames.ranks[endgames.places[walls, target, 0] :], endgames.cells[layout.numbers[shape]]
        base, limit = target, limit_of(target)
        to_two, to_four = chances.offsets[(total // 2 + 1) % KEPT], chances.offsets[(total // 2 + 2) % KEPT]
        rank, end = layout.low_starts[left] + first, layout.low_starts[left + 1]
        while rank < end:
            low, board = layout.low_numbers[rank], layout.low_boards[shape, rank] | layout.high_boards[shape, high]
            mean, empty, digit = NONE, 0, np.int64(1)
            for i in range(middle):
                if tile_at(board, cells[i]) == ZERO:
                    empty += 1
                    two, four = to_two[high] + ranks[low + digit], to_four[high] + ranks[low + 2 * digit]
                    mean += of_new_tile(chances, shape, total, limit, two, four)
                digit *= base
            digit = np.int64(1)
            for i in range(HALF_CELLS):
                if tile_at(board, cells[middle + i]) == ZERO:
                    empty += 1
                    two, four = to_two[high + digit] + rank, to_four[high + 2 * digit] + rank
                    mean += of_new_tile(chances, shape, total, limit, two, four)
                digit *= base
            place = chances.offsets[total // 2 % KEPT, high] + rank
            chances.afterstates[total // 2 % KEPT, shape, place] = np.uint16(mean / np.float32(max(empty, 1)) + HALF)
            rank += step

    return expect_in


def make_choose(walls: int, four_rate: float) -> Callable[..., Any]:
    """`choose(endgames, chances, rows, layout, shape, board, total)`: a position's chance, and its best slides."""
    number_of, key = make_number_of(walls), (walls, four_rate)
    twos, fours = np.float32(1.0 - four_rate), np.float32(four_rate)

    @rule_for(*key)
    def chance_of(
        endgames: Endgames, chances: Chances, layout: Layout, shape: int, after: Board, total: int
    ) -> Number:
        """The chance of an afterstate; -1 if its walls are in no shape that is being solved."""
        target = layout.target[0]
        made = cells_with(after, target)
        if (after & layout.walls[shape]) != layout.walls[shape]:
            cells = set_of(cells_with(after, WALL))
            number = np.int64(endgames.known[cells, 0])
            shape = int(chances.places[number]) if number != NO_SHAPE else NO_SHAPE
            if shape == NO_SHAPE:
                return APART if made != ZERO else -CERTAIN
            after = symmetry(after, endgames.known[cells, 1])
            made = cells_with(after, target)
        if made != ZERO:
            return CERTAIN if made & layout.beside[shape] != ZERO else APART
        if total > limit_of(np.int64(target)):
            return NONE
        low, high = number_of(endgames.cells[layout.numbers[shape]], after, np.int64(target))
        now, rank = total // 2 % KEPT, endgames.ranks[endgames.places[walls, target, 0] + low]
        return np.float32(chances.afterstates[now, shape, chances.offsets[now, high] + rank]) * PART

    @rule_for(*key)
    def there_and_back(
        endgames: Endgames, chances: Chances, rows: Array, layout: Layout, shape: int, after: Board, total: int
    ) -> Number:
        """The chance of an afterstate with walls where no table has them, by the next slide."""
        mean, empty = NONE, 0
        for cell in range(16):
            if tile_at(after, cell) == ZERO:
                empty += 1
                for tile in range(1, 3):
                    position, best = with_tile(after, cell, np.uint64(tile)), NONE
                    for action in range(4):
                        back = slid(rows, position, action)
                        if back != position:
                            best = max(best, chance_of(endgames, chances, layout, shape, back, total + 2 * tile))
                    mean += best * (twos if tile == 1 else fours)
        return mean / np.float32(empty)

    @rule_for(*key)
    def choose(
        endgames: Endgames, chances: Chances, rows: Array, layout: Layout, shape: int, board: Board, total: int
    ) -> tuple[Number, Number]:
        best, slides, stays = -CERTAIN, 0, False
        for way in range(2):
            for action in range(4):
                after = slid(rows, board, action)
                if after == board:
                    continue
                chance = chance_of(endgames, chances, layout, shape, after, total)
                if way == 0:
                    stays = stays or (after & layout.walls[shape]) == layout.walls[shape]
                elif chance < NONE:
                    chance = there_and_back(endgames, chances, rows, layout, shape, after, total)
                else:
                    continue
                if chance > best + np.float32(CLOSE):
                    slides = 0
                if chance >= NONE and chance >= best - np.float32(CLOSE):
                    slides |= 1 << action
                best = max(best, chance)
            if stays:
                break
        return max(best, NONE), slides if best >= layout.least[shape] else 0

    return choose


def make_choose_in(walls: int, four_rate: float) -> Callable[..., Any]:
    """`choose_in(endgames, chances, rows, layout, total, shape, high, first, step)`: positions with sum and half."""
    choose = make_choose(walls, four_rate)

    @rule_for(walls, four_rate)
    def choose_in(
        endgames: Endgames,
        chances: Chances,
        rows: Array,
        layout: Layout,
        total: int,
        shape: int,
        high: int,
        first: int,
        step: int,
    ) -> None:
        """Every `step`-th byte of them."""
        target, now, left = layout.target[0], total // 2 % KEPT, (total - layout.high_sums[high]) // 2
        if left < 0 or left + 1 >= layout.low_starts.size:
            return
        row = endgames.starts[layout.numbers[shape], target]
        row = (row + endgames.offsets[endgames.places[walls, target, 1] + high]) // 2
        fixed = layout.walls[shape] | layout.high_boards[shape, high]
        start, end = layout.low_starts[left], layout.low_starts[left + 1]
        two = start // 2 + first
        while 2 * two < end:
            byte = np.int64(endgames.slides[row + two])
            for half in range(2):
                rank = 2 * two + half
                if start <= rank < end:
                    board, place = fixed | layout.low_boards[shape, rank], chances.offsets[now, high] + rank
                    chance, slides = choose(endgames, chances, rows, layout, shape, board, total)
                    chances.positions[now, shape, place] = np.uint16(chance * WHOLE + HALF)
                    byte = (byte & (240 >> 4 * half)) | (slides << 4 * half)
            endgames.slides[row + two] = np.uint8(byte)
            two += step

    return choose_in


@cache
def make_rules(walls: int, four_rate: float) -> Rules:
    """The rules of the small game, made once."""
    return Rules(make_expect_in(walls, four_rate), make_choose_in(walls, four_rate))


@rule
def slid(rows: Array, board: Board, action: int) -> Board:
    """A slide in the small game."""
    return turn_back(slide_left(rows, turn(board, action))[0], action)


@rule
def turned_action(action: int, k: int) -> int:
    """Where a slide goes on a board that was turned by `symmetry(board, k)`."""
    if k & (2 - (action & 1)):
        action ^= 2
    return 3 - action if k & 4 else action


@cache
def make_look(walls: int) -> Callable[..., Any]:
    """`look(endgames, board, cells, target, third)`: the best slides beside walls in these cells; 0 if unknown."""
    number_of = make_number_of(walls)

    @rule_for(walls)
    def look(endgames: Endgames, board: Board, cells: np.uint64, target: np.uint64, third: np.uint64) -> Number:
        lies = set_of(cells)
        number, k = np.int64(endgames.known[lies, 0]), int(endgames.known[lies, 1])
        if number == NO_SHAPE or endgames.starts[number, target] < 0 or third < endgames.thirds[number]:
            return 0
        if np.int64(sum_of_tiles(board & ~(cells * NIBBLE), ZERO)) > limit_of(np.int64(target)):
            return 0
        turned, last = symmetry(board, k), endgames.lasts[number]
        if last != NO_CELL and tile_at(turned, last) != target:
            return 0
        low, high = number_of(endgames.cells[number], turned, np.int64(target))
        place = endgames.starts[number, target] + endgames.offsets[endgames.places[walls, target, 1] + high]
        place += endgames.ranks[endgames.places[walls, target, 0] + low]
        found, slides = (np.int64(endgames.slides[place // 2]) >> (4 * (place % 2))) & 15, 0
        for action in range(4):
            slides |= ((found >> turned_action(action, k)) & 1) << action
        return slides

    return look


@cache
def make_best_slides() -> Callable[..., Any]:
    """`best_slides(endgames, board)`: the best slides by the tables, as bits; 0 where none are known."""
    look_beside_five, look_beside_six = make_look(FEWEST), make_look(MOST)

    @rule_for()
    def best_slides(endgames: Endgames, board: Board) -> Number:
        walls, number, third = ZERO, 0, ZERO
        for i in range(SIZES - 1):
            tile = NIBBLE - np.uint64(i)
            cells = cells_with(board, tile)
            if cells == ZERO:
                continue
            if cells & (cells - ONE) != ZERO:
                return 0  # two large tiles that are equal: they are to merge
            walls, number = walls | cells, number + 1
            if number == THIRD:
                third = tile
            if number == FEWEST:
                slides = look_beside_five(endgames, board, walls, tile, third)
                if slides != 0:
                    return slides
            elif number == MOST:
                return look_beside_six(endgames, board, walls, tile, third)
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


def all_halves(target: int, cells: int) -> tuple[Array, Array]:
    """[cells, halves] the tiles of all halves with so many cells, by number, and [halves] their sums."""
    numbers = np.arange(target**cells)
    tiles = np.stack([numbers // target**i % target for i in range(cells)])
    return tiles, ((1 << tiles) & ~1).sum(0)


def boards_of(tiles: Array, cells: Sequence[int]) -> Array:
    """[halves] boards with these tiles in these cells."""
    boards = np.zeros(tiles.shape[1], np.uint64)
    for one, cell in zip(tiles, cells, strict=True):
        boards |= one.astype(np.uint64) << np.uint64(4 * cell)
    return boards


def known_shapes(shapes: Sequence[Shape]) -> Array:
    """[65536, 2] for every set of cells the number of its shape, and how to turn a board to see it."""
    known = np.zeros((1 << 16, 2), np.int16)
    known[:, 0] = NO_SHAPE
    for (number, shape), k, back in product(enumerate(shapes), range(8), range(8)):
        turned = np.uint64(symmetry(board_of(shape), k))
        cells = set_of(np.uint64(cells_with(turned, WALL)))
        if known[cells, 0] == NO_SHAPE and symmetry(turned, back) == board_of(shape):
            known[cells] = number, back
    return known


def lay_out(tables: Sequence[Table]) -> tuple[Endgames, list[Layout], int]:
    """Tables with no room for the slides yet, what is in them, and how many bytes they need."""
    shapes = list(dict.fromkeys(shape for table in tables for shape in table.shapes))
    starts, places = np.full((len(shapes), SIZES), -1, np.int64), np.zeros((MOST + 1, SIZES, 2), np.int64)
    layouts: list[Layout] = []
    ranks, offsets = [], []
    positions = ranked = begun = 0
    for table in tables:
        target, middle, limit = table.target, 16 - table.walls - HALF_CELLS, limit_of(table.target)
        (low_tiles, low_sums), (high_tiles, high_sums) = all_halves(target, middle), all_halves(target, HALF_CELLS)
        by_rank = np.argsort(low_sums, kind="stable")
        low_starts = np.searchsorted(low_sums[by_rank], np.arange(0, limit + 4, 2)).astype(np.int64)
        beside = [cells_beside(shape) for shape in table.shapes]
        layouts.append(
            Layout(
                np.array([target], np.uint64),
                np.array([shapes.index(shape) for shape in table.shapes]),
                np.array([board_of(shape) for shape in table.shapes]),
                np.array([cells_next_to(last_of(shape)) for shape in table.shapes], np.uint64),
                np.array([LEAST[0 if is_snake(shape) else 1] for shape in table.shapes], np.float32),
                np.stack([boards_of(low_tiles[:, by_rank], cells[:middle]) for cells in beside]),
                by_rank,
                low_starts,
                np.stack([boards_of(high_tiles, cells[middle:]) for cells in beside]),
                high_sums,
            )
        )
        lengths = np.where(high_sums <= limit, low_starts[np.maximum(limit - high_sums, 0) // 2 + 1], 0)
        ends = np.cumsum(lengths + lengths % 2)
        places[table.walls, target] = ranked, begun
        ranks.append(np.argsort(by_rank, kind="stable").astype(np.int32))
        offsets.append(np.concatenate([[0], ends[:-1]]))
        for shape in table.shapes:
            starts[shapes.index(shape), target] = positions
            positions += int(ends[-1])
        ranked, begun = ranked + by_rank.size, begun + high_sums.size
    cells = np.zeros((len(shapes), 16 - FEWEST), np.int64)
    for number, shape in enumerate(shapes):
        cells[number, : 16 - len(shape)] = cells_beside(shape)
    thirds = np.array([ZERO if is_snake(shape) else block.THIRD for shape in shapes])
    lasts = np.array([last_of(shape) for shape in shapes], np.int64)
    numbers = (np.concatenate(ranks), np.concatenate(offsets), places, starts, cells)
    known = (thirds, lasts, known_shapes(shapes))
    return Endgames(np.zeros(0, np.uint8), *numbers, *known), layouts, positions // 2


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


def new_chances(endgames: Endgames, layout: Layout, new: Callable[[Any, Any], Any]) -> Chances:
    """Room for a few sums, by `new(shape, type)`, and where each shape has it."""
    shapes, room = layout.numbers.size, max(by_high_half(layout, total)[1] for total in sums_of(layout))
    positions, afterstates = new((KEPT, shapes, room), np.uint16), new((KEPT, shapes, room), np.uint16)
    places = np.full(len(endgames.starts), NO_SHAPE, np.int64)
    places[layout.numbers] = np.arange(shapes)
    return Chances(positions, afterstates, new((KEPT, layout.high_sums.size), np.int64), places)


def solve(game: Game, tables: Sequence[Table], threads: int = 0) -> Endgames:
    """The tables, on the CPU."""
    known, layouts, size = lay_out(tables)
    threads = threads or os.cpu_count() or 1
    if size > memory_of_this_machine() * 0.8:
        raise Mistake(f"these endgames need {gigabytes(size)} of memory: take a smaller target, or --device cuda")
    say(size)
    endgames = known._replace(slides=np.zeros(size, np.uint8))
    for table, layout in zip(tables, layouts):
        solve_table(game, endgames, table, layout, threads)
    return endgames


def solve_table(game: Game, endgames: Endgames, table: Table, layout: Layout, threads: int) -> Chances:
    """Fill in the best slides of one table; returns the chances with the smallest sums."""
    expect, choose = make_loops(table.walls, game.parameters["four_rate"])
    chances = new_chances(endgames, layout, np.zeros)
    halves = list(pairwise(np.linspace(0, layout.high_sums.size, 16 * threads + 1).astype(int)))
    parts = [(shape, *some) for shape in range(len(table.shapes)) for some in halves]
    with ThreadPoolExecutor(threads) as pool:
        for total in sums_of(layout):
            chances.offsets[total // 2 % KEPT], _ = by_high_half(layout, total)
            in_turn(pool, parts, expect, endgames, chances, layout, total)
            in_turn(pool, parts, choose, endgames, chances, rows_with_walls(), layout, total)
    return chances


def in_turn(
    pool: ThreadPoolExecutor, parts: Sequence[tuple[int, int, int]], loop: Callable[..., Any], *rest: Any
) -> None:
    """Run a loop on all parts, and wait for it."""
    for done in [pool.submit(loop, *rest, *part) for part in parts]:
        done.result()


@lru_cache(maxsize=1)
def solved_once(game: Game, tables: tuple[Table, ...]) -> Endgames:
    """The tables on the CPU, for all players of this process."""
    return solve(game, tables)


def say(size: int) -> None:
    """A line while nothing else is to be seen."""
    if not os.environ.get("AFTERSTATE_QUIET"):
        print(f"solving endgames: {2 * size / 1e6:,.0f} million positions …", file=sys.stderr, flush=True)


def gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GB"


@cache
def make_loops(walls: int, four_rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops over some of the high halves of a shape: afterstates with a sum, then positions with it."""
    expect_in, choose_in = make_rules(walls, four_rate)

    @kernel("expect", walls, four_rate, title="endgames")
    def expect(
        endgames: Endgames, chances: Chances, layout: Layout, total: int, shape: int, first: int, last: int
    ) -> None:
        for high in range(first, last):
            expect_in(endgames, chances, layout, total, shape, high, 0, 1)

    @kernel("choose", walls, four_rate, title="endgames")
    def choose(
        endgames: Endgames,
        chances: Chances,
        rows: Array,
        layout: Layout,
        total: int,
        shape: int,
        first: int,
        last: int,
    ) -> None:
        for high in range(first, last):
            choose_in(endgames, chances, rows, layout, total, shape, high, 0, 1)

    return expect, choose
