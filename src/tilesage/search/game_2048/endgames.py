"""Endgames of 2048, solved: a chain of large tiles that keeps its place, and ten or eleven cells for the small ones.

A strong player lays its largest tiles out in a snake, each beside the next smaller one:

    16384  8192  4096  2048
        .     .   512  1024
        .     .     .     .
        .     .     .     .

One more tile like the last link, beside it, and they merge, one after the other. Most games of strong players end
before that, within a few dozen moves in the cells that are left. What happens there is a small game of its own, which
can be solved (solving.py). The size of the links does not matter, only that of the last one, the target: a table
serves every chain above it, and holds the positions whose small tiles add up to no more than the target and ROOM.

What is kept of a position is which slides are best, four bits, none of them where there is little hope. A position is
two halves; the low halves are ranked by their sum, so those with a sum follow each other, and those that go with a
high half are the first ones.

A search that has such a table plays by it once the chain is there (`overrule`): its own values only choose between
slides that are as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.games import block
from tilesage.games.board import ZERO, Board, symmetry, tile_at, tiles_above
from tilesage.games.g2048 import sum_of_tiles

Chain: TypeAlias = tuple[int, ...]  # the cells of the links, the largest link first

SOLVED = ("2048",)  # the games whose endgames these are
SNAKE: Chain = (0, 1, 2, 3, 7, 6)
FEWEST = 5  # links
BLOCK: Chain = block.CELLS
CHAINS = (SNAKE[:FEWEST], SNAKE, BLOCK[:FEWEST], BLOCK)
SIZES = 16
ROOM = 64  # how far the sum of the small tiles may go beyond the target


class Endgames(NamedTuple):
    """The best slides with some chains, by chain and the exponent of its target."""

    slides: Any  # [positions / 2] uint8, a bit for each of the best slides; the lower half of a byte comes first
    ranks: Any  # [low halves of all tables] int32
    offsets: Any  # [high halves of all tables] int64, where the positions of a high half begin: an even number
    places: Any  # [chain, target, 2] int64, where ranks and offsets of a table begin; -1 where there is none


@compiled
def limit_of(target: Number) -> Number:
    """The largest sum of small tiles that a table knows."""
    return (1 << target) + ROOM


def kind_of(chain: Chain) -> int:
    """Where a chain has its tables; shapes that nobody plays take the place of a snake."""
    return CHAINS.index(chain) if chain in CHAINS else len(chain) - FEWEST


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

    @compiled
    def number_of(board: Board, base: Number) -> tuple[Number, Number]:
        low = high = np.int64(0)
        for i in range(len(low_cells)):
            low = low * base + np.int64(tile_at(board, low_cells[len(low_cells) - 1 - i]))
        for i in range(len(high_cells)):
            high = high * base + np.int64(tile_at(board, high_cells[len(high_cells) - 1 - i]))
        return low, high

    return number_of


@cache
def make_look(chain: Chain) -> Callable[..., Any]:
    """`look(endgames, turned)`: the best slides of a board that lies as in the table; 0 where none are known."""
    kind, links, number_of = kind_of(chain), mask_of(chain), make_number_of(chain)
    practised = chain in CHAINS[2:]  # nobody builds a block but who has practised it
    given, third = block.GIVEN, block.THIRD

    @compiled
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


@compiled
def turned_action(action: int, k: int) -> int:
    """Where a slide goes on a board that was turned by `symmetry(board, k)`."""
    if k & (2 - (action & 1)):
        action ^= 2
    return 3 - action if k & 4 else action


@cache
def make_best_slides() -> Callable[..., Any]:
    """`best_slides(endgames, board)`: the best slides by the tables, as bits; 0 where none are known."""
    five, six, five_of_block, six_of_block = (make_look(chain) for chain in CHAINS)

    @compiled
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


@compiled
def leave(endgames: Any, board: Board, values: Array) -> None:
    """What a search without endgames does with its values instead of `overrule`."""


@cache
def make_overrule() -> Callable[..., Any]:
    """`overrule(endgames, board, values)`: where a table has the board, it decides.

    A slide that is not among the best gets a value below theirs. One that is may be new to the search, which has then
    no value for it (nan).
    """
    best_slides = make_best_slides()

    @compiled
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
