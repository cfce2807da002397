"""What an afterstate is worth, as one compiled function, wherever the number comes from.

Searches read every value through a `ValueFunction`. A network of afterstates is read as it is. A value of states is
read at every position that chance may make of the afterstate: the expectation E[r' + V(next)] of TD learning on
states, r' being what the tile that lands is worth. Values from outside the package come in by outside.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import NIBBLE, Board
from tilesage.games.game import Game
from tilesage.games.state import outcome_room

if TYPE_CHECKING:
    from tilesage.networks.files import Model
    from tilesage.networks.patterns import Network

Notes: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class ValueFunction:
    """The value of afterstates, compiled. Two are equal if a search compiled for one of them serves the other.

    `reads_hint` says that the value depends on `aux`, so that hints must be told apart down to the last layer.
    """

    name: str = field(compare=False)  # what people call it
    after_value: Callable[..., Any]  # (weights, notes, after, aux) -> float64
    weights: Any = field(compare=False)  # what is read
    new_notes: Callable[[], Notes] = field(compare=False)  # room that one reader at a time writes to
    reads_hint: bool = False

    @property
    def code(self) -> ValueFunction:
        """What a search is compiled for, and what it may remember: the same without the weights."""
        return replace(self, weights=None)


def network_function(model: Model) -> ValueFunction:
    """The values of a model."""
    return replace(compiled_network(model.game, model.network, model.of), weights=model.weights)


@cache
def compiled_network(game: Game, network: Network, of: str) -> ValueFunction:
    """The values of any model with this network, still without its weights."""
    from tilesage.networks.ntuple import evaluator

    return plain_function(game, evaluator(game, network).value, None, of, network.by_hint, network.name)


def plain_function(
    game: Game, value: Callable[..., Any], weights: Any, of: str, reads_hint: bool, name: str = "a function"
) -> ValueFunction:
    """Read by `value(weights, board, aux)`, a value of afterstates or of states."""

    @compiled
    def noted(weights: Any, notes: Notes, board: Board, aux: np.uint64) -> Any:
        return np.float64(value(weights, board, aux))

    return function_of(game, ValueFunction(name, noted, weights, no_notes, reads_hint), of)


def function_of(game: Game, value: ValueFunction, of: str) -> ValueFunction:
    """The values of afterstates, from what are values of afterstates or of states."""
    return _expected(game, value) if of == "states" else value


def no_notes() -> Notes:
    """Notes for a value that remembers nothing."""
    return (np.zeros(1),)


def _expected(game: Game, value: ValueFunction) -> ValueFunction:
    """The expectation of a value of states over what chance makes of an afterstate."""
    placements, draws, placed_value = game.rules.placements, game.rules.draws, make_placed_value(game)
    of_state, by_hint = value.after_value, value.reads_hint

    @compiled
    def after_value(weights: Any, notes: Notes, after: Board, aux: np.uint64) -> Any:
        boards, auxes, shares, hints, hint_shares, inner = notes
        expected = 0.0
        for i in range(placements(after, aux, boards, auxes, shares)):
            expected += shares[i] * placed_value(after, boards[i])
            if by_hint:
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    expected += shares[i] * hint_shares[k] * of_state(weights, inner, boards[i], hints[k])
            else:
                expected += shares[i] * of_state(weights, inner, boards[i], auxes[i])
        return expected

    def notes() -> Notes:
        return (*outcome_room(game.max_placements), *outcome_room(game.max_draws)[1:], value.new_notes())

    # The tile that lands on the afterstate is the hint: no two hints may be confused on the last layer.
    reads_hint = game.max_draws > 1
    return ValueFunction(value.name, after_value, value.weights, notes, reads_hint)


@cache
def make_weigh(game: Game, value: ValueFunction) -> Callable[..., Any]:
    """`weigh(rows, weights, notes, board, aux, out)`: what each move is worth, r + V; -inf where illegal."""
    slide, after_value = game.rules.slide, value.after_value

    @compiled
    def weigh(rows: Array, weights: Any, notes: Notes, board: Board, aux: np.uint64, out: Array) -> None:
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            out[action] = -math.inf
            if after != board:
                out[action] = reward + after_value(weights, notes, after, after_aux)

    return weigh


@cache
def make_placed_value(game: Game) -> Callable[..., Any]:
    """`placed_value(after, board)`: what the tile that landed between the two is worth; 0 in 2048."""
    counts = game.score_is_value
    worth = np.array([float(game.rules.value_of_board(np.uint64(tile), np.uint64(0))) for tile in range(16)])

    @compiled
    def placed_value(after: Board, board: Board) -> Any:
        if not counts:
            return 0.0
        landed = after ^ board  # one nibble: fold it down to the lowest
        for shift in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4)):
            landed |= landed >> shift
        return worth[np.int64(landed & NIBBLE)]

    return placed_value
