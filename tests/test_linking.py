"""Compiled code from disk must be linked to the functions it was made with, whatever else this process has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# `long` is too long to be written out at each of its four calls, so the linker has to find it.
STEP = "            x = (x * {} + n) % {} if x % {} else x + {}"
STEPS = "\n".join(STEP.format(k + 31, 1000003 + k, k + 2, k) for k in range(60))
MODULE = f"""
from afterstate.games.compiler import kernel, rule_for


def loop_of(number):
    @rule_for("long", number)
    def long(n):
        x = number
        for _ in range(n):
{STEPS}
        return number if x else 0

    @kernel("loop", number)
    def loop(n):
        return (long(n) + long(n + 1) + long(n + 2) + long(n + 3)) // 4

    return loop


if __name__ == "__main__":
    import sys

    import numbers_made

    print(*(numbers_made.loop_of(int(word))(5) for word in sys.argv[1:]))
"""


def numbers_of(folder: Path, *words: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "numbers_made.py", *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_closures_of_one_factory_from_several_processes_do_not_take_each_other_s_place(tmp_path: Path) -> None:
    (tmp_path / "numbers_made.py").write_text(MODULE)
    assert numbers_of(tmp_path, "111") == [111]
    assert numbers_of(tmp_path, "222") == [222]
    assert len(list(tmp_path.rglob("*.nbc"))) >= 4  # both processes have left code behind
    assert numbers_of(tmp_path, "111", "222") == [111, 222]
    assert numbers_of(tmp_path, "222", "111") == [222, 111]
