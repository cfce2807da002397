"""Random games to the end (rollouts), and the player that needs nothing else: flat Monte Carlo.

Flat Monte Carlo plays many random games after each legal move and takes the move with the best mean score.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.random import draw
from tilesage.games import Game
from tilesage.games.board import S32, TWO, ZERO, Board

ONE_OF_FOUR = np.uint64(3)


class Rollout(Protocol):
    """Random legal moves to the end of a game."""

    def __call__(self, rows: Array, board: Board, aux: np.uint64, rng: np.uint64) -> tuple[Number, np.uint64]:
        """The score that they gain, and the generator after them."""


class FlatMonteCarlo(Protocol):
    """Flat Monte Carlo in one position."""

    def __call__(
        self, rows: Array, board: Board, aux: np.uint64, rng: np.uint64, games: int, seconds: float, out: Array
    ) -> np.uint64:
        """Write the mean score that each move gains; returns the generator.

        Args:
            rows: the row table of the game.
            games: so many random games after each legal move,
            seconds: or as many as fit into this time; 0 is no limit.
            out: [4] float64, becomes the means, nan where illegal.
        """


class Rollouts(NamedTuple):
    """What plays random games of one game."""

    rollout: Rollout
    flat: FlatMonteCarlo


@cache
def build(game: Game) -> Rollouts:
    """Compiled for this game."""
    slide, spawn = game.rules.slide, game.rules.spawn

    @compiled
    def rollout(rows: Array, board: Board, aux: np.uint64, rng: np.uint64) -> tuple[Number, np.uint64]:
        gained: Number = np.int64(0)
        tried: Number = 0
        bits = ZERO
        while tried != 15:
            if bits < TWO:
                bits, rng = draw(rng)
                bits = (bits >> S32) | (np.uint64(1) << S32)  # sixteen choices of two bits, then a mark
            action = np.int64(bits & ONE_OF_FOUR)
            bits = bits >> TWO
            if tried >> action & 1:
                continue
            after, after_aux, reward = slide(rows, board, aux, action)
            if after == board:
                tried |= 1 << action
                continue
            board, aux, placed, rng = spawn(after, after_aux, rng)
            gained += reward + placed
            tried = 0
        return gained, rng

    @compiled
    def flat(
        rows: Array, board: Board, aux: np.uint64, rng: np.uint64, games: int, seconds: float, out: Array
    ) -> np.uint64:
        end, played = now() + seconds if seconds > 0 else math.inf, 0
        out[:] = 0.0
        while played < games and (seconds == 0 or played == 0 or now() < end):
            for action in range(4):
                after, after_aux, reward = slide(rows, board, aux, action)
                if after != board:
                    answer, answer_aux, placed, rng = spawn(after, after_aux, rng)
                    gained, rng = rollout(rows, answer, answer_aux, rng)
                    out[action] += reward + placed + gained
            played += 1
        for action in range(4):
            legal = slide(rows, board, aux, action)[0] != board
            out[action] = out[action] / played if legal else math.nan
        return rng

    return Rollouts(rollout, flat)
