"""Agents as visitors meet them: named by a word, limited in how long they may think."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from ... import games
from ...games import Mistake, State
from ...search.agents import Agent, make_agent, needs_model
from .library import Library

MENU = (  # what the page offers; the API takes any agent within the limits
    ("expectimax:2", "expectimax:2"),
    ("expectimax:3", "expectimax:3"),
    ("expectimax:200ms", "expectimax:200ms"),
    ("greedy", "greedy"),
    ("mcts:400", "mcts:400 (tree search)"),
    ("mcts:1s", "mcts:1s (tree search)"),
    ("rollouts:100", "rollouts:100"),
    ("random", "random"),
)
AGENT = re.compile(r"(random|greedy|expectimax|mcts|rollouts)(?::(\d{1,6})(ms|s)?)?")
MOST = {"expectimax": 4, "mcts": 20_000, "rollouts": 2_000}  # layers, iterations, games


class Thought(NamedTuple):
    """The expected final score of each action (None: not legal), the best of them, the time it took."""

    values: list[float | None]
    best: int
    seconds: float


def check_agent(spec: str, think_seconds: float) -> str:
    """The agent's word, if it is one and thinks within the limits.

    >>> check_agent("expectimax:2", 2.0)
    'expectimax:2'
    """
    known = AGENT.fullmatch(spec)
    if not known:
        raise Mistake(
            "agent must be such as greedy, expectimax:2, expectimax:200ms, mcts:400, rollouts:100 or random"
        )
    kind, amount, unit = known.groups()
    if unit:
        seconds = int(amount) / (1000 if unit == "ms" else 1)
        if not 0 < seconds <= think_seconds:
            raise Mistake(f"an agent may think up to {think_seconds:g} s a move here")
    elif amount and not 1 <= int(amount) <= MOST.get(kind, 0):
        raise Mistake(
            f"{kind} takes a number from 1 to {MOST[kind]} here" if kind in MOST else f"{kind} takes no number"
        )
    return spec


class Player:
    """An agent with its memory (tables, trees), used by one visitor at a time."""

    def __init__(self, spec: str, agent: Agent) -> None:
        self.spec, self.agent, self.memory = spec, agent, agent.new_memory()

    def values(self, state: State) -> list[float | None]:
        return self.agent.values(state, self.memory)

    def choose(self, state: State) -> int:
        return self.agent.choose(state, self.memory)

    def think(self, state: State) -> Thought:
        """One thought gives the values and the move, which is the best of them; some agents only have a move."""
        if state.over:
            raise Mistake("no move is legal here: the game is over")
        began = time.perf_counter()
        values = self.values(state)
        known = [(value, action) for action, value in enumerate(values) if value is not None]
        best = max(known)[1] if known else self.choose(state)
        return Thought(values, best, time.perf_counter() - began)


def make_player(library: Library, game: str, spec: str, model: str) -> Player:
    """The agent of this word; a model is opened only for those who read one."""
    known = library.open_model(model, game) if needs_model(spec) else None
    return Player(spec, make_agent(spec, known.game if known else games.get(game), known))
