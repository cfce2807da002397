"""Work that is launched again and again: recorded once as a CUDA graph, replayed at the cost of one launch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tilesage.gpu.machine import SIMULATED


class Repeated:
    """A piece of work on a stream, recorded once and replayed at the cost of one launch."""

    def __init__(self, work: Callable[[], None], stream: Any) -> None:
        if SIMULATED:
            self.work = work
            return
        driver: Any = importlib.import_module("cuda.bindings.driver")

        self.driver, self.stream = driver, driver.CUstream(int(stream.handle))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._checked(driver.cuStreamBeginCapture(self.stream, mode))
        work()
        (self.graph,) = self._checked(driver.cuStreamEndCapture(self.stream))
        (self.executable,) = self._checked(driver.cuGraphInstantiate(self.graph, 0))

    def _checked(self, answer: Any) -> Any:
        if int(answer[0]) != 0:
            raise RuntimeError(f"CUDA says {answer[0]!s}")
        return answer[1:]

    def __call__(self) -> None:
        if SIMULATED:
            self.work()
        else:
            self._checked(self.driver.cuGraphLaunch(self.executable, self.stream))
