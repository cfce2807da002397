"""The learning rules, one small function each: how far a weight moves for an error.

All of them adjust the entries of one visited position (an afterstate or a state) by an error δ of its value.
`rate` is already divided by the number of entries m. Combined with how the error is made (below) they give every
method of the literature:

===================  ===========================================================================================
TD(0), forward       δ = r + V(next) − V, one move later                           `delayed_error`, history 1
TD(λ), delayed       δ = Σ λ^i δ_i over the next h errors, h moves later           `delayed_error`, history h
n-step               the same with λ = 1 and history n
TD(λ), backward      after the game, from its end: z = r + λ z + (1 − λ) V(next)   `backward_target`
===================  ===========================================================================================

Any of them moves weights by plain TD (`adjust`: Δw = rate · δ) or by temporal coherence (`adjust_coherently`, TC:
Beal and Smith 1999, for 2048 Jaśkowski 2018), where each weight has its own rate |Σδ| / Σ|δ|.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.networks.patterns import HINTS, Network

ZERO, ONE = np.float32(0), np.float32(1)
NO_MEMORY = 2  # length of a memory that nobody uses
AGE_RATE = np.float32(0.005)  # 0.003 and 0.01 teach as well, 0.05 much worse
AGE_SHARE = np.float32(0.1)  # of the mean error: the most that a batch of games moves an age at once


@compiled
def adjust(weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32) -> None:
    """TD: every entry moves by the same step. A memory with a place for each entry counts its visits."""
    step = error * rate
    for k in range(len(entries)):
        weights[entries[k]] += step
    if len(memory) > NO_MEMORY:
        for k in range(len(entries)):
            memory[entries[k]] += ONE


@compiled
def adjust_coherently(weights: Array, memory: Array, entries: Array, error: np.float32, rate: np.float32) -> None:
    """TC: an entry whose errors agree moves at full rate, one whose errors cancel out hardly at all.

    memory[2 i] is the sum of the errors of entry i, memory[2 i + 1] the sum of their sizes.
    """
    step, size = error * rate, abs(error)
    for k in range(len(entries)):
        i = np.int64(entries[k])
        total, path = memory[2 * i], memory[2 * i + 1]
        coherence = ONE
        if path > ZERO:
            coherence = abs(total) / path
        weights[i] += step * coherence
        memory[2 * i] = total + error
        memory[2 * i + 1] = path + size


@compiled
def adjust_age(
    weights: Array, memory: Array, age: np.uint64, error: np.float32, rate: np.float32, coherent: bool
) -> None:
    """What is usual at an age moves a little by every error met there, unless the rate is 0 and nothing learns.

    A memory takes note, as with other entries.
    """
    i = np.int64(age)
    weights[i] += error * (AGE_RATE if rate > ZERO else ZERO)
    if coherent:
        memory[2 * i] += error
        memory[2 * i + 1] += abs(error)
    elif len(memory) > NO_MEMORY:
        memory[i] += ONE


@compiled
def delayed_error(errors: Array, history: int, first: int, last: int, decay: np.float32) -> np.float32:
    """Σ decay^i · errors[first + i] up to `last`: what a position learns from the errors that followed it.

    `errors` is a ring of `history` places: error number i is kept at i modulo its length.
    """
    total, weight = ZERO, ONE
    for i in range(first, last):
        total += weight * errors[i % history]
        weight *= decay
    return total


@compiled
def backward_target(reward: np.float32, target: np.float32, value: np.float32, decay: np.float32) -> np.float32:
    """The target of the position before: λ of what came out, 1 − λ of the value that the next position now has."""
    return reward + decay * target + (ONE - decay) * value


def history_of(decay: float, steps: int = 0) -> int:
    """How many moves an update waits: `steps` if given, else until λ^h falls to 0.1."""
    if steps:
        return steps
    return 1 if decay <= 0.1 or decay == 1 else math.ceil(math.log(0.1) / math.log(decay))  # 1: backward, no waiting


@cache
def reader(network: Network, entries: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`read(weights, entry)` and `own(weights, entries)`.

    With stages, an entry that was never learnt is NaN: reading it reads the stage before; before it is adjusted, it
    becomes a copy of that (weight promotion, Jaśkowski 2018).
    """
    staged = bool(network.stages)
    hints = HINTS if network.by_hint else 1
    size = np.int64(entries * hints)

    @compiled
    def read(weights: Array, entry: np.uint64) -> np.float32:
        value = weights[entry]
        if staged and value != value:
            place = np.int64(entry)
            while value != value:
                stage, bit = place // size, 1
                while 2 * bit <= stage:
                    bit *= 2
                place -= bit * size
                value = weights[place]
        return value  # type: ignore[no-any-return]

    @compiled
    def own(weights: Array, entries: Array) -> None:
        if staged:
            for k in range(len(entries)):
                weights[entries[k]] = read(weights, entries[k])

    return read, own


def promote_all(weights: Array, network: Network, entries: int) -> None:
    """Give every entry that was never learnt the value of the stage before, so that readers need no rule."""
    size = entries * (HINTS if network.by_hint else 1)
    stages = weights[: len(weights) - network.ages].reshape(-1, size)
    for stage in range(1, len(stages)):
        before = stages[stage - (1 << (stage.bit_length() - 1))]
        np.copyto(stages[stage], before, where=np.isnan(stages[stage]))


def fresh_weights(size: int, network: Network, entries: int, value: float) -> Array:
    """Weights under which every position is worth `value`; later stages are marked as never learnt."""
    weights = np.zeros(size, np.float32)
    weights[:] = value / network.reads  # touches every page now rather than in the loop
    size = entries * network.sets
    weights[size : size + network.ages] = 0
    if network.stages:
        weights[entries * (HINTS if network.by_hint else 1) : size] = np.nan
    return weights
