"""What is learnt and how, as it is burnt into the kernels; and what a network says of afterstates, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games import Game
from tilesage.gpu import tables
from tilesage.gpu.machine import cuda, device, float32, times
from tilesage.networks.ntuple import Evaluator

NOTHING = np.float32(0)


@dataclass(frozen=True)
class Lesson:
    """A game, a network, and a rule of learning."""

    game: Game
    evaluator: Evaluator
    of_states: bool = False  # values of states instead of afterstates
    coherence: bool = False  # temporal coherence instead of TD
    ahead: bool = False  # every second game begins with tiles of the stages
    history: int = 1  # how many errors an afterstate waits for
    decay: float = 0.0  # λ, what each of them counts less than the one before

    @property
    def tables(self) -> tables.Tables:
        """What lanes do with the entries of a position."""
        return tables.build(self.evaluator, self.coherence)

    @property
    def by_age(self) -> bool:
        """Is what is usual at an age learnt apart?"""
        return self.evaluator.age is not None

    @property
    def age_of(self) -> Callable[..., Any]:
        """(board, aux) -> the place of its age, in networks by age."""
        return self.evaluator.age or self.evaluator.offset

    @property
    def see(self) -> Callable[..., Any]:
        """(board, aux) -> board: how a folded network sees a position."""
        return self.evaluator.fold or as_it_is

    @property
    def words(self) -> int:
        """64-bit words in a weight's record."""
        return 2 if self.coherence else 1

    @property
    def worth(self) -> Callable[..., Any]:
        """(weights, after, aux, lane, wanted) -> this lane's part of the value of an afterstate, seen by `see`."""
        return expectation(self) if self.of_states else self.tables.worth


@compiled
def as_it_is(board: np.uint64, aux: np.uint64) -> np.uint64:
    return board


@cache
def expectation(lesson: Lesson) -> Callable[..., Any]:
    """This lane's part of E[r' + V(next state)] after an afterstate, over every tile that may appear.

    r' is what that tile is worth. It is the first lane's.
    """
    game, worth = lesson.game, lesson.tables.worth
    placements, value_of_board = game.rules.placements, game.rules.value_of_board
    most, score_is_value = game.max_placements, game.score_is_value

    @device
    def expected(weights: Array, after: np.uint64, aux: np.uint64, lane: int, wanted: int) -> Any:
        boards, auxes = cuda.local.array(most, np.uint64), cuda.local.array(most, np.uint64)
        chances, total = cuda.local.array(most, np.float32), NOTHING
        for i in range(placements(after, aux, boards, auxes, chances) if wanted else 0):
            value = worth(weights, boards[i], auxes[i], lane, 1)
            if score_is_value and lane == 0:
                value += float32(value_of_board(boards[i], auxes[i]) - value_of_board(after, aux))
            total += times(value, chances[i])
        return total

    return expected


@cache
def after_value(lesson: Lesson) -> Callable[..., Any]:
    """(weights, after, aux) -> the value of an afterstate, by one thread, to the last bit that of eight lanes."""
    worth, see, by_age, age_of = lesson.worth, lesson.see, lesson.by_age, lesson.age_of

    @device
    def value(weights: Array, after: np.uint64, aux: np.uint64) -> Any:
        usual, seen = weights[age_of(after, aux)] if by_age else NOTHING, see(after, aux)
        low = (worth(weights, seen, aux, 0, 1) + worth(weights, seen, aux, 1, 1)) + (
            worth(weights, seen, aux, 2, 1) + worth(weights, seen, aux, 3, 1)
        )
        high = (worth(weights, seen, aux, 4, 1) + worth(weights, seen, aux, 5, 1)) + (
            worth(weights, seen, aux, 6, 1) + worth(weights, seen, aux, 7, 1)
        )
        return usual + (low + high)

    return value
