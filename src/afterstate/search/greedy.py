"""One layer of moves: the move whose reward and value together are largest.

On values of afterstates that is argmax r + V(s'); on values of states argmax r + E[V(next state)], over all that
chance may do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from afterstate.games import Game
from afterstate.games.board import Whole
from afterstate.games.compiler import Array, kernel, rule_for
from afterstate.values.files import Model

from .agents import Agent, Memory
from .kinds import NO_MOVE


def worth_of_afterstate(model: Model) -> Callable[..., Any]:
    """`worth(memory, after, aux) -> float32`: the expected score still to come after a slide."""
    value, game = model.evaluator.value, model.game
    key = ("worth", game.key, model.network.key, model.of)
    if model.of == "afterstates":

        @rule_for(*key)
        def worth(memory: Memory, after: np.uint64, aux: np.uint64) -> np.float32:
            return value(memory[1], after, aux)  # type: ignore[no-any-return]

        return worth

    placements, draws, by_hint = game.rules.placements, game.rules.draws, model.network.by_hint

    @rule_for(*key)
    def expected(memory: Memory, after: np.uint64, aux: np.uint64) -> np.float32:
        _, weights, boards, auxes, shares, hints, chances = memory
        total = 0.0
        for i in range(placements(after, aux, boards, auxes, shares)):
            if by_hint:
                for k in range(draws(boards[i], auxes[i], hints, chances)):
                    total += shares[i] * chances[k] * value(weights, boards[i], hints[k])
            else:
                total += shares[i] * value(weights, boards[i], auxes[i])
        return np.float32(total)

    return expected


def memory_of(game: Game, model: Model) -> Memory:
    """Rows, weights, and for values of states the room for chance outcomes."""
    if model.of == "afterstates":
        return game.rows, model.weights
    room = [np.zeros(game.max_placements, kind) for kind in (np.uint64, np.uint64, np.float64)]
    hints = [np.zeros(game.max_draws, kind) for kind in (np.uint64, np.float64)]
    return game.rows, model.weights, *room, *hints


def greedy_agent(game: Game, model: Model) -> Agent:
    slide, worth = game.rules.slide, worth_of_afterstate(model)
    key = ("greedy", game.key, model.network.key, model.of)

    @kernel(*key, "values", title=f"the values of {game.title} on {model.network.name}")
    def values_of(memory: Memory, board: np.uint64, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> None:
        for action in range(4):
            after, after_aux, reward = slide(memory[0], board, aux, action)
            if after != board:
                out[action] = score + reward + worth(memory, after, after_aux)

    @kernel(*key, title=f"the greedy player of {game.title} on {model.network.name}")
    def decide(
        memory: Memory, board: np.uint64, aux: np.uint64, score: int, rng: np.uint64
    ) -> tuple[Whole, np.uint64]:
        best, chosen = np.float32(0), NO_MOVE
        for action in range(4):
            after, after_aux, reward = slide(memory[0], board, aux, action)
            if after != board:
                value = np.float32(reward) + worth(memory, after, after_aux)
                if chosen == NO_MOVE or value > best:
                    best, chosen = value, action
        return chosen, rng

    return Agent("greedy", game, key, decide, lambda: memory_of(game, model), values_of, model)
