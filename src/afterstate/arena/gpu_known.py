"""Values that a search on the GPU has read before.

Most afterstates at the end of a search are met several times: two cells of a line that a slide pushes together, two
spawns in either order, and a move later half of the tree once more. One look into this table instead of dozens of
reads from the network; a value comes out as it went in, so nothing else changes.

An entry is two words, a value and its name with the value's bits mixed in. Threads read and write without waiting for
each other: half an entry of one and half of another give no name that anybody asks for. The last one to write stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from afterstate.games.chance import mix
from afterstate.games.compiler import Array
from afterstate.learning.gpu.machine import (
    SIMULATED,
    bits_of,
    cuda,
    device,
    float32,
    float_of,
    int64,
    launched,
    stride,
    thread_number,
)
from afterstate.learning.gpu.play import make_after_value
from afterstate.learning.gpu.steps import Lesson

NAME, VALUE = 0, 1  # the words of an entry
BYTES_AN_ENTRY = 16
MOST_ENTRIES = 1 << 6 if SIMULATED else 1 << 28
ZERO = np.uint64(0)


def make_name(lesson: Lesson) -> Callable[..., Any]:
    """name(after, aux): all that the network sees of an afterstate, in one word."""
    turned, offset = lesson.evaluator.turned, lesson.evaluator.offset
    sees_all = lesson.of_states or lesson.game.name == "2048"

    @device
    def name(after: np.uint64, aux: np.uint64) -> Any:
        if sees_all:
            return after ^ mix(aux)
        return turned(after, aux) ^ mix(offset(after, aux))

    return name


def make_known_value(lesson: Lesson) -> Callable[..., Any]:
    """known_value(weights, known, after, aux): the value of an afterstate, from the table if it is there."""
    name_of, after_value = make_name(lesson), make_after_value(lesson)

    @device
    def known_value(weights: Array, known: Array, after: np.uint64, aux: np.uint64) -> Any:
        name = name_of(after, aux)
        entry = int64(mix(name) & np.uint64(known.shape[0] - 1))
        bits = known[entry, VALUE]
        if known[entry, NAME] ^ bits == name:
            return float_of(bits)
        value = float32(after_value(weights, after, aux))
        bits = bits_of(value)
        known[entry, NAME], known[entry, VALUE] = name ^ bits, bits
        return value

    return known_value


@launched
def forget(known: Array) -> None:
    entry = int64(thread_number())
    while entry < known.shape[0]:
        known[entry, NAME] = known[entry, VALUE] = ZERO
        entry += int64(stride())


def entries_for(free: int) -> int:
    """How many entries a table has that may take so many bytes: a power of two."""
    return min(MOST_ENTRIES, 1 << max(free // BYTES_AN_ENTRY, 1).bit_length() - 1)


def new_known(grid: Any) -> Any:
    """An empty table in an eighth of the memory that is free."""
    free = 0 if SIMULATED else int(cuda.current_context().get_memory_info().free)
    known = cuda.device_array((MOST_ENTRIES if SIMULATED else entries_for(free // 8), 2), np.uint64)
    forget[grid](known)
    return known
