"""What one training thread holds between two calls of a loop: its games, its unfinished updates, its tallies.

Everything is an array, so a loop can stop after any move and go on later exactly where it was, in another process
too: this is what a checkpoint keeps besides the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import seed_of
from tilesage.games.game import Game
from tilesage.networks.patterns import Network

SLOTS = 2  # games played in turn: while the memory answers for one, the other computes
CANDIDATES = 4
NO_GAME = -1  # as the length of an episode
TILES = 36  # tallies by largest tile: as many as a record has characters for
LONGEST = 1 << 17  # moves: more than any 2048 game can last
LINE = 128  # bytes that a processor fetches together: two cache lines

BY_AGE = "age"  # in checkpoints of networks by age only

# Places in `tally`.
GAMES, MOVES, POINTS, SQUARES, BEST, REPLAYS, TALLY = 0, 1, 2, 3, 4, 5, 6


class ThreadState(NamedTuple):
    """The arrays of one thread; S slots, m entries a position, h errors that wait."""

    # the episode in each slot
    rng: Array  # [S] uint64
    board: Array  # [S] uint64, the position to move from
    aux: Array  # [S] uint64
    gain: Array  # [S] int64, what chance gave since the last slide
    score: Array  # [S] int64
    length: Array  # [S] int64, moves of this episode
    origin: Array  # [S] int64, tiles of the stages that the episode began with
    oldest: Array  # [S] int64, the first of its moves that waits for its update (batch rule)
    value: Array  # [S] float32, V of the last afterstate when it was chosen (batch rule)

    # its legal moves, as `find_moves` found them
    legal: Array  # [S] int64, how many
    afters: Array  # [S, 8] uint64, the afterstates
    auxes: Array  # [S, 8] uint64
    rewards: Array  # [S, 8] int64
    seen: Array  # [S, 8] uint64, the afterstates as the tables see them
    entries: Array  # [S, 4 m] uint32, entry i of move k at 4 i + k

    # positions that wait for their update
    state_entries: Array  # [S, m] uint32, entries of the position to move from (values of states)
    ring: Array  # [S, h, m] uint32, entries of the position after move t at t modulo h (batch rule: and of its age)
    errors: Array  # [S, h] float32, the errors after them
    age: Array  # [S] uint64, the place of the last afterstate's age (networks by age)
    path_boards: Array  # [S, LONGEST or 1] uint64, the whole episode, for learning backward
    path_auxes: Array  # [S, LONGEST or 1] uint64
    path_rewards: Array  # [S, LONGEST or 1] float32, earned on the way to each of them

    # room to list what chance may do
    out_boards: Array  # [outcomes] uint64
    out_auxes: Array  # [outcomes] uint64
    out_shares: Array  # [outcomes] float64

    # what is reported
    tally: Array  # [TALLY] int64
    tiles: Array  # [TILES] int64, finished games by largest tile
    worst: Array  # [1] float64, the largest error since the last look


def new_thread_state(
    game: Game,
    network: Network,
    history: int,
    seed: int,
    thread: int,
    *,
    backward: bool = False,
    slots: int = SLOTS,
    with_age: bool = False,
) -> ThreadState:
    """Of thread number `thread`: no game has begun (`NO_GAME`). `with_age`: what waits keeps its age beside it."""
    reads = network.reads
    path = LONGEST if backward else 1
    words, counts = np.uint64, np.int64
    state = ThreadState(
        rng=np.array([seed_of(np.uint64(seed), np.uint64(1000 * thread + slot)) for slot in range(slots)], words),
        board=np.zeros(slots, words),
        aux=np.zeros(slots, words),
        gain=np.zeros(slots, counts),
        score=np.zeros(slots, counts),
        length=np.full(slots, NO_GAME, counts),
        origin=np.zeros(slots, counts),
        oldest=np.zeros(slots, counts),
        value=np.zeros(slots, np.float32),
        legal=np.zeros(slots, counts),
        afters=np.zeros((slots, 8), words),
        auxes=np.zeros((slots, 8), words),
        rewards=np.zeros((slots, 8), counts),
        seen=np.zeros((slots, 8), words),
        entries=np.zeros((slots, CANDIDATES * reads), np.uint32),
        state_entries=np.zeros((slots, reads), np.uint32),
        ring=np.zeros((slots, history, reads + with_age), np.uint32),
        errors=np.zeros((slots, history), np.float32),
        age=np.zeros(slots, words),
        path_boards=np.zeros((slots, path), words),
        path_auxes=np.zeros((slots, path), words),
        path_rewards=np.zeros((slots, path), np.float32),
        out_boards=np.zeros(game.max_placements, words),
        out_auxes=np.zeros(game.max_placements, words),
        out_shares=np.zeros(game.max_placements, np.float64),
        tally=np.zeros(TALLY, counts),
        tiles=np.zeros(TILES, counts),
        worst=np.zeros(1, np.float64),
    )
    return ThreadState._make(apart(array) for array in state)


def apart(array: Array) -> Array:
    """A copy on cache lines of its own.

    Small arrays of two threads side by side in one line would make each thread wait for the other at every move.
    """
    room = np.zeros(array.nbytes + 2 * LINE, np.uint8)
    start = -room.ctypes.data % LINE
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
