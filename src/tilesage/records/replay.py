"""Recorded games played again, action by action, trusting nothing.

The board is turned only when the direction changes between across and down, so a move costs a few look-ups in
the tables of the rule book.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tilesage.records.notation import HEAD, MARKS, SYMBOLS, TAIL
from tilesage.records.rulebooks import BITS, INDEX, TILE, Chance, rule_book, turned

ACTIONS = {"U": 0, "R": 1, "D": 2, "L": 3}
NAMES = ("up", "right", "down", "left")
FORMS = {2: "POS TILE", 3: "POS TILE HINT", 4: "POS TILE LOW HIGH"}
SLIDE = re.compile(rf"#[URDL]{MARKS}")


class Fault(Exception):
    """What is wrong with a game; `action` is the number of the action, from 1, or 0 for the line as a whole."""

    def __init__(self, action: int, reason: str) -> None:
        super().__init__(reason)
        self.action = action
        self.reason = reason


@dataclass(frozen=True)
class Outcome:
    """A game found in order."""

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


class Frame(NamedTuple):
    """A line without its moves, which are `line[at:end]`."""

    at: int
    end: int
    ms: int


def framed(line: str) -> tuple[Frame, Callable[[], None]]:
    """Where the moves of a line are, and what is to be checked when they have been played: who has won, and when."""
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

    def check() -> None:
        if tail[1] != head[2]:
            raise Fault(0, f"the winner is {tail[1]!r}, but the slider is stuck and {head[2]!r} has won")
        if ms < 0:
            raise Fault(0, f"the game ends at {tail[2]}, before it starts at {head[3]}")

    return Frame(head.end(), end, ms), check


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
        frame, check = framed(line)
        game = Replay(self, line, frame.at, frame.end)
        game.play_start()
        game.play_turns()
        game.check_end()
        check()
        return game.outcome(frame.ms)


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

    def outcome(self, ms: int) -> Outcome:
        """What came of the whole game."""
        largest = max(line >> BITS * k & TILE for line in self.lines for k in range(4))
        start = self.book.start
        slides = (self.number - start) // 2
        return Outcome(self.score, largest, slides, start + slides, ms, self.slide_ms, self.placement_ms)

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
