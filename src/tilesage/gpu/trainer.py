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
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import SIMULATED
from tilesage.gpu.memory import check_room
from tilesage.gpu.restoring import check_state
from tilesage.learning.config import GIGABYTE, TrainConfig, free_memory
from tilesage.learning.registry import as_array, from_array
from tilesage.learning.rules import UpdateRule
from tilesage.learning.trainer import SOFTNESS, TOO_LARGE, Tally
from tilesage.learning.weights import fresh_weights
from tilesage.networks.ntuple import evaluator, promote_all

GAMES_IN_FLIGHT = 1 << 15
MOST_HISTORY = 32
STEPS_A_LOOK = 1024  # between two looks at the weights for their mean
GAME, WAITING = 160, 28  # bytes of a game in flight, and of each afterstate of it that waits
SMALLER = "take a smaller network, fewer stages, --no-average or --rule td"


class GpuTrainer:
    """See `Trainer`. Reproducible bit for bit: the same settings and the same number of moves, the same weights."""

    def __init__(self, config: TrainConfig) -> None:
        check_supported(config)
        self.config = config
        self.game, self.network = config.the_game, config.the_network
        self.evaluator = evaluator(self.game, self.network)
        self.rule = config.phase_list[0].rule
        self.done = self.steps = 0
        words = max(words_of(phase.rule) for phase in config.phase_list)
        flight = config.flight or GAMES_IN_FLIGHT
        check_memory(config, self.evaluator.size, words, flight)
        lesson = Lesson(
            self.game,
            self.evaluator,
            of_states=config.of == "states",
            coherence=self.rule.gpu == "tc",
            ahead=config.start == "ahead",
            history=config.history,
            decay=config.trace,
        )
        weights = fresh_weights(self.evaluator.size, self.network, self.evaluator.entries, config.optimism)
        self.learner = Learner(lesson, flight, config.seed, weights, words)
        self._warm_up()

    def _warm_up(self) -> None:
        """Compile before any budget is spent on it."""
        if not SIMULATED:
            print(f"compiling for {gpu_name()} … (some ten seconds, at every start)", file=sys.stderr, flush=True)
        self.learner.warm_up()

    @property
    def stride(self) -> int:
        """Moves at a time, a tenth of a second or so, and a hundredth of the run."""
        moves = STEPS_A_LOOK * self.learner.games
        if self.config.moves:
            moves = min(moves, max(self.learner.games, self.config.moves // 100))
        return moves

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        begin, total = time.perf_counter(), Tally()
        self.learner.set_rate(rate)
        wanted = max(1, -(-moves // self.learner.games))
        while wanted > 0 and total.games < games:
            steps = min(wanted, STEPS_A_LOOK - self.steps % STEPS_A_LOOK)
            if games <= self.learner.games:  # else there is no need to look after every graph
                steps = min(steps, STEPS_A_GRAPH)
            total.add(self._run(steps))
            wanted -= steps
        total.worst = self.learner.take_worst()
        if not total.worst < TOO_LARGE:
            raise InputError(
                f"training diverged: an error of {total.worst:.3g} points; lower --rate, --decay or --optimism"
            )
        total.seconds = time.perf_counter() - begin
        self.done += total.moves
        return total

    def _run(self, steps: int) -> Tally:
        moves = self.learner.run(steps)
        self.steps += steps
        if self.config.average and self.steps % STEPS_A_LOOK == 0:
            self.learner.average()
        found = self.learner.take_stats()
        tally = Tally(found["games"], moves - found["idle"], found["score"], found["max"], found["replays"])
        tally.tiles[: len(found["tiles"])] = found["tiles"]
        return tally

    @property
    def part(self) -> float:
        """How much of the time between two looks at the weights has passed since the last one."""
        return self.steps % STEPS_A_LOOK / STEPS_A_LOOK

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        """A new rule with fresh memory; or the same with softened memory, from the mean of the weights."""
        if self.config.average:
            self.learner.use_average(self.part)
        if soften:
            self.learner.soften(SOFTNESS)
            return
        self.rule = rule
        self.learner.relearn(rule.gpu == "tc")
        self._warm_up()

    def average(self, afresh: bool = False) -> None:
        """Nothing: here the mean is taken all along."""

    def weights(self) -> Array:
        found = self.learner.host_average(self.part)
        if self.network.stages:
            promote_all(found, self.network, self.evaluator.entries)
        return found

    def state(self) -> dict[str, Array]:
        learner = self.learner
        counts = [self.done, self.steps, learner.averaged]
        found = {"weights": learner.host_weights(), "done": np.array(counts, np.int64), "rule": as_array(self.rule)}
        if learner.lesson.coherence:
            found["memory"] = learner.host_memory()
        if learner.averaged:
            found["mean"] = learner.host_average(self.part)  # the model
        if learner.averaged and self.part:
            found["looked"] = learner.host_average()  # the mean of all looks, from which learning goes on
        return found | {f"games.{name}": array for name, array in learner.host_games().items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        if "games.boards" not in state:
            raise InputError("this run was trained on the CPU: resume it there, or start a new one from its model")
        rule = from_array(state["rule"])
        if rule.name != self.rule.name:
            self.begin_phase(rule)
        check_state(self.learner, state, STEPS_A_LOOK)
        self.done, self.steps, averaged = (int(x) for x in state["done"])
        self.learner.set_weights(np.asarray(state["weights"]))
        if self.learner.lesson.coherence:
            self.learner.set_memory(np.asarray(state["memory"]))
        if averaged:
            self.learner.set_average(np.asarray(state["looked" if self.part else "mean"]), averaged)
        prefix = "games."
        self.learner.set_games({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})

    def close(self) -> None:
        """Nothing to close: the memory goes back with the learner."""


def words_of(rule: UpdateRule) -> int:
    """64-bit words of a weight's record."""
    return 2 if rule.gpu == "tc" else 1


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


def check_memory(config: TrainConfig, weights: int, words: int, flight: int) -> None:
    """Refuse what does not fit, on the GPU or here, before taking any of it."""
    copied = 8 if words > 1 or config.average else 4  # what goes over passes through a copy in the other order
    games = flight * (GAME + WAITING * config.history)
    check_room(weights * (4 + 8 * words + 4 * config.average + copied) + games, config.network, SMALLER)
    needed, free = config.memory_needed() + 4 * weights, free_memory()  # with the mean of all looks
    if needed > free:
        raise InputError(
            f"a checkpoint of {config.network} takes {needed / GIGABYTE:.1f} GiB of this machine's memory, "
            f"{free / GIGABYTE:.1f} GiB are free: {SMALLER}"
        )
