"""Update rules: how far the weights of a visited position move for an error δ of its value.

==  ===============  ===========================================================================================
TD  `td_update`      w += rate · δ
TC  `tc_update`      w += rate · δ · |E| / A; then E += δ, A += |δ|: a weight whose errors agree moves at full rate
==  ===============  ===========================================================================================

`rate` is already divided by m, the number of entries that make up the value. Where δ comes from (TD(0), TD(λ), n
steps, forward or backward) is no matter of the rule: traces.py. A rule of one's own is an `UpdateRule` in a module
of one's own, `--rule my_module:my_rule` (registry.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, Protocol

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.errors import InputError
from tilesage.learning.schedules import parse_schedule

ZERO, ONE = np.float32(0), np.float32(1)
NO_MEMORY = 2  # length of a memory that nobody uses
AGE_RATE = np.float32(0.005)  # 0.003 and 0.01 teach as well, 0.05 much worse
AGE_SHARE = np.float32(0.1)  # of the mean error: the most that a batch of games moves an age at once


class Update(Protocol):
    """How an error moves the weights of one position, a function compiled by Numba.

    `weights` is the whole table, float32, and `entries` the places in it that were read for the position, uint32. A
    place that stands there twice was read twice, and moves twice. `memory` holds what the rule remembers, with n
    numbers a weight those of entry i from n · i on. `error` is δ, `rate` the learning rate divided by len(entries).
    """

    def __call__(
        self, weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32
    ) -> None: ...


class Note(Protocol):
    """What a memory notes of an error on a weight that something else has moved: merging goes by what it noted."""

    def __call__(self, memory: Array, entry: Number, error: np.float32) -> None: ...


@compiled
def note_nothing(memory: Array, entry: Number, error: np.float32) -> None:
    pass


@dataclass(frozen=True)
class UpdateRule:
    """A row of the registry of update rules.

    >>> from tilesage.learning.registry import get
    >>> get("tc")
    UpdateRule('tc': temporal coherence, each weight finds its own rate)
    >>> get("tc").memory
    (0.0, 0.0)
    """

    summary: str
    """One line."""
    update: Update
    """How an error moves the weights."""
    rate: str = "0.1"
    """The learning rate where none is given, as --rate is written."""
    memory: tuple[float, ...] = ()
    """What is remembered for each weight: one number each, with which it begins."""
    softens: bool = False
    """Does a soften phase make sense, in which all that is remembered is multiplied by 0.05?"""
    gpu: Literal["", "td", "tc"] = ""
    """Its batch rule on the GPU; without one it runs on the CPU alone."""
    merging: Literal["", "visits", "sums"] = ""
    """How copies that learnt on several machines are merged: by how often an entry was adjusted (of rules that
    remember nothing), or by sums of errors and of their sizes, which are what the rule remembers. Else not at all."""
    note: Note = note_nothing
    """What is noted in `memory` of an error on a weight that is not moved by this rule."""
    name: str = ""
    """As it is asked for; of a rule from outside the registry says it."""

    def __post_init__(self) -> None:
        parse_schedule(self.rate)
        if not callable(self.update):
            raise InputError("the update of a rule is a function of weights, memory, entries, error, rate")
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in self.memory):
            raise InputError("the memory of a rule is a tuple of the numbers with which it begins: (0.0, 1.0)")
        if self.gpu not in ("", "td", "tc") or self.merging not in ("", "visits", "sums"):
            raise InputError('a rule has gpu="td" or "tc" or none, and merging="visits" or "sums" or none')
        if self.merging and len(self.memory) != {"visits": 0, "sums": 2}[self.merging]:
            raise InputError("merging by visits is for rules without memory, by sums for rules with two numbers")

    def __repr__(self) -> str:
        return f"UpdateRule({self.name!r}: {self.summary})"

    def new_memory(self, size: int) -> Array:
        """What a rule remembers of so many weights that have not learnt yet."""
        width = len(self.memory)
        memory = np.zeros(width * size or NO_MEMORY, np.float32)
        memory.reshape(-1, width or 1)[:] = self.memory or (0,)  # takes the memory now rather than in the loop
        return memory


@compiled
def td_update(weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32) -> None:
    """TD: every entry moves by the same step."""
    step = error * rate
    for k in range(len(entries)):
        weights[entries[k]] += step


@compiled
def tc_update(weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32) -> None:
    """TC: an entry whose errors agree moves at full rate, one whose errors cancel out hardly at all.

    memory[2 i] is E, the sum of the errors of entry i, memory[2 i + 1] is A, the sum of their sizes. (Beal and Smith
    1999; for 2048 Jaśkowski 2018.)
    """
    step, size = error * rate, abs(error)
    for k in range(len(entries)):
        i = np.int64(entries[k])
        total, path = memory[2 * i], memory[2 * i + 1]
        coherence = ONE
        if path > ZERO:
            coherence = abs(total) / path
        weights[i] += step * coherence
        memory[2 * i] = total + error
        memory[2 * i + 1] = path + size


@compiled
def tc_note(memory: Array, entry: Number, error: np.float32) -> None:
    memory[2 * entry] += error
    memory[2 * entry + 1] += abs(error)


TD = UpdateRule("one rate for all weights", td_update, "0.1", gpu="td", merging="visits", name="td")
TC = UpdateRule(
    "temporal coherence, each weight finds its own rate",
    tc_update,
    "1",
    memory=(0.0, 0.0),
    softens=True,
    gpu="tc",
    merging="sums",
    note=tc_note,
    name="tc",
)


@compiled
def age_update(weights: Array, age: np.uint64, error: np.float32, rate: np.float32) -> None:
    """What is usual at an age moves a little by every error met there, unless the rate is 0 and nothing learns."""
    weights[np.int64(age)] += error * (AGE_RATE if rate > ZERO else ZERO)


@compiled
def count_visit(memory: Array, entry: Number, error: np.float32) -> None:
    memory[entry] += ONE


@cache
def counting_visits(rule: UpdateRule) -> UpdateRule:
    """A rule that remembers nothing, and now how often each entry was adjusted: by that, copies are merged."""
    update = rule.update

    @compiled
    def update_and_count(weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32) -> None:
        update(weights, memory, entries, error, rate)
        for k in range(len(entries)):
            memory[entries[k]] += ONE

    return replace(rule, update=update_and_count, memory=(0.0,), merging="", note=count_visit)
