"""Where the games in flight begin: afresh, or every second one with tiles of the stages (learning/ahead.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.gpu.machine import device
from tilesage.learning.ahead import make_ahead

if TYPE_CHECKING:
    from tilesage.gpu.steps import Lesson, Slots

# Places in `settings`: the learning rate, and whether anything moves at all.
RATE, RUNNING, SETTINGS = range(3)
NOTHING_GIVEN = np.int32(0)


def make_begin(lesson: Lesson) -> Callable[..., Any]:
    """begin(rows, g, slots, rng): fill a slot with a new game, perhaps with tiles of the stages."""
    start, begin_ahead = lesson.game.rules.start, make_ahead(lesson.game, lesson.evaluator.network.stages)
    value_of_board, score_is_value = lesson.game.rules.value_of_board, lesson.game.score_is_value
    ahead = lesson.ahead

    @device
    def begin(rows: Array, g: np.uint64, slots: Slots, rng: np.uint64) -> None:
        given = NOTHING_GIVEN
        if ahead:
            board, aux, rng, given = begin_ahead(rows, rng)
        else:
            board, aux, rng = start(rows, rng)
        slots.boards[g], slots.auxes[g], slots.rngs[g], slots.given[g] = board, aux, rng, given
        slots.scores[g] = value_of_board(board, aux) if score_is_value else 0

    return begin
