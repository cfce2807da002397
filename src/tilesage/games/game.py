"""What a game is: a name, its tiles, a row table, and nine compiled rules with the same signatures in every game.

Whoever trains, searches or draws asks a game for its properties, never for its name. Those that have a default here
say of a new game what is true of any; saying more of it makes some things possible (folding) or quicker (searching).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.games.state import State


class Rules(NamedTuple):
    """The compiled functions of a game. A position is (board, aux); `rows` is the game's row table.

    A slide is legal if it changes the board. A chance outcome of an afterstate is a placement of a tile followed by
    the draw of the next hint; games without a hint draw nothing. `value_of_board` is a number that a slide raises by
    exactly what it earns; where `score_is_value`, it is the score, so that a new tile earns what it adds to it.
    """

    start: Callable[..., Any]  # (rows, rng) -> board, aux, rng
    deal: Callable[..., Any]  # (board, aux, rng) -> board, aux, rng: one tile of the start
    slide: Callable[..., Any]  # (rows, board, aux, action) -> after, after_aux, reward
    spawn: Callable[..., Any]  # (after, after_aux, rng) -> board, aux, reward, rng
    placements: Callable[..., Any]  # (after, after_aux, boards, auxes, probabilities) -> how many
    draws: Callable[..., Any]  # (board, aux, auxes, probabilities) -> how many
    value_of_board: Callable[..., Any]  # (board, aux) -> points, see below
    largest: Callable[..., Any]  # (board, aux) -> index of the largest tile
    sum_of_tiles: Callable[..., Any]  # (board, aux) -> the sum of the numbers on the tiles, which a slide keeps


class Parameter(NamedTuple):
    """A number of the rules that players may choose, such as the share of fours among the new tiles."""

    about: str
    low: float = 0.0
    high: float = 1.0


class Hint(NamedTuple):
    """A game that shows its next tile: the lowest `bits` of aux hold its index, the smallest where it may be several.

    The tiles 1, 2 and 3 may come from a bag or a deck of so many `copies` each, drawn without putting back.
    """

    bits: int
    values: int = 1  # how many tiles a hint may leave open
    copies: int = 0  # 0: no bag


@dataclass(frozen=True, eq=False)
class Game:
    """One rule set, ready to be played, learnt and searched."""

    name: str  # what `games.get` finds it by
    key: str  # the name with its parameters, as headings say it
    title: str
    summary: str
    tiles: tuple[int, ...]  # index -> number on the tile, 0 for an empty cell
    goal: int  # the index that people ask for first: 2048, 384
    rows: Array
    rules: Rules
    starting_tiles: int
    max_placements: int
    max_draws: int
    write: Callable[[np.uint64, np.uint64], tuple[list[int], dict[str, str]]] = field(repr=False)
    read: Callable[[list[int], dict[str, str]], tuple[np.uint64, np.uint64]] = field(repr=False)
    merged: Callable[[int, int], int] = field(repr=False)  # the index that two tiles make, 0 for none
    score_is_value: bool = False  # the score is always the value of the board: new tiles count (Threes!)
    slides_far: bool = True  # a tile slides as far as it goes; otherwise one cell at most
    hint: Hint | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)  # as they are in this game
    takes: Mapping[str, Parameter] = field(default_factory=dict)  # those that can be chosen

    # Tiles past index 15, in games that have them: (board, aux, cell) -> index, compiled. Their nibble is 15 and aux
    # holds the rest; it is 0 while there are none.
    index_at: Callable[..., Any] | None = field(default=None, repr=False)
    # What so many cells can make at most, as an index: larger tiles make a board impossible. None: nobody knows.
    highest_in: Callable[[int], int] | None = field(default=None, repr=False)

    # The eight symmetric boards of one with aux 0 are worth the same: slides and chance do not know directions.
    symmetric: bool = False
    # The new tile is index 1, or index 2 with this probability, on any empty cell alike, and a row slides on its own,
    # by the table of rows: [65536] uint32, the new row in the low half, the reward divided by `row_unit` in the high.
    second_rate: float | None = None
    row_unit: int = 1

    # Where a tile is missing, all larger ones may be one index smaller: the same game at a smaller scale.
    scales: bool = False
    # … so much the same that a search may think about the smaller board instead (Guei 2022).
    downgrades: bool = False
    # A practice game: a position late in another game, to train a specialist network for the endgame; nobody plays it
    # for its own sake. `given` is the smallest of the tiles that it may begin with beside the new ones.
    practice: bool = False
    given: int = 0

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value:g}" for name, value in self.parameters.items())
        return f"Game({self.name!r}{parameters})"

    def is_registered(self) -> bool:
        """Is it the game that another process finds by this name and these parameters?"""
        with suppress(InputError):
            return self is _again(self.name, dict(self.parameters))
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_registered():
            raise InputError(
                f"this game is not the {self.name!r} that another process finds: write it in a module and name it, "
                "game='my_module:my_game'"
            )
        return _again, (self.name, dict(self.parameters))

    def __deepcopy__(self, memo: object) -> Game:
        return self

    def new(self, seed: int = 0) -> State:
        """A fresh game: a function of its seed."""
        from tilesage.games.state import new_state

        return new_state(self, seed)

    def parse(self, text: str) -> State:
        """The position written in `text`: the compact form, or sixteen tile numbers."""
        from tilesage.games.state import parse_state

        return parse_state(self, text)


def _again(name: str, parameters: dict[str, float]) -> Game:
    """The game that was pickled: its name and its parameters are all that is kept."""
    from tilesage.games import get

    return get(name, **parameters)
