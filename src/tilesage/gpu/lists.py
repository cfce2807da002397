"""Lists that grow on the GPU, many threads at a time, layer by layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import mix
from tilesage.gpu.machine import cuda, device, int64, thread_number
from tilesage.search.expectimax import SHARES

# Places in `counts`: how long the lists are, whether one is full, into how many parts the games are divided and whose
# turn it is, whether the table must be swept; then where each layer of a list ends.
AFTERSTATES, POSITIONS, QUESTIONS, FULL, PARTS, TURN, SWEPT = range(7)
AFTERSTATE_ENDS, POSITION_ENDS, QUESTION_ENDS, COUNTS = 8, 24, 40, 56
LEAF = -1.0  # instead of the probability of a path
ILLEGAL, RESTING = -1, -2  # instead of the number of an afterstate
NO_ROOM = -1
LONGEST_LOOK = 64  # places of the table in a row
ZERO, ONE = np.uint64(0), np.uint64(1)


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


class Questions(NamedTuple):
    """Afterstates whose values are to be read from the network, layer by layer."""

    boards: Any  # [questions] uint64
    auxes: Any  # [questions] uint64


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
def layer(counts: Array, ends: int, grown: int, level: int) -> Any:
    """Where this thread begins in a layer of a list, and where the layer ends; at once if a list was full.

    The first thread notes where the next layer begins.
    """
    if counts[FULL] != 0:
        return int64(0), int64(0)
    end = counts[grown]
    if thread_number() == 0:
        counts[ends + level + 1] = end
    return counts[ends + level] + int64(thread_number()), end


@device
def reserve(counts: Array, kind: int, wanted: int, room: int) -> Any:
    """The first of `wanted` places in a list, or NO_ROOM."""
    first = cuda.atomic.add(counts, kind, int64(wanted))
    if first + wanted > room:
        counts[FULL] = 1
        return int64(NO_ROOM)
    return first


@device
def add_afterstate(afterstates: Afterstates, counts: Array, board: np.uint64, aux: np.uint64, share: float) -> Any:
    """Its number, or NO_ROOM."""
    i = reserve(counts, AFTERSTATES, 1, afterstates.boards.size)
    if i != NO_ROOM:
        afterstates.boards[i], afterstates.auxes[i], afterstates.shares[i] = board, aux, share
    return i


@device
def enter(table: Table, key: np.uint64, counts: Array) -> Any:
    """The entry of this key, and whether it is new; NO_ROOM when all are taken."""
    last = np.uint64(table.keys.size - 1)
    entry = key & last
    for _ in range(LONGEST_LOOK):
        found = cuda.atomic.cas(table.keys, entry, ZERO, key)
        if found == ZERO or found == key:
            return int64(entry), found == ZERO
        entry = (entry + ONE) & last
    counts[FULL] = 1
    return int64(NO_ROOM), False


@device
def follow(
    afterstates: Afterstates, table: Table, counts: Array, board: np.uint64, aux: np.uint64, share: float, level: int
) -> Any:
    """Where the table knows this afterstate, the same entry for all equals; a new one joins the list."""
    key = mix(board ^ mix(aux ^ mix(np.uint64(share * SHARES) ^ np.uint64(level)))) | ONE
    entry, new = enter(table, key, counts)
    if new:
        i = add_afterstate(afterstates, counts, board, aux, share)
        if i != NO_ROOM:
            table.places[entry] = i
    return entry
