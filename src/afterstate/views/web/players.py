"""Agents as visitors meet them: named by a word, limited in how long they may think."""

from __future__ import annotations

import math
import threading
import time
from typing import NamedTuple

from ... import games
from ...arena.stretch import Runner
from ...games import Mistake, State
from ...search.agents import Agent, make_agent, needs_model
from ...search.specs import parse_spec
from ...values.files import Model
from .library import Library

MENU = (  # what the page offers; the API takes any agent within the limits
    ("best", "best (deep search)"),
    ("expectimax:2", "expectimax:2"),
    ("expectimax:3", "expectimax:3"),
    ("expectimax:deep", "expectimax:deep"),
    ("expectimax:200ms", "expectimax:200ms"),
    ("greedy", "greedy"),
    ("mcts:400", "mcts:400 (tree search)"),
    ("mcts:1s", "mcts:1s (tree search)"),
    ("mcts:d1", "mcts:d1 (1 s, then 2 s)"),
    ("rollouts:100", "rollouts:100"),
    ("random", "random"),
)
MOST = {"expectimax": 4, "mcts": 20_000, "rollouts": 2_000, "nodes": 200_000}  # layers, iterations, games, nodes
OPTIONS = {"leaf", "c", "width", "prune", "downgrade"}  # none of them takes memory or time
MOST_AGENTS = 16
D1_SECONDS = 2.0  # the longest thought of mcts:d1


class Thought(NamedTuple):
    """The expected final score of each action (None: not legal), the best of them, the time it took."""

    values: list[float | None]
    best: int
    seconds: float


def check_agent(text: str, think_seconds: float) -> str:
    """The agent's word, if it is one and thinks within the limits.

    >>> check_agent("expectimax:2", 2.0)
    'expectimax:2'
    """
    spec = parse_spec(text)
    if set(spec.options) - OPTIONS:
        raise Mistake(f"these options of an agent may be set here: {', '.join(sorted(OPTIONS))}")
    seconds = {"s": spec.budget, "d1": D1_SECONDS}.get(spec.unit, 0.0)
    if seconds > think_seconds:
        raise Mistake(f"an agent may think up to {think_seconds:g} s a move here")
    if spec.unit == "deep" and {"width", "prune"} & set(spec.options):
        raise Mistake("expectimax:deep looks as far as it likes here: write it without width and prune")
    counted = "nodes" if spec.unit == "nodes" else spec.name
    if spec.unit in ("", "nodes") and spec.budget > MOST.get(counted, 0):
        raise Mistake(f"{spec.name} takes at most {MOST[counted]} {spec.unit} here".replace("  ", " "))
    return spec.text


class Player:
    """An agent with its memory (tables, trees), used by one visitor at a time."""

    def __init__(self, spec: str, agent: Agent) -> None:
        self.spec, self.agent, self.memory = spec, agent, agent.new_memory()
        self.runner: Runner | None = None  # compiled when somebody watches at full speed

    def values(self, state: State) -> list[float | None]:
        values = self.agent.values(state, self.memory)
        return [value if value is not None and math.isfinite(value) else None for value in values]

    def choose(self, state: State) -> int:
        return self.agent.choose(state, self.memory)

    def run(self, state: State, most: int, seconds: float) -> tuple[State, State, bytes]:
        """Many moves without a look at each: the last two positions, and the actions that led there."""
        self.runner = self.runner or Runner(self.agent, self.memory)
        return self.runner.run(state, most, seconds)

    def think(self, state: State) -> Thought:
        """One thought gives the values and the move, which is the best of them; some agents only have a move."""
        if state.over:
            raise Mistake("no move is legal here: the game is over")
        began = time.perf_counter()
        values = self.values(state)
        known = [(value, action) for action, value in enumerate(values) if value is not None]
        best = max(known, key=lambda pair: pair[0])[1] if known else self.choose(state)
        return Thought(values, best, time.perf_counter() - began)


class Cast:
    """The agents asked for lately: compiled once, shared by all, each visitor with a memory of their own."""

    def __init__(self, library: Library) -> None:
        self.library, self.lock = library, threading.Lock()
        self.agents: dict[tuple[str, str, Model | None], Agent] = {}

    def player(self, game: str, spec: str, model: str) -> Player:
        """The agent of this word; a model is opened only for those who read one."""
        known = self.library.load_model(model, game) if needs_model(spec) else None
        with self.lock:
            key = (spec, game, known)
            rules = known.game if known else games.get(game)
            agent = self.agents.pop(key, None) or make_agent(spec, rules, known)
            self.agents[key] = agent  # the newest last
            while len(self.agents) > MOST_AGENTS:
                self.agents.pop(next(iter(self.agents)))
        return Player(spec, agent)
