"""One key at a time from a terminal, which is always given back as it was found.

>>> name_of("\\x1b[A"), name_of("w"), name_of("L"), name_of("u")
('up', 'up', 'right', 'undo')
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

# What a key is for, and the ways to press it: arrows as terminals (and Windows) send them, then letters.
# `h` asks for advice, so the vi key for left needs Shift.
MEANINGS = {
    "up": ["\x1b[A", "\x1bOA", "\xe0H", "w", "k"],
    "right": ["\x1b[C", "\x1bOC", "\xe0M", "d", "l"],
    "down": ["\x1b[B", "\x1bOB", "\xe0P", "s", "j"],
    "left": ["\x1b[D", "\x1bOD", "\xe0K", "a", "H"],
    "undo": ["u", "\x7f", "\b"],
    "hint": ["h", "?"],
    "restart": ["r"],
    "quit": ["q", "\x03", "\x04", "\x1b"],
    "pause": [" "],
    "judge": ["e"],
    "before": ["p"],
    "step": ["n", "\r", "\n"],
    "faster": ["+", "="],
    "slower": ["-"],
    "home": ["\x1b[H", "\x1bOH", "\x1b[1~", "\xe0G"],
    "end": ["\x1b[F", "\x1bOF", "\x1b[4~", "\xe0O"],
    "back": ["\x1b[5~", "\xe0I"],
    "forth": ["\x1b[6~", "\xe0Q"],
}
KEYS = {key: meaning for meaning, keys in MEANINGS.items() for key in keys}
SHOW_CURSOR, HIDE_CURSOR = b"\x1b[?1049l\x1b[?25h\n", b"\x1b[?1049h\x1b[?25l"  # and the screen that was there
ESCAPE, REST_OF_SEQUENCE = "\x1b", 0.05  # seconds in which the rest of an arrow key arrives


def name_of(typed: str) -> str:
    """What a key is for; "" for a key that means nothing."""
    return KEYS.get(typed) or KEYS.get(typed.lower(), "")


class Keyboard:
    """Keys without Enter and without echo, while the `with` block lasts; standard input by default.

    Signals that end or suspend the program (TERM, HUP, Ctrl-Z) do so after the terminal is restored, whatever the
    program is doing.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._saved: Any = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Keyboard:
        if sys.platform != "win32":
            import termios
            import tty

            self._saved = termios.tcgetattr(self.descriptor)
            answers = {signal.SIGTERM: self._end, signal.SIGHUP: self._end, signal.SIGTSTP: self._pause}
            for number, answer in answers.items():
                with contextlib.suppress(ValueError):  # not in the main thread
                    self._handlers[number] = signal.signal(number, answer)
            tty.setcbreak(self.descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _restore(self) -> None:
        if sys.platform != "win32":
            import termios

            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._saved)

    def _end(self, number: int, frame: FrameType | None) -> None:
        # An exception could get lost where C code calls Python, so the signal is sent again, with its own meaning.
        self._restore()
        self._send(SHOW_CURSOR)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        if sys.platform != "win32":
            import tty

            self._restore()
            self._send(SHOW_CURSOR)
            os.kill(os.getpid(), signal.SIGSTOP)  # here the program sleeps until it is continued
            tty.setcbreak(self.descriptor)
            self._send(HIDE_CURSOR)

    def _send(self, code: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self.descriptor, code)

    def read(self, timeout: float | None = None) -> str:
        """The name of the next key that means something, or "" when none came in time."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            typed = self._typed(left)
            if not typed:
                return ""
            if name := name_of(typed):
                return name

    def presses(self) -> Iterator[str]:
        """Keys as they come, until "quit"."""
        while (name := self.read()) != "quit":
            yield name

    def _typed(self, timeout: float | None) -> str:
        if sys.platform == "win32":
            return _typed_on_windows(timeout)
        first = self._character(timeout)
        if first != ESCAPE:
            return first
        typed = first
        while (more := self._character(REST_OF_SEQUENCE)) and len(typed) < 8:
            typed += more
            if (more.isalpha() and more != "O") or more == "~":
                break
        return typed

    def _character(self, timeout: float | None) -> str:
        ready, _, _ = select.select([self.descriptor], [], [], timeout)
        if not ready:
            return ""
        read = os.read(self.descriptor, 1)
        return read.decode("latin-1") if read else "q"  # the terminal is gone


def _typed_on_windows(timeout: float | None) -> str:
    import msvcrt

    console: Any = msvcrt
    end = None if timeout is None else time.monotonic() + timeout
    while not console.kbhit():
        if end is not None and time.monotonic() >= end:
            return ""
        time.sleep(0.01)
    typed: str = console.getwch()
    return "\xe0" + console.getwch() if typed in "\x00\xe0" else typed
