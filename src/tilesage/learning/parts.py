"""The parts that the training loops share: opening a game, looking at the legal moves, closing a game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.game import Game
from tilesage.learning.ahead import make_ahead
from tilesage.learning.seat import BEST, CANDIDATES, GAMES, POINTS, REPLAYS, Seat
from tilesage.learning.weights import reader
from tilesage.networks.lanes import entries_of, prefetch
from tilesage.networks.layout import is_small
from tilesage.networks.ntuple import Evaluator

ACTIONS = (0, 1, 2, 3)
NONE = np.float32(0)
NOTHING = np.float32(-3e38)  # less than any value


@dataclass(frozen=True, eq=False)
class Parts:
    """Compiled helpers for one game and network."""

    look: Callable[..., Any]  # (rows, weights, seat, g): the legal moves of slot g and their entries
    total: Callable[..., Any]  # (weights, seat, g, k) -> V of candidate k
    total_of: Callable[..., Any]  # (weights, entries) -> V
    pick: Callable[..., Any]  # (seat, g, k, target): copy the entries of candidate k
    push: Callable[..., Any]  # (seat, g, target): copy the entries of the position itself
    locate: Callable[..., Any]  # (weights, board, aux, target): the entries of any position
    own: Callable[..., Any]  # (weights, entries): promotion before an update
    open: Callable[..., Any]  # (rows, seat, g): begin an episode
    close: Callable[..., Any]  # (seat, g): count a finished episode


def parts(game: Game, evaluator: Evaluator, ahead: bool = False) -> Parts:
    """`ahead`: every second game begins with tiles of the stages."""
    network = evaluator.network
    read, own = reader(network, evaluator.entries)
    return Parts(
        look=_look(game, evaluator),
        total=_total(evaluator, read),
        total_of=_total_of(evaluator, read),
        pick=_pick(evaluator),
        push=_push(evaluator),
        locate=_locate(evaluator),
        own=own,
        open=_open(game, network.stages, ahead),
        close=_close(game),
    )


def far_reads(evaluator: Evaluator) -> Array:
    """Which of the m reads go to tables that do not fit into a near cache, so that the memory is asked early."""
    network, tables = evaluator.network, evaluator.layout.tables
    return np.array([i for i in range(network.reads) if not is_small(tables[i // network.symmetries])], np.int64)


def _look(game: Game, evaluator: Evaluator) -> Callable[..., Any]:
    slide, seen, offset = game.rules.slide, evaluator.seen, evaluator.offset
    network = evaluator.network
    entries, reads = entries_of(evaluator.layout, network.symmetries, CANDIDATES), np.int64(network.reads)
    several, changed, far = network.sets > 1, network.turned or bool(network.fold), far_reads(evaluator)

    @compiled(inline=True)
    def look(rows: Array, weights: Array, seat: Seat, g: int) -> None:
        """Slide four ways, find the entries of the legal afterstates, and ask the memory for them."""
        board, aux, n = seat.board[g], seat.aux[g], np.int64(0)
        for action in numba.literal_unroll(ACTIONS):  # each direction is compiled on its own
            after, after_aux, reward = slide(rows, board, aux, action)
            seat.afters[g, n], seat.auxes[g, n], seat.rewards[g, n] = after, after_aux, reward
            n += np.int64(after != board)
        seat.legal[g] = n
        index = seat.entries[g]
        if changed:
            for k in range(n):
                seat.seen[g, k] = seen(seat.afters[g, k], seat.auxes[g, k])
            entries(seat.seen[g], index)
        else:
            entries(seat.afters[g], index)
        for k in range(n):
            if several:
                first = np.uint32(offset(seat.afters[g, k], seat.auxes[g, k]))
                for i in range(reads):
                    index[CANDIDATES * i + k] += first
            for j in range(len(far)):
                prefetch(weights, np.uint64(index[CANDIDATES * far[j] + k]))

    return look


def _total(evaluator: Evaluator, read: Callable[..., Any]) -> Callable[..., Any]:
    quarter = np.int64(evaluator.reads // 2)

    @compiled
    def total(weights: Array, seat: Seat, g: int, k: int) -> np.float32:
        """V of a candidate. Two sums side by side, because an addition waits for the one before it."""
        index = seat.entries[g]
        a, b = np.float32(0), np.float32(0)
        for i in range(quarter):
            a += read(weights, index[CANDIDATES * i + k])
            b += read(weights, index[CANDIDATES * (i + quarter) + k])
        return a + b

    return total


def chooser(worth: Callable[..., Any]) -> Callable[..., Any]:
    """`choose(weights, seat, g) -> (k, value)`: the legal move with the largest reward + worth; value 0 if none."""

    @compiled(inline=True)
    def choose(weights: Array, seat: Seat, g: int) -> tuple[int, np.float32]:
        best, value = 0, NOTHING
        for k in range(seat.legal[g]):  # no branches: which move wins cannot be foretold
            v = worth(weights, seat, g, k) + np.float32(seat.rewards[g, k])
            best = k if v > value else best
            value = v if v > value else value
        return best, value if seat.legal[g] else NONE

    return choose


def _total_of(evaluator: Evaluator, read: Callable[..., Any]) -> Callable[..., Any]:
    half = np.int64(evaluator.reads // 2)

    @compiled
    def total_of(weights: Array, entries: Array) -> np.float32:
        a, b = np.float32(0), np.float32(0)
        for i in range(half):
            a += read(weights, entries[i])
            b += read(weights, entries[i + half])
        return a + b

    return total_of


def _pick(evaluator: Evaluator) -> Callable[..., Any]:
    reads = np.int64(evaluator.reads)

    @compiled
    def pick(seat: Seat, g: int, k: int, target: Array) -> None:
        index = seat.entries[g]
        for i in range(reads):
            target[i] = index[CANDIDATES * i + k]

    return pick


def _push(evaluator: Evaluator) -> Callable[..., Any]:
    reads = np.int64(evaluator.reads)

    @compiled
    def push(seat: Seat, g: int, target: Array) -> None:
        for i in range(reads):
            target[i] = seat.here[g, i]

    return push


def _locate(evaluator: Evaluator) -> Callable[..., Any]:
    network = evaluator.network
    entries, reads = entries_of(evaluator.layout, network.symmetries, 1), np.int64(network.reads)
    seen, offset, several = evaluator.seen, evaluator.offset, network.sets > 1

    @compiled
    def locate(weights: Array, board: np.uint64, aux: np.uint64, target: Array) -> None:
        """The entries of a position, asked for from the memory."""
        entries(seen(board, aux), target)
        first = np.uint32(offset(board, aux)) if several else np.uint32(0)
        for i in range(reads):
            target[i] += first
            prefetch(weights, np.uint64(target[i]))

    return locate


def _open(game: Game, stages: tuple[int, ...], ahead: bool) -> Callable[..., Any]:
    fresh, value_of_board, begin_ahead = game.rules.start, game.rules.value_of_board, make_ahead(game, stages)
    score_is_value = game.score_is_value

    @compiled
    def open_episode(rows: Array, seat: Seat, g: int) -> None:
        """Begin an episode: a new game, perhaps with large tiles."""
        seat.origin[g] = 0
        if ahead:
            seat.board[g], seat.aux[g], seat.rng[g], seat.origin[g] = begin_ahead(rows, seat.rng[g])
        else:
            seat.board[g], seat.aux[g], seat.rng[g] = fresh(rows, seat.rng[g])
        seat.score[g] = value_of_board(seat.board[g], seat.aux[g]) if score_is_value else 0
        seat.gain[g], seat.length[g] = 0, 0

    return open_episode


def _close(game: Game) -> Callable[..., Any]:
    largest = game.rules.largest

    @compiled
    def close(seat: Seat, g: int) -> None:
        """Count a finished episode. Only games from the beginning tell how well the network plays."""
        if seat.origin[g] == 0:
            seat.tally[GAMES] += 1
            seat.tally[POINTS] += seat.score[g]
            seat.tally[BEST] = max(seat.tally[BEST], seat.score[g])
            seat.tiles[largest(seat.board[g], seat.aux[g])] += 1
        else:
            seat.tally[REPLAYS] += 1

    return close
