"""Work that is launched again and again: recorded once as a CUDA graph, replayed at the cost of one launch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tilesage.gpu.machine import SIMULATED


def repeated(work: Callable[[], None], stream: Any) -> Callable[[], None]:
    """A piece of work on a stream, as a function that does it once more. It does not keep `work` alive."""
    if SIMULATED:
        return work
    driver: Any = importlib.import_module("cuda.bindings.driver")

    def checked(answer: Any) -> Any:
        if int(answer[0]) != 0:
            raise RuntimeError(f"CUDA says {answer[0]!s}")
        return answer[1:]

    there = driver.CUstream(int(stream.handle))
    checked(driver.cuStreamBeginCapture(there, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    work()
    (graph,) = checked(driver.cuStreamEndCapture(there))
    (executable,) = checked(driver.cuGraphInstantiate(graph, 0))

    def replay() -> None:
        checked(driver.cuGraphLaunch(executable, there))

    return replay
