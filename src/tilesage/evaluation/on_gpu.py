"""Games for the record on a GPU: thousands at once, the same ones as on the CPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError, check_seed
from tilesage.evaluation.evaluate import Evaluation
from tilesage.games.board import Board
from tilesage.gpu import lesson_of
from tilesage.records.statistics import Statistics
from tilesage.search.agents import Agent
from tilesage.search.game_2048.downgrade import NEVER, downgrade
from tilesage.search.game_2048.practice import practice_wanted
from tilesage.search.players import depth_of, downgrade_threshold, tables_wanted
from tilesage.search.python_players import PythonAgent
from tilesage.search.specs import parse_spec

SCORE, MOVES, LARGEST = 0, 1, 2  # columns of the results
SECONDS_A_LOOK = 0.5


def evaluate_on_gpu(
    agent: Agent,
    games: int,
    seed: int = 1,
    progress: Callable[[Statistics, float], None] | None = None,
) -> Evaluation:
    """Play games 0 … games - 1 under `seed` with greedy or expectimax. Ctrl-C ends with what was finished."""
    if games < 1:
        raise InputError("games is a whole number from 1 on")
    check_seed(seed)
    player = player_of(agent)
    player.play(1, seed, watch=lambda results: False)  # compiles
    begin, last, shown = time.perf_counter(), np.zeros((0, 3), np.int64), 0.0

    def watch(results: Array) -> bool:
        nonlocal last, shown
        last, at = results, time.perf_counter() - begin
        if progress and at - shown > SECONDS_A_LOOK:
            shown = at
            progress(counted(agent, results), at)
        return True

    with contextlib.suppress(KeyboardInterrupt):
        last = player.play(games, seed, watch)
    seconds = time.perf_counter() - begin
    statistics = counted(agent, last)
    complete = statistics.games == games
    return Evaluation(agent, seed, statistics, seconds, 1, complete=complete, worker_kind="GPU")


def player_of(agent: Agent) -> Any:
    """The GPU's player: greedy, or expectimax by layers; how long a move takes is not for it to say."""
    if isinstance(agent, PythonAgent):
        raise InputError(f"on the GPU play greedy, expectimax:3 or expectimax:deep, not {agent.spec}")
    spec = parse_spec(agent.spec)
    if agent.model is None or spec.name not in ("greedy", "expectimax") or spec.unit not in ("", "deep"):
        raise InputError(f"on the GPU play greedy, expectimax:3 or expectimax:deep, not {spec.text}")
    threshold = downgrade_threshold(spec, agent.game)
    seen = None if threshold == NEVER else make_seen(threshold)
    lesson, (layers, width, prune) = lesson_of(agent.model), depth_of(spec)
    tables, practice = tables_wanted(spec, agent.game), practice_wanted(spec, agent.game)
    if layers == 1:
        if tables or practice:
            what = "endgames" if tables else "a second network"
            raise InputError(f"{what} on the GPU goes with two layers or more, not with {spec.text}")
        from tilesage.gpu.play import GpuPlayer

        return GpuPlayer(lesson, agent.model.weights, seen)
    from tilesage.gpu.endgames import solve_on_gpu
    from tilesage.gpu.search import GpuSearcher, Practised, Search

    endgames = solve_on_gpu(agent.game, tables) if tables else None
    second = None
    if practice:
        part, practised = practice
        second = Practised(part, lesson_of(practised), practised.weights)
    return GpuSearcher(lesson, Search(layers, width, prune), agent.model.weights, seen, endgames, second)


@cache
def make_seen(threshold: int) -> Callable[..., Any]:
    """The position on which a move is chosen: that of tile-downgrading."""

    @compiled
    def seen(board: Board, aux: np.uint64) -> tuple[Board, np.uint64]:
        return downgrade(board, aux, np.int64(threshold))

    return seen


def counted(agent: Agent, results: Array) -> Statistics:
    """The statistics of the games before the first one that is unfinished.

    Short games end first: those behind it would make the player look worse than it is.
    """
    statistics = Statistics(agent.game.name, agent.game.tiles)
    done = results[np.cumprod(results[:, MOVES] >= 0) > 0]
    statistics.add_games(done[:, SCORE], done[:, LARGEST], done[:, MOVES])
    return statistics
