"""A clock that compiled code can read, so that players with a time limit also play whole games without Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from tilesage.core.compiler import COMPILED, Number, compiled

SECONDS, NANOSECONDS = 0, 1  # the fields of a C timespec
CLOCK_MONOTONIC = 6 if sys.platform == "darwin" else 1


def _posix_clock() -> Callable[[], Number]:
    clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))

    @compiled
    def now() -> Number:
        """Seconds on a clock that never goes back."""
        spec = np.zeros(2, np.int64)
        clock_gettime(np.int32(CLOCK_MONOTONIC), spec.ctypes.data)
        return spec[SECONDS] + 1e-9 * spec[NANOSECONDS]

    return now


def _windows_clock() -> Callable[[], Number]:
    ticks: Any = types.ExternalFunction("GetTickCount64", types.uint64())

    @compiled
    def now() -> Number:
        """Seconds on a clock that never goes back, in steps of about 16 ms."""
        return 1e-3 * np.float64(ticks())

    return now


now: Callable[[], Number] = time.perf_counter
if COMPILED:
    now = _windows_clock() if sys.platform == "win32" else _posix_clock()
