"""`tilesage warm`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass


@dataclass
class Command:
    """Compile now what hint, watch, play, the page, evaluate and train need first, so that none of them waits later.

    examples:
      tilesage warm
    """


def run(command: Command) -> int:
    """Give each a small task, in a process of its own."""
    from tilesage import games
    from tilesage.networks.files import BUILT_IN, SUFFIX

    shipped = [name for name in games.names() if (BUILT_IN / f"{name}{SUFFIX}").exists()]
    tasks: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in shipped:
            tasks.append(["hint", "--game", name, games.get(name).new(seed=1).text])
            tasks.append(["evaluate", name, "--games", "2", "--workers", "1"])
            tasks.append(["train", name, "--moves", "1000", "--threads", "1", "--quiet", "--out", f"{folder}/{name}"])
        for number, words in enumerate(tasks, 1):
            begin = time.monotonic()
            print(f"{number} of {len(tasks)}: tilesage {' '.join(words[:3])} … ", end="", flush=True)
            done = subprocess.run([sys.executable, "-m", "tilesage", *words], capture_output=True, text=True)
            print(f"{time.monotonic() - begin:.1f} s" if done.returncode == 0 else done.stderr.strip())
    return 0
