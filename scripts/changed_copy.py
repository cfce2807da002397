"""Do the tests notice when one file of the package is changed? For mutants.py and small_errors.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tilesage"


def survives(name: str, source: str, tests: list[str], seconds: float, jit: bool = False) -> bool:
    """Do all tests pass on a copy of the package with this file? A change that takes too long has been noticed.

    The compiler is off, or with `jit` on; what has been compiled already comes along where it still holds.
    """
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / PACKAGE.name
        subprocess.run(["cp", "-r", str(PACKAGE), str(copied)], check=True)
        (copied / name).write_text(source, encoding="utf-8")
        paths = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths, "TILESAGE_QUIET": "1"}
        environment["NUMBA_DISABLE_JIT"] = "0" if jit else "1"
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        words += ["--hypothesis-profile", "first-failure", *tests]
        try:
            done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0
