"""Players whose values come from a Python function (values/outside.py): the compiled searches, which stop to ask.

Expectimax runs until it has met every board that it needs, puts the questions all at once, and runs again. A tree
search asks before each position that it adds, for the four moves of it together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from afterstate.games import Game, Mistake, State
from afterstate.games.chance import seed_of
from afterstate.games.compiler import Array
from afterstate.values.functions import make_weigh
from afterstate.values.outside import Answers, BatchValue, OutsideValue, answers_in, value_function

from .agents import Agent, Memory, agent_on
from .mcts import SIZE, make_mcts
from .specs import Spec

if TYPE_CHECKING:
    Think = Callable[[Memory, Answers, State], Any]


@dataclass(frozen=True, eq=False)
class AskingAgent:
    """A player of one game that asks a Python function; used like an `Agent`, one position at a time."""

    spec: str
    game: Game
    value: BatchValue
    new_memory: Callable[[], Memory]
    action_of: Callable[[Memory, State], int]
    values_of: Callable[[Memory, State], list[float | None]]

    def __repr__(self) -> str:
        return f"AskingAgent({self.spec!r}, {self.game!r}, {self.value!r})"

    def choose(self, state: State, memory: Memory | None = None) -> int:
        """The move for this position; NO_MOVE when the game is over."""
        return self.action_of(self.new_memory() if memory is None else memory, state)

    def values(self, state: State, memory: Memory | None = None) -> list[float | None]:
        """The expected final score of each of the four moves; None where illegal."""
        return self.values_of(self.new_memory() if memory is None else memory, state)


def outside_agent(spec: Spec, game: Game, value: OutsideValue) -> Agent | AskingAgent:
    """The player that searches on a value function of the user."""
    agent = replace(agent_on(spec, game, value), model=None)
    if not isinstance(value, BatchValue):
        return agent
    if spec.name == "mcts":
        return asking_tree(spec, game, value, agent)
    if spec.unit in ("s", "nodes"):  # what is spent on the way to a question would count
        raise Mistake(f"{spec.text!r} has a budget, which a Python function cannot keep: write layers, or deep")
    return asking_search(spec, game, value, agent)


def asking_search(spec: Spec, game: Game, value: BatchValue, agent: Agent) -> AskingAgent:
    """Greedy and expectimax."""

    def ask(boards: Array, auxes: Array) -> Array:
        return value.of_boards(game, boards, auxes)

    def settled(think: Callable[[State, Memory], Any]) -> Callable[[Memory, State], Any]:
        def run(memory: Memory, state: State) -> Any:
            answers = answers_in(memory)
            answers.clear()  # the function may have learnt since the last move
            found = think(state, memory)
            while answers.settle(ask):
                found = think(state, memory)
            return found

        return run

    return AskingAgent(spec.text, game, value, agent.new_memory, settled(agent.choose), settled(agent.values))


def asking_tree(spec: Spec, game: Game, value: BatchValue, agent: Agent) -> AskingAgent:
    """Monte Carlo tree search, its values at the leaves."""
    function = value_function(value, game)
    tools, weigh = make_mcts(game, function), make_weigh(game, function)

    def ask(boards: Array, auxes: Array) -> Array:
        return value.of_boards(game, boards, auxes)

    def grow(memory: Memory, state: State) -> Memory:
        rows, weights, notes, tree, (iterations, seconds, c) = memory
        answers, moves, rng = answers_in(memory), np.zeros(4), np.uint64(seed_of(state.rng, np.uint64(1)))
        end = time.monotonic() + seconds if seconds else np.inf

        def evaluate(board: np.uint64, aux: np.uint64) -> None:
            """Know the values of all moves of a position."""
            answers.clear()
            weigh(rows, weights, notes, board, aux, moves)
            while answers.settle(ask):
                weigh(rows, weights, notes, board, aux, moves)

        evaluate(state.board, state.aux)
        tools.begin(rows, weights, notes, tree, state.board, state.aux, int(iterations))
        for _ in range(int(iterations)):
            if tree.meter[SIZE] == tree.boards.size or time.monotonic() >= end:
                break
            _, new, board, aux, _ = tools.descend(rows, tree, rng, c)
            if new:
                evaluate(np.uint64(board), np.uint64(aux))
            rng = np.uint64(tools.iterate(rows, weights, notes, tree, rng, c))
        return memory

    def action_of(memory: Memory, state: State) -> int:
        return int(tools.most_visited(grow(memory, state)[3]))

    def values_of(memory: Memory, state: State) -> list[float | None]:
        out = np.zeros(4)
        tools.root_values(grow(memory, state)[3], out)
        return [None if np.isnan(value) else state.score + float(value) for value in out]

    return AskingAgent(spec.text, game, value, agent.new_memory, action_of, values_of)
