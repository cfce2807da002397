"""The models and runs that visitors may name.

A name from outside is only ever compared with the names found here; it is never made into a path. What lies outside
the folders that the server was given, also behind a link, is not found.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...games import Mistake
from .settings import Settings

MOST_RUNS = 500
MOST_BYTES = 1 << 20  # of metrics in one answer
FRESH_SECONDS = 15.0  # a run whose metrics grew so recently is alive


@dataclass(frozen=True)
class Run:
    """A folder of a training."""

    name: str
    folder: Path


class Library:
    """Looks again whenever asked: trainings come and go while the server runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def runs(self) -> list[Run]:
        root = self.settings.runs
        if not root.is_dir():
            return []
        inside = root.resolve()
        found = []
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name)[:MOST_RUNS]:
            folder = Path(entry.path)
            if not entry.is_dir() or not folder.resolve().is_relative_to(inside):
                continue
            if (folder / "run.toml").is_file() or (folder / "metrics.jsonl").is_file():
                found.append(Run(entry.name, folder))
        return found

    def has_run(self, name: str) -> bool:
        return self.settings.runs.is_dir() and name in os.listdir(self.settings.runs)

    def run(self, name: str) -> Run:
        for run in self.runs():
            if run.name == name:
                return run
        raise Mistake("there is no run of this name")

    def models(self) -> list[dict[str, Any]]:
        return []

    def open_model(self, name: str, game: str) -> Any:
        return None


def describe_run(run: Run) -> dict[str, Any]:
    """The settings of a run and the last line of its metrics."""
    settings: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        settings = tomllib.loads((run.folder / "run.toml").read_text("utf-8")[:100_000])
    flat = {key: value for key, value in _flat(settings).items() if isinstance(value, (str, int, float, bool))}
    for hidden in [key for key, value in flat.items() if isinstance(value, str) and os.sep in value]:
        del flat[hidden]  # places on this machine are nobody's business
    metrics = run.folder / "metrics.jsonl"
    age = time.time() - metrics.stat().st_mtime if metrics.is_file() else 0.0
    return {"name": run.name, "settings": flat, "last": _last_line(metrics), "age": round(max(0.0, age), 1)}


def _flat(table: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update({k: v for k, v in value.items() if k not in flat})
        else:
            flat[key] = value
    return flat


def _last_line(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 8192))
            lines = stream.read().split(b"\n")[:-1]
    except OSError:
        return None
    return next((point for point in map(_point, reversed(lines)) if point), None)


def _point(line: bytes) -> dict[str, Any] | None:
    try:
        point = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return None
    return point if isinstance(point, dict) else None


def read_metrics(run: Run, after: int) -> dict[str, Any]:
    """The whole lines of the metrics from byte `after` on, and where to go on from."""
    try:
        with (run.folder / "metrics.jsonl").open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            if after > size:  # the run was started anew
                return {"points": [], "next": 0, "restarted": True}
            stream.seek(after)
            data = stream.read(MOST_BYTES)
    except OSError:
        return {"points": [], "next": after, "restarted": False}
    whole = data.rfind(b"\n") + 1
    points = [point for point in map(_point, data[:whole].split(b"\n")) if point]
    return {"points": points, "next": after + whole, "restarted": False}
