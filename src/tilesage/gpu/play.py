"""Playing on the GPU without learning: thousands of games at once, one thread a game.

Game number i has the same generator of chance as on the CPU, so it is the same game whatever plays it. A thread that
finishes its game takes the next number, so the GPU stays busy until the last games.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import seed_of
from tilesage.games import Game
from tilesage.gpu.arrange import Arrangement
from tilesage.gpu.lesson import Lesson, after_value
from tilesage.gpu.machine import (
    BLOCK,
    SIMULATED,
    cuda,
    device,
    float32,
    int32,
    int64,
    launched,
    thread_number,
    uint64,
)
from tilesage.gpu.memory import check_room

NOTHING, ZERO = np.float32(0), np.uint64(0)
NO_MOVE, NO_GAME, UNFINISHED = -1, -1, -1
GAMES_AT_ONCE = BLOCK if SIMULATED else 1 << 16
MOVES_A_LAUNCH = 1024


class Boards(NamedTuple):
    """The games being played, one a thread."""

    numbers: Any  # [threads] int64, NO_GAME when there is none left
    boards: Any  # [threads] uint64
    auxes: Any  # [threads] uint64
    rngs: Any  # [threads] uint64
    scores: Any  # [threads] int64
    moves: Any  # [threads] int64


@cache
def whole_games(game: Game) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """deal(rows, at, place, seed): the start of the game that this place has the number of;
    move(rows, at, place, action, results, taken): play on, or note how the game ended and take the next number.
    """
    start, slide, spawn, largest = game.rules.start, game.rules.slide, game.rules.spawn, game.rules.largest
    value_of_board, score_is_value = game.rules.value_of_board, game.score_is_value

    @device
    def deal(rows: Array, at: Boards, place: Any, seed: np.uint64) -> None:
        board, aux, rng = start(rows, seed_of(seed, np.uint64(at.numbers[place])))
        at.boards[place], at.auxes[place], at.rngs[place] = board, aux, rng
        at.scores[place] = value_of_board(board, aux) if score_is_value else int64(0)
        at.moves[place] = int64(0)

    @device
    def move(rows: Array, at: Boards, place: Any, action: int, results: Array, taken: Array) -> None:
        board, aux = at.boards[place], at.auxes[place]
        if action == NO_MOVE:
            number = at.numbers[place]
            results[number, 0], results[number, 1] = at.scores[place], at.moves[place]
            results[number, 2] = largest(board, aux)
            number = cuda.atomic.add(taken, 0, 1)
            at.numbers[place] = number if number < results.shape[0] else int64(NO_GAME)
            at.boards[place] = ZERO
        else:
            after, after_aux, reward = slide(rows, board, aux, action)
            at.boards[place], at.auxes[place], placed, at.rngs[place] = spawn(after, after_aux, at.rngs[place])
            at.scores[place] += reward + placed
            at.moves[place] += 1

    return deal, move


@compiled
def itself(board: np.uint64, aux: np.uint64) -> tuple[np.uint64, np.uint64]:
    return board, aux


@cache
def greedy_kernel(lesson: Lesson, seen: Callable[..., Any] | None) -> Any:
    """The kernel of a greedy player. `seen(board, aux)` is the position that it looks at, if not the real one."""
    slide, value_of, see = lesson.game.rules.slide, after_value(lesson), seen or itself
    deal, move = whole_games(lesson.game)

    @device
    def greedy(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        """The move with the largest r + max(0, value of the afterstate)."""
        best, chosen = NOTHING, int32(NO_MOVE)
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            if after != board:
                value = float32(reward) + max(value_of(weights, after, after_aux), NOTHING)
                if chosen == NO_MOVE or value > best:
                    best, chosen = value, int32(action)
        return chosen

    @launched
    def play(
        weights: Array, rows: Array, at: Boards, results: Array, taken: Array, seed: np.uint64, moves: int
    ) -> None:
        """Up to `moves` moves for every thread. `results` [games, 3]: score, moves, largest; `taken`: next number."""
        place = uint64(thread_number())
        for _ in range(moves):
            if at.numbers[place] == NO_GAME:
                break
            if at.boards[place] == ZERO:
                deal(rows, at, place, seed)
            board, aux = see(at.boards[place], at.auxes[place])
            move(rows, at, place, greedy(weights, rows, board, aux), results, taken)

    return play


class GpuPlayer:
    """Plays games 0, 1, 2, … under a seed, greedily. Weights of the CPU are brought over, a learner's lie there."""

    at_once = GAMES_AT_ONCE

    def __init__(self, lesson: Lesson, weights: Any, seen: Callable[..., Any] | None = None) -> None:
        self.lesson, self.seen = lesson, seen
        self.rows = cuda.to_device(np.array(lesson.game.rows))
        self.weights = weights
        if isinstance(weights, np.ndarray):
            check_room(2 * weights.nbytes, lesson.evaluator.network.name, "take a smaller network")
            self.weights = cuda.device_array(weights.size, np.float32)
            Arrangement(lesson.evaluator).to_gpu(self.weights, weights)
        self.moves_a_launch = MOVES_A_LAUNCH

    def mover(self, at: Boards, results: Any, taken: Any, seed: int) -> Callable[[], None]:
        """What makes the next moves of these games, each time it is called."""
        kernel, blocks = greedy_kernel(self.lesson, self.seen), at.numbers.size // BLOCK

        def make_moves() -> None:
            kernel[blocks, BLOCK](self.weights, self.rows, at, results, taken, np.uint64(seed), self.moves_a_launch)

        return make_moves

    def play(
        self, games: int, seed: int = 1, watch: Callable[[Array], bool] | None = None, at_once: int | None = None
    ) -> Array:
        """results [games, 3]: score, moves and largest tile of each game.

        `watch(results)` sees the results so far (-1 of unfinished games) and stops the play by returning False.
        """
        first = min(at_once or self.at_once, games)
        threads = -(-first // BLOCK) * BLOCK
        numbers = np.arange(threads, dtype=np.int64)
        numbers[first:] = NO_GAME
        words = [np.zeros(threads, np.uint64) for _ in range(3)] + [np.zeros(threads, np.int64) for _ in range(2)]
        at = Boards(*(cuda.to_device(array) for array in (numbers, *words)))
        results = cuda.to_device(np.full((games, 3), UNFINISHED, np.int64))
        taken = cuda.to_device(np.array([first], np.int64))
        make_moves = self.mover(at, results, taken, seed)
        while True:
            make_moves()
            ended = bool((at.numbers.copy_to_host() == NO_GAME).all())
            if ended or (watch is not None and not watch(results.copy_to_host())):
                return np.asarray(results.copy_to_host())
