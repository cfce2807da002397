"""Every kernel compiles for a real GPU, where the CUDA toolkit is there; no card is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_gpu import has_toolkit

HERE = Path(__file__).parent


@pytest.mark.skipif(not has_toolkit(), reason="the CUDA toolkit is not there")
@pytest.mark.timeout(900)
def test_every_kernel_compiles_for_an_h200() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TILESAGE_QUIET": "1"}
    command = [sys.executable, "-W", "ignore", str(HERE / "compile_kernels.py")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE.parent)
    assert result.returncode == 0, result.stderr[-3000:]
    lines = result.stdout.splitlines()
    assert lines[-1] == f"{len(lines) - 1} kernels"
    assert len(lines) > 100
