"""The models and runs that visitors may name.

A name from outside is only ever compared with the names found here; it is never made into a path. What lies outside
the folders that the server was given, also behind a link, is not found.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import tomllib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tilesage.app.web.settings import Settings
from tilesage.core.errors import InputError
from tilesage.networks.files import BUILT_IN, SUFFIX, Model, built_in_names, load_model, read_header

MOST_RUNS = 500
OPEN_MODELS = 3  # kept in memory; each may be hundreds of megabytes
MOST_BYTES = 1 << 20  # of metrics in one answer


@dataclass(frozen=True)
class Run:
    """The folder of a training, and the name by which visitors know it."""

    name: str
    folder: Path


@dataclass(frozen=True)
class ModelFile:
    """A model file and the name by which visitors know it."""

    name: str
    origin: str
    path: Path


class Library:
    """Finds runs and models, anew at every call: trainings come and go while the server runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lock = threading.Lock()
        self.open: dict[tuple[str, str, int], Model] = {}

    def runs(self) -> list[Run]:
        """By name; of very many only the newest, which are those that somebody wants to follow."""
        root = self.settings.runs
        if not root.is_dir():
            return []
        inside = root.resolve()
        newest = sorted(os.scandir(root), key=_changed, reverse=True)
        found = (Run(entry.name, Path(entry.path)) for entry in newest if _is_run(Path(entry.path), inside))
        return sorted(islice(found, MOST_RUNS), key=lambda run: run.name)

    def has_run(self, name: str) -> bool:
        """Is there anything of this name among the runs?"""
        return self.settings.runs.is_dir() and name in os.listdir(self.settings.runs)

    def run(self, name: str) -> Run:
        """The run of this name."""
        for run in self.runs():
            if run.name == name:
                return run
        raise InputError("there is no run of this name")

    def models(self) -> list[dict[str, Any]]:
        """Every model that may be named: the built-in ones, those of the runs, those of the given folders."""
        return [entry for file in self._model_files() if (entry := _describe_model(file))]

    def load_model(self, name: str, game: str) -> Model:
        """The model of this name, or the built-in one of this game when the name is empty."""
        if not name:
            return self._opened(None, game)
        for file in self._model_files():
            if file.name == name:
                return self._opened(file, game)
        raise InputError("there is no model of this name: GET /api/models lists them")

    def _model_files(self) -> list[ModelFile]:
        files = [ModelFile(name, "built-in", BUILT_IN / f"{name}{SUFFIX}") for name in built_in_names()]
        for run in self.runs():
            best = next(
                (
                    run.folder / f"{name}{SUFFIX}"
                    for name in ("best", "last")
                    if (run.folder / f"{name}{SUFFIX}").is_file()
                ),
                None,
            )
            if best:
                files.append(ModelFile(f"runs/{run.name}", "run", best))
        for folder in self.settings.models:
            inside = folder.resolve()
            for path in sorted(folder.glob(f"*{SUFFIX}"))[:MOST_RUNS]:
                if path.resolve().is_relative_to(inside):
                    files.append(ModelFile(f"{folder.name}/{path.name.removesuffix(SUFFIX)}", "file", path))
        return files

    def _opened(self, file: ModelFile | None, game: str) -> Model:
        """Open a model, or find it open: many visitors share one."""
        with self.lock:
            stamp = file.path.stat().st_mtime_ns if file else 0
            key = (file.name if file else "", game, stamp)
            if key not in self.open:
                try:
                    self.open[key] = load_model(file.path if file else None, game)
                except InputError as mistake:
                    told = str(mistake).replace(str(file.path), file.name) if file else str(mistake)
                    raise InputError(told) from None
                while len(self.open) > OPEN_MODELS:
                    self.open.pop(next(iter(self.open)))
            self.open[key] = self.open.pop(key)  # the newest last
            return self.open[key]


def _changed(entry: os.DirEntry[str]) -> float:
    """When a file came or went in this folder, as every checkpoint does; 0 where it has vanished meanwhile."""
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _is_run(folder: Path, inside: Path) -> bool:
    if not folder.is_dir() or not folder.resolve().is_relative_to(inside):
        return False
    return (folder / "run.toml").is_file() or (folder / "metrics.jsonl").is_file()


def _describe_model(file: ModelFile) -> dict[str, Any] | None:
    try:
        _, metadata, _ = read_header(file.path)
        training = json.loads(metadata.get("training", "{}"), parse_constant=lambda _: None)
    except (InputError, ValueError):
        return None
    mean = training.get("mean") if isinstance(training, dict) else None
    network = metadata.get("network", "")
    return {
        "name": file.name,
        "title": f"{file.name} ({network})",
        "game": metadata.get("game", ""),
        "network": network,
        "from": file.origin,
        "mean": mean if isinstance(mean, (int, float)) else None,
    }


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
