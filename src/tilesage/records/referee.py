"""The referee: recorded games replayed by rule books of its own, trusting nothing, and chance put to the test.

    verdict = judge("records.txt")
    print(verdict.text())

`judge` reads a file, a `Referee` plays its lines again, one `Replay` a game. The first fault is named with its line,
its action and the reason; a file that holds no record at all is a refusal. The rules are those of `rulebooks`, which
shares no code with the engine. A game that has no book there is judged by its own rules (by_game_rules.py), and the
verdict says that this is not independent.

The board is turned only when the direction changes between across and down, so a move costs a few look-ups in the
tables of the rule book.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from multiprocessing import get_context
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.records.fairness import examined
from tilesage.records.notation import HEAD, MARKS, SYMBOLS, TAIL, Line, guess_game, open_records, read_lines
from tilesage.records.rulebooks import BITS, BOOKS, INDEX, TILE, Chance, rule_book, turned
from tilesage.records.statistics import Statistics
from tilesage.records.verdict import UNFAIR, Verdict

if TYPE_CHECKING:
    from tilesage.records.by_game_rules import RefereeByGameRules

ACTIONS = {"U": 0, "R": 1, "D": 2, "L": 3}
NAMES = ("up", "right", "down", "left")
FORMS = {2: "POS TILE", 3: "POS TILE HINT", 4: "POS TILE LOW HIGH"}
SLIDE = re.compile(rf"#[URDL]{MARKS}")
TIME = re.compile(r"\([0-9]+\)")
BATCH = 2**20  # characters of lines handed to a worker at a time
MOST_WORKERS = 256
LARGE_FILE = 16 * 2**20  # bytes from which more than one process pays
TOO_SHORT = 30  # placements: a game with fewer may happen twice


class Fault(Exception):
    """What is wrong with a game; `action` is the number of the action, from 1, or 0 for the line as a whole."""

    def __init__(self, action: int, reason: str) -> None:
        super().__init__(reason)
        self.action = action
        self.reason = reason


class Outcome(NamedTuple):
    """A game found in order, as `Statistics` counts it."""

    score: int
    largest: int
    slides: int
    placements: int
    ms: int
    slide_ms: int
    placement_ms: int


def place_pattern(width: int) -> str:
    """A placement with its marks; the hint, all but two of its characters, is one group."""
    return rf"([0-9A-Z])([0-9A-Z])([0-9A-Z]{{{width - 2}}}){MARKS}"


def framed(line: str) -> tuple[int, int, Callable[[Outcome], Outcome]]:
    """Where the moves of a line begin and end, and what checks the rest of it when they have been played: who has
    won, and in what time."""
    head = HEAD.match(line)
    if not head:
        raise Fault(0, f"no record: {line[:30]!r} is not SLIDER:PLACER@MILLISECONDS|")
    end = line.find("|", head.end())
    if end < 0:
        raise Fault(0, "the record is cut off: '|WINNER@MILLISECONDS' is missing")
    tail = TAIL.fullmatch(line, end + 1)
    if not tail:
        raise Fault(0, f"the record ends with {line[end : end + 30]!r}, not with |WINNER@MILLISECONDS")
    ms = int(tail[2]) - int(head[3])

    def check(done: Outcome) -> Outcome:
        if tail[1] != head[2]:
            raise Fault(0, f"the winner is {tail[1]!r}, but the slider is stuck and {head[2]!r} has won")
        if ms < 0:
            raise Fault(0, f"the game ends at {tail[2]}, before it starts at {head[3]}")
        taken = done.slide_ms + done.placement_ms
        if taken > ms + done.slides + done.placements:  # each may have been rounded up
            raise Fault(0, f"the actions took {taken:,} ms, the whole game {ms:,} ms")
        return done._replace(ms=ms)

    return head.end(), end, check


class Referee:
    """Replays games of one rule book; what chance did accumulates in `chance`."""

    independent = True  # of the engine

    def __init__(self, game: str, **parameters: float) -> None:
        self.book = rule_book(game, **parameters)
        self.questions = self.book.questions
        self.chance = Chance()
        self.place = re.compile(place_pattern(self.book.width))
        # Either one whole turn or, as the last group, the character at which the record stops making sense.
        self.turn = re.compile(rf"#([URDL]){MARKS}{place_pattern(self.book.width)}|(.)", re.DOTALL)

    def judge(self, line: str) -> Outcome:
        """Play the game of a line again; a Fault says what is wrong with it."""
        at, end, check = framed(line)
        game = Replay(self, line, at, end)
        game.play_start()
        game.play_turns()
        game.check_end()
        return check(game.outcome())


class Replay:
    """One game while it is played again: `line[at:end]` are the actions still to come."""

    def __init__(self, referee: Referee, line: str, at: int, end: int) -> None:
        self.referee = referee
        self.book = referee.book
        self.dealer = referee.book.dealer(referee.chance)
        self.line, self.at, self.end = line, at, end
        self.lines = [0, 0, 0, 0]
        self.across = 1  # 1: the lines are rows, 0: columns
        self.candidates = 0xFFFF  # cells on which the next tile may land, as bits
        self.direction: int | None = None  # of the last slide
        self.number = 0  # of the action being looked at, from 1
        self.score = self.slide_ms = self.placement_ms = 0

    def play_start(self) -> None:
        """The first tiles, on any empty cells."""
        needed = self.book.start
        for self.number in range(1, needed + 1):
            found = self.referee.place.match(self.line, self.at, self.end)
            if not found:
                raise Fault(self.number, self.wrong_start(needed))
            self.at = found.end()
            cell, tile, hint, stated, ms = found.groups()
            self.place(INDEX[cell], INDEX[tile], hint, stated)
            self.candidates ^= 1 << INDEX[cell]
            if ms:
                self.placement_ms += int(ms)

    def play_turns(self) -> None:
        """Slide, placement, slide, placement, to the end of the record."""
        slide, place = self.slide, self.place
        for found in self.referee.turn.finditer(self.line, self.at, self.end):
            letter, stated, ms, cell, tile, hint, stated_worth, place_ms, junk = found.groups()
            self.number += 1
            if junk:
                raise self.unreadable(found.start())
            slide(ACTIONS[letter], stated)
            self.number += 1
            place(INDEX[cell], INDEX[tile], hint, stated_worth)
            if ms:
                self.slide_ms += int(ms)
            if place_ms:
                self.placement_ms += int(place_ms)

    def slide(self, action: int, stated: str | None) -> None:
        """Play a slide; `stated` is the reward that the record gives."""
        lines = self.lines
        across = action & 1
        if across != self.across:
            lines[:] = turned(*lines)
            self.across = across
        a, b, c, d = lines
        table = self.book.tables[action]
        (p, r, i), (q, s, j), (t, u, k), (v, w, m) = table[a], table[b], table[c], table[d]
        if (p == a and q == b and t == c and v == d) or self.dealer.finished:
            raise Fault(self.number, f"illegal slide: {NAMES[action]} moves nothing")
        reward = r + s + u + w
        if (int(stated) if stated else 0) != reward:
            raise Fault(self.number, f"the slide earns {reward}, the record says {stated or 0}")
        lines[:] = p, q, t, v
        self.score += reward
        self.direction = action
        self.candidates = i | j << 4 | k << 8 | m << 12 if across else i | j << 1 | k << 2 | m << 3

    def place(self, cell: int, tile: int, hint: str, stated: str | None) -> None:
        """Place a tile; `stated` is the reward that the record gives."""
        if not self.candidates >> cell & 1:
            raise Fault(self.number, self.wrong_cell(cell))
        if self.across:
            self.lines[cell >> 2] |= tile << BITS * (cell & 3)
        else:
            self.lines[cell & 3] |= tile << BITS * (cell >> 2)
        wrong = self.dealer.deal(tile, hint, self.lines)
        if wrong:
            raise Fault(self.number, wrong)
        worth = self.book.worth[tile]
        if (int(stated) if stated else 0) != worth:
            raise Fault(self.number, f"the placement earns {worth}, the record says {stated or 0}")
        self.score += worth
        self.referee.chance.landings[self.candidates << 4 | cell] += 1

    def check_end(self) -> None:
        """A game ends when the slider is stuck, not before."""
        if self.dealer.finished:
            return
        rows = tuple(self.lines) if self.across else turned(*self.lines)
        for action, name in enumerate(NAMES):
            lines = rows if action & 1 else turned(*rows)
            if any(self.book.tables[action][line][0] != line for line in lines):
                raise Fault(self.number, f"the game stops here while {name} is legal")

    def outcome(self) -> Outcome:
        """What came of the whole game, but for its time."""
        largest = max(line >> BITS * k & TILE for line in self.lines for k in range(4))
        start = self.book.start
        slides = (self.number - start) // 2
        return Outcome(self.score, largest, slides, start + slides, 0, self.slide_ms, self.placement_ms)

    def wrong_cell(self, cell: int) -> str:
        """Why a tile cannot land there."""
        if cell > 15:
            return f"illegal placement: there is no cell {SYMBOLS[cell]}, cells are 0-9 and A-F"
        line, k = (cell >> 2, cell & 3) if self.across else (cell & 3, cell >> 2)
        if self.lines[line] >> BITS * k & TILE:
            return f"illegal placement: cell {SYMBOLS[cell]} is taken"
        where = "on a line that moved, at the border" if self.book.landing == "moved" else "at the border"
        slid = NAMES[self.direction or 0]
        return f"illegal placement: after {slid} a tile lands {where} opposite, not on cell {SYMBOLS[cell]}"

    def wrong_start(self, needed: int) -> str:
        """Why the next of the first tiles cannot be read."""
        rest = self.line[self.at : min(self.end, self.at + 12)]
        if not rest or rest[0] == "#":
            return f"a game of {self.book.name} starts with {needed} placements, here are {self.number - 1}"
        return f"unreadable placement {rest!r}: {self.book.name} writes {FORMS[self.book.width]}"

    def unreadable(self, at: int) -> Fault:
        """The turn at this place of the line is not one slide and one placement: say why."""
        rest = self.line[at : self.end]
        slide = SLIDE.match(rest)
        if not slide:
            if rest[0] == "#":
                return Fault(self.number, f"unknown slide {rest[:2]!r}: write #U, #R, #D or #L")
            if self.referee.place.match(rest):
                return Fault(self.number, f"a slide is due, but a placement {rest[: self.book.width]!r} follows")
            return Fault(self.number, f"unreadable text {rest[:12]!r}")
        after = rest[slide.end() :]
        if not after:
            return Fault(self.number, "the record stops after a slide: a placement must follow")
        if after[0] == "#":
            return Fault(self.number + 1, "a placement is due, but another slide follows")
        if after[0] in "[(":
            return Fault(self.number, f"unreadable reward or time {after[:16]!r}")
        form = FORMS[self.book.width]
        return Fault(self.number + 1, f"unreadable placement {after[:12]!r}: {self.book.name} writes {form}")


# --- a whole file --------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What some lines amount to, up to their first fault."""

    statistics: Statistics
    chance: Chance = field(default_factory=Chance)
    games: array[int] = field(default_factory=lambda: array("Q"))  # a digest of each; 0 of one that is too short
    untimed: int = 0  # games that do not say when they were played
    line: int = 0  # the faulty line
    action: int = 0
    reason: str = ""

    def merge(self, other: Tally) -> None:
        """Add the lines that follow."""
        self.statistics.merge(other.statistics)
        self.chance.merge(other.chance)
        self.games.extend(other.games)
        self.untimed += other.untimed
        self.line, self.action, self.reason = other.line, other.action, other.reason

    def repeated(self) -> tuple[int, int, int]:
        """How many games are those of earlier lines, the first such line, and which line that was; or zeros."""
        digests = np.array(self.games, np.uint64)
        order = np.argsort(digests, kind="stable")
        same = np.flatnonzero((digests[order[1:]] == digests[order[:-1]]) & (digests[order[1:]] > 0))
        if not same.size:
            return 0, 0, 0
        first = same[np.argmin(order[same + 1])]
        return same.size, int(order[first + 1]) + 1, int(order[first]) + 1


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
            tally.merge(part)
            if tally.reason:
                break
        unread = not tally.reason and bool(stream.read(2**16).strip())
    repeated, again, earlier = (0, 0, 0) if tally.reason else tally.repeated()
    if repeated:
        tally.line, tally.reason = again, f"this is the game of line {earlier} once more"
    return Verdict(
        file=str(path),
        game=game,
        statistics=tally.statistics,
        line=tally.line,
        action=tally.action,
        reason=tally.reason,
        tests=examined(referee.questions, tally.chance),
        unread=unread,
        repeated=repeated,
        untimed=tally.untimed,
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
        tally.statistics.add(**done._asdict())
        tally.games.append(_digest(line.text) if done.placements >= TOO_SHORT else 0)
        tally.untimed += line.text.endswith("@0")
    return tally


def _digest(line: str) -> int:
    """A number for the moves of a line, whoever made them and when."""
    moves = TIME.sub("", line[line.index("|") : line.rindex("|")])
    return int.from_bytes(blake2b(moves.encode("utf-8", "surrogateescape"), digest_size=8).digest())


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
