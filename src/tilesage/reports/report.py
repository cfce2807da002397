"""What a report is, and which there are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilesage.core.errors import InputError
from tilesage.reports.page import how_it_was_made
from tilesage.reports.steps import Experiment, Step

NAMES = ("D0", "D1", "D2", "D3", "D4")
GAMES_A_SLOT = 200


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and on what it runs."""

    name: str = "quick"  # quick, full, or tiny for the tests
    device: str = "cpu"
    threads: int = 2
    seed: int = 1

    @property
    def full(self) -> bool:
        """Is it the scale of the report itself?"""
        return self.name == "full"

    def pick(self, quick: int, full: int) -> str:
        """A number of games."""
        return str(full if self.full else quick if self.name == "quick" else max(2, quick // 20))

    def training(self, games: str) -> tuple[str, ...]:
        """What every training gets: its games, points of the curve, where it runs; no mean: no report had it."""
        block = max(1000, int(games) // 500) if self.full else max(1, int(games) // 20)
        points: tuple[str, ...] = () if block == 1000 else ("--block", str(block))
        on: tuple[str, ...] = ("--threads", str(self.threads))
        if self.device == "cuda":
            points = ("--block", str(max(1, block // 50)))  # the GPU counts in blocks of fifty
            on = ("--device", "cuda", "--flight", str(_games_in_flight(int(games))))
        return ("--games", games, *points, *on, "--no-average", "--seed", str(self.seed))


def _games_in_flight(games: int) -> int:
    """A power of two: enough to be fast, and few enough that each slot plays many games, one after another."""
    return 1 << max(10, min(15, (games // GAMES_A_SLOT).bit_length() - 1))


@dataclass(frozen=True)
class Report:
    """One of the five: what it did, as steps, and what became of it, as a page."""

    name: str
    title: str
    about: str  # what the report did and how we do it, in Markdown
    steps: Callable[[Scale], Sequence[Step]]
    results: Callable[[Experiment, Path], str]  # the tables; draws pictures into a folder beside the page

    def page(self, experiment: Experiment, scale: Scale, folder: Path) -> str:
        """The page about the experiment, in Markdown."""
        size = "" if scale.full else "\n\n*This is the quick scale: minutes instead of the report's number of games.*"
        again = f"tilesage reproduce {self.name} --scale {scale.name}"
        again += f" --device {scale.device}" if scale.device != "cpu" else ""
        return (
            f"# {self.name}: {self.title}\n\n{self.about.strip()}{size}\n\n"
            f"## Reported and ours\n\n{self.results(experiment, folder).strip()}\n\n"
            f"## How it was made\n\n`{again}` does all of it again.\n\n{how_it_was_made(experiment.done)}\n"
        )


def names() -> tuple[str, ...]:
    """The reports that can be reproduced."""
    return NAMES


def find_report(name: str) -> Report:
    """The report of this name."""
    if name.upper() not in NAMES:
        raise InputError(f"no report {name!r}: write one of {', '.join(NAMES)}")
    module = importlib.import_module(f".{name.lower()}", __package__)
    report = module.REPORT
    assert isinstance(report, Report)
    return report
