"""What a game is: a name, its tiles, a row table, and nine compiled rules with the same signatures in every game."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .compiler import Array

if TYPE_CHECKING:
    from .play import State


class Rules(NamedTuple):
    """The compiled functions of a game. A position is (board, aux); `rows` is the game's row table.

    A slide is legal if it changes the board. A chance outcome of an afterstate is a placement of a tile followed by
    the draw of the next hint; games without a hint draw nothing.
    """

    start: Callable[..., Any]  # (rows, rng) -> board, aux, rng
    deal: Callable[..., Any]  # (board, aux, rng) -> board, aux, rng: one tile of the start
    slide: Callable[..., Any]  # (rows, board, aux, action) -> after, after_aux, reward
    spawn: Callable[..., Any]  # (after, after_aux, rng) -> board, aux, reward, rng
    placements: Callable[..., Any]  # (after, after_aux, boards, auxes, probabilities) -> how many
    draws: Callable[..., Any]  # (board, aux, auxes, probabilities) -> how many
    value_of_board: Callable[..., Any]  # (board, aux) -> value
    largest: Callable[..., Any]  # (board, aux) -> index of the largest tile
    sum_of_tiles: Callable[..., Any]  # (board, aux) -> the sum of the numbers on the tiles, which a slide keeps


@dataclass(frozen=True, eq=False)
class Game:
    """One rule set, ready to be played, learnt and searched."""

    name: str
    key: str  # the name with its parameters, for compiled code
    title: str
    summary: str
    tiles: tuple[int, ...]  # index -> number on the tile, 0 for an empty cell
    goal: int  # the index that people ask for first: 2048, 384
    rows: Array
    rules: Rules
    starting_tiles: int
    score_is_value: bool  # the score is always the value of the board: new tiles count (Threes!)
    max_placements: int
    max_draws: int
    write: Callable[[np.uint64, np.uint64], tuple[list[int], dict[str, str]]] = field(repr=False)
    read: Callable[[list[int], dict[str, str]], tuple[np.uint64, np.uint64]] = field(repr=False)
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value:g}" for name, value in self.parameters.items())
        return f"Game({self.name!r}{parameters})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.name, dict(self.parameters))

    def new(self, seed: int = 0) -> State:
        """A fresh game: a function of its seed."""
        from .play import new_state

        return new_state(self, seed)

    def parse(self, text: str) -> State:
        """The position written in `text`: the compact form, or sixteen tile numbers."""
        from .play import parse_state

        return parse_state(self, text)


def _again(name: str, parameters: dict[str, float]) -> Game:
    """The game that was pickled: its name and its parameters are all that is kept."""
    from . import get

    return get(name, **parameters)
