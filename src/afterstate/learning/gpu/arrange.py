"""From the layout of the CPU and of files to that of the GPU, and back, on the GPU.

On the CPU an entry lies where the caches like it (values/layout.py); on the GPU at Σ tile[k] << 4k in its table. An
index of the one is an index of the other with its bits in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterstate.games.compiler import Array
from afterstate.values.layout import Table
from afterstate.values.ntuple import Evaluator

from .machine import BLOCK, SIMULATED, cuda, device, launched, thread_number, uint64

GRID = (1, BLOCK) if SIMULATED else (2048, BLOCK)
ONE = np.uint64(1)


@device
def stride() -> Any:
    return uint64(cuda.gridDim.x) * uint64(cuda.blockDim.x)


@launched
def gather(source: Array, target: Array, moves: Array, first: np.uint64, base: np.uint64, size: np.uint64) -> None:
    """target[base + i] = source[first + i with its bits moved]: one table, from the CPU's order to the GPU's."""
    i = thread_number()
    while i < size:
        place = first
        for k in range(moves.shape[0]):
            place += ((i >> moves[k, 0]) & ONE) << moves[k, 1]
        target[base + i] = source[place]
        i += stride()


@launched
def scatter(source: Array, target: Array, moves: Array, first: np.uint64, base: np.uint64, size: np.uint64) -> None:
    """target[first + i with its bits moved] = source[base + i]: one table, from the GPU's order to the CPU's."""
    i = thread_number()
    while i < size:
        place = first
        for k in range(moves.shape[0]):
            place += ((i >> moves[k, 0]) & ONE) << moves[k, 1]
        target[place] = source[base + i]
        i += stride()


class Arrangement:
    """Goes between the two layouts of one network. Arrays hold one word an entry, of any type."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.entries = evaluator.entries
        self.tables = []
        base = 0
        for table in evaluator.layout.tables:
            size = 16 ** len(table.cells)
            self.tables.append((cuda.to_device(moves_of(table)), table.offset, base, size))
            base += size

    def _each_table(self, kernel: Any, source: Any, target: Any) -> None:
        for start in range(0, source.size, self.entries):
            for moves, offset, base, size in self.tables:
                kernel[GRID](
                    source, target, moves, np.uint64(start + offset), np.uint64(start + base), np.uint64(size)
                )
        cuda.synchronize()

    def to_gpu(self, there: Any, here: Array) -> None:
        """Fill the GPU's array from one in the order of the CPU."""
        self._each_table(gather, cuda.to_device(np.ascontiguousarray(here.reshape(-1))), there)

    def to_cpu(self, there: Any) -> Array:
        """A copy of the GPU's array, in the order of the CPU."""
        arranged = cuda.device_array(there.size, there.dtype)
        self._each_table(scatter, there, arranged)
        return np.asarray(arranged.copy_to_host())


def moves_of(table: Table) -> Array:
    """[bits, 2] uint64: which bit of the GPU's index goes to which bit of the CPU's."""
    return np.array([(bit, to) for to, bit in enumerate(table.bits) if bit >= 0], np.uint64).reshape(-1, 2)
