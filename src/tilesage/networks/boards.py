"""Many boards at once, as arrays: numbers of tiles, and the words that compiled code reads.

A board is 64 bits, a nibble a cell, row by row, and a nibble is the index of a tile. What does not fit is in its aux:
hints, and in games with more than sixteen tiles those past index 15.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.games.board import CELLS, TWO
from tilesage.games.game import Game

FULL = 15  # the largest index of a nibble
SHIFTS = np.arange(0, 4 * CELLS, 4, dtype=np.uint64)


def boards_of(game: Game, tiles: Array) -> tuple[Array, Array]:
    """Boards [n] and aux [n], uint64, of the numbers on the tiles, [n, 4, 4].

    >>> from tilesage import games
    >>> boards, aux = boards_of(games.get("2048"), np.array([[[2, 4, 0, 0]] + 3 * [[0, 0, 0, 65536]]]))
    >>> hex(boards[0]), hex(aux[0])
    ('0xf000f000f0000021', '0x1000100010000000')
    """
    if tiles.shape[1:] != (4, 4) or tiles.dtype.kind not in "iu":
        raise InputError(f"boards are whole numbers [n, 4, 4], not {tiles.dtype} {list(tiles.shape)}")
    numbers = np.ascontiguousarray(tiles, np.int64).reshape(-1, CELLS)
    boards, aux = np.zeros(len(numbers), np.uint64), np.zeros(len(numbers), np.uint64)
    large = np.zeros(len(numbers), np.bool_)
    done = pack_all(numbers, np.array(game.tiles), boards, large)
    if done < len(numbers):
        wrong = min(set(numbers[done].tolist()) - set(game.tiles))
        raise InputError(f"{wrong} is no tile of {game.title}")
    for i in np.flatnonzero(large):
        boards[i], aux[i] = game.read([game.tiles.index(tile) for tile in numbers[i].tolist()], {})
    return boards, aux


@compiled
def pack_all(numbers: Array, tiles: Array, boards: Array, large: Array) -> Any:
    """Fill `boards`; `large` are those that do not fit. Returns the first one with a number that is no tile."""
    for i in range(len(numbers)):
        for cell in range(CELLS):
            index = 0
            while tiles[index] != numbers[i, cell]:
                index += 1
                if index == tiles.size:
                    return i
            boards[i] |= np.uint64(index) << (np.uint64(cell) << TWO)
            large[i] |= index > FULL
    return len(numbers)


def tiles_of(game: Game, boards: Array, aux: Array) -> Array:
    """The numbers on the tiles, int64 [n, 4, 4], 0 where a cell is empty."""
    indices = (boards[:, None] >> SHIFTS & np.uint64(FULL)).astype(np.int64)
    if len(game.tiles) > FULL + 1:
        for i in np.flatnonzero(aux):
            indices[i] = game.write(boards[i], aux[i])[0]
    return np.array(game.tiles, np.int64)[indices].reshape(-1, 4, 4)
