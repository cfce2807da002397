"""Players whose values come from a Python function (networks/outside.py): the compiled searches, which stop to ask.

Expectimax runs until it has met every board that it needs, puts the questions all at once, and runs again. A tree
search asks before each position that it adds, for the four moves of it together.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import Game, State
from tilesage.networks.functions import make_weigh
from tilesage.networks.outside import BatchValue, OutsideValue, answers_in, value_function
from tilesage.search import mcts
from tilesage.search.agents import Agent, CompiledAgent, Thought
from tilesage.search.python_players import PythonAgent
from tilesage.search.specs import Spec

Think: TypeAlias = Callable[[State], Thought]


def outside_agent(spec: Spec, game: Game, value: OutsideValue) -> Agent:
    """The player that searches on a value function of the user."""
    agent = spec.row.build(spec, game, value)
    assert isinstance(agent, CompiledAgent)
    agent = replace(agent, model=None)
    if not isinstance(value, BatchValue):
        return agent
    if spec.unit in ("s", "nodes") and spec.name != "mcts":  # what is spent on the way to a question would count
        raise InputError(f"{spec.text!r} has a budget, which a Python function cannot keep: write layers, or deep")
    think, alone = (asking_tree if spec.name == "mcts" else asking_search)(game, value, agent), threading.Lock()

    @functools.wraps(value.function, updated=())  # so that an error is told with the line of the user's function
    def ask(state: State) -> int:
        with alone:
            return think(state).action

    @functools.wraps(value.function, updated=())
    def opinion(state: State) -> list[float | None]:
        with alone:
            return think(state).values

    return PythonAgent(spec.text, game, ask, opinion, None)


def asking_search(game: Game, value: BatchValue, agent: CompiledAgent) -> Think:
    """Greedy and expectimax."""
    memory = agent.new_memory()
    answers = answers_in(memory)

    def think(state: State) -> Thought:
        answers.clear()  # the function may have learnt since the last move
        found = agent.think(state, memory)
        while answers.settle(lambda boards, auxes: value.of_boards(game, boards, auxes)):
            found = agent.think(state, memory)
        return found

    return think


def asking_tree(game: Game, value: BatchValue, agent: CompiledAgent) -> Think:
    """Monte Carlo tree search, its values at the leaves; what it knows of the next position is kept."""
    code = value_function(value, game).code
    search, weigh = mcts.build(game, code), make_weigh(game, code)
    memory = mcts.SearchState(*agent.new_memory())
    rows, weights, notes, tree, (iterations, seconds, _) = memory
    answers, moves = answers_in(memory), np.zeros(4)

    def ask(boards: Array, auxes: Array) -> Array:
        return value.of_boards(game, boards, auxes)

    def evaluate(board: np.uint64, aux: np.uint64) -> None:
        """Know the values of all moves of a position."""
        answers.clear()
        weigh(rows, weights, notes, board, aux, moves)
        while answers.settle(ask):
            weigh(rows, weights, notes, board, aux, moves)

    def think(state: State) -> Thought:
        rng, end = state.rng, time.monotonic() + seconds if seconds else np.inf
        evaluate(state.board, state.aux)
        search.begin(memory, state.board, state.aux)
        for _ in range(int(iterations)):
            if time.monotonic() >= end:
                break
            _, new, board, aux, _ = search.select(memory, rng)
            if new:
                evaluate(np.uint64(board), np.uint64(aux))
            rng = np.uint64(search.iterate(memory, rng))
        out = np.zeros(4)
        mcts.root_values(tree, out)
        values = [None if np.isnan(one) else state.score + float(one) for one in out]
        return Thought(int(mcts.most_visited(tree)), values)

    return think
