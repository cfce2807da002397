"""A network that learns on the GPU: weights, records and games in flight, all in the GPU's memory.

The steps are recorded once as a CUDA graph and replayed, because launching a kernel from Python takes longer than the
kernel. What may change between steps, the rate, lies in a small array that the kernels read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.gpu.arrange import Arrangement
from tilesage.gpu.machine import (
    BLOCK,
    LANES,
    SIMULATED,
    bits_of,
    cuda,
    float_of,
    launched,
    stride,
    thread_number,
    uint64,
)
from tilesage.gpu.repeated import Repeated
from tilesage.gpu.starts import RATE, RUNNING, SETTINGS, make_begin
from tilesage.gpu.steps import (
    BEST,
    GAMES,
    REPLAYS,
    SCORE,
    STATS,
    TILES,
    Lesson,
    Slots,
    Traces,
    make_apply,
    make_choose_afterstates,
    make_choose_states,
    make_choose_traces,
)

STEPS_A_GRAPH = 32
WITHIN_A_STEP = ("hit", "hit_auxes", "hit_ages", "owned", "traces")
WIDE = (1, BLOCK) if SIMULATED else (2048, BLOCK)  # a grid for loops over all weights
HIGH_HALF, TWO, ZERO = np.uint64(32), np.uint64(2), np.uint64(0)
GAMES_A_BLOCK = BLOCK // LANES
MOST_GAMES = 1 << 16  # so that a record counts every hit of a step: 20 bits, at most 8 hits a game


def zeros(kind: str, *shape: int) -> Any:
    """An array on the GPU, its kind by a letter."""
    return cuda.to_device(np.zeros(shape, {"u": np.uint64, "f": np.float32, "i": np.int32}[kind]))


@launched
def fill(array: Array, value: Any) -> None:
    i = thread_number()
    while i < array.size:
        array[i] = value
        i += stride()


@launched
def soften(records: Array, factor: Any) -> None:
    """E and A of every weight times `factor`: their ratio stays, but they turn faster again."""
    i = thread_number()
    while i < records.size // 2:
        memory = records[i * TWO + uint64(1)]
        e, a = float_of(memory) * factor, float_of(memory >> HIGH_HALF) * factor
        records[i * TWO + uint64(1)] = bits_of(e) | (bits_of(a) << HIGH_HALF)
        i += stride()


@launched
def average(mean: Array, weights: Array, share: Any) -> None:
    """Move the mean by `share` of the way to the weights; what was never learnt (NaN) has no mean yet."""
    i = thread_number()
    while i < weights.size:
        before, now = mean[i], weights[i]
        mean[i] = before + (now - before) * share if before == before else now
        i += stride()


def make_deal(lesson: Lesson) -> Any:
    """The kernel that starts a game in every slot."""
    begin = make_begin(lesson)

    @launched
    def deal(rows: Array, slots: Slots, seed: np.uint64) -> None:
        g = thread_number()
        if g < slots.boards.size:
            begin(rows, g, slots, seed_of(seed, g))

    return deal


@cache
def kernels_of(lesson: Lesson) -> tuple[Any, Any, Any]:
    """The kernels that choose, apply and deal, made once for every lesson."""
    make_choose = make_choose_traces if lesson.history > 1 else make_choose_afterstates
    choose = (make_choose_states if lesson.of_states else make_choose)(lesson)
    return choose, make_apply(lesson), make_deal(lesson)


class Learner:
    """Weights that learn from many games at once.

    `run` makes every game in flight play that many moves. A seed gives the same weights, bit for bit, on every GPU.
    """

    def __init__(self, lesson: Lesson, games: int, seed: int = 1, weights: Array | float = 0.0) -> None:
        self.lesson = lesson
        self.games = max(GAMES_A_BLOCK, min(MOST_GAMES, games) // GAMES_A_BLOCK * GAMES_A_BLOCK)
        self.stream = cuda.stream()
        self.rows = cuda.to_device(np.array(lesson.game.rows))
        self.weights = cuda.device_array(lesson.tables.weights, np.float32)
        self.records = cuda.device_array(lesson.tables.weights * lesson.words, np.uint64)
        self.arrangement = Arrangement(lesson.evaluator)
        self.mean: Any = None
        self.averaged = 0
        self.settings = np.zeros(SETTINGS, np.float32)
        self.settings_there = cuda.to_device(self.settings)
        self.stats = cuda.to_device(np.zeros(STATS, np.uint64))
        self.slots = self._new_slots()
        self.choose, self.apply, self.deal = kernels_of(lesson)
        self.set_weights(weights)
        self.forget()
        self.graph: Repeated | None = None
        self._deal(seed)

    def _new_slots(self) -> Slots:
        n, owned = self.games, np.uint8 if len(self.lesson.tables.entries) <= 8 else np.int32
        h, waiting = self.lesson.history, n if self.lesson.history > 1 else 1
        traces = Traces._make(
            [*(zeros(kind, h, waiting) for kind in "uufu"), *(zeros("i", waiting) for _ in range(2))]
        )
        return Slots._make(
            [*(zeros(kind, n) for kind in "uuuuuffiiuuuu"), cuda.to_device(np.zeros(LANES * n, owned)), traces]
        )

    def _deal(self, seed: int) -> None:
        grid = (self.games + BLOCK - 1) // BLOCK
        self.deal[grid, BLOCK, self.stream](self.rows, self.slots, np.uint64(seed))
        self.stream.synchronize()

    def _step(self) -> None:
        grid = self.games * LANES // BLOCK
        self.choose[grid, BLOCK, self.stream](
            self.weights, self.records, self.rows, self.slots, self.stats, self.settings_there
        )
        self.apply[grid, BLOCK, self.stream](self.weights, self.records, self.slots, self.settings_there)

    def _many_steps(self) -> None:
        for _ in range(STEPS_A_GRAPH):
            self._step()

    def warm_up(self) -> None:
        """Compile the kernels and record the graph; while the settings say 0, they return at once."""
        self._step()
        self.stream.synchronize()
        self.graph = Repeated(self._many_steps, self.stream)

    def run(self, steps: int) -> int:
        """Every game in flight makes `steps` moves. Returns how many moves that were."""
        if self.graph is None:
            self.warm_up()
        assert self.graph is not None
        if not self.settings[RUNNING]:
            raise RuntimeError("set a rate before the first step")
        for _ in range(steps // STEPS_A_GRAPH):
            self.graph()
        for _ in range(steps % STEPS_A_GRAPH):
            self._step()
        self.stream.synchronize()
        return steps * self.games

    def set_rate(self, rate: float) -> None:
        """The rate from now on."""
        new = np.zeros(SETTINGS, np.float32)
        new[RATE], new[RUNNING] = rate, 1
        if self.graph is None:
            self.warm_up()
        if (new != self.settings).any():
            self.settings = new
            self.settings_there.copy_to_device(new, stream=self.stream)
            self.stream.synchronize()

    def set_weights(self, weights: Array | float) -> None:
        """All weights, in the order of the CPU and of files, or one number for every weight."""
        if isinstance(weights, np.ndarray):
            self.arrangement.to_gpu(self.weights, weights)
        else:
            self._fill(self.weights, np.float32(weights))

    def _fill(self, array: Any, value: Any) -> None:
        if SIMULATED:
            array.copy_to_device(np.full(array.size, value))
        else:
            fill[(*WIDE, self.stream)](array, value)
        self.stream.synchronize()

    def forget(self) -> None:
        """Fresh records: no pending errors, E = A = 0."""
        self._fill(self.records, ZERO)

    def soften(self, factor: float) -> None:
        """E and A times `factor`."""
        if self.lesson.coherence:
            soften[(*WIDE, self.stream)](self.records, np.float32(factor))
            self.stream.synchronize()

    def average(self) -> None:
        """Take the weights as they are now into their mean, which leans on the last tenth of all those taken in.

        Polynomial-decay averaging (Shamir and Zhang 2013): the n-th weights count for 10 / (n + 9).
        """
        if self.mean is None:
            self.mean = cuda.device_array(self.weights.size, np.float32)
        self.averaged += 1
        share = np.float32(10 / (self.averaged + 9))
        if self.averaged == 1:
            self.mean.copy_to_device(self.weights, stream=self.stream)
        else:
            average[(*WIDE, self.stream)](self.mean, self.weights, share)
        self.stream.synchronize()

    def use_average(self) -> None:
        """Go on from the mean, and begin a new one."""
        if self.averaged:
            self.weights.copy_to_device(self.mean, stream=self.stream)
            self.averaged = 0
            self.stream.synchronize()

    def host_weights(self, averaged: bool = False) -> Array:
        """A copy of the weights, or of their mean where there is one, in the order of the CPU and of files."""
        return self.arrangement.to_cpu(self.mean if averaged and self.averaged else self.weights)

    def host_memory(self) -> Array:
        """[2 · weights] a copy of E and A, one after the other for each weight, in the order of the CPU."""
        return self.arrangement.to_cpu(self.records, words=2).view(np.float32)

    def set_memory(self, memory: Array) -> None:
        """Put E and A back."""
        self.arrangement.to_gpu(self.records, memory.view(np.uint64), words=2)

    def set_average(self, mean: Array, averaged: int) -> None:
        """Put the mean back, of so many weights."""
        self.mean = cuda.device_array(self.weights.size, np.float32)
        self.arrangement.to_gpu(self.mean, mean)
        self.averaged = averaged

    def largest_value(self) -> float:
        """The largest value, or the worst, that a game in flight has now."""
        return float(np.abs(self.slots.values.copy_to_host()).max())

    def take_stats(self) -> dict[str, Any]:
        """The games finished since the last call: how many, their scores and largest tiles."""
        stats = self.stats.copy_to_host()
        self.stats.copy_to_device(np.zeros(STATS, np.uint64))
        tiles = len(self.lesson.game.tiles)
        return {
            "games": int(stats[GAMES]),
            "score": int(stats[SCORE]),
            "max": int(stats[BEST]),
            "replays": int(stats[REPLAYS]),
            "tiles": [int(n) for n in stats[TILES : TILES + tiles]],
        }

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
            if games[name].shape != array.shape:
                raise InputError(
                    f"{array.shape[0]} games are in flight here, {len(games[name])} where this comes from"
                )
            array.copy_to_device(np.ascontiguousarray(games[name]).astype(array.dtype))
