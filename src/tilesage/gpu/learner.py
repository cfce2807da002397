"""A network that learns on the GPU: weights, records and games in flight, all in the GPU's memory.

The steps are recorded once as a CUDA graph and replayed, because launching a kernel from Python takes longer than the
kernel. What may change between steps, the rate, lies in a small array that the kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.gpu.arrange import Arrangement
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import BLOCK, LANES, bits_of, cuda, float_of, launched, stride, thread_number
from tilesage.gpu.memory import WIDE, fill, new, zeros
from tilesage.gpu.repeated import repeated
from tilesage.gpu.slots import BEST, GAMES, IDLE, REPLAYS, SCORE, STATS, TILES, new_slots
from tilesage.gpu.steps import RATE, RUNNING, SETTINGS, build

STEPS_A_GRAPH = 32
WITHIN_A_STEP = ("hit", "hit_auxes", "hit_ages", "owned", "worst", "traces")
HIGH_HALF, ZERO = np.uint64(32), np.uint64(0)
GAMES_A_BLOCK = BLOCK // LANES
MOST_GAMES = 1 << 16  # so that a record counts every hit of a step: 20 bits, at most 8 hits a game
LEANING = 10  # the mean of the weights leans on the last tenth of them


@launched
def soften(records: Array, factor: Any) -> None:
    """E and A of every weight times `factor`: their ratio stays, but they turn faster again."""
    for i in range(thread_number(), records.size // 2, stride()):
        memory = records[2 * i + 1]
        e, a = float_of(memory) * factor, float_of(memory >> HIGH_HALF) * factor
        records[2 * i + 1] = bits_of(e) | (bits_of(a) << HIGH_HALF)


@launched
def average(mean: Array, weights: Array, share: Any) -> None:
    """Move the mean by `share` of the way to the weights; what was never learnt (NaN) has no mean yet."""
    for i in range(thread_number(), weights.size, stride()):
        before, now = mean[i], weights[i]
        mean[i] = before + (now - before) * share if before == before else now


class Learner:
    """Weights that learn from many games at once.

    `run` makes every game in flight play that many moves. A seed gives the same weights, bit for bit, on every GPU.
    `words` is how large a record may become when the learner goes on by another rule.
    """

    def __init__(
        self, lesson: Lesson, games: int, seed: int = 1, weights: Array | float = 0.0, words: int = 0
    ) -> None:
        self.games = max(GAMES_A_BLOCK, min(MOST_GAMES, games) // GAMES_A_BLOCK * GAMES_A_BLOCK)
        self.stream = cuda.stream()
        self.rows = cuda.to_device(np.array(lesson.game.rows))
        self.weights = new("f", lesson.evaluator.size)
        self.room = new("u", lesson.evaluator.size * max(words, lesson.words))  # of the records
        self.arrangement = Arrangement(lesson.evaluator)
        self.mean: Any = None
        self.averaged = 0
        self.stats = zeros("u", STATS)
        self.slots = new_slots(lesson, self.games)
        self.learn_by(lesson)
        self.set_weights(weights)
        self.kernels.deal[-(-self.games // BLOCK), BLOCK](self.rows, self.slots, np.uint64(seed))
        cuda.synchronize()

    def learn_by(self, lesson: Lesson) -> None:
        """From now on by this lesson, which may have another rule than the one before; with fresh records."""
        self.lesson = lesson
        self.graph: Callable[[], None] | None = None
        self.kernels = build(lesson)
        self.records = self.room[: lesson.evaluator.size * lesson.words]
        self.settings = np.zeros(SETTINGS, np.float32)
        self.settings_there = cuda.to_device(self.settings)
        fill(self.records, ZERO)

    def relearn(self, coherence: bool) -> None:
        """Go on by TC or TD, with fresh records: weights and games stay where they are."""
        self.learn_by(replace(self.lesson, coherence=coherence))

    def _step(self) -> None:
        grid = self.games * LANES // BLOCK
        self.kernels.choose[grid, BLOCK, self.stream](
            self.weights, self.records, self.rows, self.slots, self.stats, self.settings_there
        )
        self.kernels.apply[grid, BLOCK, self.stream](self.weights, self.records, self.slots, self.settings_there)

    def _many_steps(self) -> None:
        for _ in range(STEPS_A_GRAPH):
            self._step()

    def warm_up(self) -> None:
        """Compile the kernels and record the graph; while the settings say 0, they return at once."""
        self._step()
        self.stream.synchronize()
        self.graph = repeated(self._many_steps, self.stream)

    def run(self, steps: int) -> int:
        """Every game in flight makes `steps` moves; one that ends makes none. Returns how many those would be."""
        if self.graph is None or not self.settings[RUNNING]:
            raise RuntimeError("set a rate before the first step")
        for _ in range(steps // STEPS_A_GRAPH):
            self.graph()
        for _ in range(steps % STEPS_A_GRAPH):
            self._step()
        self.stream.synchronize()
        return steps * self.games

    def set_rate(self, rate: float) -> None:
        """The rate from now on."""
        settings = np.zeros(SETTINGS, np.float32)
        settings[RATE], settings[RUNNING] = rate, 1
        if self.graph is None:
            self.warm_up()
        if (settings != self.settings).any():
            self.settings = settings
            self.settings_there.copy_to_device(settings)

    def set_weights(self, weights: Array | float) -> None:
        """All weights, in the order of the CPU and of files, or one number for every weight."""
        if isinstance(weights, np.ndarray):
            self.arrangement.to_gpu(self.weights, weights)
        else:
            fill(self.weights, np.float32(weights))

    def soften(self, factor: float) -> None:
        """E and A times `factor`."""
        if self.lesson.coherence:
            soften[WIDE](self.records, np.float32(factor))

    def average(self) -> None:
        """Take the weights as they are now into their mean, which leans on the last tenth of all those taken in.

        Polynomial-decay averaging (Shamir and Zhang 2013): the n-th weights count for 10 / (n + 9).
        """
        if self.mean is None:
            self.mean = new("f", self.weights.size)
        if self.averaged:
            average[WIDE](self.mean, self.weights, np.float32(LEANING / (self.averaged + LEANING)))
        else:
            self.mean.copy_to_device(self.weights)
        self.averaged += 1

    def averaged_weights(self, part: float = 0.0) -> Any:
        """Their mean, with the weights of now for a part of a look, where there is one; else these weights alone."""
        if not (self.averaged and part):
            return self.mean if self.averaged else self.weights
        mean = new("f", self.weights.size)
        mean.copy_to_device(self.mean)
        average[WIDE](mean, self.weights, np.float32(part * LEANING / (self.averaged + LEANING)))
        return mean

    def use_average(self, part: float = 0.0) -> None:
        """Go on from the mean, and begin a new one."""
        if self.averaged:
            self.weights.copy_to_device(self.averaged_weights(part))
            self.averaged = 0

    def host_weights(self) -> Array:
        """A copy of the weights, in the order of the CPU and of files."""
        return self.arrangement.to_cpu(self.weights)

    def host_average(self, part: float = 0.0) -> Array:
        """A copy of their mean, as `averaged_weights` says."""
        return self.arrangement.to_cpu(self.averaged_weights(part))

    def host_memory(self) -> Array:
        """[2 · weights] a copy of E and A, one after the other for each weight, in the order of the CPU."""
        return self.arrangement.to_cpu(self.records, words=2).view(np.float32)

    def set_memory(self, memory: Array) -> None:
        """Put E and A back."""
        self.arrangement.to_gpu(self.records, memory.view(np.uint64), words=2)

    def set_average(self, mean: Array, averaged: int) -> None:
        """Put the mean back, of so many weights."""
        self.mean, self.averaged = new("f", self.weights.size), averaged
        self.arrangement.to_gpu(self.mean, mean)

    def take_worst(self) -> float:
        """The largest error since the last call; infinite where values are no numbers any more."""
        worst = self.slots.worst.copy_to_host().max()
        self.slots.worst.copy_to_device(np.zeros(self.games, np.float32))
        return float(worst) if np.isfinite(self.slots.values.copy_to_host()).all() else float("inf")

    def take_stats(self) -> dict[str, Any]:
        """Since the last call: the games finished, their scores and largest tiles, and the moves not made."""
        stats = self.stats.copy_to_host()
        self.stats.copy_to_device(np.zeros(STATS, np.uint64))
        tiles = len(self.lesson.game.tiles)
        places = {"games": GAMES, "score": SCORE, "max": BEST, "replays": REPLAYS, "idle": IDLE}
        found: dict[str, Any] = {name: int(stats[place]) for name, place in places.items()}
        return found | {"tiles": [int(n) for n in stats[TILES : TILES + tiles]]}

    def _lasting(self) -> dict[str, Any]:
        """The arrays of the games in flight that matter between two steps."""
        left_out = WITHIN_A_STEP if self.lesson.by_age else (*WITHIN_A_STEP, "ages")
        slots = {name: array for name, array in self.slots._asdict().items() if name not in left_out}
        traces = self.slots.traces._asdict() if self.lesson.history > 1 else {}
        return slots | {f"trace_{name}": array for name, array in traces.items()}

    def host_games(self) -> dict[str, Array]:
        """Copies of everything about the games in flight, whole numbers as int64."""
        found = {name: array.copy_to_host() for name, array in self._lasting().items()}
        return {name: a.astype(np.int64) if a.dtype == np.int32 else a for name, a in found.items()}

    def set_games(self, games: Mapping[str, Array]) -> None:
        """Put the games in flight back."""
        for name, array in self._lasting().items():
            array.copy_to_device(np.ascontiguousarray(games[name]).astype(array.dtype))
