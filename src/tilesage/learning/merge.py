"""Several copies of one network that learn apart and are brought together every few seconds.

Each copy sends what it changed since the last time: the entries it touched, by how much their weights moved, and how
much was learnt there. Together they move by the average of the changes, each weighted by how much was learnt:

    Δw = Σ vₙ Δwₙ / Σ vₙ          v: the visits of an entry; under TC each visit counts by the size of its error

An entry that one copy alone has met moves as far as that copy moved it; one that all have met moves by their common
opinion. The sums of TC are sums over visits, so they add up: ΔE = Σ ΔEₙ, ΔA = Σ ΔAₙ. (For averaging copies that
learn apart: McDonald, Hall and Mann 2010, "iterative parameter mixing".)

Nobody waits. While changes travel, a copy learns on; when the common change of an earlier round arrives, it replaces
the copy's own part in it: w += Δw − Δwₙ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled

NOTHING = np.float32(0)


class Changes(NamedTuple):
    """What happened to the touched entries of a network, in ascending order."""

    entries: Array  # [k] uint32
    moved: Array  # [k] float32, by how much the weight moved
    visits: Array  # [k] float32, TD: visits; TC: ΔA, the sizes of their errors
    errors: Array  # [k] float32 under TC: ΔE; else [0]

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self)


def no_changes(writable: bool = True) -> Changes:
    """None; read-only ones are what arrives from elsewhere."""
    found = Changes(np.zeros(0, np.uint32), *(np.zeros(0, np.float32) for _ in range(3)))
    for array in found:
        array.flags.writeable = writable
    return found


@compiled(title="the merging of networks")
def _collect(
    weights: Array,  # [entries]
    memory: Array,  # TC: [2 · entries] E and A; TD: [entries] visits since the last time
    seen: Array,  # [entries] the weights at the last time
    seen_memory: Array,  # TC: [2 · entries]
    first: int,
    last: int,
    found: Changes,
    by_sums: bool,
) -> int:
    """Note what was touched in entries first … last - 1, and remember it as seen. Returns how many there are."""
    entries, moved, visits, errors = found
    k = 0
    for i in range(first, last):
        learnt = memory[2 * i + 1] - seen_memory[2 * i + 1] if by_sums else memory[i]
        if learnt != NOTHING:
            entries[k], moved[k], visits[k] = i, weights[i] - seen[i], learnt
            seen[i] += moved[k]
            if by_sums:
                errors[k] = memory[2 * i] - seen_memory[2 * i]
                seen_memory[2 * i] += errors[k]
                seen_memory[2 * i + 1] += learnt
            else:
                memory[i] = NOTHING
            k += 1
    return k


@compiled(title="the merging of networks")
def _absorb(
    weights: Array, memory: Array, seen: Array, seen_memory: Array, common: Changes, own: Changes, by_sums: bool
) -> None:
    """Put the common change in the place of the own part in it."""
    k = 0
    for c in range(len(common.entries)):
        i = np.int64(common.entries[c])
        step = common.moved[c]
        mine = k < len(own.entries) and own.entries[k] == common.entries[c]
        if mine:
            step -= own.moved[k]
        weights[i] += step
        seen[i] += step
        if by_sums:
            total, path = common.errors[c], common.visits[c]
            if mine:
                total, path = total - own.errors[k], path - own.visits[k]
            memory[2 * i] += total
            memory[2 * i + 1] += path
            seen_memory[2 * i] += total
            seen_memory[2 * i + 1] += path
        if mine:
            k += 1


@compiled(title="the merging of networks")
def _pour(sums: Array, changes: Changes, by_sums: bool) -> None:
    """Add one copy's changes to sums [entries, 3] of v Δw, v, ΔE."""
    for k in range(len(changes.entries)):
        i = np.int64(changes.entries[k])
        sums[i, 0] += changes.visits[k] * changes.moved[k]
        sums[i, 1] += changes.visits[k]
        if by_sums:
            sums[i, 2] += changes.errors[k]


@compiled(title="the merging of networks")
def _drain(sums: Array, first: int, last: int, found: Changes, by_sums: bool) -> int:
    """The averages of entries first … last - 1; the sums are zero again afterwards."""
    k = 0
    for i in range(first, last):
        if sums[i, 1] != NOTHING:
            found.entries[k], found.moved[k], found.visits[k] = i, sums[i, 0] / sums[i, 1], sums[i, 1]
            if by_sums:
                found.errors[k] = sums[i, 2]
            sums[i, 0], sums[i, 1], sums[i, 2] = NOTHING, NOTHING, NOTHING
            k += 1
    return k


def _in_parts(
    scan: Callable[[int, int, Changes], int], size: int, by_sums: bool, pool: ThreadPoolExecutor
) -> Changes:
    """Scan all entries with several threads, each over a part of them."""
    parts = max(1, min(pool._max_workers, size // 4096))
    ends = [size * k // parts for k in range(parts + 1)]

    def one(first: int, last: int) -> Changes:
        room = last - first  # memory that is not written to is not taken
        numbers = [np.empty(room if wanted else 0, np.float32) for wanted in (True, True, by_sums)]
        found = Changes(np.empty(room, np.uint32), *numbers)
        count = scan(first, last, found)
        return Changes(*(array[:count].copy() for array in found))

    pieces = list(pool.map(one, ends[:-1], ends[1:]))
    return Changes(*(np.concatenate(column) for column in zip(*pieces)))


class Copy:
    """One copy of a network that learns apart: its live arrays, and how they were when it last sent its changes."""

    def __init__(self, weights: Array, memory: Array, by_sums: bool, threads: int = 1) -> None:
        self.weights, self.memory, self.by_sums = weights, memory, by_sums
        self.seen = weights.copy()
        self.seen_memory = memory.copy() if by_sums else np.zeros(2, np.float32)
        self.sent: dict[int, Changes] = {}  # by round, until the common change of that round comes back
        self.pool = ThreadPoolExecutor(threads)
        self.collect(0)  # compiled now rather than in a round
        self.absorb(0, no_changes(writable=False))

    def collect(self, number: int) -> Changes:
        """What was learnt since the last time; remembered as sent in round `number`."""

        def scan(first: int, last: int, found: Changes) -> int:
            arrays = self.weights, self.memory, self.seen, self.seen_memory
            return int(_collect(*arrays, first, last, found, self.by_sums))

        changes = _in_parts(scan, len(self.weights), self.by_sums, self.pool)
        self.sent[number] = changes
        return changes

    def absorb(self, number: int, common: Changes) -> None:
        """Take over the common change of round `number`."""
        own = self.sent.pop(number, None) or no_changes()
        _absorb(self.weights, self.memory, self.seen, self.seen_memory, common, own, self.by_sums)


class Average:
    """The place where changes of several copies become one."""

    def __init__(self, size: int, by_sums: bool, threads: int = 1) -> None:
        self.by_sums = by_sums
        self.sums = np.zeros((size, 3), np.float32)  # v Δw, v, ΔE
        self.pool = ThreadPoolExecutor(threads)
        self.of([no_changes(writable=False)])  # compiled now rather than in a round

    def of(self, changes: Iterable[Changes]) -> Changes:
        for one in changes:
            _pour(self.sums, one, self.by_sums)

        def scan(first: int, last: int, found: Changes) -> int:
            return int(_drain(self.sums, first, last, found, self.by_sums))

        return _in_parts(scan, len(self.sums), self.by_sums, self.pool)


def apply_changes(weights: Array, memory: Array, common: Changes, by_sums: bool) -> None:
    """Bring a copy that does not learn itself (the common one) up to date."""
    nowhere = np.zeros(2, np.float32)
    _apply(weights, memory if by_sums else nowhere, common, by_sums)


@compiled(title="the merging of networks")
def _apply(weights: Array, memory: Array, common: Changes, by_sums: bool) -> None:
    for c in range(len(common.entries)):
        i = np.int64(common.entries[c])
        weights[i] += common.moved[c]
        if by_sums:
            memory[2 * i] += common.errors[c]
            memory[2 * i + 1] += common.visits[c]
