"""Values that a search on the GPU has read before.

Most afterstates at the end of a search are met several times: two cells of a line that a slide pushes together, two
spawns in either order, and a move later half of the tree once more. So before a layer is answered, `ask` lists the
afterstates that are not known yet, and `look_up` reads those from the network, a thread each. A value comes out of
the table as it went in, so nothing else changes.

An entry is two words, a value and its name with the value's bits mixed in. Threads read and write without waiting for
each other: half an entry of one and half of another give no name that anybody asks for. The last one to write stays;
what it drove out is read from the network once more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import mix
from tilesage.gpu.lesson import Lesson, after_value
from tilesage.gpu.lists import LEAF, POSITION_ENDS, POSITIONS, QUESTION_ENDS, QUESTIONS, Questions, layer
from tilesage.gpu.machine import SIMULATED, bits_of, cuda, device, float32, float_of, int64, launched, stride
from tilesage.gpu.memory import fill, free_memory, new
from tilesage.search.expectimax import MOVES

NAME, VALUE = 0, 1  # the words of an entry
ASKED = np.uint64(1 << 63)  # instead of a value that is yet to be read
BYTES_AN_ENTRY = 16
MOST_ENTRIES = 1 << 6 if SIMULATED else 1 << 28
ZERO = np.uint64(0)


class KnownValues(NamedTuple):
    """What is compiled for a network."""

    ask: Any  # the kernel that lists the afterstates after a layer of positions whose values are needed and not known
    look_up: Any  # the kernel that reads what was asked for from the network
    value: Callable[..., Any]  # (weights, known, after, aux) -> a value, from the table if it is there


@cache
def build(lesson: Lesson, narrow: bool) -> KnownValues:
    """For searches that are `narrow`, those that read the value of every move to choose which ones to follow."""
    slide, value_of = lesson.game.rules.slide, after_value(lesson)
    turned, offset = lesson.evaluator.turned, lesson.evaluator.offset
    sees_all = lesson.of_states or lesson.game.index_at is not None

    @device
    def name_of(after: np.uint64, aux: np.uint64) -> Any:
        """All that the network sees of an afterstate, in one word."""
        if sees_all:
            return after ^ mix(aux)
        return turned(after, aux) ^ mix(offset(after, aux))

    @launched
    def ask(rows: Array, positions: Any, known: Array, questions: Questions, counts: Array, level: int) -> None:
        boards, auxes = cuda.local.array(MOVES, np.uint64), cuda.local.array(MOVES, np.uint64)
        first, end = layer(counts, POSITION_ENDS, POSITIONS, level)
        for q in range(first, end, stride()):
            board, aux, wanted = positions.boards[q], positions.auxes[q], 0
            for action in range(MOVES if narrow or positions.shares[q] == LEAF else 0):
                after, after_aux, _ = slide(rows, board, aux, action)
                name = name_of(after, after_aux)
                entry = entry_of(known, name)
                if after != board and known[entry, NAME] ^ known[entry, VALUE] != name:
                    note(known, name, ASKED)
                    boards[wanted], auxes[wanted] = after, after_aux
                    wanted += 1
            if wanted > 0:
                place = cuda.atomic.add(counts, QUESTIONS, int64(wanted))
                for k in range(min(int64(wanted), questions.boards.size - place)):
                    questions.boards[place + k], questions.auxes[place + k] = boards[k], auxes[k]

    @launched
    def look_up(weights: Array, known: Array, questions: Questions, counts: Array, level: int) -> None:
        first, end = layer(counts, QUESTION_ENDS, QUESTIONS, level)
        for i in range(first, min(end, questions.boards.size), stride()):
            after, aux = questions.boards[i], questions.auxes[i]
            note(known, name_of(after, aux), bits_of(float32(value_of(weights, after, aux))))

    @device
    def value(weights: Array, known: Array, after: np.uint64, aux: np.uint64) -> Any:
        name = name_of(after, aux)
        entry = entry_of(known, name)
        bits = known[entry, VALUE]
        if known[entry, NAME] ^ bits == name and bits < ASKED:
            return float_of(bits)
        found = float32(value_of(weights, after, aux))
        note(known, name, bits_of(found))
        return found

    return KnownValues(ask, look_up, value)


@device
def entry_of(known: Array, name: np.uint64) -> Any:
    return int64(mix(name) & np.uint64(known.shape[0] - 1))


@device
def note(known: Array, name: np.uint64, bits: np.uint64) -> None:
    entry = entry_of(known, name)
    known[entry, NAME], known[entry, VALUE] = name ^ bits, bits


def new_known() -> Any:
    """An empty table in an eighth of the memory that is free."""
    entries = int(min(MOST_ENTRIES, free_memory() // (8 * BYTES_AN_ENTRY)))
    known = new("u", 2 << max(1, entries.bit_length() - 1))
    fill(known, ZERO)
    return known.reshape(-1, 2)
