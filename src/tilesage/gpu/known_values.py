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
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import mix
from tilesage.gpu.lesson import Lesson, after_value
from tilesage.gpu.lists import FULL, LEAF, POSITION_ENDS, POSITIONS, QUESTION_ENDS, QUESTIONS
from tilesage.gpu.machine import (
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
from tilesage.gpu.memory import free_memory, new
from tilesage.search.expectimax import MOVES

NAME, VALUE = 0, 1  # the words of an entry
ASKED = np.uint64(1 << 63)  # instead of a value that is yet to be read
BYTES_AN_ENTRY = 16
MOST_ENTRIES = 1 << 6 if SIMULATED else 1 << 28
ZERO = np.uint64(0)


class Questions(NamedTuple):
    """Afterstates whose values are to be read from the network, layer by layer."""

    boards: Any  # [questions] uint64
    auxes: Any  # [questions] uint64


def make_name(lesson: Lesson) -> Callable[..., Any]:
    """name(after, aux): all that the network sees of an afterstate, in one word."""
    turned, offset = lesson.evaluator.turned, lesson.evaluator.offset
    sees_all = lesson.of_states or lesson.game.index_at is not None

    @device
    def name(after: np.uint64, aux: np.uint64) -> Any:
        if sees_all:
            return after ^ mix(aux)
        return turned(after, aux) ^ mix(offset(after, aux))

    return name


@device
def entry_of(known: Array, name: np.uint64) -> Any:
    return int64(mix(name) & np.uint64(known.shape[0] - 1))


@device
def note(known: Array, name: np.uint64, bits: np.uint64) -> None:
    entry = entry_of(known, name)
    known[entry, NAME], known[entry, VALUE] = name ^ bits, bits


def make_ask(lesson: Lesson, narrow: bool) -> Any:
    """The kernel that lists the afterstates of a layer whose values will be needed and are not known."""
    slide, name_of = lesson.game.rules.slide, make_name(lesson)

    @launched
    def ask(rows: Array, positions: Any, known: Array, questions: Questions, counts: Array, level: int) -> None:
        boards, auxes = cuda.local.array(MOVES, np.uint64), cuda.local.array(MOVES, np.uint64)
        q, end = counts[POSITION_ENDS + level] + int64(thread_number()), counts[POSITIONS]
        while q < end and counts[FULL] == 0:
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
                first = cuda.atomic.add(counts, QUESTIONS, int64(wanted))
                for k in range(min(int64(wanted), questions.boards.size - first)):
                    questions.boards[first + k], questions.auxes[first + k] = boards[k], auxes[k]
            q += int64(stride())

    return ask


def make_look_up(lesson: Lesson) -> Any:
    """The kernel that reads what was asked for from the network."""
    name_of, value_of = make_name(lesson), after_value(lesson)

    @launched
    def look_up(weights: Array, known: Array, questions: Questions, counts: Array, level: int) -> None:
        i, end = counts[QUESTION_ENDS + level] + int64(thread_number()), counts[QUESTIONS]
        if thread_number() == 0:
            counts[QUESTION_ENDS + level + 1] = end
        while i < min(end, questions.boards.size) and counts[FULL] == 0:
            after, aux = questions.boards[i], questions.auxes[i]
            note(known, name_of(after, aux), bits_of(float32(value_of(weights, after, aux))))
            i += int64(stride())

    return look_up


def make_known_value(lesson: Lesson) -> Callable[..., Any]:
    """known_value(weights, known, after, aux): the value of an afterstate, from the table if it is there."""
    name_of, value_of = make_name(lesson), after_value(lesson)

    @device
    def known_value(weights: Array, known: Array, after: np.uint64, aux: np.uint64) -> Any:
        name = name_of(after, aux)
        entry = entry_of(known, name)
        bits = known[entry, VALUE]
        if known[entry, NAME] ^ bits == name and bits < ASKED:
            return float_of(bits)
        value = float32(value_of(weights, after, aux))
        note(known, name, bits_of(value))
        return value

    return known_value


@launched
def forget(known: Array) -> None:
    entry = int64(thread_number())
    while entry < known.shape[0]:
        known[entry, NAME] = known[entry, VALUE] = ZERO
        entry += int64(stride())


def new_questions(number: int) -> Questions:
    return Questions(new("u", number), new("u", number))


def new_known(grid: Any) -> Any:
    """An empty table in an eighth of the memory that is free."""
    entries = int(min(MOST_ENTRIES, free_memory() // (8 * BYTES_AN_ENTRY)))
    entries = 1 << max(1, entries.bit_length() - 1)
    known = new("u", entries, 2)
    forget[grid](known)
    return known
