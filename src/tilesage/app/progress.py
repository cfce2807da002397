"""The one display of long work: what people watch while a program learns or plays."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from tilesage.records.statistics import Statistics

BARS = "▁▂▃▄▅▆▇█"
REFRESH = 4  # a second


def sparkline(values: list[float], width: int = 40) -> str:
    """The course of some figures in one line of text.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    """
    if not values:
        return ""
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(0.0, *values), max(values)
    span = (high - low) or 1.0
    return "".join(BARS[min(7, int(8 * (value - low) / span))] for value in values)


def clock(seconds: float) -> str:
    """Minutes and seconds, hours where there are any.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class View:
    """Something live on standard error; where there is no terminal, a plain line now and then."""

    def __init__(self, quiet: bool = False, stays: bool = False) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.live = Live(console=self.console, transient=not stays, auto_refresh=False)
        self.begun = self.shown = time.monotonic()

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live.is_started:
            self.live.stop()

    def show(self, line: str) -> None:
        """One line, if it is time for another."""
        now = time.monotonic()
        if self.quiet or now - self.shown < (1 / REFRESH if self.live.is_started else 10):
            return
        self.shown = now
        if self.live.is_started:
            self.live.update(line, refresh=True)
        else:
            self.console.print(line)


class TrainingView(View):
    """A live table while a run trains."""

    def __init__(self, title: str, goal: str, quiet: bool = False) -> None:
        super().__init__(quiet, stays=True)
        self.title, self.goal = title, goal
        self.means: list[float] = []
        self.line: Mapping[str, Any] = {}
        self.speed = 0.0

    def update(self, line: Mapping[str, Any], games: int, moves: int, seconds: float, done: float) -> None:
        """A new line of metrics (or none yet), and where the run stands."""
        if line:
            self.line = line
            self.means.append(float(line["mean"]))
        self.speed = moves / seconds if seconds else 0.0
        now = time.monotonic()
        if self.quiet:
            return
        if self.live.is_started:
            if now - self.shown > 1 / REFRESH:
                self.shown = now
                self.live.update(self._table(games, moves, seconds, done), refresh=True)
        elif line and now - self.shown > 10:
            self.shown = now
            self.console.print(self._plain(games, seconds, done))

    def _left(self, seconds: float, done: float) -> str:
        return clock(seconds * (1 - done) / done) if done > 0 else "?"

    def _plain(self, games: int, seconds: float, done: float) -> str:
        reach = 100 * float(self.line.get("reach", {}).get(self.goal, 0))
        return (
            f"{games:,} games, mean {self.line['mean']:,.0f}, {self.goal} {reach:.1f} %, "
            f"{self.speed / 1e6:.2f} M moves/s, {self._left(seconds, done)} left"
        )

    def _table(self, games: int, moves: int, seconds: float, done: float) -> Table:
        table = Table.grid(padding=(0, 2))
        for justify in ("left", "right", "left", "right", "left", "right"):
            table.add_column(justify=justify, no_wrap=True)
        reach = self.line.get("reach", {})
        mean = f"[bold]{self.line['mean']:,.0f}[/]" if self.line else "…"
        best = f"{self.line['max']:,}" if self.line else "…"
        goal = f"{100 * float(reach.get(self.goal, 0)):.1f} %"
        top = max(reach, key=int, default="…")
        table.add_row("games", f"{games:,}", "mean", mean, self.goal, goal)
        table.add_row("moves", f"{moves / 1e6:,.1f} M", "max", best, "largest", top)
        table.add_row(
            "moves/s", f"{self.speed / 1e6:.2f} M", "done", f"{100 * done:.0f} %", "left", self._left(seconds, done)
        )
        outer = Table.grid()
        outer.add_row(f"[bold]{escape(self.title)}[/]")
        outer.add_row(table)
        outer.add_row(f"[green]{sparkline(self.means, 60)}[/]")
        return outer


class EvaluationView(View):
    """One live line while games are played."""

    def __init__(self, games: int, goal: int, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.games, self.goal = games, goal

    def update(self, statistics: Statistics, seconds: float) -> None:
        """The figures so far."""
        if statistics.games:
            left = clock(seconds * (self.games / statistics.games - 1))
            self.show(
                f"{statistics.games:,} of {self.games:,} games, mean {statistics.mean:,.0f}, "
                f"{self.goal} {100 * statistics.reach(self.goal):.1f} %, {statistics.slides / seconds:,.0f} moves/s, "
                f"{left} left"
            )


class PlayoutsView(View):
    """One live line while the games of an advice are finished."""

    def update(self, finished: int, games: int) -> None:
        """How many games are finished, of how many."""
        left = clock((time.monotonic() - self.begun) * (games / finished - 1))
        self.show(f"{finished:,} of {games:,} games played on, {left} left")
