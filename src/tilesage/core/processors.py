"""How many processors this process may use: the default number of threads, everywhere."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def processors(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """At least 1: what the affinity of the process and the quotas of its control groups (a container's) leave."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([allowed, *map(math.ceil, _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The processors that the groups of this process and those above them are given, version 2 and 1."""
    for line in _text(own).splitlines():
        group = PurePosixPath(line.split(":", 2)[-1].lstrip("/"))
        for folder in (group, *group.parents):
            old = groups / "cpu" / folder
            both = f"{_text(old / 'cpu.cfs_quota_us')} {_text(old / 'cpu.cfs_period_us')}"
            for limit in (_text(groups / folder / "cpu.max"), both):
                quota, period = [*limit.split(), "", ""][:2]
                if quota.isdigit() and period.isdigit() and int(period):  # neither "max" nor -1
                    yield int(quota) / int(period)


def _text(path: Path) -> str:
    """What a small file of the system says; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
