"""A stretch of one game, compiled as one piece: what somebody sees who watches a player at full speed.

Every move is the one that `agent.choose` makes in that position, so a game is the same at any speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..games import State
from ..games.chance import seed_of
from ..games.compiler import Array, compiled
from ..search.agents import Agent, Memory
from ..search.clock import now

BOARD, AUX, SCORE, RNG = 0, 1, 2, 3  # columns of `places`
NOW, BEFORE = 0, 1  # rows of `places`: where the game stands, and where it stood a move earlier
CHOICE = np.uint64(1)  # the stream of a player's dice, as in `Agent.choose`


def make_stretch(agent: Agent) -> Callable[..., Any]:
    """The loop of this agent: (memory, rows, places, actions, seconds) -> moves played."""
    decide, slide, spawn = agent.decide, agent.game.rules.slide, agent.game.rules.spawn
    title = f"games of {agent.game.title} for {agent.spec} to watch"

    @compiled(title=title)
    def stretch(memory: Memory, rows: Array, places: Array, actions: Array, seconds: float) -> int:
        """Play until the game ends, the room for actions is full, or the time is over."""
        end, moves = now() + seconds, 0
        while moves < len(actions):
            board, aux, score, rng = places[NOW, BOARD], places[NOW, AUX], places[NOW, SCORE], places[NOW, RNG]
            action, _ = decide(memory, board, aux, np.int64(score), seed_of(rng, CHOICE))
            if action < 0:
                break
            after, after_aux, reward = slide(rows, board, aux, action)
            next_board, next_aux, placed, next_rng = spawn(after, after_aux, rng)
            for column in range(4):
                places[BEFORE, column] = places[NOW, column]
            places[NOW, BOARD], places[NOW, AUX], places[NOW, RNG] = next_board, next_aux, next_rng
            places[NOW, SCORE] = score + np.uint64(reward + placed)
            actions[moves] = action
            moves += 1
            if now() >= end:
                break
        return moves

    return stretch


class Runner:
    """Plays stretches with one agent and one memory."""

    def __init__(self, agent: Agent, memory: Memory) -> None:
        self.agent, self.memory = agent, memory
        self.loop = make_stretch(agent)

    def run(self, state: State, most: int, seconds: float) -> tuple[State, State, bytes]:
        """Up to `most` moves from here: the position before the last move, the one after it, and all actions."""
        places = np.zeros((2, 4), np.uint64)
        places[NOW] = places[BEFORE] = (state.board, state.aux, np.uint64(state.score), state.rng)
        actions = np.zeros(most, np.uint8)
        moves = int(self.loop(self.memory, state.game.rows, places, actions, seconds))
        before, after = (
            State(state.game, row[BOARD], row[AUX], int(row[SCORE]), state.moves + count, row[RNG])
            for row, count in ((places[BEFORE], max(0, moves - 1)), (places[NOW], moves))
        )
        return before, after, actions[:moves].tobytes()
