"""A pseudo-terminal, and a person who sits at it."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Iterator

import pytest

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")


class PseudoTerminal:
    """A pseudo-terminal: what a person types goes in, what the person would see comes out."""

    def __init__(self) -> None:
        self.near, self.far = pty.openpty()
        termios.tcsetwinsize(self.far, (30, 100))
        self.before = termios.tcgetattr(self.far)
        self.seen, self._closing = b"", False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._closing:
            if select.select([self.near], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.near, 4096)
                except OSError:
                    return

    def type(self, text: str | bytes) -> None:
        os.write(self.near, text.encode() if isinstance(text, str) else text)

    def resize(self, rows: int, columns: int) -> None:
        """The window becomes so large, which the program in front is told."""
        termios.tcsetwinsize(self.far, (rows, columns))

    def shows(self, text: str, seconds: float = 150) -> bool:
        """Wait until the text has been on the screen."""
        end = time.monotonic() + seconds
        while text.encode() not in self.seen and time.monotonic() < end:
            time.sleep(0.02)
        return text.encode() in self.seen

    @property
    def as_found(self) -> bool:
        return termios.tcgetattr(self.far) == self.before

    def close(self) -> None:
        """The reader ends first: the next terminal may get the same descriptor, and lose what it shows to it."""
        self._closing = True
        self._reader.join()
        for descriptor in (self.far, self.near):
            os.close(descriptor)


@contextlib.contextmanager
def at_terminal(terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[PseudoTerminal]:
    """Standard input and output are the pseudo-terminal."""
    with (
        open(terminal.far, closefd=False) as source,
        open(terminal.far, "w", closefd=False, encoding="utf-8") as sink,
        monkeypatch.context() as patch,
    ):
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLORTERM", "truecolor")
        patch.delenv("NO_COLOR", raising=False)
        patch.setattr(sys, "stdin", source)
        patch.setattr(sys, "stdout", sink)
        yield terminal
