"""Several copies of one network that learn apart and are brought together every few seconds.

Each copy sends what it changed since the last time: the entries it touched, by how much their weights moved, and how
often they were adjusted. Its c adjustments at the rate α moved a weight by Δw, so its errors ask in the mean for a
step e, and all copies together make the step that all their adjustments, one after the other, would come to:

    e = Δw / (1 − (1 − α)^c)        Δw = Σ c e / Σ c · (1 − (1 − α)^Σc)

An entry that one copy alone has met moves as far as that copy moved it; one that all know well moves by their common
opinion, and what each has met a few times adds up. Under TC, α is the rate times |E| / A after the round, and c is
the sum of the sizes of the errors over their mean size. Its sums are sums over visits, so they add up: ΔE = Σ ΔEₙ,
ΔA = Σ ΔAₙ.

Nobody waits. While changes travel, a copy learns on; when the common change of an earlier round arrives, it replaces
the copy's own part in it: w += Δw − Δwₙ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilesage.core.compiler import Array

LEAST, MOST, TINY = 1e-6, 1 - 1e-6, 1e-9  # so that nothing is divided by nothing


class Changes(NamedTuple):
    """What happened to the touched entries of a network, in ascending order."""

    entries: Array  # [k] uint32
    moved: Array  # [k] float32, by how much the weight moved
    visits: Array  # [k] float32, TD: adjustments; TC: ΔA, the sizes of their errors
    errors: Array  # [k] float32 under TC: ΔE; else [0]
    hits: float = 0.0  # adjustments of all entries together

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self[:4])


def no_changes() -> Changes:
    none = np.zeros(0, np.float32)
    return Changes(np.zeros(0, np.uint32), none, none, none)


def full_step(rates: Array, visits: Array) -> Array:
    """1 − (1 − rate)^visits: what so many equal adjustments, one after the other, come to."""
    found: Array = -np.expm1(visits * np.log1p(-np.clip(rates, LEAST, MOST)))
    return found


def apply_changes(weights: Array, memory: Array, changes: Changes, by_sums: bool) -> None:
    """Add changes to arrays that do not learn just now."""
    at = changes.entries.astype(np.int64)
    weights[at] += changes.moved
    if by_sums:
        memory[2 * at] += changes.errors
        memory[2 * at + 1] += changes.visits


class Copy:
    """One copy of a network that learns apart: its live arrays, and how they were when it last sent its changes."""

    def __init__(self, weights: Array, memory: Array, by_sums: bool) -> None:
        self.weights, self.memory, self.by_sums = weights, memory, by_sums
        self.seen, self.seen_memory = weights.copy(), memory.copy() if by_sums else memory[:0]
        self.sent: dict[int, Changes] = {}  # by round, until the common change of that round comes back

    def collect(self, number: int, hits: float = 0.0) -> Changes:
        """What was learnt since the last time; remembered as sent in round `number`."""
        learnt = self.memory[1::2] - self.seen_memory[1::2] if self.by_sums else self.memory
        at = np.flatnonzero(learnt)
        visits, errors = learnt[at], np.zeros(0, np.float32)
        if self.by_sums:
            errors = self.memory[2 * at] - self.seen_memory[2 * at]
        else:
            self.memory[at] = 0
        changes = Changes(at.astype(np.uint32), self.weights[at] - self.seen[at], visits, errors, hits)
        apply_changes(self.seen, self.seen_memory, changes, self.by_sums)
        self.sent[number] = changes
        return changes

    def absorb(self, number: int, common: Changes) -> None:
        """Take over the common change of round `number`, in the place of the own part in it."""
        own = self.sent.pop(number, None) or no_changes()
        places = np.searchsorted(common.entries, own.entries)
        rest = [array.copy() for array in common[1:4]]
        for array, mine in zip(rest, own[1:4]):
            array[places[: len(mine)]] -= mine
        others = Changes(common.entries, rest[0], rest[1], rest[2])
        apply_changes(self.weights, self.memory, others, self.by_sums)
        apply_changes(self.seen, self.seen_memory, others, self.by_sums)


class Composition:
    """The place where changes of several copies become one."""

    def __init__(self, size: int, by_sums: bool) -> None:
        self.by_sums = by_sums
        self.sums = np.zeros((size, 3), np.float32)  # c e, visits, ΔE

    def of(self, changes: Sequence[Changes], rate: float, memory: Array) -> Changes:
        """The common change; `memory` is the common one before it, from which TC has its rates."""
        for one in changes:
            at = one.entries.astype(np.int64)
            self.sums[at, 1] += one.visits
            if self.by_sums:
                self.sums[at, 2] += one.errors
        hits, sizes = sum(one.hits for one in changes), float(self.sums[:, 1].sum())
        each = hits / sizes if self.by_sums and hits and sizes else 1.0  # adjustments of a unit of `visits`

        def rates(at: Array) -> Array:
            if not self.by_sums:
                return np.full(1, rate, np.float32)
            total, path = memory[2 * at] + self.sums[at, 2], memory[2 * at + 1] + self.sums[at, 1]
            found: Array = rate * np.abs(total) / np.maximum(path, TINY)
            return found

        for one in changes:
            at, count = one.entries.astype(np.int64), each * one.visits
            self.sums[at, 0] += count * one.moved / full_step(rates(at), count)
        at = np.flatnonzero(self.sums[:, 1])
        wanted, visits, errors = self.sums[at].T
        count = each * visits
        moved = (wanted / count * full_step(rates(at), count)).astype(np.float32)
        self.sums[at] = 0
        return Changes(at.astype(np.uint32), moved, visits, errors if self.by_sums else errors[:0], hits)
