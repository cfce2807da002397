"""A recorded game played again by the rules of the game itself: its positions, for films, the page and a referee.

What a record tells of a start is its tiles and the hint; after that every position is one of those that the rules
let chance make.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import Game, State
from tilesage.games.board import ACTIONS
from tilesage.games.state import Afterstate
from tilesage.games.supply import Supply
from tilesage.records.record import Action, Place, Record, Slide, hint_of


class Moment(NamedTuple):
    """A position of a recorded game, with the slide that led to it and the cell of the tile that appeared."""

    state: State
    action: int | None
    new: int | None


def moments_of(record: Record) -> list[Moment]:
    """Every position before a slide, and the last one; an `InputError` where the record leaves the rules."""
    game, found, last = games.get(record.game), [], None
    start = next((i for i, action in enumerate(record.actions) if isinstance(action, Slide)), game.starting_tiles)
    replay = Replay(game, start)  # a game from outside may begin with other tiles, by its parameters
    for number, action in enumerate(record.actions, 1):
        try:
            replay.play(action)
        except InputError as wrong:
            raise InputError(f"action {number} of the record: {wrong}; let the referee look at it") from None
        if isinstance(action, Slide):
            last = action.action
        elif replay.begun:
            found.append(Moment(replay.state, last, None if last is None else action.cell))
    replay.check_turn()
    return found


class Replay:
    """One game while it is played again."""

    def __init__(self, game: Game, start: int) -> None:
        self.game, self.supply, self.start = game, Supply(game), start
        self.state = State(game, np.uint64(0), np.uint64(0))
        self.placements = 0
        self.after: Afterstate | None = None  # of the last slide
        self.slid = False  # a placement is due
        self.outcomes: list[tuple[float, State]] = []  # of the last slide: what chance could make of it

    @property
    def begun(self) -> bool:
        """Are all tiles of the start on the board?"""
        return self.placements >= self.start

    def play(self, action: Action) -> None:
        """The next action; an `InputError` if the rules do not allow it."""
        if isinstance(action, Slide):
            self.slide(action)
            return
        if self.begun:
            self.place(action)
        else:
            self.place_first(action)
        self.placements += 1

    def slide(self, slide: Slide) -> None:
        """A slide: is it due and legal?"""
        if not self.begun:
            raise InputError(f"a game of {self.game.name} starts with {self.start} placements")
        if self.slid:
            raise InputError("a placement is due, but another slide follows")
        self.after = self.state.slides[slide.action]
        if self.after is None:
            raise InputError(f"illegal slide: {ACTIONS[slide.action]} moves nothing")
        self.outcomes, self.slid = self.after.outcomes(), True

    def place_first(self, place: Place) -> None:
        """A tile of the start, where the rules only say what may come, not where."""
        cells, tiles = self.state.indices, (place.tile, *place.hint)
        if place.cell > 15 or cells[place.cell]:
            raise InputError("illegal placement: no such cell, or it is taken")
        if bool(place.hint) != bool(self.game.hint) or not all(0 < tile < len(self.game.tiles) for tile in tiles):
            raise InputError(f"illegal placement: {self.game.name} has no such tile, or no such hint")
        if not self.placements:
            self.supply.take((place.tile,))
        cells[place.cell] = place.tile
        self.supply.take(place.hint)
        board, aux = self.game.read(cells, self.supply.fields(place.hint))
        score = int(self.game.rules.value_of_board(board, aux)) if self.game.score_is_value else 0
        self.state = State(self.game, board, aux, score)

    def place(self, place: Place) -> None:
        """A new tile after a slide: is it due, and may it land there, with this hint after it?"""
        if not self.slid or self.after is None:
            raise InputError("a slide is due, but a placement follows")
        landed = int(self.after.board) ^ place.tile << 4 * place.cell
        found = [state for _, state in self.outcomes if state.board == landed]
        if not found or place.tile > 15:
            raise InputError(f"illegal placement: no tile of index {place.tile} can land on cell {place.cell:X}")
        hinted = [state for state in found if hint_of(self.game, state.board, state.aux) == place.hint]
        if not hinted:
            raise InputError("this hint cannot come now")
        self.state, self.slid = hinted[0], False

    def check_turn(self) -> None:
        """A record ends with a placement."""
        if not self.begun or self.slid:
            raise InputError("the record stops where a placement must follow")
