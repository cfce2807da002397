"""Recorded games of a game that has no rule book of the referee's: replayed by the game's own rules.

That finds what a record gets wrong, not what the rules get wrong: who wrote the game also wrote the judge, and the
verdict says "not independent". What a record tells of a start is its tiles and the hint; if `aux` holds anything
else that does not follow from them, the game cannot be judged so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.games import Game
from tilesage.games.board import ACTIONS, unpack
from tilesage.games.supply import Supply
from tilesage.records.record import Action, Place, Slide, hint_of, parse_moves, worth
from tilesage.records.replay import Fault, Outcome, framed
from tilesage.records.rulebooks import Chance, Question

STARTS = 4096  # that say which tiles a game may begin with
SHARES = 10**9  # a probability as a whole number


def _as_told(situation: tuple[int, ...]) -> Mapping[int, float]:
    """A situation that tells the probabilities of its choices: choice, share, choice, share, …"""
    return {choice: share / SHARES for choice, share in zip(situation[::2], situation[1::2])}


QUESTIONS = (
    Question("cells by the rules", "cell", "cells as likely as the rules of the game say", _as_told),
    Question("tiles", "tile", "tiles as likely as the rules of the game say", _as_told),
    Question("hints", "draw", "hints as likely as the rules of the game say", _as_told),
)


class RefereeByGameRules:
    """Judges lines as `Referee` does, by the rules of the game itself."""

    independent = False
    questions = QUESTIONS

    def __init__(self, game: str, **parameters: float) -> None:
        self.game = games.get(game, **parameters)
        self.chance = Chance()
        self.starters = starting_tiles(self.game)

    def judge(self, line: str) -> Outcome:
        """Play the game of a line again; a Fault says what is wrong with it."""
        frame, check = framed(line)
        replay, number = ReplayByGameRules(self), 0
        try:
            for number, action in enumerate(parse_moves(self.game.name, line[frame.at : frame.end]), 1):
                replay.play(number, action)
        except InputError as mistake:
            raise Fault(number + 1, str(mistake)) from None
        replay.check_end(number)
        check()
        return replay.outcome(frame.ms)


def starting_tiles(game: Game) -> set[int]:
    """The tiles that many starts have shown."""
    found: set[int] = set()
    for i in range(STARTS):
        board, _, _ = game.rules.start(game.rows, np.uint64(seed_of(np.uint64(0), np.uint64(i))))
        found |= set(unpack(np.uint64(board)))
    return found - {0}


@dataclass
class Landed:
    """A tile that the rules let appear, with its probability."""

    board: np.uint64
    aux: np.uint64
    share: float


class ReplayByGameRules:
    """One game while it is played again."""

    def __init__(self, referee: RefereeByGameRules) -> None:
        self.game, self.chance, self.starters = referee.game, referee.chance, referee.starters
        self.board = self.aux = np.uint64(0)
        self.supply = Supply(self.game)
        self.slid = False  # a placement is due
        self.score = self.slides = self.placements = self.slide_ms = self.placement_ms = 0

    @property
    def begun(self) -> bool:
        """Are all tiles of the start on the board?"""
        return self.placements >= self.game.starting_tiles

    def play(self, number: int, action: Action) -> None:
        """The next action, which is number `number` of the record."""
        if isinstance(action, Slide):
            self.slide(number, action)
        elif self.begun:
            self.place(number, action)
        else:
            self.place_first(number, action)

    def slide(self, number: int, slide: Slide) -> None:
        """A slide: is it due and legal, and is its reward right?"""
        if not self.begun:
            raise Fault(number, f"a game of {self.game.name} starts with {self.game.starting_tiles} placements")
        if self.slid:
            raise Fault(number, "a placement is due, but another slide follows")
        rules = self.game.rules
        after, aux, reward = rules.slide(self.game.rows, self.board, self.aux, slide.action)
        if after == self.board:
            raise Fault(number, f"illegal slide: {ACTIONS[slide.action]} moves nothing")
        if reward != slide.reward:
            raise Fault(number, f"the slide earns {reward}, the record says {slide.reward}")
        self.board, self.aux, self.slid = np.uint64(after), np.uint64(aux), True
        self.score += int(reward)
        self.slides += 1
        self.slide_ms += slide.ms

    def place_first(self, number: int, place: Place) -> None:
        """A tile of the start, where the rules only say what may come, not where."""
        cells = self.game.write(self.board, self.aux)[0] if self.placements else [0] * 16
        if place.cell > 15 or cells[place.cell]:
            raise Fault(number, "illegal placement: no such cell, or it is taken")
        if place.tile not in self.starters:
            raise Fault(number, f"no game of {self.game.name} starts with a tile of index {place.tile}")
        if not self.placements:
            self.supply.take((place.tile,))
        cells[place.cell] = place.tile
        self.supply.take(place.hint)
        self.board, self.aux = self.game.read(cells, self.supply.fields(place.hint))
        self.earn(number, place)

    def place(self, number: int, place: Place) -> None:
        """A new tile after a slide: is it due, and may it land there?"""
        if not self.slid:
            raise Fault(number, "a slide is due, but a placement follows")
        outcomes = self.outcomes()
        found = outcomes.get((place.cell, place.tile))
        if found is None:
            raise Fault(number, f"illegal placement: no tile of index {place.tile} can land on cell {place.cell:X}")
        self.count(outcomes, place)
        self.board, self.aux = found.board, self.hinted(number, found, place)
        self.slid = False
        self.earn(number, place)

    def outcomes(self) -> dict[tuple[int, int], Landed]:
        """What may land now, by cell and tile."""
        size = self.game.max_placements
        boards, auxes, shares = np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size)
        found: dict[tuple[int, int], Landed] = {}
        for i in range(self.game.rules.placements(self.board, self.aux, boards, auxes, shares)):
            landed = int(boards[i]) ^ int(self.board)
            cell = (landed.bit_length() - 1) // 4
            if shares[i] > 0:
                found[cell, landed >> 4 * cell] = Landed(boards[i], auxes[i], float(shares[i]))
        return found

    def hinted(self, number: int, landed: Landed, place: Place) -> np.uint64:
        """The aux with the hint that the record shows."""
        size = self.game.max_draws
        auxes, shares = np.zeros(size, np.uint64), np.zeros(size)
        draws = self.game.rules.draws(landed.board, landed.aux, auxes, shares)
        shown = [hint_of(self.game, landed.board, auxes[k]) for k in range(draws)]
        if place.hint not in shown:
            raise Fault(number, "this hint cannot come now")
        drawn = shown.index(place.hint)
        situation = [number for k in range(draws) for number in (k, round(SHARES * shares[k]))]
        self.chance.choices["draw", tuple(situation), drawn] += 1
        return np.uint64(auxes[drawn])

    def earn(self, number: int, place: Place) -> None:
        """Check and count what a placement earns."""
        earned = worth(self.game, place.tile)
        if place.reward != earned:
            raise Fault(number, f"the placement earns {earned}, the record says {place.reward}")
        self.score += earned
        self.placements += 1
        self.placement_ms += place.ms

    def count(self, outcomes: dict[tuple[int, int], Landed], place: Place) -> None:
        """What chance chose: a cell, and then a tile on it."""
        cells: defaultdict[int, float] = defaultdict(float)
        for (cell, _), landed in outcomes.items():
            cells[cell] += landed.share
        if math.isclose(min(cells.values()), max(cells.values())):
            candidates = sum(1 << cell for cell in cells)
            self.chance.landings[candidates << 4 | place.cell] += 1
        else:
            self._choose("cell", cells, place.cell)
        share = cells[place.cell]
        tiles = {tile: landed.share / share for (cell, tile), landed in outcomes.items() if cell == place.cell}
        self._choose("tile", tiles, place.tile)

    def _choose(self, kind: str, shares: Mapping[int, float], chosen: int) -> None:
        situation = tuple(number for choice in shares for number in (choice, round(SHARES * shares[choice])))
        self.chance.choices[kind, situation, chosen] += 1

    def check_end(self, number: int) -> None:
        """A game ends when the slider is stuck, not before."""
        if not self.begun or self.slid:
            raise Fault(number, "the record stops where a placement must follow")
        for action, name in enumerate(ACTIONS):
            if self.game.rules.slide(self.game.rows, self.board, self.aux, action)[0] != self.board:
                raise Fault(number, f"the game stops here while {name} is legal")

    def outcome(self, ms: int) -> Outcome:
        """What came of the whole game."""
        largest = int(self.game.rules.largest(self.board, self.aux))
        return Outcome(self.score, largest, self.slides, self.placements, ms, self.slide_ms, self.placement_ms)
