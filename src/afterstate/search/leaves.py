"""What a search reads at its leaves: the value of an afterstate, whatever the network was trained on.

A network of afterstates is read as it is. A network of states is read at every position that chance may make of the
afterstate, which is the expectation E[V(next)] of TD learning on states. Both become one compiled function
`after_value(weights, notes, after, aux)`; `notes` is its scratch room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from afterstate.games import Game
from afterstate.games.board import NIBBLE, Board
from afterstate.games.compiler import Array, compiled

from .kinds import Number

if TYPE_CHECKING:
    from afterstate.values.files import Model

Notes: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Leaves:
    """The value of afterstates at the leaves of a search.

    `reads_hint` says that the value depends on `aux`, so that hints must be told apart down to the last layer.
    """

    after_value: Callable[..., Any]  # (weights, notes, after, aux) -> float64
    weights: Any
    new_notes: Callable[[], Notes]
    reads_hint: bool = False


def network_leaves(model: Model) -> Leaves:
    """Leaves read from a model."""
    network, game = model.network, model.game
    return plain_leaves(game, model.evaluator.value, model.weights, model.of, network.by_hint)


def plain_leaves(game: Game, value: Callable[..., Any], weights: Any, of: str, reads_hint: bool) -> Leaves:
    """Leaves read by `value(weights, board, aux)`, a value of afterstates or of states."""
    if of == "states":
        return _expected(game, _without_notes(value), weights, reads_hint)
    return Leaves(_without_notes(value), weights, no_notes, reads_hint)


def no_notes() -> Notes:
    return (np.zeros(1),)


def _without_notes(value: Callable[..., Any]) -> Callable[..., Any]:
    @compiled
    def after_value(weights: Any, notes: Notes, board: Board, aux: np.uint64) -> Number:
        return np.float64(value(weights, board, aux))

    return after_value


def _expected(game: Game, value: Callable[..., Any], weights: Any, by_hint: bool) -> Leaves:
    """The expectation of a value of states over what chance makes of an afterstate."""
    placements, draws, placed_value = game.rules.placements, game.rules.draws, make_placed_value(game)

    @compiled
    def after_value(weights: Any, notes: Notes, after: Board, aux: np.uint64) -> Number:
        boards, auxes, shares, hints, hint_shares = notes
        expected = 0.0
        for i in range(placements(after, aux, boards, auxes, shares)):
            expected += shares[i] * placed_value(after, boards[i])
            if by_hint:
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    expected += shares[i] * hint_shares[k] * value(weights, notes, boards[i], hints[k])
            else:
                expected += shares[i] * value(weights, notes, boards[i], auxes[i])
        return expected

    def notes() -> Notes:
        return (*outcome_room(game.max_placements), *outcome_room(game.max_draws)[1:])

    # The tile that lands on the afterstate is the hint: no two hints may be confused on the last layer.
    return Leaves(after_value, weights, notes, reads_hint=game.max_draws > 1)


def make_placed_value(game: Game) -> Callable[..., Any]:
    """`placed_value(after, board)`: what the tile that landed between the two is worth; 0 in 2048."""
    counts = game.score_is_value
    worth = np.array([float(game.rules.value_of_board(np.uint64(tile), np.uint64(0))) for tile in range(16)])

    @compiled
    def placed_value(after: Board, board: Board) -> Number:
        if not counts:
            return 0.0
        landed = after ^ board  # one nibble: fold it down to the lowest
        for shift in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4)):
            landed |= landed >> shift
        return worth[np.int64(landed & NIBBLE)]

    return placed_value


def outcome_room(size: Number) -> tuple[Array, Array, Array]:
    """Room for the boards, auxes and probabilities of chance outcomes."""
    return np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size)
