"""What a checkpoint says is not believed: kernels follow its numbers without looking.

As on the CPU (learning/restoring.py), every array must have the kind and shape that this run expects, every number be
finite, every position one of the game, and every place lie inside its table.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.gpu.learner import Learner
from tilesage.learning.restoring import check_positions, checked

GAMES = "games."


def check_state(learner: Learner, stored: Mapping[str, Array], steps_a_look: int) -> None:
    """Raises an InputError unless `stored` can take the place of what this learner holds."""
    e, lesson = learner.lesson.evaluator, learner.lesson
    ours: dict[str, tuple[tuple[int, ...], type]] = {"weights": ((e.size,), np.float32), "done": ((3,), np.int64)}
    if lesson.coherence:
        ours["memory"] = (2 * e.size,), np.float32
    _, steps, looks = stored["done"]
    if looks:
        ours["mean"] = (e.size,), np.float32
    if looks and steps % steps_a_look:
        ours["looked"] = (e.size,), np.float32
    expected = {name: np.broadcast_to(kind(), shape) for name, (shape, kind) in ours.items()}  # takes no memory
    expected |= {f"{GAMES}{name}": array for name, array in learner.host_games().items()}
    for _ in checked(expected, stored, slice(e.tables_size >> len(e.network.stages), e.tables_size)):
        pass  # the first that is wrong raises an error
    if stored["done"].min() < 0:
        raise InputError("counters below 0")
    games = {name.removeprefix(GAMES): stored[name] for name in expected if name.startswith(GAMES)}
    check_positions(lesson.game, games["boards"], games["auxes"])
    for name in ("ages", "trace_ages"):
        found = games.get(name, np.zeros(1, np.uint64))
        if (found >= e.size).any() or (found[found < e.tables_size] > 0).any():
            raise InputError(f"{name} points outside the tables")
    begun = games["before"] != 0
    learnt = [(games["before"][begun], games["before_auxes"][begun])]
    if lesson.history > 1:
        waiting = _waiting(games["trace_firsts"], games["trace_lengths"], lesson.history)
        learnt = [(games["trace_boards"][waiting], games["trace_auxes"][waiting])]
    for boards, auxes in learnt if lesson.evaluator.network.by_hint else ():
        if any(e.offset(board, aux) >= e.tables_size for board, aux in zip(boards, auxes)):
            raise InputError("an afterstate whose hint has no tables")


def _waiting(firsts: Array, lengths: Array, history: int) -> Array:
    """[history, games] which places of the rings hold an afterstate that waits."""
    if min(firsts.min(), lengths.min()) < 0 or (firsts >= history).any() or (lengths > history).any():
        raise InputError("the traces of this checkpoint are out of bounds")
    return np.array([(place - firsts) % history < lengths for place in range(history)])
