"""Who plays: what all players have in common, and how one is made from a text, a function or an object.

    agent("expectimax:3")                    a built-in player, with the model that comes with the package
    agent("my_module:my_agent")              a function or an object in somebody's own file
    agent(lambda state: state.legal[0])      any function from a position to a move

A built-in player chooses by compiled code, so that whole games run without Python, those with a time limit too. What
it needs to remember while it plays (weights, tables, trees) is its `memory`; nothing in it changes what a player with
a budget of work does in a position.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tilesage import games
from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.core.random import below, draw, seed_of
from tilesage.games import Game, State
from tilesage.games.board import Whole
from tilesage.search.kinds import NO_MOVE
from tilesage.search.specs import Spec, is_from_outside, parse_spec

if TYPE_CHECKING:
    from tilesage.networks.files import Model
    from tilesage.networks.outside import OutsideValue

    Value: TypeAlias = OutsideValue | Callable[..., Any]

    from tilesage.search.python_players import Player

Memory: TypeAlias = tuple[Any, ...]
Source = TypeVar("Source")  # of values: a model, or a function in its place
FOUR = np.uint64(4)
CHOICE = np.uint64(1)  # the stream of a player's own dice in a position


class Thought(NamedTuple):
    """What a player makes of a position."""

    action: int  # the move that it would make; NO_MOVE when the game is over
    values: list[float | None]  # the player's own figure of each action; None where illegal, or without an opinion


class Agent(ABC):
    """A player of one game, ready to be asked."""

    spec: str  # as it is written, and what records and tables call it
    game: Game
    model: Model | None = None

    @abstractmethod
    def new_memory(self) -> Memory:
        """What the player remembers during a game, or while many positions are asked."""

    @abstractmethod
    def think(self, state: State, memory: Memory | None = None) -> Thought:
        """The move that the player makes here, and what each of the four moves is worth to it."""

    def choose(self, state: State, memory: Memory | None = None) -> int:
        """The move for this position; NO_MOVE when the game is over."""
        return self.think(state, memory).action

    def values(self, state: State, memory: Memory | None = None) -> list[float | None]:
        """The player's own figure of each of the four moves; None where illegal, or for a player without opinion."""
        return self.think(state, memory).values

    def check(self, state: object) -> None:
        """Refuse what is no position of the player's game."""
        if not isinstance(state, State) or state.game.name != self.game.name:
            raise InputError(f"{self.spec} is asked for a State of {self.game.name}, not {state!r:.60}")

    def __repr__(self) -> str:
        model = f", model={self.model.name!r}" if self.model else ""
        return f"Agent({self.spec!r}, game={self.game.name!r}{model})"


@dataclass(frozen=True, repr=False)
class CompiledAgent(Agent):
    """A player that compiled loops can ask.

    `decide(memory, board, aux, score, rng, values) -> (action, rng)` returns the move that the player makes, and
    fills `values` with the expected final score of each action, nan where illegal; a player without opinion leaves
    them.
    """

    spec: str
    game: Game
    decide: Callable[..., Any]
    memory_maker: Callable[[], Memory]
    model: Model | None = None

    def new_memory(self) -> Memory:
        return self.memory_maker()

    def think(self, state: State, memory: Memory | None = None) -> Thought:
        self.check(state)
        values, rng = np.full(4, np.nan), np.uint64(seed_of(state.rng, CHOICE))
        memory = self.new_memory() if memory is None else memory
        action = int(self.decide(memory, state.board, state.aux, state.score, rng, values)[0])
        return Thought(action, [None if math.isnan(value) else value for value in values.tolist()])


def random_agent(spec: Spec, game: Game, model: Model | None = None) -> Agent:
    """Any legal move with equal chance."""
    slide = game.rules.slide

    @compiled(title=f"the random player of {game.title}")
    def decide(
        memory: Memory, board: np.uint64, aux: np.uint64, score: int, rng: np.uint64, values: Array
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

    return CompiledAgent(spec.text, game, decide, lambda: (game.rows,))


def make_agent(spec: str, game: Game, model: Model | Value | None = None) -> Agent:
    """The built-in player that `spec` describes; one that asks for values reads `model`. Imports nobody's module.

    `model` is a network of ours, or any function that says what boards are worth (networks/outside.py).
    """
    from tilesage.networks.outside import OutsideValue, adapted

    wanted = parse_spec(spec)
    if wanted.needs_model and (isinstance(model, OutsideValue) or callable(model)):
        from tilesage.search.asking import outside_agent

        return outside_agent(wanted, game, adapted(model))
    return wanted.row.build(wanted, game, need_model(spec, model) if wanted.needs_model else None)  # type: ignore[arg-type]


def agent(
    player: str | Agent | Player | Callable[[State], int | str],
    game: Game | str | None = None,
    model: Model | Value | Path | str | None = None,
) -> Agent:
    """Anything that can play: a text such as "expectimax:3" or "my_module:my_agent", a function, an object.

    `model` is a model, a file, a run folder, the name of a built-in one, or a function that says what boards are
    worth (`batch_value`, `compiled_value`). A player that asks a network reads the
    built-in model of the game where none is given. Without a game it is that of the model, or 2048; a game that is
    only named has the parameters of the model's.

    >>> agent("mcts:100", "threes")
    Agent('mcts:100', game='threes')
    >>> corner = agent(lambda state: state.legal[-1])
    >>> corner.choose(corner.game.parse("2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"))
    3
    """
    from tilesage.search.python_players import python_agent

    if not isinstance(game, Game | str | None):
        raise InputError(f"a game is a Game or its name, not {type(game).__name__}: write agent(player, game, model)")
    if isinstance(player, str) and not is_from_outside(player):
        return _built_in(player, game, model)
    rules = games.get(game) if isinstance(game, str) else game
    if model is not None:
        raise InputError(f"{player} reads no model of ours: leave it out, and name the game instead")
    if isinstance(player, Agent):
        if rules and rules is not player.game:
            raise InputError(f"{player.spec} was made for {player.game.key}: leave the game out")
        return player
    return python_agent(player, rules or games.get(games.DEFAULT_GAME))


def _built_in(text: str, game: Game | str | None, model: Model | Value | Path | str | None) -> Agent:
    """A player of the registry; a model that it would not read is refused."""
    from tilesage.networks.files import Model, load_model
    from tilesage.networks.outside import OutsideValue

    rules = games.get(game) if isinstance(game, str) else game
    if not needs_model(text):
        if model is not None:
            raise InputError(
                f"{text} reads no model: leave it out, or let a player that reads one play, such as greedy"
            )
        return make_agent(text, rules or games.get(games.DEFAULT_GAME))
    if isinstance(model, OutsideValue) or callable(model):
        return make_agent(text, rules or games.get(games.DEFAULT_GAME), model)
    known = model if isinstance(model, Model) else load_model(model, game)
    if rules and rules.name != known.game.name:
        raise InputError(f"this model plays {known.game.name}, not {rules.name}")
    return make_agent(text, game if isinstance(game, Game) else known.game, known)


def need_model(spec: str, model: Source | None) -> Source:
    if model is None:
        raise InputError(f"{spec} needs a model: give a model file, a run folder, or the name of a built-in model")
    return model


def needs_model(spec: str) -> bool:
    """Does this built-in player ask a network?"""
    return parse_spec(spec).needs_model
