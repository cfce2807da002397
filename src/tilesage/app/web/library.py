"""The models and runs that visitors may name.

A name from outside is only ever compared with the names found here; it is never made into a path. What lies outside
the folders that the server was given, also behind a link, is not found.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tilesage.app.web.limits import Missing
from tilesage.app.web.settings import Settings
from tilesage.core.errors import InputError
from tilesage.learning.config import settings_in
from tilesage.learning.folders import bytes_in, owner_of
from tilesage.networks.files import BUILT_IN, FORMAT, SUFFIX, Model, built_in_names, load_model, model_in
from tilesage.networks.tensors import Tensors

MOST_RUNS = 500
MOST_BYTES = 1 << 20  # of metrics in one answer
MOST_FIGURE = 1e300
EVALUATION = "evaluation.json"  # in a run folder: the figures of its model at play


def shown(name: str) -> str:
    """The name of a file as text, also where it is none."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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

    def load(self, game: str) -> Model:
        """Open the model; what is wrong with it is said without its place on this machine."""
        try:
            return load_model(self.path, game)
        except InputError as mistake:
            raise InputError(shown(str(mistake).replace(str(self.path), self.name))) from None


class Library:
    """Finds runs and models, anew at every call: trainings come and go while the server runs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def runs(self) -> list[Run]:
        """By name; of very many only the newest, which are those that somebody wants to follow."""
        root = self.settings.runs
        if not root.is_dir():
            return []
        inside = root.resolve()
        newest = sorted(os.scandir(root), key=_changed, reverse=True)
        found = (Run(shown(entry.name), Path(entry.path)) for entry in newest if _is_run(Path(entry.path), inside))
        return sorted(islice(found, MOST_RUNS), key=lambda run: run.name)

    def run(self, name: str) -> Run:
        """The run of this name."""
        for run in self.runs():
            if run.name == name:
                return run
        raise Missing("there is no run of this name")

    def described(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        """Every run as it stands, and those that cannot be shown: their names, and why."""
        good, bad = [], []
        for run in self.runs():
            try:
                good.append(describe_run(run))
            except (InputError, OSError) as error:
                why = str(error) if isinstance(error, InputError) else "it cannot be read"
                bad.append({"name": run.name, "why": why.replace(str(self.settings.runs), "runs")})
        return good, bad

    def models(self) -> list[dict[str, Any]]:
        """Every model that may be named: the built-in ones, those of the runs, those of the given folders."""
        return [entry for file in self._model_files() if (entry := _describe_model(file))]

    def model(self, name: str) -> ModelFile | None:
        """The file of the model of this name; none for the built-in one of a game, when the name is empty."""
        for file in self._model_files() if name else ():
            if file.name == name:
                return file
        if name:
            raise InputError("there is no model of this name: GET /api/models lists them")
        return None

    def _model_files(self) -> list[ModelFile]:
        files = [ModelFile(name, "built-in", BUILT_IN / f"{name}{SUFFIX}") for name in built_in_names()]
        for run in self.runs():
            path = model_in(run.folder)
            if path:
                files.append(ModelFile(f"runs/{run.name}", "run", path))
        for folder in self.settings.models:
            inside = folder.resolve()
            for path in sorted(folder.glob(f"*{SUFFIX}"))[:MOST_RUNS]:
                if path.resolve().is_relative_to(inside):
                    files.append(ModelFile(shown(f"{folder.name}/{path.name.removesuffix(SUFFIX)}"), "file", path))
        return files


def _changed(entry: os.DirEntry[str]) -> float:
    """When a file came or went in this folder, as every checkpoint does; 0 where it has vanished meanwhile."""
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _is_run(folder: Path, inside: Path) -> bool:
    if folder.name.startswith(".") or not folder.is_dir() or not folder.resolve().is_relative_to(inside):
        return False
    return (folder / "run.toml").is_file() or (folder / "metrics.jsonl").is_file()


def _describe_model(file: ModelFile) -> dict[str, Any] | None:
    try:
        metadata = Tensors.open(file.path, FORMAT).metadata
        training = json.loads(metadata.get("training", "{}"))
    except (InputError, ValueError, RecursionError):
        return None
    mean = training.get("mean") if isinstance(training, dict) else None
    network = metadata.get("network", "")
    return {
        "name": file.name,
        "title": f"{file.name} ({network})",
        "game": metadata.get("game", ""),
        "network": network,
        "from": file.origin,
        "mean": mean if _is_figure(mean) else None,
    }


def describe_run(run: Run) -> dict[str, Any]:
    """What a run is, where it stands and what it takes on the disk. An InputError or OSError if it is damaged."""
    settings = {name: value for name, value in settings_in(run.folder / "run.toml").items() if _is_told(value)}
    last = _last_line(run.folder / "metrics.jsonl")
    limits = {name: settings.get(name, 0) for name in ("games", "moves", "seconds")}
    shares = [(last or {}).get(name, 0) / limit for name, limit in limits.items() if limit > 0]
    return {
        "name": run.name,
        "settings": settings,
        "last": last,
        "done": min(1.0, max(shares, default=0.0)),
        "learning": owner_of(run.folder) is not None,
        "bytes": bytes_in(run.folder),
        "model": model_in(run.folder) is not None,
        "evaluation": _read_evaluation(run.folder / EVALUATION),
    }


def _read_evaluation(path: Path) -> dict[str, Any] | None:
    try:
        told = json.loads(path.read_text("utf-8"))
        return {**_figures(told), "agent": str(told["agent"])}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_FIGURE


def _is_told(value: object) -> bool:
    """Is this setting for everybody to see? Places on this machine are nobody's business."""
    return isinstance(value, bool) or _is_figure(value) or (isinstance(value, str) and os.sep not in value)


def _figures(line: dict[str, Any]) -> dict[str, Any]:
    """What can be drawn of a line of metrics: its numbers, and the shares of tiles reached."""
    found: dict[str, Any] = {name: value for name, value in line.items() if _is_figure(value)}
    reach = line.get("reach", {})
    return found | {"reach": {tile: share for tile, share in reach.items() if _is_figure(share)}}


def _point(line: bytes) -> dict[str, Any] | None:
    try:
        return _figures(json.loads(line))
    except (ValueError, AttributeError, RecursionError):
        return None


def _last_line(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 8192))
            lines = stream.read().split(b"\n")[:-1]
    except OSError:
        return None
    return next((point for point in map(_point, reversed(lines)) if point), None)


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
