"""One layer of moves: the move whose reward and value together are largest.

On values of afterstates that is argmax r + V(s'); on values of states argmax r + E[r' + V(next state)], over all that
chance may do; r' is what the tile that lands is worth.
"""

from __future__ import annotations

import math

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games import Game
from tilesage.games.board import Whole
from tilesage.networks.files import Model
from tilesage.networks.outside import value_function
from tilesage.search.agents import Agent, CompiledAgent, Memory
from tilesage.search.kinds import NO_MOVE


def greedy_agent(game: Game, model: Model) -> Agent:
    """The player that looks at its own next move alone."""
    slide, function = game.rules.slide, value_function(model, game)
    after_value = function.after_value

    @compiled(title=f"the greedy player of {game.title} on {function.name}")
    def decide(
        memory: Memory, board: np.uint64, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Whole, np.uint64]:
        rows, weights, notes = memory
        best, chosen = np.float32(0), NO_MOVE
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            values[action] = math.nan
            if after != board:
                expected = after_value(weights, notes, after, after_aux)
                values[action] = score + reward + expected
                value = np.float32(reward) + np.float32(expected)
                if chosen == NO_MOVE or value > best:
                    best, chosen = value, action
        return chosen, rng

    def new_memory() -> Memory:
        return game.rows, function.weights, function.new_notes()

    return CompiledAgent("greedy", game, decide, new_memory, model)
