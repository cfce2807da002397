"""A practice game: a position late in 2048 with a row of three large tiles given: lay the next three below it.

A specialist network for the endgame of 2048 is trained on it. In search, it takes over from the network of whole
games on the boards that look like this one (search/game_2048/block.py).

         .  16384   8192   4096               .  16384   8192   4096
         .      .      .      .     --->      .    512   1024   2048
         .      .      .      .               .      .      .      .
         .      .      .      .               .      .      .      .

Two rows of three leave a better shape for the small tiles than a snake does, but a network of whole games never meets
them, so it never learns to build them (docs/findings.md). The six tiles are called links of a chain. This is 2048
with three rules more. A link that lies in its place stays there: slides that would move it are not legal, unless the
last one in place merges; only while nothing lies below it, the row may go to the border and come back. Each new link
earns points, the last one most. The game ends when all six are there, and what comes then can be solved
(search/game_2048/endgames.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games import g2048
from tilesage.games.board import ONE, S4, ZERO, Board, Whole, tile_at
from tilesage.games.game import Game

NAME = "2048-block"
CELLS = (1, 2, 3, 7, 6, 5)  # of the links, the largest first
GIVEN, ALL = 3, 6
LARGEST_LINK = 14
THIRD = np.uint64(LARGEST_LINK - GIVEN + 1)  # the last of the links that were given
LINK_POINTS, LAST_POINTS = 20_000, 100_000
MASKS = tuple(np.uint64(sum(15 << 4 * cell for cell in CELLS[:n])) for n in range(ALL + 1))
LINKS = tuple(
    np.uint64(sum((LARGEST_LINK - i) << 4 * cell for i, cell in enumerate(CELLS[:n]))) for n in range(ALL + 1)
)


@compiled
def links_in(board: Board) -> int:
    """How many links lie in their places, one after the other; 0 if not even those that were given."""
    if (board & MASKS[GIVEN]) != LINKS[GIVEN]:
        return 0
    n = GIVEN
    while n < ALL and (board & MASKS[n + 1]) == LINKS[n + 1]:
        n += 1
    return n


@compiled
def at_border(board: Board) -> bool:
    """Does the row lie one cell beside its place?"""
    return bool((board & MASKS[GIVEN] >> S4) == LINKS[GIVEN] >> S4)


@compiled
def merged(board: Board, after: Board, links: int) -> bool:
    """Has the last link in place become the next larger tile, with the others where they were?"""
    others, last = MASKS[links - 1], CELLS[links - 1]
    return bool((after & others) == (board & others) and tile_at(after, last) == tile_at(board, last) + ONE)


@compiled
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """As in 2048, but links that lie in their places stay there."""
    after, after_aux, reward = g2048.slide(rows, board, aux, action)
    before, now = links_in(board), links_in(after)
    if before < ALL and now >= max(before, GIVEN):
        reward += LINK_POINTS * (now - max(before, GIVEN))
        if now == ALL:
            reward += LAST_POINTS - LINK_POINTS
        return after, after_aux, reward
    if GIVEN <= before < ALL and merged(board, after, before):
        return after, after_aux, reward + LAST_POINTS
    if before <= GIVEN and at_border(after):
        return after, after_aux, reward
    return board, aux, np.int64(0)


@cache
def game() -> Game:
    """2048 with another start and other slides."""
    whole = g2048.game()
    deal = whole.rules.deal

    @compiled
    def start(rows: Array, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        board, aux, rng = deal(LINKS[GIVEN], ZERO, rng)
        return deal(board, aux, rng)  # type: ignore[no-any-return]

    return replace(
        whole,
        name=NAME,
        key=NAME,
        title="the block of 2048",
        summary="practice: lay 2048, 1024 and 512 below 4096, 8192 and 16384",
        rules=whole.rules._replace(start=start, slide=slide),
        parameters={},
        takes={},
        index_at=None,
        highest_in=None,
        symmetric=False,
        second_rate=None,
        scales=False,
        downgrades=False,
        practice=True,
        given=LARGEST_LINK - GIVEN + 1,
    )
