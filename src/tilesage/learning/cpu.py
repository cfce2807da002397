"""The CPU trainer: threads on one table, without locks.

Each thread has a state of its own (games in progress, unfinished updates) and calls the compiled loop for a stretch
of moves; weights are shared. Two threads that adjust the same entry at the same time may lose one of the adjustments,
which does no harm. A fresh network is different: while every value is still the same, all threads make the same large
corrections to the same few entries, so the first moves are made by one thread alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.learning.backward import RING, backward
from tilesage.learning.config import TrainConfig, check_entries, check_memory
from tilesage.learning.forward import forward_afterstates
from tilesage.learning.registry import as_array, from_array
from tilesage.learning.restoring import put_back
from tilesage.learning.rules import UpdateRule, counting_visits
from tilesage.learning.states import forward_states
from tilesage.learning.steps import Shared, Train
from tilesage.learning.thread_state import (
    BEST,
    BY_AGE,
    GAMES,
    MOVES,
    POINTS,
    REPLAYS,
    SQUARES,
    ThreadState,
    new_thread_state,
)
from tilesage.learning.trainer import SOFTNESS, TOO_LARGE, Tally
from tilesage.learning.weights import fresh_weights
from tilesage.networks.ntuple import evaluator, promote_all

ALONE = 200_000  # first moves, which one thread makes alone


def loop_for(config: TrainConfig, rule: UpdateRule) -> Train:
    """The compiled loop of these settings."""
    game, network, ahead = config.the_game, config.the_network, config.start == "ahead"
    if config.direction == "backward":
        return backward(game, network, rule, config.of == "states", ahead, config.learn_end)
    make = forward_states if config.of == "states" else forward_afterstates
    return make(game, network, rule, config.history, ahead)


@compiled(title="the mean of the weights")
def take_in(mean: Array, weights: Array, share: np.float32) -> None:
    """Move the mean by `share` of the way to the weights; what was never learnt (NaN) has no mean yet."""
    for i in range(len(mean)):
        known = mean[i] == mean[i]
        mean[i] = mean[i] + (weights[i] - mean[i]) * share if known else weights[i]


class CpuTrainer:
    """See `Trainer`."""

    def __init__(self, config: TrainConfig) -> None:
        check_memory(config)
        self.config = config
        self.game, self.network = config.the_game, config.the_network
        self.evaluator = evaluator(self.game, self.network)
        size = self.evaluator.size
        check_entries(size)
        self._weights = fresh_weights(size, self.network, self.evaluator.entries, config.optimism)
        self.threads = self.new_threads()
        self.pool = ThreadPoolExecutor(config.threads)
        self.done = self.averaged = 0
        self.mean: Array = np.zeros(0, np.float32)
        self.begin_phase(config.phase_list[0].rule)

    def new_threads(self) -> list[ThreadState]:
        config, backward = self.config, self.config.direction == "backward"
        history = RING if backward else config.history
        return [
            new_thread_state(self.game, self.network, history, config.seed, thread, backward=backward)
            for thread in range(config.threads)
        ]

    @property
    def stored(self) -> list[ThreadState]:
        """Those that a checkpoint keeps."""
        return self.threads

    @property
    def stride(self) -> int:
        return self.config.stretch(len(self.threads) << 17)

    def make_loop(self, rule: UpdateRule) -> Any:
        return loop_for(self.config, rule)

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        if soften:
            np.multiply(self.memory, np.float32(SOFTNESS), out=self.memory)
            return
        self.rule = rule
        self.memory: Array = np.zeros(0, np.float32)  # the old one goes before the new one is taken
        self.memory = rule.new_memory(len(self._weights))
        self.loop = self.make_loop(rule)
        self.warm_up()

    def count_visits(self) -> None:
        """From now on `memory` counts how often each entry is adjusted, for merging copies of a network."""
        self.begin_phase(counting_visits(self.rule))

    def warm_up(self) -> None:
        """Compile (or load) the loop with nothing to do, so that no budget is spent on it."""
        self._work(self.threads[0], 0.0, 0, 0)

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        begin = time.perf_counter()
        threads = self.threads[:1] if self.done < ALONE else self.threads
        share, games_each = max(1, moves // len(threads)), max(1, -(-games // len(threads)))
        if len(threads) == 1:
            self._work(threads[0], rate, share, games_each)
        else:
            list(self.pool.map(lambda thread: self._work(thread, rate, share, games_each), threads))
        return self.finished(self._collect(threads), begin)

    def finished(self, tally: Tally, begin: float) -> Tally:
        """What was done since `begin`, unless it diverged."""
        tally.seconds = time.perf_counter() - begin
        self.done += tally.moves
        if not tally.worst < TOO_LARGE:
            raise InputError(
                f"training diverged: an error of {tally.worst:.3g} points; lower --rate, --decay or --optimism"
            )
        return tally

    def _work(self, thread: ThreadState, rate: float, moves: int, games: int) -> None:
        step, decay = np.float32(rate / self.network.reads), np.float32(self.config.trace)
        self.loop(Shared(self.game.rows, self._weights, self.memory, step, decay), thread, moves, games)

    def _collect(self, threads: list[ThreadState]) -> Tally:
        """Sum up and reset what the threads counted."""
        total = Tally()
        for thread in threads:
            t = thread.tally
            counted = Tally(
                int(t[GAMES]), int(t[MOVES]), int(t[POINTS]), int(t[BEST]), int(t[REPLAYS]), float(thread.worst[0])
            )
            counted.squares, counted.tiles = int(t[SQUARES]), thread.tiles.copy()
            total.add(counted)
            if not np.isfinite(thread.worst[0]):
                total.worst = float("inf")
            t[:], thread.tiles[:], thread.worst[0] = 0, 0, 0.0
        return total

    def average(self, afresh: bool = False) -> None:
        if afresh:
            self.averaged, self.mean = 0, np.zeros(0, np.float32)
            return
        self.averaged += 1
        if self.averaged == 1:
            self.mean = self._weights.copy()
            return
        share, size = np.float32(1 / self.averaged), len(self.mean)
        ends = [size * k // len(self.threads) for k in range(len(self.threads) + 1)]
        list(self.pool.map(lambda a, b: take_in(self.mean[a:b], self._weights[a:b], share), ends[:-1], ends[1:]))

    def weights(self) -> Array:
        copy = (self.mean if self.averaged else self._weights).copy()
        if self.network.stages:
            promote_all(copy, self.network, self.evaluator.entries)
        return copy

    def state(self) -> dict[str, Array]:
        found = {
            "weights": self._weights,
            "memory": self.memory,
            "done": np.array([self.done], np.int64),
            "rule": as_array(self.rule),
        }
        if self.averaged:
            found |= {"mean": self.mean, "averaged": np.array([self.averaged], np.int64)}
        left_out = "" if self.network.by_age else BY_AGE
        for k, thread in enumerate(self.stored):
            found |= {f"thread{k}.{name}": array for name, array in thread._asdict().items() if name != left_out}
        return found

    def restore(self, state: Mapping[str, Array]) -> None:
        self.done, rule = int(state["done"][0]), from_array(state["rule"])
        if rule.name != self.rule.name:
            self.begin_phase(rule)
        if "mean" in state:
            self.averaged, self.mean = int(state["averaged"][0]), np.zeros_like(self._weights)
            if self.averaged < 1:
                raise InputError("a mean of no weights")
        later = slice(self.evaluator.tables_size >> len(self.network.stages), self.evaluator.tables_size)
        put_back(self.state(), state, self.game, len(self._weights), later)

    def close(self) -> None:
        self.pool.shutdown()
