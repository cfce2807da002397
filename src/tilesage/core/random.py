"""The one generator of random numbers: SplitMix64 (Steele, Lea and Flood 2014), the same on CPU and GPU.

A generator is a `uint64` that is passed in and handed back, so that a game is a function of its seed and its actions.
"""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import compiled

GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
MIX_1 = np.uint64(0xBF58_476D_1CE4_E5B9)
MIX_2 = np.uint64(0x94D0_49BB_1331_11EB)
STREAM = np.uint64(0xD605_BBB5_8C8A_BC3D)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
LOW_32 = np.uint64(0xFFFF_FFFF)


@compiled
def mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> S30)) * MIX_1
    x = (x ^ (x >> S27)) * MIX_2
    return x ^ (x >> S31)


@compiled
def draw(rng: np.uint64) -> tuple[np.uint64, np.uint64]:
    """64 random bits, and the generator that follows."""
    rng = rng + GOLDEN
    return mix(rng), rng


@compiled
def seed_of(seed: np.uint64, stream: np.uint64) -> np.uint64:
    """The generator of one stream (a game, a thread) under a seed."""
    return mix(mix(np.uint64(seed) + GOLDEN) + np.uint64(stream) * STREAM)


@compiled
def below(bits: np.uint64, n: np.uint64) -> np.uint64:
    """A number from 0 to n - 1, from the upper 32 random bits."""
    return ((bits >> S32) * n) >> S32


@compiled
def low_half(bits: np.uint64) -> np.uint64:
    """The lower 32 random bits, to be compared with `chance_of`."""
    return bits & LOW_32


def chance_of(probability: float) -> np.uint64:
    """The bound below which 32 random bits fall with this probability."""
    return np.uint64(round(probability * 2**32))
