"""What the referee has to say about a file of recorded games: for people, and as figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import exp, isfinite

from tilesage.records.fairness import Test
from tilesage.records.statistics import TABLES, Statistics, counted

COURSE_GAMES = ("threes",)  # for which the course gives points
COURSE_RECORDS = 1000  # the course's judge wants at least so many
SLOW = 0.7  # its factor for a program that is slower than expected
UNFAIR = 1e-6  # fair chance is called unfair in one of a million files at most


@dataclass
class Verdict:
    """What the referee has to say about a file."""

    file: str
    game: str
    statistics: Statistics
    line: int = 0  # where the first fault is
    action: int = 0  # number of the action at fault, from 1; 0 for the line as a whole
    reason: str = ""  # what is wrong; empty when nothing is
    tests: list[Test] = field(default_factory=list)
    unread: bool = False  # lines follow the first empty line
    repeated: int = 0  # games that are those of earlier lines
    untimed: int = 0  # games that do not say when they were played
    expected_ops: float | None = None
    significance: float = UNFAIR
    independent: bool = True  # of the engine: by a rule book of the referee's own

    def fair(self, test: Test) -> bool:
        """Did chance pass this test? The tests of a file share the probability of a false alarm."""
        return len(self.tests) * test.p >= self.significance

    @property
    def unfair(self) -> list[Test]:
        """The tests that chance failed."""
        return [test for test in self.tests if not self.fair(test)]

    @property
    def ok(self) -> bool:
        """Were all games by the rules, and was chance fair?"""
        return not self.reason and not self.unfair

    @property
    def fast_enough(self) -> bool:
        """Was the player as fast as it was to be?"""
        known = self.statistics.ms > 0 and not self.untimed
        return self.expected_ops is None or (known and self.statistics.ops >= self.expected_ops)

    @property
    def points(self) -> dict[str, float] | None:
        """The course's points for Threes!; None for another game or for fewer games than the course wants."""
        if self.game not in COURSE_GAMES or not self.ok or self.statistics.games < COURSE_RECORDS:
            return None
        factor = 1.0 if self.fast_enough else SLOW
        one = 60 + 40 / (1 + exp(-0.0065 * (self.statistics.mean - 560)))
        two = 100 * self.statistics.reach(384) ** 2
        return {"project 1": round(one * factor, 1), "project 2": round(two * factor, 1)}

    def text(self, table: str = "course") -> str:
        """The verdict for people, with the statistics in one of the styles of `statistics.TABLES`."""
        return "\n".join(_report(self, TABLES[table]))

    def json(self) -> dict[str, object]:
        """The figures of `--json`."""
        ops = self.statistics.ops
        return {
            "file": self.file,
            "game": self.game,
            "ok": self.ok,
            "independent": self.independent,
            "fault": {"line": self.line, "action": self.action, "reason": self.reason} if self.reason else None,
            **self.statistics.summary(),
            "actions": self.statistics.slides + self.statistics.placements,
            "ms": self.statistics.ms,
            "ops": ops if isfinite(ops) else None,
            "games_without_time": self.untimed,
            "repeated_games": self.repeated,
            "expected_ops": self.expected_ops,
            "fast_enough": self.fast_enough,
            "fairness": [vars(test) | {"p": test.p, "fair": self.fair(test)} for test in self.tests],
            "points": self.points,
            "lines_after_empty_line": self.unread,
        }


def _report(verdict: Verdict, table: Callable[[Statistics], str]) -> Iterator[str]:
    """The verdict in lines for people."""
    stats = verdict.statistics
    games = f"{counted(stats.games, 'game')} of {verdict.game}"
    if verdict.reason:
        where = f"line {verdict.line}" + (f", action {verdict.action}" if verdict.action else "")
        yield f"{verdict.file}: {where}: {verdict.reason}"
    if verdict.repeated:
        yield f"{games}, every move legal, but {verdict.repeated:,} of them repeat others"
    elif verdict.reason:
        yield f"{games} before it in order" if stats.games else "no game before it"
    elif verdict.unfair:
        yield f"{verdict.file}: {games}, every move legal, but chance is not fair"
    else:
        yield f"{verdict.file}: {games}, all in order"
    if not verdict.independent:
        yield f"not independent: judged by the rules of {verdict.game} itself, there is no rule book of the referee's"
    if verdict.unread:
        yield f"line {stats.games + 1} is empty: the lines after it were not read"
    if stats.games:
        yield f"\n{table(stats)}\n"
        yield from _speed_lines(verdict)
    for test in verdict.tests:
        word, expected = ("fair", "") if verdict.fair(test) else ("UNFAIR", f"; fair is {test.question}")
        won = f"a doubter's stake x {test.stake:.3g} after {test.observations:,} throws"
        yield f"{word:<7} {test.name:<8} p <= {test.p:<8.3g} ({won}){expected}"
    if verdict.game in COURSE_GAMES:
        yield from _point_lines(verdict)


def _speed_lines(verdict: Verdict) -> Iterator[str]:
    actions = verdict.statistics.slides + verdict.statistics.placements
    ops = verdict.statistics.ops
    speed = f"{ops:,.0f} actions/s" if isfinite(ops) else "not measurable, the records state no time"
    if verdict.untimed:
        speed = f"not known: {counted(verdict.untimed, 'game')} of {verdict.statistics.games:,} without a time"
    wanted = ""
    if verdict.expected_ops is not None:
        reached = "reached" if verdict.fast_enough else f"not reached: points x {100 * SLOW:.0f} %"
        wanted = f"; {verdict.expected_ops:,.0f} expected, {reached}"
    yield f"speed   {speed} ({actions:,} actions in {verdict.statistics.ms:,} ms){wanted}"


def _point_lines(verdict: Verdict) -> Iterator[str]:
    if verdict.points is not None:
        yield "points  " + ", ".join(f"{name}: {points:.1f}" for name, points in verdict.points.items())
    elif verdict.ok:
        games = verdict.statistics.games
        yield f"points  none: the course wants at least {COURSE_RECORDS:,} records, here are {games:,}"
    else:
        yield "points  none: the records are not in order"
