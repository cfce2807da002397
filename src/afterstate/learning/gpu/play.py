"""Playing on the GPU without learning: thousands of games at once, one thread a game.

Game number i has the same generator of chance as on the CPU, so it is the same game whatever plays it. A thread that
finishes its game takes the next number, so the GPU stays busy until the last games.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from afterstate.games import Game
from afterstate.games.chance import seed_of
from afterstate.games.compiler import Array

from .arrange import Arrangement
from .machine import BLOCK, SIMULATED, cuda, device, float32, int32, int64, launched, thread_number
from .steps import Lesson, as_it_is, make_expectation, make_plain_worth

NOTHING, ALIVE = np.float32(0), np.float32(1)
NO_MOVE, NO_GAME = -1, -1
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


def make_after_value(lesson: Lesson) -> Callable[..., Any]:
    """after_value(weights, after, aux): the value of an afterstate, for networks of afterstates and of states."""
    part = make_expectation(lesson) if lesson.of_states else make_plain_worth(lesson)
    see = as_it_is if lesson.of_states or lesson.view is None else lesson.view
    by_age, age_of = lesson.by_age, lesson.age_of

    @device
    def after_value(weights: Array, after: np.uint64, aux: np.uint64) -> Any:
        """Summed pair by pair, as on the CPU: the same value to the last bit."""
        usual = weights[age_of(after, aux)] if by_age else NOTHING
        after, aux, scale = see(after, aux)
        low = (part(weights, after, aux, 0, 1) + part(weights, after, aux, 1, 1)) + (
            part(weights, after, aux, 2, 1) + part(weights, after, aux, 3, 1)
        )
        high = (part(weights, after, aux, 4, 1) + part(weights, after, aux, 5, 1)) + (
            part(weights, after, aux, 6, 1) + part(weights, after, aux, 7, 1)
        )
        return usual + (low + high) * scale

    return after_value


def make_greedy(lesson: Lesson, after_value: Callable[..., Any]) -> Callable[..., Any]:
    """The move with the largest r + max(0, value of the afterstate)."""
    slide = lesson.game.rules.slide

    @device
    def greedy(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        best, chosen = NOTHING, int32(NO_MOVE)
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            if after != board:
                value = float32(reward) + max(after_value(weights, after, after_aux), NOTHING)
                if chosen == NO_MOVE or value > best:
                    best, chosen = value, int32(action)
        return chosen

    return greedy


def make_reply(lesson: Lesson, after_value: Callable[..., Any]) -> Callable[..., Any]:
    """reply(weights, rows, board, aux): the value of a position by its best move; 0 when it is dead."""
    slide = lesson.game.rules.slide

    @device
    def reply(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        best = NOTHING
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            if after != board:
                value = float32(reward) + max(after_value(weights, after, after_aux), NOTHING) + ALIVE
                best = max(best, value)
        return best

    return reply


def make_two_layers(lesson: Lesson, after_value: Callable[..., Any]) -> Callable[..., Any]:
    """expectimax:2, the best move against every tile that may appear and the best reply to it."""
    game, by_aux = lesson.game, lesson.tables.by_aux
    slide, placements, draws = game.rules.slide, game.rules.placements, game.rules.draws
    reply = make_reply(lesson, after_value)
    most, most_draws = game.max_placements, game.max_draws

    @device
    def expected(weights: Array, rows: Array, after: np.uint64, aux: np.uint64) -> Any:
        boards, auxes = cuda.local.array(most, np.uint64), cuda.local.array(most, np.uint64)
        chances = cuda.local.array(most, np.float32)
        hints, hint_chances = cuda.local.array(most_draws, np.uint64), cuda.local.array(most_draws, np.float32)
        total = NOTHING
        for i in range(placements(after, aux, boards, auxes, chances)):
            if by_aux:
                for k in range(draws(boards[i], auxes[i], hints, hint_chances)):
                    total += chances[i] * hint_chances[k] * reply(weights, rows, boards[i], hints[k])
            else:
                total += chances[i] * reply(weights, rows, boards[i], auxes[i])
        return total

    @device
    def two_layers(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        best, chosen = NOTHING, int32(NO_MOVE)
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            if after != board:
                value = float32(reward) + expected(weights, rows, after, after_aux)
                if chosen == NO_MOVE or value > best:
                    best, chosen = value, int32(action)
        return chosen

    return two_layers


def make_play(game: Game, decide: Callable[..., Any], seen: Callable[..., Any] | None) -> Any:
    """The kernel that plays on. `seen(board, aux)` is the position on which a move is chosen, if not the real one."""
    start, slide, spawn = game.rules.start, game.rules.slide, game.rules.spawn
    value_of_board, largest, score_is_value = game.rules.value_of_board, game.rules.largest, game.score_is_value

    @device
    def choose(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        return decide(weights, rows, board, aux)

    if seen is not None:
        chosen_on = seen

        @device
        def choose_seen(weights: Array, rows: Array, board: np.uint64, aux: np.uint64) -> Any:
            board, aux = chosen_on(board, aux)
            return decide(weights, rows, board, aux)

        choose = choose_seen

    @device
    def deal(rows: Array, seed: np.uint64, number: int) -> Any:
        board, aux, rng = start(rows, seed_of(seed, np.uint64(number)))
        return board, aux, rng, value_of_board(board, aux) if score_is_value else int64(0)

    @launched
    def play(
        weights: Array, rows: Array, at: Boards, results: Array, taken: Array, seed: np.uint64, moves: int
    ) -> None:
        """Up to `moves` moves for every thread. `results` [games, 3]: score, moves, largest; `taken`: next number."""
        thread = thread_number()
        number = at.numbers[thread]
        board, aux, rng, score = at.boards[thread], at.auxes[thread], at.rngs[thread], at.scores[thread]
        made = at.moves[thread]
        for _ in range(moves):
            if number == NO_GAME:
                break
            if board == np.uint64(0):
                board, aux, rng, score = deal(rows, seed, number)
                made = int64(0)
            action = choose(weights, rows, board, aux)
            if action == NO_MOVE:
                results[number, 0], results[number, 1], results[number, 2] = score, made, largest(board, aux)
                number = cuda.atomic.add(taken, 0, 1)
                if number >= results.shape[0]:
                    number = int64(NO_GAME)
                board = np.uint64(0)
            else:
                after, after_aux, reward = slide(rows, board, aux, action)
                board, aux, placed, rng = spawn(after, after_aux, rng)
                score += reward + placed
                made += 1
        at.numbers[thread], at.boards[thread], at.auxes[thread] = number, board, aux
        at.rngs[thread], at.scores[thread], at.moves[thread] = rng, score, made

    return play


@cache
def play_kernel(lesson: Lesson, layers: int, seen: Callable[..., Any] | None) -> Any:
    """The kernel of a player, made once."""
    decide = (make_greedy if layers == 1 else make_two_layers)(lesson, make_after_value(lesson))
    return make_play(lesson.game, decide, seen)


class GpuPlayer:
    """Plays games 0, 1, 2, … under a seed. Weights of the CPU are brought over, those of a learner lie there."""

    def __init__(self, lesson: Lesson, layers: int, weights: Any, seen: Callable[..., Any] | None = None) -> None:
        self.kernel = play_kernel(lesson, layers, seen)
        self.rows = cuda.to_device(np.array(lesson.game.rows))
        self.weights = weights
        if isinstance(weights, np.ndarray):
            self.weights = cuda.device_array(weights.size, np.float32)
            Arrangement(lesson.evaluator).to_gpu(self.weights, weights)
        self.moves_a_launch = MOVES_A_LAUNCH if layers == 1 else MOVES_A_LAUNCH // 16

    def play(
        self, games: int, seed: int = 1, watch: Callable[[Array], bool] | None = None, at_once: int = GAMES_AT_ONCE
    ) -> Array:
        """results [games, 3]: score, moves and largest tile of each game.

        `watch(results)` sees the results so far (unfinished games are 0) and stops the play by returning False.
        """
        first = min(at_once, games)
        threads = -(-first // BLOCK) * BLOCK
        numbers = np.arange(threads, dtype=np.int64)
        numbers[first:] = NO_GAME
        words = [np.zeros(threads, np.uint64) for _ in range(3)] + [np.zeros(threads, np.int64) for _ in range(2)]
        at = Boards(*(cuda.to_device(array) for array in (numbers, *words)))
        results = cuda.to_device(np.zeros((games, 3), np.int64))
        taken = cuda.to_device(np.array([first], np.int64))
        while True:
            self.kernel[threads // BLOCK, BLOCK](
                self.weights, self.rows, at, results, taken, np.uint64(seed), self.moves_a_launch
            )
            ended = bool((at.numbers.copy_to_host() == NO_GAME).all())
            if ended or (watch is not None and not watch(results.copy_to_host())):
                return np.asarray(results.copy_to_host())
