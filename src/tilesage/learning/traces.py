"""How far back an error reaches: what a visited position learns from the errors and points that follow it.

===================  ===========================================================================================
TD(0), forward       δ = r + V(next) − V, one move later                           `delayed_error`, history 1
TD(λ), delayed       δ = Σ λ^i δ_i over the next h errors, h moves later           `delayed_error`, history h
n-step               the same with λ = 1 and history n
TD(λ), backward      after the game, from its end: z = r + λ z + (1 − λ) V(next)   `backward_target`
===================  ===========================================================================================

What a weight makes of such an error is its update rule's business (rules.py).
"""

from __future__ import annotations

import math

import numpy as np

from tilesage.core.compiler import Array, compiled

ZERO, ONE = np.float32(0), np.float32(1)


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
