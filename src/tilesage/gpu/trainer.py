"""The learner behind the seam that runs use: `advance`, `begin_phase`, `weights`, `state`, `restore`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.gpu.available import gpu_name
from tilesage.gpu.learner import MOST_GAMES, STEPS_A_GRAPH, Learner
from tilesage.gpu.machine import SIMULATED, cuda
from tilesage.gpu.steps import Lesson
from tilesage.learning.config import TrainConfig
from tilesage.learning.registry import as_array, from_array
from tilesage.learning.rules import UpdateRule
from tilesage.learning.trainer import SOFTNESS, TOO_LARGE, Tally
from tilesage.learning.weights import fresh_weights, promote_all
from tilesage.networks.ntuple import evaluator

GAMES_IN_FLIGHT = 1 << 15
MOST_HISTORY = 32
STEPS_A_SNAPSHOT = 1024  # between two looks at the weights for their mean


class GpuTrainer:
    """See `Trainer`. Reproducible bit for bit: the same settings and the same number of moves, the same weights."""

    def __init__(self, config: TrainConfig) -> None:
        check_supported(config)
        self.config = config
        self.game, self.network = config.the_game, config.the_network
        self.evaluator = evaluator(self.game, self.network)
        self.rule = config.phase_list[0].rule
        self.done = self.steps = 0
        check_memory(self.evaluator.size, any(phase.rule.gpu == "tc" for phase in config.phase_list), config.average)
        self.learner = self._new_learner(
            fresh_weights(self.evaluator.size, self.network, self.evaluator.entries, config.optimism)
        )
        self._warm_up()

    def _new_learner(self, weights: Array) -> Learner:
        lesson = Lesson(
            self.game,
            self.evaluator,
            of_states=self.config.of == "states",
            coherence=self.rule.gpu == "tc",
            ahead=self.config.start == "ahead",
            history=self.config.history,
            decay=self.config.trace,
        )
        return Learner(lesson, self.config.flight or GAMES_IN_FLIGHT, self.config.seed, weights)

    def _warm_up(self) -> None:
        """Compile before any budget is spent on it."""
        if not SIMULATED:
            print(f"compiling for {gpu_name()} … (some ten seconds, at every start)", file=sys.stderr, flush=True)
        self.learner.warm_up()

    @property
    def stride(self) -> int:
        """Moves at a time, a tenth of a second or so, and a hundredth of the run; a run multiplies by its threads."""
        moves = STEPS_A_SNAPSHOT * self.learner.games
        if self.config.moves:
            moves = min(moves, max(self.learner.games, self.config.moves // 100))
        return max(1, moves // self.config.threads)

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        begin, total = time.perf_counter(), Tally()
        self.learner.set_rate(rate)
        wanted = max(1, -(-moves // self.learner.games))
        while wanted > 0 and total.games < games:
            steps = min(wanted, STEPS_A_GRAPH, STEPS_A_SNAPSHOT - self.steps % STEPS_A_SNAPSHOT)
            if games > self.learner.games:  # no need to look after every graph
                steps = min(wanted, STEPS_A_SNAPSHOT - self.steps % STEPS_A_SNAPSHOT)
            total.add(self._run(steps))
            wanted -= steps
        total.worst = self.learner.largest_value()
        if not total.worst < TOO_LARGE:
            raise InputError("training diverged: values are out of all bounds; lower --rate or --optimism")
        total.seconds = time.perf_counter() - begin
        self.done += total.moves
        return total

    def _run(self, steps: int) -> Tally:
        moves = self.learner.run(steps)
        self.steps += steps
        if self.config.average and self.steps % STEPS_A_SNAPSHOT == 0:
            self.learner.average()
        found = self.learner.take_stats()
        tally = Tally(found["games"], moves, found["score"], found["max"], found["replays"])
        tally.tiles[: len(found["tiles"])] = found["tiles"]
        return tally

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        """A new rule with fresh memory; or the same with softened memory, from the mean of the weights."""
        if self.config.average:
            self.learner.use_average()
        if soften:
            self.learner.soften(SOFTNESS)
            return
        games, weights = self.learner.host_games(), self.learner.host_weights()
        self.rule = rule
        del self.learner  # its memory goes back before the next one takes its own
        self.learner = self._new_learner(weights)
        self.learner.set_games(games)
        self._warm_up()

    def average(self, afresh: bool = False) -> None:
        """Nothing: here the mean is taken all along."""

    def weights(self) -> Array:
        found = self.learner.host_weights(averaged=self.config.average)
        if self.network.stages:
            promote_all(found, self.network, self.evaluator.entries)
        return found

    def state(self) -> dict[str, Array]:
        learner = self.learner
        counts = [self.done, self.steps, learner.averaged]
        found = {"weights": learner.host_weights(), "done": np.array(counts, np.int64), "rule": as_array(self.rule)}
        if self.learner.lesson.coherence:
            found["memory"] = learner.host_memory()
        if learner.averaged:
            found["mean"] = learner.host_weights(averaged=True)
        return found | {f"games.{name}": array for name, array in learner.host_games().items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        if "games.boards" not in state:
            raise InputError("this run was trained on the CPU: resume it there, or start a new one from its model")
        self.done, self.steps, averaged = (int(x) for x in state["done"])
        rule = from_array(state["rule"])
        if rule.name != self.rule.name:
            self.begin_phase(rule)
        self.learner.set_weights(np.asarray(state["weights"]))
        if self.learner.lesson.coherence:
            self.learner.set_memory(np.asarray(state["memory"]))
        if averaged:
            self.learner.set_average(np.asarray(state["mean"]), averaged)
        for name in ("games.ages", "games.trace_ages"):
            if name in state and np.max(state[name]) >= self.evaluator.size:
                raise InputError("ages points outside the tables")
        if "games.trace_firsts" in state:
            rings = np.array([state["games.trace_firsts"], state["games.trace_lengths"]])
            if rings.min() < 0 or (rings >= [[self.config.history], [self.config.history + 1]]).any():
                raise InputError("the traces of this checkpoint are out of bounds")
        prefix = "games."
        self.learner.set_games({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})

    def close(self) -> None:
        """Nothing to close: the memory goes back with the learner."""


def check_supported(config: TrainConfig) -> None:
    """What the batch rule cannot do."""
    if config.direction == "backward":
        raise InputError("on the GPU games learn forward: leave out --direction")
    if config.history > 1 and config.of == "states":
        raise InputError("on the GPU --decay and --steps go with values of afterstates: leave out --of states")
    if config.history > MOST_HISTORY:
        raise InputError(
            f"on the GPU an error counts for at most {MOST_HISTORY} moves: --decay 0.9 or less, or --steps"
        )
    if config.flight > MOST_GAMES:
        raise InputError(f"--flight is at most {MOST_GAMES} games, not {config.flight}")


def check_memory(weights: int, coherence: bool, averaged: bool) -> None:
    """Refuse what does not fit into the GPU, before taking it."""
    needed = weights * (4 + (16 if coherence else 8) + (4 if averaged else 0) + 8)
    if SIMULATED:
        return
    free, _ = cuda.current_context().get_memory_info()
    if needed > free:
        raise InputError(
            f"this needs {needed / 2**30:.1f} GB of the GPU's memory, {free / 2**30:.1f} GB are free: "
            "take a smaller network or fewer stages"
        )
