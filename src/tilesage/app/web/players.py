"""The agents that visitors may name, limited in how long they may think, and compiled once for all visitors."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tilesage import games
from tilesage.app.web.library import Library, ModelFile
from tilesage.core.compiler import shared
from tilesage.core.errors import InputError
from tilesage.evaluation.forecast import Opinion, opinion_of
from tilesage.evaluation.playing import Playing
from tilesage.games import State
from tilesage.networks.files import Model, load_model
from tilesage.search.agents import Agent, CompiledAgent, make_agent, needs_model
from tilesage.search.agents import Thought as AgentThought
from tilesage.search.agents import agent as find_agent
from tilesage.search.python_players import AgentError
from tilesage.search.specs import parse_spec

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
OPTIONS = {"leaf", "c", "below", "gain", "width", "prune", "downgrade"}  # none of them takes memory or time
MOST_AGENTS = 16
OPEN_MODELS = 3  # kept in memory beside those at work; each may be hundreds of megabytes
D1_SECONDS = 2.0  # the longest thought of mcts:d1
log = logging.getLogger(__name__)
Source = tuple[str, ModelFile | None, int]  # of an agent: a game, a model file and its age


class Thought(NamedTuple):
    """An opinion, and how long it took."""

    opinion: Opinion
    seconds: float

    def told(self) -> dict[str, Any]:
        """For the page and for programs: figures of up, right, down, left; their name; the move that is made."""
        opinion = self.opinion
        best = {"best": opinion.best, "values": opinion.values, "losses": opinion.losses, "figure": opinion.name}
        return {**best, "think_ms": round(1000 * self.seconds, 3)}


def check_agent(text: str, think_seconds: float, named_at_start: Collection[str] = ()) -> str:
    """The text of an agent, if it thinks within the limits, or is one of those that were named at the server's start.

    >>> check_agent("expectimax:2", 2.0)
    'expectimax:2'
    """
    if text in named_at_start:
        return text
    spec = parse_spec(text)
    if set(spec.options) - OPTIONS:
        raise InputError(f"these options of an agent may be set here: {', '.join(sorted(OPTIONS))}")
    seconds = {"s": spec.budget, "d1": D1_SECONDS}.get(spec.unit, 0.0)
    if seconds > think_seconds:
        raise InputError(f"an agent may think up to {think_seconds:g} s a move here")
    if spec.unit == "deep" and {"width", "prune"} & set(spec.options):
        raise InputError("expectimax:deep looks as far as it likes here: write it without width and prune")
    counted = "nodes" if spec.unit == "nodes" else spec.name
    if spec.unit in ("", "nodes") and spec.budget > MOST.get(counted, 0):
        raise InputError(f"{spec.name} takes at most {MOST[counted]} {spec.unit} here".replace("  ", " "))
    return spec.text


class Player:
    """An agent with its memory (tables, trees), used by one visitor at a time."""

    def __init__(self, spec: str, agent: Agent, turn: contextlib.AbstractContextManager[Any]) -> None:
        self.spec, self.agent, self.memory = spec, agent, agent.new_memory()
        self.turn = turn  # somebody's Python, which need not bear several threads at once, is asked by one at a time
        self.playing: Playing | None = None  # compiled when somebody watches at full speed

    def run(self, state: State, most: int, seconds: float) -> tuple[State, State, bytes]:
        """Many moves without a look at each: the last two positions, and the actions that led there."""
        with self._asked():
            self.playing = self.playing or Playing(self.agent, self.memory)
            return self.playing.go_on(state, most, seconds)

    def think(self, state: State) -> Thought:
        """What the agent makes of a position, and how long that took."""
        if state.over:
            raise InputError("no move is legal here: the game is over")
        began = time.perf_counter()
        with self._asked():
            best, values = self.agent.think(state, self.memory)
        seconds = time.perf_counter() - began
        finite = [value if value is not None and math.isfinite(value) else None for value in values]
        return Thought(opinion_of(self.agent, state, AgentThought(best, finite)), seconds)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """The log says what went wrong in somebody's player, and where; visitors learn that it did."""
        try:
            with self.turn:
                yield
        except AgentError as error:
            log.error("%s", error)
            raise InputError("the agent stumbled; the server's log says why") from None


class AgentCache:
    """The agents asked for lately: shared by all visitors, each of whom has a memory of their own."""

    def __init__(self, library: Library) -> None:
        self.library, self.lock = library, threading.Lock()
        self.agents: dict[tuple[str, Source], Agent] = {}
        self.named_at_start = {text: threading.Lock() for text in library.settings.agents}

    def player(self, game: str, spec: str, model: str) -> Player:
        """The agent of this text; a model is opened only for those who read one."""
        turn = self.named_at_start.get(spec)
        file = self.library.model(model) if turn is None and needs_model(spec) else None
        source = (game, file, file.path.stat().st_mtime_ns if file else 0)
        with self.lock:
            agent = self.agents.pop((spec, source), None) or self._made(spec, source)
            self.agents[spec, source] = agent  # the newest last
            while len(self.agents) > MOST_AGENTS or len(self._open_models()) > OPEN_MODELS:
                self.agents.pop(next(iter(self.agents)))
        return Player(spec, agent, turn or contextlib.nullcontext())

    def _open_models(self) -> dict[Source, Model]:
        return {source: agent.model for (_, source), agent in self.agents.items() if agent.model}

    def _made(self, spec: str, source: Source) -> Agent:
        game, file, _ = source
        if spec in self.named_at_start:
            return find_agent(spec, games.get(game))
        if not needs_model(spec):
            return _with_shared_code(make_agent(spec, games.get(game)))
        model = self._open_models().get(source) or (file.load(game) if file else load_model(None, game))
        return _with_shared_code(make_agent(spec, model.game, model))


def _with_shared_code(agent: Agent) -> Agent:
    """An agent that is made once more is not compiled once more."""
    return replace(agent, decide=shared(agent.decide)) if isinstance(agent, CompiledAgent) else agent
