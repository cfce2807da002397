"""The referee: every recorded game replayed, chance put to the test, and a verdict.

    verdict = judge("records.txt")
    print(verdict.text())

The first fault is named with its line, its action and the reason. A file that holds no record at all is a refusal.
The rules are those of `rulebooks`, which shares no code with the engine. A game that has no book there is judged by
its own rules, and the verdict says that this is not independent.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from math import exp, isfinite
from multiprocessing import get_context
from os import PathLike
from typing import TYPE_CHECKING

from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.records.fairness import Group, Test, cell_tests, grouped_test
from tilesage.records.notation import HEAD, Line, guess_game, open_records, read_lines
from tilesage.records.replay import Fault, Referee
from tilesage.records.rulebooks import BOOKS, Chance, Question
from tilesage.records.statistics import TABLES, Statistics

if TYPE_CHECKING:
    from tilesage.records.by_game_rules import RefereeByGameRules

COURSE_GAMES = ("threes",)  # for which the course gives points
COURSE_RECORDS = 1000  # the course's judge wants at least so many
SLOW = 0.7  # its factor for a program that is slower than expected
UNFAIR = 1e-6  # fair chance is called unfair once in a million tests
BATCH = 2**20  # characters of lines handed to a worker at a time
MOST_WORKERS = 256
LARGE_FILE = 16 * 2**20  # bytes from which more than one process pays


@dataclass
class Tally:
    """What some lines amount to, up to their first fault."""

    statistics: Statistics
    chance: Chance = field(default_factory=Chance)
    line: int = 0  # the faulty line
    action: int = 0
    reason: str = ""


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
    expected_ops: float | None = None
    significance: float = UNFAIR
    independent: bool = True  # of the engine: by a rule book of the referee's own

    @property
    def unfair(self) -> list[Test]:
        """The tests of chance that failed."""
        return [test for test in self.tests if test.p < self.significance]

    @property
    def ok(self) -> bool:
        """Were all games by the rules, and was chance fair?"""
        return not self.reason and not self.unfair

    @property
    def fast_enough(self) -> bool:
        """Was the player as fast as it was to be?"""
        return self.expected_ops is None or self.statistics.ops >= self.expected_ops

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
            "expected_ops": self.expected_ops,
            "fast_enough": self.fast_enough,
            "fairness": [
                {"name": t.name, "question": t.question, "observations": t.observations, "chi_square": t.statistic}
                | {"freedom": t.freedom, "p": t.p, "fair": t.p >= self.significance}
                for t in self.tests
            ],
            "points": self.points,
            "lines_after_empty_line": self.unread,
        }


def judge(
    path: str | PathLike[str],
    game: str = "auto",
    *,
    expected_ops: float | None = None,
    significance: float = UNFAIR,
    workers: int = 1,
    **parameters: float,
) -> Verdict:
    """Referee a file of records, with these parameters of its game. `workers` 0 takes one process, or one a core when
    the file is large."""
    if not 0 <= significance <= 1:
        raise InputError(f"the significance is a probability from 0 to 1, such as 1e-6, not {significance}")
    if not 0 <= workers <= MOST_WORKERS:
        raise InputError(f"the number of workers is from 0 to {MOST_WORKERS}, not {workers}")
    with open_records(path) as stream:
        lines = read_lines(stream)
        first, placer, moves = _first_record(path, lines)
        game = guess_game(moves, placer) if game == "auto" else game
        referee = referee_of(game, parameters)
        workers = workers or processes_for(os.fstat(stream.fileno()).st_size)
        tally = Tally(Statistics(game))
        for part in _tallies(_batches(chain([first], lines)), game, parameters, workers):
            tally.statistics.merge(part.statistics)
            tally.chance.merge(part.chance)
            if part.reason:
                tally.line, tally.action, tally.reason = part.line, part.action, part.reason
                break
        unread = not tally.reason and bool(stream.read(2**16).strip())
    return Verdict(
        file=str(path),
        game=game,
        statistics=tally.statistics,
        line=tally.line,
        action=tally.action,
        reason=tally.reason,
        tests=fairness(referee.questions, tally.chance),
        unread=unread,
        expected_ops=expected_ops,
        significance=significance,
        independent=referee.independent,
    )


def referee_of(game: str, parameters: Mapping[str, float]) -> Referee | RefereeByGameRules:
    """Who judges this game: a rule book, or else its own rules."""
    if game in BOOKS:
        return Referee(game, **parameters)
    from tilesage.records.by_game_rules import RefereeByGameRules

    return RefereeByGameRules(game, **parameters)


def processes_for(size: int) -> int:
    """One process, or one a core when the file has so many bytes that more of them pay."""
    return processors() if size > LARGE_FILE else 1


def _first_record(path: str | PathLike[str], lines: Iterator[Line]) -> tuple[Line, str, str]:
    """The first line, its placer and its moves, if it looks like a record at all."""
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} holds no game record: it is empty, or its first line is")
    head = HEAD.match(first.text)
    if not head:
        shown = ascii(first.text[:40])
        raise InputError(
            f"{path} is no file of game records: a record begins SLIDER:PLACER@MILLISECONDS|, not {shown}"
        )
    return first, head[2], first.text[head.end() :]


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in portions of about a million characters."""
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line.text)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def judge_lines(lines: Iterable[Line], game: str, parameters: Mapping[str, float] | None = None) -> Tally:
    """Replay some lines up to the first fault."""
    referee = referee_of(game, parameters or {})
    tally = Tally(Statistics(game), referee.chance)
    for line in lines:
        try:
            if not line.whole:
                raise Fault(0, "the line is longer than any game can be")
            done = referee.judge(line.text)
        except Fault as fault:
            tally.line, tally.action, tally.reason = line.number, fault.action, fault.reason
            break
        tally.statistics.add(
            done.score,
            done.largest,
            done.slides,
            done.placements,
            ms=done.ms,
            slide_ms=done.slide_ms,
            placement_ms=done.placement_ms,
        )
    return tally


def _tallies(
    batches: Iterator[list[Line]], game: str, parameters: Mapping[str, float], workers: int
) -> Iterator[Tally]:
    """The tallies of all batches, in order; few batches are in memory at any time."""
    if workers == 1:
        for batch in batches:
            yield judge_lines(batch, game, parameters)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        under_way: deque[Future[Tally]] = deque()
        for batch in batches:
            under_way.append(pool.submit(judge_lines, batch, game, parameters))
            if len(under_way) > 2 * workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def fairness(questions: Iterable[Question], chance: Chance) -> list[Test]:
    """Every test that these placements are enough for."""
    tests: list[Test | None] = [*cell_tests(chance.landings)]
    counts: dict[str, dict[tuple[int, ...], dict[int, int]]] = {}
    for (kind, situation, choice), times in chance.choices.items():
        counts.setdefault(kind, {}).setdefault(situation, {})[choice] = times
    for question in questions:
        groups = [
            _group(question.fair(situation), found) for situation, found in counts.get(question.kind, {}).items()
        ]
        tests.append(grouped_test(question.name, question.text, groups))
    return [test for test in tests if test]


def _group(fair: Mapping[int, float], found: Mapping[int, int]) -> Group:
    """The counts of one situation beside the probabilities that fair chance gives it."""
    return Group([found.get(choice, 0) for choice in fair], list(fair.values()))


def _report(verdict: Verdict, table: Callable[[Statistics], str]) -> Iterator[str]:
    """The verdict in lines for people."""
    stats = verdict.statistics
    games = f"{stats.games:,} {'game' if stats.games == 1 else 'games'} of {verdict.game}"
    if verdict.reason:
        where = f"line {verdict.line}" + (f", action {verdict.action}" if verdict.action else "")
        yield f"{verdict.file}: {where}: {verdict.reason}"
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
        yield ""
        yield table(stats)
        yield ""
        yield from _speed_lines(verdict)
    for test in verdict.tests:
        word, expected = ("fair", "") if test.p >= verdict.significance else ("UNFAIR", f"; fair is {test.question}")
        figures = f"chi-square {test.statistic:,.1f}, {test.freedom} degrees of freedom, {test.observations:,} times"
        yield f"{word:<7} {test.name:<8} p = {test.p:<8.3g} ({figures}){expected}"
    if verdict.game in COURSE_GAMES:
        yield from _point_lines(verdict)


def _speed_lines(verdict: Verdict) -> Iterator[str]:
    actions = verdict.statistics.slides + verdict.statistics.placements
    ops = verdict.statistics.ops
    speed = f"{ops:,.0f} actions/s" if isfinite(ops) else "not measurable, the records state no time"
    wanted = ""
    if verdict.expected_ops is not None:
        reached = "reached" if verdict.fast_enough else f"not reached: points x {SLOW:.0%}".replace("%", " %")
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
