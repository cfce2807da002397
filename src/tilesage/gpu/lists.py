"""Lists that grow on the GPU, many threads at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilesage.core.compiler import Array
from tilesage.gpu.machine import cuda, device, int64

# Places in `counts`: how long the lists are, whether one is full, into how many parts the games are divided and whose
# turn it is, whether the table must be swept; then where each layer of a list ends.
AFTERSTATES, POSITIONS, QUESTIONS, FULL, PARTS, TURN, SWEPT = range(7)
AFTERSTATE_ENDS, POSITION_ENDS, QUESTION_ENDS, COUNTS = 8, 24, 40, 56
LEAF = -1.0  # instead of the probability of a path
ILLEGAL, RESTING = -1, -2  # instead of the number of an afterstate


class Afterstates(NamedTuple):
    """Boards after a move, layer by layer."""

    boards: Any  # [nodes] uint64
    auxes: Any  # [nodes] uint64
    shares: Any  # [nodes] float64, the probability of the path from the root
    values: Any  # [nodes] int64


class Positions(NamedTuple):
    """What chance made of them, layer by layer."""

    boards: Any  # [nodes] uint64
    auxes: Any  # [nodes] uint64
    shares: Any  # [nodes] float64, the probability of the path from the root, or LEAF
    chances: Any  # [nodes] float64, the probability beside its siblings
    parents: Any  # [nodes] int32, the afterstate before it
    values: Any  # [nodes] int64, of leaves
    entries: Any  # [nodes, width] int32, where the table knows the afterstates of the moves that are followed
    rewards: Any  # [nodes, width] int32, of those moves, ILLEGAL where there are fewer


class Table(NamedTuple):
    """Where the afterstates of a step lie."""

    keys: Any  # [entries] uint64, 0 where there is none
    places: Any  # [entries] int32


class Roots(NamedTuple):
    """The moves to be compared."""

    afterstates: Any  # [games, moves] int32, or ILLEGAL; RESTING where a game is not searched in this step
    rewards: Any  # [games, moves] int32
    ways: Any  # [games] int32, the symmetry by which the board was seen


@device
def reserve(counts: Array, kind: int, wanted: int, room: int) -> Any:
    """The first of `wanted` places in a list, or -1 when there is no more room."""
    first = cuda.atomic.add(counts, kind, int64(wanted))
    if first + wanted > room:
        counts[FULL] = 1
        return int64(-1)
    return first
