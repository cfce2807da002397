"""The weights of a network that learns: fresh ones, and stages whose entries are copies until they learn."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.networks.patterns import HINTS, Network


class Read(Protocol):
    """What an entry is worth."""

    def __call__(self, weights: Array, entry: np.uint64) -> np.float32: ...


class Promote(Protocol):
    """Let these entries be weights of their own before they are adjusted."""

    def __call__(self, weights: Array, entries: Array) -> None: ...


@cache
def reader(network: Network, entries: int) -> tuple[Read, Promote]:
    """How entries are read, and made ready to be adjusted.

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
    def promote(weights: Array, entries: Array) -> None:
        if staged:
            for k in range(len(entries)):
                weights[entries[k]] = read(weights, entries[k])

    return read, promote


def fresh_weights(size: int, network: Network, entries: int, value: float) -> Array:
    """Weights under which every position is worth `value`; later stages are marked as never learnt."""
    weights = np.zeros(size, np.float32)
    weights[:] = value / network.reads  # touches every page now rather than in the loop
    size = entries * network.sets
    weights[size : size + network.ages] = 0
    if network.stages:
        weights[entries * (HINTS if network.by_hint else 1) : size] = np.nan
    return weights
