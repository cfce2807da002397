"""The games in flight: how they begin, go on and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import LANES, cuda, device, float32, uint64
from tilesage.gpu.memory import zeros
from tilesage.learning.ahead import make_ahead

GAMES, SCORE, BEST, REPLAYS, IDLE, TILES = range(6)  # places in `stats`; then a count a tile
STATS = 48
ZERO, ONE, NONE_GIVEN = np.uint64(0), np.uint64(1), np.int32(0)


class Traces(NamedTuple):
    """TD(λ): afterstates that wait for the errors of the next moves, a ring for each game."""

    boards: Any  # [history, games] uint64, as the tables see them
    auxes: Any  # [history, games] uint64
    targets: Any  # [history, games] float32, the value when it was chosen and the errors since
    ages: Any  # [history, games] uint64
    firsts: Any  # [games] int32, where the oldest one is
    lengths: Any  # [games] int32


class Slots(NamedTuple):
    """The games in flight, one slot each. `before` is the position whose value is learnt next."""

    boards: Any  # [games] uint64
    auxes: Any  # [games] uint64
    rngs: Any  # [games] uint64
    before: Any  # [games] uint64, 0 when a game has just begun; an afterstate as the tables see it
    before_auxes: Any  # [games] uint64
    values: Any  # [games] float32, what the tables say of `before`
    gains: Any  # [games] float32, reward since `before`
    scores: Any  # [games] int32
    given: Any  # [games] int32, tiles of the stages that the game began with
    hit: Any  # [games] uint64, the position collected in this step
    hit_auxes: Any  # [games] uint64
    ages: Any  # [games] uint64, the place of the age of `before` (networks by age)
    hit_ages: Any  # [games] uint64, that place if this game owns it in this step, else 0
    worst: Any  # [games] float32, the largest error since somebody looked
    owned: Any  # [games × 8] uint8 or int32, the weights that each lane owns in this step
    traces: Traces


def new_slots(lesson: Lesson, games: int) -> Slots:
    """Room for so many games in flight."""
    owned = "b" if len(lesson.evaluator.layout.tables) <= LANES else "i"
    waiting = games if lesson.history > 1 else 1
    traces = [*(zeros(kind, lesson.history, waiting) for kind in "uufu"), *(zeros("i", waiting) for _ in range(2))]
    arrays = [zeros(kind, games) for kind in "uuuuuffiiuuuuf"]
    return Slots._make([*arrays, zeros(owned, LANES * games), Traces._make(traces)])


class Playing(NamedTuple):
    """What one thread does with a slot."""

    begin: Callable[..., Any]  # (rows, g, slots, rng): a new game
    go_on: Callable[..., Any]  # (g, slots, after, aux, reward) -> what the tile that lands is worth
    finish: Callable[..., Any]  # (rows, g, slots, stats): count the game, and begin a new one


def playing(lesson: Lesson) -> Playing:
    """By the rules of a game; every second game may begin with tiles of the stages (learning/ahead.py)."""
    rules, score_is_value, ahead = lesson.game.rules, lesson.game.score_is_value, lesson.ahead
    start, spawn, largest, value_of_board = rules.start, rules.spawn, rules.largest, rules.value_of_board
    begin_ahead = make_ahead(lesson.game, lesson.evaluator.network.stages)

    @device
    def begin(rows: Array, g: np.uint64, slots: Slots, rng: np.uint64) -> None:
        given = NONE_GIVEN
        if ahead:
            board, aux, rng, given = begin_ahead(rows, rng)
        else:
            board, aux, rng = start(rows, rng)
        slots.boards[g], slots.auxes[g], slots.rngs[g], slots.given[g] = board, aux, rng, given
        slots.scores[g], slots.before[g] = value_of_board(board, aux) if score_is_value else 0, ZERO

    @device
    def go_on(g: np.uint64, slots: Slots, after: np.uint64, aux: np.uint64, reward: int) -> Any:
        slots.boards[g], slots.auxes[g], placed, slots.rngs[g] = spawn(after, aux, slots.rngs[g])
        slots.scores[g] += reward + placed
        return float32(placed)

    @device
    def finish(rows: Array, g: np.uint64, slots: Slots, stats: Array) -> None:
        """Only games from the beginning tell how well it goes."""
        if slots.given[g] != 0:
            cuda.atomic.add(stats, REPLAYS, ONE)
        else:
            score = uint64(slots.scores[g])
            cuda.atomic.add(stats, GAMES, ONE)
            cuda.atomic.add(stats, SCORE, score)
            cuda.atomic.max(stats, BEST, score)
            cuda.atomic.add(stats, TILES + largest(slots.boards[g], slots.auxes[g]), ONE)
        begin(rows, g, slots, slots.rngs[g])

    return Playing(begin, go_on, finish)
