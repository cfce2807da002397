"""A practice game: a position late in 2048, whose large tiles are masked as alike: make one more 4096 beside them.

A specialist network for the endgame of 2048 is trained on it. In search, it takes over from the network of whole
games on the boards that look like this one (search/game_2048/walls.py).

    wall  wall  wall  2048
       .     .   512  1024
       .     .     .     .
       .     .     .     .

With 16384, 8192 and 4096 on the board, the next 4096 makes a 32768, and few games come so far: a network of whole
games learns little of what to do there. It need not know which large tile is which, nor how large they are. Here all
of them are the same tile, a wall, which slides like others and merges with nothing; everything below is as in 2048.
The 4096 earns points of its own and ends the game.

Every second game begins with three walls and two small tiles, the others anywhere on the way: with the tiles that
make up any sum below 4096, laid out behind the walls in a snake, as players do. Who always begins with the three
walls alone never comes to the 4096 that is to be learnt.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import below, draw
from tilesage.games import g2048
from tilesage.games.board import ONE, TWO, ZERO, Board, Whole, turn, turn_back
from tilesage.games.exact import table_of
from tilesage.games.game import Game

NAME = "2048-walls"
WALLS = 3
TARGET = 12  # 4096
WALL = TARGET  # a target ends the game, so its nibble is free
SMALLEST = 3  # 8, of the tiles that a game begins with beside the walls
POINTS = 100_000  # for the target
OVER = np.uint64(0xFFFF_FFFF_FFFF_FFF0)  # instead of any afterstate with the target: the game is over and won
SNAKE = (0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12)
SHIFTS = tuple(np.uint64(4 * cell) for cell in SNAKE)
BARE = np.uint64(sum(WALL << 4 * cell for cell in SNAKE[:WALLS]))


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """A line slid towards its start, and its points; walls stay what they are, and only the target's points count.

    >>> slide_line([WALL, WALL, 1, 1])
    ([12, 12, 2, 0], 4)
    >>> slide_line([0, 11, 0, 11])
    ([12, 0, 0, 0], 104096)
    """
    slid, points = g2048.slide_line(line, highest=WALL)
    return slid, POINTS + 2**TARGET if slid.count(TARGET) > line.count(WALL) else points


@cache
def row_table() -> Array:
    """The table of slides of all rows."""
    return table_of(slide_line, g2048.REWARD_UNIT)


@compiled
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """As in 2048, but for the walls; after the target nothing is legal."""
    if board >= OVER:
        return board, aux, np.int64(0)
    after, points = g2048.slide_left(rows, turn(board, action))
    if points >= POINTS:
        return OVER, aux, points
    return turn_back(after, action), aux, points


@cache
def game() -> Game:
    """2048 with another start and other slides."""
    whole = g2048.game()
    deal = whole.rules.deal

    @compiled
    def start(rows: Array, rng: np.uint64) -> tuple[Board, np.uint64, np.uint64]:
        bits, rng = draw(rng)
        board, place = BARE, WALLS
        if below(bits, TWO) != ZERO:
            for k in range(TARGET - SMALLEST):
                tile = np.uint64(TARGET - 1 - k)
                if (bits >> tile) & ONE:
                    board |= tile << SHIFTS[place]
                    place += 1
        board, aux, rng = deal(board, ZERO, rng)
        return deal(board, aux, rng)  # type: ignore[no-any-return]

    return replace(
        whole,
        name=NAME,
        key=NAME,
        title="the walls of 2048",
        summary="practice: make one more 4096 beside three larger tiles",
        rows=row_table(),
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
        given=TARGET,
    )
