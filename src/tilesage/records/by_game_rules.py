"""The referee of a game that has no rule book: its records are replayed by the game's own rules.

That finds what a record gets wrong, not what the rules get wrong: who wrote the game also wrote the judge, and the
verdict says "not independent". If `aux` holds anything that does not follow from tiles, hint and bag, the game cannot
be judged so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.games.board import ACTIONS
from tilesage.records.record import Place, Slide, hint_of, parse_moves, worth
from tilesage.records.referee import Fault, Outcome, framed
from tilesage.records.replay import Replay
from tilesage.records.rulebooks import Chance, Question

STARTS = 4096  # that say which tiles a game may begin with
SHARES = 10**9  # a probability as a whole number


def _as_told(situation: tuple[int, ...]) -> Mapping[int, float]:
    """A situation that tells the probabilities of its choices: choice, share, choice, share, …"""
    return {choice: share / SHARES for choice, share in zip(situation[::2], situation[1::2])}


QUESTIONS = tuple(
    Question(name, kind, f"{name} as likely as the rules of the game say", _as_told)
    for name, kind in (("cells by the rules", "cell"), ("tiles", "tile"), ("hints", "draw"))
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
        at, end, check = framed(line)
        replay, number = Replay(self.game, self.game.starting_tiles), 0
        score = slides = slide_ms = placement_ms = 0
        try:
            for action in parse_moves(self.game.name, line[at:end]):
                number += 1
                first = not replay.begun
                replay.play(action)
                self._check_reward(action, replay)
                score += action.reward
                if isinstance(action, Slide):
                    slides, slide_ms = slides + 1, slide_ms + action.ms
                    continue
                placement_ms += action.ms
                if not first:
                    self._count(replay, action)
                elif action.tile not in self.starters:
                    raise InputError(f"no game of {self.game.name} starts with a tile of index {action.tile}")
            replay.check_turn()
        except InputError as mistake:
            raise Fault(max(1, number), str(mistake)) from None
        if replay.state.legal:
            raise Fault(number, f"the game stops here while {ACTIONS[replay.state.legal[0]]} is legal")
        largest = int(self.game.rules.largest(replay.state.board, replay.state.aux))
        return check(Outcome(score, largest, slides, replay.placements, 0, slide_ms, placement_ms))

    def _check_reward(self, action: Slide | Place, replay: Replay) -> None:
        if isinstance(action, Slide):
            assert replay.after is not None
            what, earned = "slide", replay.after.reward
        else:
            what, earned = "placement", worth(self.game, action.tile)
        if action.reward != earned:
            raise InputError(f"the {what} earns {earned}, the record says {action.reward}")

    def _count(self, replay: Replay, place: Place) -> None:
        """What chance chose: a cell, then a tile on it, then a hint."""
        cells: defaultdict[int, float] = defaultdict(float)
        tiles: defaultdict[int, float] = defaultdict(float)
        hints: defaultdict[tuple[int, ...], float] = defaultdict(float)
        assert replay.after is not None
        for share, state in replay.outcomes:
            landed = int(state.board ^ replay.after.board)
            cell = (landed.bit_length() - 1) // 4
            cells[cell] += share
            if cell == place.cell:
                tiles[landed >> 4 * cell] += share
                if landed >> 4 * cell == place.tile:
                    hints[hint_of(self.game, state.board, state.aux)] += share
        if math.isclose(min(cells.values()), max(cells.values())):
            self.chance.landings[sum(1 << cell for cell in cells) << 4 | place.cell] += 1
        else:
            self._choose("cell", cells, place.cell)
        self._choose("tile", tiles, place.tile)
        self._choose("draw", dict(enumerate(hints.values())), [*hints].index(place.hint))

    def _choose(self, kind: str, shares: Mapping[int, float], chosen: int) -> None:
        whole = sum(shares.values())
        situation = tuple(n for choice in shares for n in (choice, round(SHARES * shares[choice] / whole)))
        self.chance.choices[kind, situation, chosen] += 1


def starting_tiles(game: Game) -> set[int]:
    """The tiles that many starts have shown."""
    return {index for seed in range(STARTS) for index in game.new(seed).indices} - {0}
