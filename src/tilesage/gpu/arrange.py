"""From the layout of the CPU and of files to that of the GPU, and back, on the GPU.

On the CPU an entry lies where the caches like it (networks/layout.py); on the GPU at Σ tile[k] << 4k in its table. An
index of the one is an index of the other with its bits in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.gpu.machine import cuda, device, int64, launched, stride, thread_number, uint64
from tilesage.gpu.memory import WIDE
from tilesage.networks.layout import Table
from tilesage.networks.ntuple import Evaluator
from tilesage.networks.patterns import AGES

ZERO, ONE = np.uint64(0), np.uint64(1)
BITS_OF_AGES = (AGES - 1).bit_length()  # their order is the same everywhere


@device
def moved(i: np.uint64, moves: Array) -> Any:
    """An index of the GPU with its bits in the order of the CPU."""
    place = ZERO
    for k in range(moves.shape[0]):
        place += ((i >> moves[k, 0]) & ONE) << moves[k, 1]
    return int64(place)


@launched
def gather(here: Array, there: Array, moves: Array, first: int, base: int, size: int) -> None:
    """One table, from the CPU's order to the last word of each of the GPU's records."""
    for i in range(thread_number(), size, stride()):
        there[base + i, -1] = here[first + moved(uint64(i), moves)]


@launched
def scatter(here: Array, there: Array, moves: Array, first: int, base: int, size: int) -> None:
    """One table, from the last word of each of the GPU's records to the CPU's order."""
    for i in range(thread_number(), size, stride()):
        here[first + moved(uint64(i), moves)] = there[base + i, -1]


class Arrangement:
    """Goes between the two layouts of one network. Arrays of the GPU hold one or several words an entry.

    Of several words the last one goes over. (A slice of the array with a step would say the same, but making one
    takes Numba minutes for a large network: it lists every element.)
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.entries = evaluator.entries
        self.tables = []
        base = 0
        for table in evaluator.layout.tables:
            size = 16 ** len(table.cells)
            self.tables.append((cuda.to_device(moves_of(table)), table.offset, base, size))
            base += size
        self.sets = evaluator.network.sets
        self.ages = cuda.to_device(np.repeat(np.arange(BITS_OF_AGES, dtype=np.uint64), 2).reshape(-1, 2))
        self.first_age, self.last = evaluator.tables_size, evaluator.size

    def _each_table(self, kernel: Any, here: Any, there: Any, words: int) -> None:
        records = there.reshape(there.size // words, words)
        for start in range(0, self.sets * self.entries, self.entries):
            for moves, offset, base, size in self.tables:
                kernel[WIDE](here, records, moves, start + offset, start + base, size)
        if self.first_age < self.last:
            kernel[WIDE](here, records, self.ages, self.first_age, self.first_age, AGES)
        cuda.synchronize()

    def to_gpu(self, there: Any, here: Array, words: int = 1) -> None:
        """Fill the GPU's array from one in the order of the CPU."""
        self._each_table(gather, cuda.to_device(np.ascontiguousarray(here.reshape(-1))), there, words)

    def to_cpu(self, there: Any, words: int = 1) -> Array:
        """A copy of the GPU's array, in the order of the CPU."""
        here = cuda.device_array(there.size // words, there.dtype)
        self._each_table(scatter, here, there, words)
        return np.asarray(here.copy_to_host())


def moves_of(table: Table) -> Array:
    """[bits, 2] uint64: which bit of the GPU's index goes to which bit of the CPU's."""
    return np.array([(bit, to) for to, bit in enumerate(table.bits) if bit >= 0], np.uint64).reshape(-1, 2)
