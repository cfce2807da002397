"""Games for the record on a GPU: thousands at once, the same ones as on the CPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from afterstate.games import Mistake
from afterstate.games.board import Board
from afterstate.games.compiler import Array, rule_for
from afterstate.learning.gpu import gpu_player
from afterstate.search.agents import Agent
from afterstate.search.downgrade import downgrade
from afterstate.search.players import NO_DOWNGRADE, downgrade_settings
from afterstate.search.specs import Spec, parse_spec

from .evaluate import Evaluation
from .statistics import Statistics

SCORE, MOVES, LARGEST = 0, 1, 2  # columns of the results


def evaluate_on_gpu(
    agent: Agent,
    games: int,
    seed: int = 1,
    progress: Callable[[Statistics, float], None] | None = None,
) -> Evaluation:
    """Play games 0 … games - 1 under `seed` with greedy or expectimax:2. Ctrl-C ends with what was finished."""
    spec = parse_spec(agent.spec)
    layers = layers_of(spec)
    if games < 1 or agent.model is None:
        raise Mistake("games is a whole number from 1 on")
    settings = downgrade_settings(spec, agent.game, agent.model)
    player = gpu_player(agent.model, layers, None if settings == NO_DOWNGRADE else make_seen(*settings))
    player.play(1, seed, watch=lambda results: False)  # compiles
    begin, last = time.perf_counter(), np.zeros((0, 3), np.int64)

    def watch(results: Array) -> bool:
        nonlocal last
        last = results
        if progress:
            progress(counted(agent, results), time.perf_counter() - begin)
        return True

    with contextlib.suppress(KeyboardInterrupt):
        last = player.play(games, seed, watch)
    seconds = time.perf_counter() - begin
    statistics = counted(agent, last)
    return Evaluation(agent, seed, statistics, seconds, 1, complete=statistics.games == games)


def layers_of(spec: Spec) -> int:
    """How many layers of moves the GPU looks ahead for this player."""
    plain = not set(spec.options) - {"downgrade", "hole"}
    if plain and spec.name == "greedy":
        return 1
    if plain and spec.name == "expectimax" and spec.unit == "" and spec.budget in (1, 2):
        return int(spec.budget)
    raise Mistake(f"on the GPU play greedy and expectimax:2 (with downgrade=TILE if you like), not {spec.text}")


@cache
def make_seen(threshold: int, hole: int) -> Callable[..., Any]:
    """The position on which a move is chosen: that of tile-downgrading."""

    @rule_for("seen", threshold, hole)
    def seen(board: Board, aux: np.uint64) -> tuple[Board, np.uint64]:
        return downgrade(board, aux, np.int64(threshold), np.int64(hole))

    return seen


def counted(agent: Agent, results: Array) -> Statistics:
    """The statistics of the games that are finished."""
    statistics = Statistics(agent.game.name, agent.game.tiles)
    done = results[results[:, MOVES] > 0]
    statistics.add_games(done[:, SCORE], done[:, LARGEST], done[:, MOVES])
    return statistics
