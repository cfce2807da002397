"""What is met at every move, a copy for each thread.

A few entries are met all the time: those of small tables, and in large ones those of small tiles (of a 4x6 network,
the first 2^14 entries of each pair of tables get 30 % of all visits). Threads that share them write to the same few
cache lines, and the processor's cores are busy handing these lines to each other: on some machines two threads were
slower than one (docs/performance.md). So each thread learns on its own copy of these entries for a stretch of moves,
a tenth of a second or less; then the copies become one again, by the same average as copies on several machines
(merge.py): Δw = Σ vₙ Δwₙ / Σ vₙ, v how much was learnt there, and sums of errors add up.

The copies lie behind the weights, in the same array. A thread finds its own by adding `shifts` to the entries that
lie in a region that is copied.
"""

from __future__ import annotations

import numpy as np

from ..games.compiler import Array, kernel
from ..values.layout import SHAREABLE, Table
from ..values.ntuple import Evaluator
from .seat import CANDIDATES, Seat

NOTHING = np.float32(0)
HOT = 1 << 14  # entries of a large table (or of two that share lines) that each thread has for itself
LINE = 16  # entries of a cache line


def is_small(table: Table) -> bool:
    return len(table.cells) <= SHAREABLE


def region_of(table: Table) -> tuple[int, int]:
    """(first, length) of the entries that are copied: all of a small table, else where small tiles lie."""
    return (table.offset, 16 ** len(table.cells)) if is_small(table) else (table.offset // LINE * LINE, HOT)


class OwnTables:
    """Where the copies lie, and how they become one."""

    def __init__(self, evaluator: Evaluator, threads: int) -> None:
        shared = threads == 1 or evaluator.network.sets > 1
        regions = [] if shared else sorted({region_of(table) for table in evaluator.layout.tables})
        if regions and evaluator.network.by_age:
            regions.append((evaluator.tables_size, evaluator.network.ages))
        self.evaluator, self.threads = evaluator, threads
        self.firsts, self.lengths = (np.array([region[k] for region in regions], np.int64) for k in (0, 1))
        self.entries = int(self.lengths.sum())  # of one copy
        self.extra = self.entries * (threads - 1)  # the first thread's copy is the shared one
        self.before = np.zeros(self.entries, np.float32)
        self.before_memory = np.zeros(2, np.float32)

    def give(self, seat: Seat, thread: int) -> None:
        """Tell the seat of a thread where its own entries lie."""
        if not self.entries or not thread:
            return
        copies = self.evaluator.size + (thread - 1) * self.entries + np.cumsum(self.lengths) - self.lengths
        place = {int(first): int(copy) for first, copy in zip(self.firsts, copies)}
        each = CANDIDATES * self.evaluator.network.symmetries
        regions = [region_of(table) for table in self.evaluator.layout.tables]
        seat.own_firsts[:] = np.repeat(np.array([first for first, _ in regions], np.uint32), each)
        seat.own_lengths[:] = np.repeat(np.array([length for _, length in regions], np.uint32), each)
        shifts = np.array([place[first] - first for first, _ in regions], np.int64).astype(np.uint32)
        seat.own_shifts[:] = np.repeat(shifts, each)
        if self.evaluator.network.by_age:
            seat.own_ages[0] = place[self.evaluator.tables_size] - self.evaluator.tables_size
        seat.owns[0] = 1

    def hand_out(self, weights: Array, memory: Array) -> None:
        """Give every thread the tables as they are."""
        if self.entries:
            a_weight = len(memory) // len(weights)  # numbers kept for one: 0, 1 (visits) or 2 (E and A)
            if len(self.before_memory) != a_weight * self.entries:
                self.before_memory = np.zeros(a_weight * self.entries, np.float32)
            copies = self.evaluator.size, self.entries, self.threads
            _hand_out(weights, self.before, self.firsts, self.lengths, *copies, 1)
            _hand_out(memory, self.before_memory, self.firsts, self.lengths, *copies, a_weight)

    def bring_together(self, weights: Array, memory: Array) -> None:
        """Make one of what the threads have learnt since."""
        if self.entries:
            copies = self.evaluator.size, self.entries, self.threads
            a_weight = len(memory) // len(weights)
            _bring_together(
                weights, memory, self.before, self.before_memory, self.firsts, self.lengths, *copies, a_weight
            )


@kernel("hand out", title="the threads' own tables")
def _hand_out(
    array: Array, before: Array, firsts: Array, lengths: Array, size: int, entries: int, threads: int, width: int
) -> None:
    """Copy the regions, of `width` numbers an entry, to `before` and to every thread's place."""
    k = 0
    for t in range(len(firsts)):
        for i in range(width * firsts[t], width * (firsts[t] + lengths[t])):
            before[k] = array[i]
            for thread in range(threads - 1):
                array[width * (size + thread * entries) + k] = array[i]
            k += 1


@kernel("bring together", title="the threads' own tables")
def _bring_together(
    weights: Array,
    memory: Array,
    before: Array,
    before_memory: Array,
    firsts: Array,
    lengths: Array,
    size: int,
    entries: int,
    threads: int,
    width: int,
) -> None:
    k = 0
    for t in range(len(firsts)):
        for i in range(firsts[t], firsts[t] + lengths[t]):
            was, moved, learnt = before[k], NOTHING, NOTHING
            for thread in range(threads):
                place = size + (thread - 1) * entries + k if thread else i
                step = weights[place] - was
                if width == 0:
                    visits = np.float32(step != NOTHING)
                else:
                    last = width - 1  # visits, or A behind E
                    visits = memory[width * place + last] - before_memory[width * k + last]
                moved += visits * step
                learnt += visits
            if learnt > NOTHING:
                weights[i] = was + moved / learnt
                for j in range(width):
                    total = memory[width * i + j]
                    for thread in range(1, threads):
                        place = size + (thread - 1) * entries + k
                        total += memory[width * place + j] - before_memory[width * k + j]
                    memory[width * i + j] = total
            k += 1
