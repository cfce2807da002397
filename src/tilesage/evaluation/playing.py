"""One loop plays all games: those that are counted, those that are watched, those that advice is taken from.

A game in the loop is a row of numbers: where it stands, the generators of chance and of the player's dice, how many
moves it took. Callers write the rows, say when to stop, and read the rows. The loop is compiled for compiled players;
for players in plain Python it is a loop in Python around a compiled step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, compiled, shared
from tilesage.core.random import seed_of
from tilesage.games import Game, State
from tilesage.games.board import Whole
from tilesage.games.legal import legal_of, moving_rows
from tilesage.games.state import LEGAL
from tilesage.search.agents import CHOICE, Agent, CompiledAgent, Memory
from tilesage.search.python_players import PythonAgent

LONGEST_GAME = 1 << 18  # moves: 131072 cannot take more
LOOPS = 64  # of agents, found without looking at their code
PLAYER_STREAMS = np.uint64(1 << 63)
# The columns of a row. LARGEST is the index of the largest tile once the game is over, and 0 before.
BOARD, AUX, SCORE, CHANCE, DICE, MOVES, LARGEST, COLUMNS = range(8)


@compiled
def chance_in(seed: np.uint64, index: Whole) -> np.uint64:
    """The generator of chance in game `index` under `seed`."""
    return seed_of(seed, np.uint64(index))


@compiled
def dice_in(seed: np.uint64, index: Whole) -> np.uint64:
    """The generator of the player's own dice in that game."""
    return seed_of(seed, np.uint64(index) | PLAYER_STREAMS)


@cache
def dealer_of(game: Game) -> Callable[..., Any]:
    """The loop that writes the starts of games `first`, `first` + 1, … into rows."""
    start, value_of_board, score_is_value = game.rules.start, game.rules.value_of_board, game.score_is_value

    @compiled(title=f"the starts of {game.title}")
    def deal(rows: Array, seed: np.uint64, first: int, places: Array) -> None:
        for i in range(len(places)):
            board, aux, chance = start(rows, chance_in(seed, first + i))
            places[i, BOARD], places[i, AUX], places[i, CHANCE] = board, aux, chance
            places[i, SCORE] = np.uint64(value_of_board(board, aux)) if score_is_value else np.uint64(0)
            places[i, DICE] = dice_in(seed, first + i)

    return deal


def row_of(state: State) -> Array:
    """A position as a row; the player's dice are those of the position."""
    places = np.zeros(COLUMNS, np.uint64)
    places[:DICE] = state.board, state.aux, np.uint64(state.score), state.rng
    places[DICE], places[MOVES] = np.uint64(seed_of(state.rng, CHOICE)), np.uint64(state.moves)
    return places


def state_of(game: Game, place: Array) -> State:
    """The position in a row."""
    return State(game, place[BOARD], place[AUX], int(place[SCORE]), int(place[MOVES]), place[CHANCE])


def loop_of(agent: Agent) -> Callable[..., None]:
    """The loop of this agent: (memory, places, before, actions, most, seconds, by_position, until, stop).

    It plays the games in the rows of `places`, one after another: each to its end, or until it took `most` moves, or
    until the loop took so many seconds, or `stop[0]` is set, at which the loop ends. `before` becomes the position
    before the last move. Where there is room for `actions`, the moves of all games are written there in a row; a game
    is not begun when fewer than `most` of them would fit. `by_position`: the player rolls the dice of each position,
    as `agent.choose` does, instead of going on with its own. `until`: a game also ends when it has this tile (index).
    """
    if isinstance(agent, PythonAgent):
        return _python_loop(agent)
    assert isinstance(agent, CompiledAgent)
    return partial(_with_rows, _compiled_loop(agent.game, agent.decide, agent.spec), agent.game.rows)


def _with_rows(loop: Callable[..., None], rows: Array, memory: Memory, *words: Any) -> None:
    loop(memory, rows, np.zeros(4), *words)


@lru_cache(maxsize=LOOPS)
def _compiled_loop(game: Game, decide: Callable[..., Any], spec: str) -> Callable[..., None]:
    slide, spawn, largest_tile = game.rules.slide, game.rules.spawn, game.rules.largest

    @compiled(title=f"games of {game.title} for {spec}")
    def play(
        memory: Memory,
        rows: Array,
        values: Array,
        places: Array,
        before: Array,
        actions: Array,
        most: int,
        seconds: float,
        by_position: bool,
        until: int,
        stop: Array,
    ) -> None:
        end, timed, used = now() + seconds, seconds < math.inf, np.int64(0)
        for number in range(len(places)):
            if actions.size and used + most > actions.size:
                return
            board, aux, score = places[number, BOARD], places[number, AUX], np.int64(places[number, SCORE])
            chance, dice = places[number, CHANCE], places[number, DICE]
            old_board, old_aux, old_score, old_chance = board, aux, score, chance
            moves, over = np.int64(0), False
            while moves < most and not stop[0]:
                if until and largest_tile(board, aux) >= until:
                    over = True
                    break
                if by_position:
                    dice = seed_of(chance, CHOICE)
                action, dice = decide(memory, board, aux, score, dice, values)
                if action < 0:
                    over = True
                    break
                old_board, old_aux, old_score, old_chance = board, aux, score, chance
                after, after_aux, reward = slide(rows, board, aux, action)
                board, aux, placed, chance = spawn(after, after_aux, chance)
                score += reward + placed
                if actions.size:
                    actions[used + moves] = action
                moves += 1
                if timed and now() >= end:
                    break
            before[BOARD], before[AUX], before[SCORE], before[CHANCE] = old_board, old_aux, old_score, old_chance
            places[number, BOARD], places[number, AUX], places[number, SCORE] = board, aux, score
            places[number, CHANCE], places[number, DICE] = chance, dice
            places[number, MOVES] += np.uint64(moves)
            before[MOVES] = places[number, MOVES] - np.uint64(moves > 0)
            used += moves
            if not over:
                return
            places[number, LARGEST] = largest_tile(board, aux)

    return shared(play)


@cache
def _stepper(game: Game) -> Callable[..., Whole]:
    """One move of a game in a row: slide, let chance answer, and tell which moves are legal then, as four bits."""
    slide, spawn, legal = game.rules.slide, game.rules.spawn, legal_of(game)

    @compiled(title=f"single moves of {game.title}")
    def step(rows: Array, moving: Array, place: Array, action: int) -> Whole:
        after, after_aux, reward = slide(rows, place[BOARD], place[AUX], action)
        board, aux, placed, chance = spawn(after, after_aux, place[CHANCE])
        place[BOARD], place[AUX], place[CHANCE] = board, aux, chance
        place[SCORE] += np.uint64(reward + placed)
        place[MOVES] += np.uint64(1)
        place[DICE] = seed_of(chance, CHOICE)
        return np.int64(legal(rows, moving, board, aux))

    return step


def _python_loop(agent: PythonAgent) -> Callable[..., None]:
    """The same loop for a player in plain Python, which sees positions without the generator of chance."""
    game, step, legal, ask = agent.game, _stepper(agent.game), legal_of(agent.game), agent.move
    rows, moving = game.rows, moving_rows(game)
    step(rows, moving, row_of(game.new()), game.new().legal[0])  # compiled before anybody looks at the clock

    def play(
        memory: Memory,
        places: Array,
        before: Array,
        actions: Array,
        most: int,
        seconds: float,
        by_position: bool,
        until: int,
        stop: Array,
    ) -> None:
        end, used = time.perf_counter() + seconds, 0
        for place in places:
            if actions.size and used + most > actions.size:
                return
            place[DICE] = seed_of(place[CHANCE], CHOICE)
            bits, moves, begun = int(legal(rows, moving, place[BOARD], place[AUX])), 0, int(place[MOVES])
            before[:] = place
            while bits and moves < most and not stop[0]:
                board, aux, score, _, dice = place[:MOVES]
                state = State(game, board, aux, int(score), begun + moves, dice)
                state.__dict__["legal"] = LEGAL[bits]
                action = ask(state)
                before[:] = place
                bits = int(step(rows, moving, place, action))
                if until and game.rules.largest(place[BOARD], place[AUX]) >= until:
                    bits = 0
                if actions.size:
                    actions[used + moves] = action
                moves += 1
                if time.perf_counter() >= end:
                    break
            used += moves
            if bits:
                return
            place[LARGEST] = game.rules.largest(place[BOARD], place[AUX])

    return play


class Playing:
    """An agent at its games, with one memory for all of them."""

    def __init__(self, agent: Agent, memory: Memory | None = None) -> None:
        self.agent, self.loop = agent, loop_of(agent)
        self.memory = agent.new_memory() if memory is None else memory

    def finish(self, places: Array, actions: Array, stop: Array, until: int = 0) -> None:
        """Play the games in these rows to their ends, or until they have this tile.

        Each has its own dice from the first move to the last.
        """
        before = np.zeros(COLUMNS, np.uint64)
        self.loop(self.memory, places, before, actions, LONGEST_GAME, math.inf, False, until, stop)

    def go_on(self, state: State, most: int, seconds: float) -> tuple[State, State, bytes]:
        """Up to `most` moves from here: the position before the last move, the one after it, and all actions.

        Every move is the one that `agent.choose` makes in its position, so a game is the same at any speed.
        """
        places, before = row_of(state).reshape(1, -1), np.zeros(COLUMNS, np.uint64)
        actions = np.zeros(most, np.uint8)
        self.loop(self.memory, places, before, actions, most, seconds, True, 0, np.zeros(1, np.int64))
        made = int(places[0, MOVES]) - state.moves
        return state_of(state.game, before), state_of(state.game, places[0]), actions[:made].tobytes()
