"""Ctrl-C at a good moment."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def postponed(noticed: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Ctrl-C is noticed at once, and raised as KeyboardInterrupt when the block has ended.

    For what must not be left halfway: a compiler, threads at work on arrays that are saved next. Where somebody else
    answers Ctrl-C, or in a thread that never gets it, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def note(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        noticed()

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
