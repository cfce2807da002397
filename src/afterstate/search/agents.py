"""Players by name: what `--agent` means.

An agent chooses a move by a compiled `decide`, so that whole games run without Python, those with a time limit too.
What it needs to remember while it plays (weights, tables, trees) is its `memory`; nothing in it changes what a player
with a budget of work does in a position, except the tree that `mcts:…,leaf=value` keeps between the moves of a game.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from afterstate.games import Game, Mistake, State
from afterstate.games.board import Whole
from afterstate.games.chance import below, draw, seed_of
from afterstate.games.compiler import compiled

from .kinds import NO_MOVE
from .specs import Spec, parse_spec

if TYPE_CHECKING:
    from afterstate.values.files import Model
    from afterstate.values.outside import OutsideValue

    from .asking import AskingAgent

    Value: TypeAlias = OutsideValue | Callable[..., Any]

Memory: TypeAlias = tuple[Any, ...]
FOUR = np.uint64(4)


@dataclass(frozen=True)
class Agent:
    """A player of one game.

    `decide(memory, board, aux, score, rng) -> (action, rng)` is compiled; the action is NO_MOVE when none is legal.
    `values_of(memory, board, aux, score, rng, out)` fills the expected final score of each action, nan where illegal;
    None for players that have no opinion.
    """

    spec: str
    game: Game
    decide: Callable[..., Any]
    new_memory: Callable[[], Memory]
    values_of: Callable[..., Any] | None = None
    model: Model | None = None

    def choose(self, state: State, memory: Memory | None = None) -> int:
        """The move for this position; NO_MOVE when the game is over."""
        rng = np.uint64(seed_of(state.rng, np.uint64(1)))
        memory = self.new_memory() if memory is None else memory
        return int(self.decide(memory, state.board, state.aux, state.score, rng)[0])

    def values(self, state: State, memory: Memory | None = None) -> list[float | None]:
        """The expected final score of each of the four moves; None where illegal, or for a player without opinion."""
        out = np.full(4, np.nan)
        if self.values_of is not None:
            rng = np.uint64(seed_of(state.rng, np.uint64(1)))
            memory = self.new_memory() if memory is None else memory
            self.values_of(memory, state.board, state.aux, state.score, rng, out)
        return [None if np.isnan(value) else float(value) for value in out]


def random_agent(game: Game) -> Agent:
    """Any legal move with equal chance."""
    slide = game.rules.slide

    @compiled(title=f"the random player of {game.title}")
    def decide(
        memory: Memory, board: np.uint64, aux: np.uint64, score: int, rng: np.uint64
    ) -> tuple[Whole, np.uint64]:
        (rows,) = memory
        tried = np.int64(0)
        while tried != 15:  # draw until a move is legal: all legal moves stay equally likely
            bits, rng = draw(rng)
            action = np.int64(below(bits, FOUR))
            if not tried >> action & 1:
                if slide(rows, board, aux, action)[0] != board:
                    return action, rng
                tried |= np.int64(1) << action
        return NO_MOVE, rng

    return Agent("random", game, decide, lambda: (game.rows,))


@overload
def make_agent(spec: str, game: Game, model: Model | None = None) -> Agent: ...


@overload
def make_agent(spec: str, game: Game, model: Value) -> Agent | AskingAgent: ...


def make_agent(spec: str, game: Game, model: Model | Value | None = None) -> Agent | AskingAgent:
    """The player that `spec` describes; those that need values take them from `model`.

    That is a model, or any function that says what boards are worth (values/outside.py).
    """
    from afterstate.values.outside import OutsideValue, adapted

    wanted = parse_spec(spec)
    if wanted.needs_model and (isinstance(model, OutsideValue) or callable(model)):
        from .asking import outside_agent

        return outside_agent(wanted, game, adapted(model))
    return agent_on(wanted, game, model)


def agent_on(wanted: Spec, game: Game, model: Any) -> Agent:
    """The compiled player on a model, or on a function in its place."""
    from . import players

    if wanted.name == "random":
        return random_agent(game)
    if wanted.name == "rollouts":
        return players.rollouts_agent(wanted, game)
    if not wanted.needs_model:
        return players.uct_agent(wanted, game)
    known = need_model(wanted.text, model)
    if wanted.name == "mcts":
        return players.mcts_agent(wanted, game, known)
    if wanted.name == "greedy" and "downgrade" not in wanted.options:
        from .greedy import greedy_agent

        return greedy_agent(game, known)
    return players.expectimax_agent(wanted, game, known)


def need_model(spec: str, model: Model | None) -> Model:
    if model is None:
        raise Mistake(f"{spec} needs a model: give a model file, a run folder, or the name of a model in the box")
    return model


def needs_model(spec: str) -> bool:
    """Does this player ask a network?"""
    return spec != "human" and parse_spec(spec).needs_model
