"""Verdicts: every figure of a report beside ours, and what the difference is worth.

**met**: at or above the reported figure, as far as its digits go. **level**: below it by less than two standard
errors of the difference. **below**: by more. A share p of n games has the variance p (1 − p) / n, with one game of
each kind added, so that 1,000 of 1,000 is no certainty. For the error of a reported mean, our games' spread is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilesage.reports.report import Report
from tilesage.reports.steps import Done

SEVERAL = 3  # seeds from which on their spread is the error
MET, LEVEL, BELOW = "met", "level", "below"


@dataclass(frozen=True)
class Figure:
    """A number with its standard error."""

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Cell:
    """One figure of a report and ours."""

    name: str  # mean score, or a tile
    reported: Figure
    ours: Figure | None
    digits: int  # after the point, as reported

    @property
    def verdict(self) -> str:
        """met, level or below; nothing where ours has not been run."""
        if self.ours is None:
            return ""
        if round(self.ours.value, self.digits) >= self.reported.value:
            return MET
        short = self.reported.value - self.ours.value
        return LEVEL if short < 2 * math.hypot(self.reported.error, self.ours.error) else BELOW


def share_error(percent: float, games: int) -> float:
    """Of a share of games, in percent.

    >>> round(share_error(93, 100), 2), round(share_error(100, 1000), 2)
    (2.69, 0.1)
    """
    p = (percent / 100 * games + 1) / (games + 2)
    return 100 * math.sqrt(p * (1 - p) / games)


def reach_in(done: Done, tile: int) -> Figure:
    """Share of games whose largest tile is at least this one, in percent."""
    share = 100 * sum(float(end) for number, end in done.figures["ends"].items() if int(number) >= tile)
    return Figure(share, share_error(share, done.figures["games"]))


def end_in(done: Done, tile: int) -> Figure:
    """Share of games that ended with exactly this tile, in percent."""
    share = 100 * float(done.figures["ends"].get(str(tile), 0))
    return Figure(share, share_error(share, done.figures["games"]))


def mean_in(done: Done, half: bool = False) -> Figure:
    """The mean score."""
    factor = 0.5 if half else 1.0
    return Figure(factor * done.figures["mean"], factor * (done.figures.get("stderr") or 0.0))


def together(figures: Sequence[Figure]) -> Figure | None:
    """The mean over seeds; of several seeds their spread is the error."""
    if not figures:
        return None
    n = len(figures)
    mean = sum(figure.value for figure in figures) / n
    error = math.sqrt(sum(figure.error**2 for figure in figures)) / n
    if n >= SEVERAL:
        spread = sum((figure.value - mean) ** 2 for figure in figures) / (n - 1)
        error = max(error, math.sqrt(spread / n))
    return Figure(mean, error)


def judged_tests(report: Report, row: str, done: Mapping[str, Done]) -> list[Done]:
    """What stands for a row: the test of each seed; of repeated tests the one that reaches the goal most often."""
    found = []
    for run in sorted({name.rsplit(".", 1)[0] for name in done if name.rsplit("-", 1)[0] == row}):
        tests = [one for name, one in done.items() if name.startswith(f"{run}.test")]
        if tests:
            goal = report.data.get("ablation", {}).get("tile", 0)
            found.append(max(tests, key=lambda test: (reach_in(test, goal).value, test.figures["mean"])))
    return found


def all_tests(row: str, done: Mapping[str, Done]) -> list[Done]:
    """Every test of a row, of all seeds."""
    return [one for name, one in done.items() if name.rsplit("-", 1)[0] == row and ".test" in name]


def cells_of(
    report: Report, row: str, done: Mapping[str, Done], reported: Mapping[str, Any] | None = None
) -> list[Cell]:
    """The judged cells of a row: the mean score, and the share of games for each tile.

    They stand beside the figures of the report's first table, or beside others that are given.
    """
    reported = reported or report.data["reported"]
    games, tests = report.data["reported"]["games"], judged_tests(report, row, done)
    half = is_half(report, row)
    means = [mean_in(test, half) for test in tests]
    spread = sum(mean.error * math.sqrt(test.figures["games"]) for mean, test in zip(means, tests))
    error = spread / len(tests) / math.sqrt(games) if tests else 0.0
    found = [Cell("mean score", Figure(reported["mean"], error), together(means), 0)]
    for tile, percent in reported["reach"].items():
        ours = together([reach_in(test, int(tile)) for test in tests])
        found.append(Cell(tile, Figure(percent, share_error(percent, games)), ours, 1))
    return found


def is_half(report: Report, row: str) -> bool:
    """Does the report count half of the points?"""
    return bool(report.rows[row].get("half", report.data["reported"].get("half", False)))


def judged_row(report: Report, done: Mapping[str, Done]) -> str:
    """The row of the first table: the last of those named there that was run, otherwise the first."""
    rows: list[str] = report.data["first"]["rows"]
    return next((row for row in reversed(rows) if judged_tests(report, row, done)), rows[0])
