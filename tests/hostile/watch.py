"""The promises that attacked code is held to: it ends in time, in little memory, and says one clear line."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from tilesage.cli import main

SECONDS = 20.0  # for one input; the machine may be busy, a hang lasts for ever
MEMORY_FACTOR, MEMORY_FLOOR = 16, 48 << 20  # resident bytes that an input may cost: 16 × its size, and some room
STATUS = Path("/proc/self/status")
FORGET_PEAK = Path("/proc/self/clear_refs")


class Broken(AssertionError):
    """A promise that did not hold."""


@contextlib.contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """Stops what takes too long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise Broken(f"still busy after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _resident(field: str) -> int:
    """VmRSS or VmHWM, the peak, in bytes; 0 where the system does not tell."""
    if not STATUS.exists():
        return 0
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


@contextlib.contextmanager
def in_little_memory(size: int) -> Iterator[list[int]]:
    """Complains when the peak of resident memory grows out of proportion to the input, and to what it may unpack."""
    unpacked = [0]
    with contextlib.suppress(OSError):
        FORGET_PEAK.write_text("5")
    before = _resident("VmRSS")
    yield unpacked
    grown = _resident("VmHWM") - before
    if grown > MEMORY_FACTOR * size + MEMORY_FLOOR + unpacked[0]:
        gc.collect()
        raise Broken(f"{grown:,} bytes of memory for an input of {size:,}")


class _Terminal(io.TextIOWrapper):
    """Takes text as Python's own standard output and standard error do: as UTF-8, with their care for errors."""

    def __init__(self, errors: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, "utf-8", errors)

    def said(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode()


def through_the_command(words: list[str], allowed: tuple[int, ...] = (0, 2)) -> int:
    """Run the command as a user does, and check the manner in which it ends."""
    out, err = _Terminal("strict"), _Terminal("backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    said = err.said()
    if status not in allowed:
        raise Broken(f"exit status {status}, expected one of {allowed}: {said[:300]}")
    if status == 2 and (not said.startswith("tilesage: ") or said.count("\n") != 1 or len(said) < 20):
        raise Broken(f"not one clear line: {said[:300]!r}")
    if "Traceback" in said or "Traceback" in out.said():
        raise Broken(f"a traceback: {said[-600:]}")
    if len(said) > 1000:
        raise Broken(f"a line of {len(said):,} characters")
    return status


def held(attempt: Callable[[], int | None], size: int) -> str:
    """Run one attempt under watch; what was broken, or nothing. It returns the bytes it was right to unpack."""
    try:
        with in_time(), in_little_memory(size) as unpacked:
            unpacked[0] = attempt() or 0
    except Exception as error:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "tilesage" in frame.filename]
        where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
        said = re.sub(r"0x[0-9a-f]+|[0-9]+", "N", str(error)[:120]) if where else str(error)[:300]
        return f"{type(error).__name__}: {said}{where}"
    return ""
