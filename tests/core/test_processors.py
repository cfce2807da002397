"""The default number of threads: affinity and a container's quota count, in both versions of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilesage.core.processors import processors

GROUPS = {
    "none": ({}, 8),
    "version 2, no limit": ({"cpu.max": "max 100000"}, 8),
    "version 2, the container's own": ({"a/b/cpu.max": "150000 100000"}, 2),
    "version 2, the group above": ({"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
    "version 2, less than one": ({"cpu.max": "20000 100000"}, 1),
    "version 1": ({"cpu/a/b/cpu.cfs_quota_us": "400000", "cpu/a/b/cpu.cfs_period_us": "100000"}, 4),
    "version 1, no limit": ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
    "broken": ({"cpu.max": "", "a/cpu.max": "much", "a/b/cpu.max": "100000 0"}, 8),
    "more than there are": ({"cpu.max": "9900000 100000"}, 8),
}


@pytest.mark.parametrize("name", GROUPS)
def test_quota(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, expected = GROUPS[name]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    own = tmp_path / "own"
    own.write_text("4:memory:/elsewhere\n1:cpu:/a/b\n0::/a/b\n")
    assert processors(tmp_path, own) == expected


def test_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 5, 6}, raising=False)
    assert processors(missing, missing) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    for count, expected in ((7, 7), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert processors(missing, missing) == expected
