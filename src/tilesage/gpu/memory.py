"""The GPU's memory: new arrays, and whether there is room for them before any is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.gpu.machine import BLOCK, SIMULATED, cuda, launched, stride, thread_number

# Of numbers, by a letter.
KINDS = {"b": np.uint8, "i": np.int32, "j": np.int64, "u": np.uint64, "f": np.float32, "d": np.float64}
WIDE = (1, BLOCK) if SIMULATED else (2048, BLOCK)  # a grid for loops over all weights


def free_memory() -> Any:
    """Bytes that are free, once what nobody uses any more has gone back; without end in the simulator."""
    context = cuda.current_context()
    if not SIMULATED:
        context.deallocations.clear()
    return context.get_memory_info().free


def check_room(needed: int, what: str, advice: str) -> None:
    """Refuse what does not fit, in one line."""
    free = free_memory()
    if needed > free:
        raise InputError(
            f"{what} needs {needed / 2**30:.1f} GiB of the GPU's memory, {free / 2**30:.1f} GiB are free: {advice}"
        )


def new(kind: str, *shape: int) -> Any:
    """An array that holds anything."""
    return cuda.device_array(shape, KINDS[kind])


def zeros(kind: str, *shape: int) -> Any:
    """An array of zeros, not a large one: it comes from here."""
    return cuda.to_device(np.zeros(shape, KINDS[kind]))


def fill(array: Any, value: Any, stream: Any = 0) -> None:
    """Set all elements of an array with one axis."""
    if SIMULATED:  # threads of the simulator take turns
        array.copy_to_device(np.full(array.size, value))
    else:
        fill_in[(*WIDE, stream)](array, value)


@launched
def fill_in(array: Array, value: Any) -> None:
    for i in range(thread_number(), array.size, stride()):
        array[i] = value
