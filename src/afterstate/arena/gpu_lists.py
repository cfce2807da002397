"""Lists that grow on the GPU, many threads at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterstate.games.compiler import Array
from afterstate.learning.gpu.machine import cuda, device, int64

# Places in `counts`: how long the lists are, whether one is full, into how many parts the games are divided and whose
# turn it is, whether the table must be swept; then where each layer of a list ends.
AFTERSTATES, POSITIONS, QUESTIONS, FULL, PARTS, TURN, SWEPT = range(7)
AFTERSTATE_ENDS, POSITION_ENDS, QUESTION_ENDS, COUNTS = 8, 24, 40, 56
LEAF = -1.0  # instead of the probability of a path


@device
def reserve(counts: Array, kind: int, wanted: int, room: int) -> Any:
    """The first of `wanted` places in a list, or -1 when there is no more room."""
    first = cuda.atomic.add(counts, kind, int64(wanted))
    if first + wanted > room:
        counts[FULL] = 1
        return int64(-1)
    return first


def new(kind: str, shape: Any) -> Any:
    return cuda.device_array(shape, {"u": np.uint64, "f": np.float64, "i": np.int32, "j": np.int64}[kind])
