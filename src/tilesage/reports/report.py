"""What a report is: its figures, and the commands that do it again, from a file of data beside this one.

`D0.toml` … `D4.toml` hold the text of a page, the figures as reported, and rows. A row is one network or player: the
command that learns, the one that tests, the one that judges, and how many seeds it has at full scale. Here rows
become steps; steps.py runs them, page.py draws the page.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilesage.core.errors import InputError
from tilesage.reports.steps import Step

NAMES = ("D0", "D1", "D2", "D3", "D4")
SCALES = ("full", "quick", "tiny")  # the places in a list of sizes; tiny is for the tests
POINTS = 500  # of a learning curve


@dataclass(frozen=True)
class Scale:
    """How large an experiment is, and what of the machine it takes."""

    name: str = "quick"
    threads: int = 2
    seed: int | None = None  # only this one; by default as many as a row has at full scale, otherwise the first
    cuda: bool = False  # rows that learn on a GPU, too

    def pick(self, sizes: int | Sequence[int]) -> int:
        """The size for this scale, of [full, quick, tiny]."""
        return sizes if isinstance(sizes, int) else sizes[SCALES.index(self.name)]

    def seeds(self, row: Mapping[str, Any]) -> Sequence[int]:
        """The seeds of a row."""
        if self.seed is not None:
            return (self.seed,)
        return range(1, 1 + (row.get("seeds", 1) if self.name == "full" else 1))


@dataclass(frozen=True)
class Report:
    """One of the five."""

    name: str
    data: Mapping[str, Any]

    @property
    def rows(self) -> Mapping[str, Mapping[str, Any]]:
        """The rows, by name."""
        return {row["name"]: row for row in self.data["rows"]}

    def steps(self, scale: Scale) -> Sequence[Step]:
        """All commands, in order; those that need a GPU only where there is one."""
        return [
            step
            for row in self.data["rows"]
            if scale.cuda or not needs_gpu(self, row)
            for seed in scale.seeds(row)
            for step in self._steps_of(row, seed, scale)
        ]

    def _steps_of(self, row: Mapping[str, Any], seed: int, scale: Scale) -> list[Step]:
        sizes = self.data["sizes"]
        run = f"{row['name']}-{seed}"
        words = {key: str(value) for key, value in row.items()}
        words |= {"id": run, "model": f"{{run}}/{run}/last.safetensors", "run": "{run}", "seed": str(seed)}
        words |= {"test": str(scale.pick(sizes["test"])), "threads": str(scale.threads)}
        found = []
        for kind, command in self.data["commands"][row["steps"]].items():
            for again in range(scale.pick(sizes.get("repeat", 1)) if kind == "test" else 1):
                words["seed"] = str(seed + again)
                text = tuple(word.format_map(words) for word in command.split())
                name = kind if not again else f"{kind}{again + 1}"
                if kind == "learn":
                    found.append(Step(run, name, text + _training(scale.pick(row["games"]), scale, run, seed), run))
                else:
                    file = next((word for word in text if word.endswith(".txt")), "") if kind == "test" else ""
                    found.append(Step(run, name, text, file.removeprefix("{run}/")))
        return found


def _training(games: int, scale: Scale, run: str, seed: int) -> tuple[str, ...]:
    """What every training gets: its games, points of the curve, threads, and no mean of weights: no report had it."""
    block = max(1, games // POINTS if scale.name == "full" else games // 20)
    how = ("--games", str(games), "--block", str(block), "--threads", str(scale.threads))
    return (*how, "--no-average", "--seed", str(seed), "--out", f"{{run}}/{run}")


def needs_gpu(report: Report, row: Mapping[str, Any]) -> bool:
    """Does this row learn on a GPU?"""
    return "--device cuda" in report.data["commands"][row["steps"]].get("learn", "")


def find_report(name: str) -> Report:
    """The report of this name."""
    if name.upper() not in NAMES:
        raise InputError(f"no report {name!r}: write one of {', '.join(NAMES)}, or all")
    file = Path(__file__).with_name(f"{name.upper()}.toml")
    return Report(name.upper(), tomllib.loads(file.read_text(encoding="utf-8")))
