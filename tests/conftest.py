"""What all tests share: the references on the path, a quiet compiler, and patient properties."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from terminal_support import PseudoTerminal

os.environ.setdefault("TILESAGE_QUIET", "1")
os.environ.setdefault("TILESAGE_CACHE", "")  # solved endgames: none are kept, and none are taken
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
sys.path.insert(0, str(Path(__file__).parent))  # where the helpers lie that tests share

settings.register_profile(
    "tilesage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=300
)
settings.register_profile(
    "first-failure", settings.get_profile("tilesage"), phases=[Phase.explicit, Phase.generate]
)  # for scripts/mutants.py: that something fails is enough, the smallest example is not looked for
settings.load_profile("tilesage")


@pytest.fixture
def terminal() -> Iterator[PseudoTerminal]:
    """A pseudo-terminal."""
    from terminal_support import PseudoTerminal

    terminal = PseudoTerminal()
    yield terminal
    terminal.close()


@pytest.fixture
def plain_ctrl_c() -> Iterator[None]:
    """Nobody answers Ctrl-C but Python itself, whatever a test before this one has left behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before or signal.default_int_handler)
