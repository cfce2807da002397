"""Make errors of the kind that a refactoring makes, one at a time, and see whether the tests notice.

Each file in scripts/small_errors/ lists some of them:

    [[error]]
    name = "landing tile's points dropped (forward, Threes!)"
    file = "learning/forward.py"            # in the package
    old = '''text that occurs exactly once in it'''
    new = '''what stands there instead'''
    tests = ["tests/test_x.py::test_y"]     # files or tests: the few that should notice
    jit = false                             # true: with the compiler on

The named tests run on the package as it is, which they must pass, then on a copy of it for each error. An error that
they all pass has survived: nothing holds that line.

    python scripts/small_errors.py                                  # all of them
    python scripts/small_errors.py --file learning --workers 2      # those of scripts/small_errors/learning.toml
    python scripts/small_errors.py --only Threes                    # those whose name has this in it
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from changed_copy import PACKAGE, survives

ERRORS = Path(__file__).with_suffix("")


@dataclass(frozen=True)
class SmallError:
    """One change of one place."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    jit: bool = False

    def source(self) -> str:
        """The file with the error in it."""
        text = (PACKAGE / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: its old text is {text.count(self.old)} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def read_errors(path: Path) -> list[SmallError]:
    """Those that a file lists."""
    return [SmallError(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["error"]]


def sound(errors: list[SmallError], seconds: float) -> bool:
    """Do the named tests pass before anything is changed?"""
    for jit in (False, True):
        tests = sorted({test for error in errors if error.jit == jit for test in error.tests})
        as_it_is = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
        if tests and not survives("__init__.py", as_it_is, tests, seconds * len(tests), jit):
            on = f"the compiler {'on' if jit else 'off'}"
            print(f"with {on} the tests fail, or take too long, before anything is changed: {' '.join(tests)}")
            return False
    return True


def main() -> int:
    files = sorted(path.stem for path in ERRORS.glob("*.toml"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", choices=files, help="only the errors that this file lists")
    parser.add_argument("--only", default="", help="only those whose name has this text in it")
    parser.add_argument("--workers", type=int, default=1, help="errors at a time")
    parser.add_argument("--seconds", type=float, default=300, help="for the tests of one error")
    flags = parser.parse_args()
    listed = [error for name in files if flags.file in (None, name) for error in read_errors(ERRORS / f"{name}.toml")]
    errors = [error for error in listed if flags.only in error.name]
    try:
        sources = [error.source() for error in errors]
    except (ValueError, OSError) as problem:
        print(problem)
        return 1
    if not sound(errors, flags.seconds):
        return 1
    alive, begin = 0, time.monotonic()
    with ThreadPoolExecutor(flags.workers) as pool:
        asked = {
            pool.submit(survives, error.file, source, error.tests, flags.seconds, error.jit): error
            for error, source in zip(errors, sources, strict=True)
        }
        for answer in as_completed(asked):
            if answer.result():
                alive += 1
                print(f"survived: {asked[answer].name}", flush=True)
    print(f"{len(errors) - alive} of {len(errors)} small errors noticed, {time.monotonic() - begin:.0f} s")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
