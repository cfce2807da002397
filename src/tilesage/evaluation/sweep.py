"""Sweeps: many trainings that differ in some settings, each an ordinary run in a folder of its own.

A sweep is written as a TOML file:

    [train]                        what all have in common: any setting of `tilesage train`
    games = 100_000

    [grid]                         every combination of these
    rate = [0.1, 0.05, 0.01]
    network = ["group0", "group1"]

    [random]                       and, or instead, so many draws of these
    trials = 4
    dice = 1
    optimism = { low = 0, high = 40_000 }
    decay = { low = 0.1, high = 0.9, log = true }
    rule = ["td", "tc"]

    [evaluate]                     how many greedy games a trained network plays; by these trials are ranked
    games = 1000

The folder of a sweep is its memory: what is finished there is not done again, what was interrupted is resumed.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning.config import TrainConfig, checked
from tilesage.learning.folders import Taken, is_run, standing
from tilesage.learning.metrics import read_metrics
from tilesage.learning.runs import Run

TEXT = {field.name for field in fields(TrainConfig) if field.type == "str"}
WHOLE = {field.name for field in fields(TrainConfig) if field.type == "int"}
MOST_TRIALS = 10_000
GAMES = 1000  # that a trained network plays, unless the sweep says otherwise
RESULT, FAILED = "result.json", "failed.txt"  # in the folder of a trial


@dataclass(frozen=True)
class Trial:
    """One training of a sweep, and the games that its network then plays."""

    folder: Path
    config: TrainConfig
    settings: dict[str, Any]  # those in which trials differ
    games: int = GAMES

    @property
    def name(self) -> str:
        """The settings in which this trial differs from the others."""
        return ", ".join(f"{name} {value}" for name, value in self.settings.items()) or "the only one"

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of its metrics so far."""
        return read_metrics(self.folder) if (self.folder / "metrics.jsonl").exists() else []

    @property
    def done(self) -> float:
        """The share of the training that is done."""
        run = Run(self.config, self.folder)
        run.progress = standing(self.folder)
        return run.done

    @property
    def result(self) -> dict[str, Any]:
        """What its games came to, as in `evaluate --json`; empty before."""
        path = self.folder / RESULT
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    @property
    def failure(self) -> str:
        """Why it cannot be finished, if so."""
        path = self.folder / FAILED
        return path.read_text(encoding="utf-8").strip() if path.exists() and not self.result else ""

    @property
    def state(self) -> str:
        """finished, failed, begun or waiting."""
        begun = "begun" if self.lines else "waiting"
        return "finished" if self.result else "failed" if self.failure else begun

    @property
    def told(self) -> str:
        """How it ended, in a line."""
        found = self.result
        return f"{self.name}: " + (f"mean {found['mean']:,.0f}" if found else f"failed: {self.failure}")

    def open(self) -> Run:
        """Begin it, or go on with it."""
        return Run.resume(self.folder) if is_run(self.folder) else Run.begin(self.config, self.folder)

    def finish(self, train: Callable[[Run], object] = Run.train) -> bool:
        """Train it to its end and let it play, and keep what comes of it, be it why it failed; False if stopped."""
        try:
            if self.done < 1:
                run = self.open()
                train(run)
                if run.stopping:
                    return False
            found = evaluate("greedy", self.games, workers=self.config.threads, model=self.folder)
        except Taken:  # by another sweep, whose business it is
            raise
        except InputError as wrong:
            self.fail(str(wrong))
            return True
        if found.complete:
            with written(self.folder / RESULT, text=True) as file:
                json.dump(found.summary(), file, indent=2)
        return found.complete

    def fail(self, reason: str) -> None:
        """Keep why it cannot be finished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with written(self.folder / FAILED, text=True) as file:
            file.write(reason + "\n")

    def summary(self) -> dict[str, Any]:
        """The figures of `--json`."""
        lines, found = self.lines, self.result
        return {
            "run": str(self.folder),
            "settings": self.settings,
            "state": self.state,
            "failure": self.failure or None,
            "done": None if self.failure else round(self.done, 4),
            **{name: found.get(name) for name in ("mean", "stderr", "max")},
            "games": found.get("games", 0),
            "reach": {tile: share["reach"] for tile, share in found.get("tiles", {}).items()},
            "training_games": lines[-1]["games"] if lines else 0,
            "training_seconds": lines[-1]["seconds"] if lines else 0.0,
        }


@dataclass(frozen=True)
class Sweep:
    """A file of settings, spread out."""

    folder: Path
    trials: list[Trial]

    def waiting(self) -> list[Trial]:
        """Those that are neither finished nor failed."""
        return [trial for trial in self.trials if trial.state in ("begun", "waiting")]

    def summary(self) -> list[dict[str, Any]]:
        """All trials, the best first: by the mean score of the games that they played when they were trained."""
        return sorted((trial.summary() for trial in self.trials), key=lambda trial: -(trial["mean"] or 0))


def read_sweep(path: Path, folder: Path) -> Sweep:
    """The sweep that a TOML file describes; its trials live in `folder`."""
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    unknown = set(found) - {"train", "grid", "random", "evaluate"}
    if unknown or not all(isinstance(part, dict) for part in found.values()):
        parts = "[train], [grid], [random] and [evaluate]"
        raise InputError(f"{path}: a sweep has the parts {parts}, not {sorted(unknown)}")
    played = {"games": GAMES} | found.get("evaluate", {})
    if [*played] != ["games"] or type(played["games"]) is not int or played["games"] < 1:
        raise InputError(f"{path}: [evaluate] says how many games a trained network plays: games = 1000")
    if not found.get("grid") and not found.get("random"):
        raise InputError(f"{path}: nothing to sweep over: write [grid] or [random]")
    common, variants = found.get("train", {}), _variants(found, path)
    trials = [_trial(folder, i, common, own, played["games"], path) for i, own in enumerate(variants, 1)]
    if not all(trial.config.limited for trial in trials):
        raise InputError(f"{path}: how long? write games, moves or seconds in [train]")
    return Sweep(folder, trials)


def _variants(found: Mapping[str, Any], path: Path) -> list[dict[str, Any]]:
    """Every point of the grid, each with every draw."""
    grid = found.get("grid", {})
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{path}: {name} in [grid] is a list of values, not {values!r}")
    points = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    variants = [point | draw for point in points for draw in _draws(dict(found.get("random", {})), path)]
    if len(variants) > MOST_TRIALS:
        raise InputError(f"{path}: {len(variants)} trials are too many: at most {MOST_TRIALS}")
    return variants


def _draws(spaces: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    """The random part: `trials` draws, always the same ones for the same `dice`."""
    if not spaces:
        return [{}]
    trials, number = spaces.pop("trials", 10), spaces.pop("dice", 1)
    if not isinstance(trials, int) or not 1 <= trials <= MOST_TRIALS or not isinstance(number, int):
        raise InputError(f"{path}: trials in [random] is a whole number from 1 to {MOST_TRIALS}, dice a whole number")
    dice = random.Random(number)
    return [{name: _draw(name, space, dice, path) for name, space in spaces.items()} for _ in range(trials)]


def _draw(name: str, space: Any, dice: random.Random, path: Path) -> Any:
    if isinstance(space, list) and space:
        return dice.choice(space)
    try:
        low, high, log = float(space["low"]), float(space["high"]), bool(space.get("log", False))
        if not -math.inf < low <= high < math.inf or (log and low <= 0):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{path}: {name} in [random] is a list of values or {{ low = 0.01, high = 1, log = true }}, not {space!r}"
        ) from None
    value = low * (high / low) ** dice.random() if log else dice.uniform(low, high)
    return round(value) if name in WHOLE else float(f"{value:.4g}")


def _as_setting(name: str, value: Any) -> Any:
    """Settings that are text may be given as numbers: rate = 0.1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(value).removesuffix(".0") if name in TEXT and number else value


def _trial(
    folder: Path, number: int, common: Mapping[str, Any], settings: dict[str, Any], games: int, path: Path
) -> Trial:
    merged = {name: _as_setting(name, value) for name, value in {**common, **settings}.items()}
    config = TrainConfig(**checked(merged, path))
    words = "-".join(f"{name}={merged[name]}" for name in settings)
    name = re.sub(r"[^\w.=+-]", "_", f"{number:03d}-{words}", flags=re.ASCII)[:100].rstrip("-")
    return Trial(folder / name, config, {key: merged[key] for key in settings}, games)


def claim(sweep: Sweep, path: Path) -> None:
    """Make the folder this sweep's, or see that it is already."""
    kept = sweep.folder / "sweep.toml"
    text = path.read_text(encoding="utf-8")
    if kept.exists():
        if kept.read_text(encoding="utf-8") != text:
            raise InputError(f"{sweep.folder} holds another sweep: take another --out, or go on with {kept}")
        return
    sweep.folder.mkdir(parents=True, exist_ok=True)
    with written(kept, text=True) as file:
        file.write(text)
