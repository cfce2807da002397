"""Value by the sum of tiles (`--by-age`): what is usual so far into a game, learnt apart from the patterns.

A slide keeps the sum of all tiles, and every new tile adds to it: the sum tells how far a game is, so it is called
the age of a position. A network by age has one table more, of the mean value for each sum of tiles. The value of a
board is the entry there plus the sum of the patterns, which then say only how much better or worse than usual the
board is. It is a baseline that depends on time. All moves of a position lead to boards of the same sum, so the table
never decides between them. What it changes is what ignorance means: an entry that was never met, of a board with the
first 16384 perhaps, says "as usual" instead of "worth nothing", so there is no reason to avoid it.

The table stands behind all others in the weights. It learns at a rate of its own, a small one: it is met at every
move, and what it says is part of every error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import compiled
from tilesage.games.game import Game
from tilesage.networks.patterns import AGES

# An entry is for 2^bits sums: some thirty moves of 2048, and eight of Threes!, whose games are shorter.
BITS = {"threes": 4, "threes-phone": 4, "fibonacci": 5}
USUAL_BITS = 6


def make_age(game: Game, first: int) -> Callable[..., Any]:
    """`age(board, aux)`: which weight holds the mean value for this sum of tiles; its table begins at `first`."""
    sum_of_tiles, begin = game.rules.sum_of_tiles, np.uint64(first)
    oldest, bits = np.uint64(AGES - 1), np.uint64(BITS.get(game.name, USUAL_BITS))

    @compiled
    def age(board: np.uint64, aux: np.uint64) -> np.uint64:
        return begin + min(sum_of_tiles(board, aux) >> bits, oldest)  # type: ignore[no-any-return]

    return age
