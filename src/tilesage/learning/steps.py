"""The steps that the learning loops are made of: begin an episode, find its moves, choose one, end it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numba
import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.game import Game
from tilesage.learning.ahead import make_ahead
from tilesage.learning.thread_state import (
    BEST,
    CANDIDATES,
    GAMES,
    MOVES,
    POINTS,
    REPLAYS,
    SLOTS,
    SQUARES,
    ThreadState,
)
from tilesage.learning.weights import Promote, Read, reader
from tilesage.networks.layout import is_small
from tilesage.networks.ntuple import Evaluator
from tilesage.networks.vector_words import entries_of, prefetch

ACTIONS = (0, 1, 2, 3)
NONE = np.float32(0)
NOTHING = np.float32(-3e38)  # less than any value


class Shared(NamedTuple):
    """What all threads learn with, as long as the rate stands still."""

    rows: Array  # of the game
    weights: Array
    memory: Array  # what the rule remembers
    rate: np.float32  # divided by the entries of a position
    decay: np.float32  # λ


class Train(Protocol):
    """A learning loop: plays and learns until so many more moves or games, whichever comes first."""

    def __call__(self, shared: Shared, thread: ThreadState, moves: int, games: int) -> None: ...


class Turn(Protocol):
    """Slot g learns from the moves that were found for it, makes one, and finds the next ones."""

    def __call__(self, shared: Shared, thread: ThreadState, g: int) -> None: ...


class FindMoves(Protocol):
    """Slide slot g four ways, find the entries of the legal afterstates, and ask the memory for them."""

    def __call__(self, rows: Array, weights: Array, thread: ThreadState, g: int) -> None: ...


class ValueOfMove(Protocol):
    """What move k of slot g leads to is worth, without its reward."""

    def __call__(self, weights: Array, thread: ThreadState, g: int, k: int) -> np.float32: ...


class ChooseMove(Protocol):
    """The move of slot g with the largest reward + value, that sum (0 if there is none), and that value."""

    def __call__(self, weights: Array, thread: ThreadState, g: int) -> tuple[int, np.float32, np.float32]: ...


class ValueOf(Protocol):
    """V, the sum of these entries."""

    def __call__(self, weights: Array, entries: Array) -> np.float32: ...


class CopyEntriesOfMove(Protocol):
    """Copy the entries of the afterstate of move k of slot g to `target`."""

    def __call__(self, thread: ThreadState, g: int, k: int, target: Array) -> None: ...


class CopyEntriesOfState(Protocol):
    """Copy the entries of the position in slot g to `target`."""

    def __call__(self, thread: ThreadState, g: int, target: Array) -> None: ...


class FindEntries(Protocol):
    """The entries of any position, asked for from the memory."""

    def __call__(self, weights: Array, board: np.uint64, aux: np.uint64, target: Array) -> None: ...


class BeginEpisode(Protocol):
    """Begin an episode in slot g: a new game, perhaps with large tiles."""

    def __call__(self, rows: Array, thread: ThreadState, g: int) -> None: ...


class PlayMove(Protocol):
    """Make move k of slot g and let chance move. Returns what chance gave."""

    def __call__(self, thread: ThreadState, g: int, k: int) -> np.int64: ...


class EndEpisode(Protocol):
    """Count the finished episode of slot g. Only games from the beginning tell how well the network plays."""

    def __call__(self, thread: ThreadState, g: int) -> None: ...


class Steps(NamedTuple):
    """The compiled steps that every loop is made of, for one game and network."""

    find_moves: FindMoves
    value_of_move: ValueOfMove
    value_of: ValueOf
    copy_entries_of_move: CopyEntriesOfMove
    copy_entries_of_state: CopyEntriesOfState
    find_entries: FindEntries
    promote: Promote
    begin_episode: BeginEpisode
    play_move: PlayMove
    end_episode: EndEpisode


def steps_for(game: Game, evaluator: Evaluator, ahead: bool = False) -> Steps:
    """`ahead`: every second game begins with tiles of the stages."""
    network = evaluator.network
    read, promote = reader(network, evaluator.entries)
    return Steps(
        find_moves=_find_moves(game, evaluator),
        value_of_move=_value_of_move(evaluator, read),
        value_of=_value_of(evaluator, read),
        copy_entries_of_move=_copy_entries_of_move(evaluator),
        copy_entries_of_state=_copy_entries_of_state(evaluator),
        find_entries=_find_entries(evaluator),
        promote=promote,
        begin_episode=_begin_episode(game, network.stages, ahead),
        play_move=_play_move(game),
        end_episode=_end_episode(game),
    )


def loop_of(turn: Turn, title: str) -> Train:
    """The loop in which two games take turns: what one looks at comes from memory while the other moves."""

    @compiled(title=title)
    def train(shared: Shared, thread: ThreadState, moves: int, games: int) -> None:
        until, enough = thread.tally[MOVES] + moves, thread.tally[GAMES] + games
        while thread.tally[MOVES] < until and thread.tally[GAMES] < enough:
            for g in range(SLOTS):
                turn(shared, thread, g)

    return train


def far_reads(evaluator: Evaluator) -> Array:
    """Which of the m reads go to tables that do not fit into a near cache, so that the memory is asked early."""
    network, tables = evaluator.network, evaluator.layout.tables
    return np.array([i for i in range(network.reads) if not is_small(tables[i // network.symmetries])], np.int64)


def _find_moves(game: Game, evaluator: Evaluator) -> FindMoves:
    slide, seen, offset = game.rules.slide, evaluator.seen, evaluator.offset
    network = evaluator.network
    entries, reads = entries_of(evaluator.layout, network.symmetries, CANDIDATES), np.int64(network.reads)
    several, changed, far = network.sets > 1, network.turned or bool(network.fold), far_reads(evaluator)

    @compiled(inline=True)
    def find_moves(rows: Array, weights: Array, thread: ThreadState, g: int) -> None:
        board, aux, n = thread.board[g], thread.aux[g], np.int64(0)
        for action in numba.literal_unroll(ACTIONS):  # each direction is compiled on its own
            after, after_aux, reward = slide(rows, board, aux, action)
            thread.afters[g, n], thread.auxes[g, n], thread.rewards[g, n] = after, after_aux, reward
            n += np.int64(after != board)
        thread.legal[g] = n
        index = thread.entries[g]
        if changed:
            for k in range(n):
                thread.seen[g, k] = seen(thread.afters[g, k], thread.auxes[g, k])
            entries(thread.seen[g], index)
        else:
            entries(thread.afters[g], index)
        for k in range(n):
            if several:
                first = np.uint32(offset(thread.afters[g, k], thread.auxes[g, k]))
                for i in range(reads):
                    index[CANDIDATES * i + k] += first
            for j in range(len(far)):
                prefetch(weights, np.uint64(index[CANDIDATES * far[j] + k]))

    return find_moves


def _value_of_move(evaluator: Evaluator, read: Read) -> ValueOfMove:
    half, odd = np.int64(evaluator.reads // 2), evaluator.reads % 2 == 1

    @compiled
    def value_of_move(weights: Array, thread: ThreadState, g: int, k: int) -> np.float32:
        """Two sums side by side, because an addition waits for the one before it."""
        index = thread.entries[g]
        a, b = np.float32(0), np.float32(0)
        for i in range(half):
            a += read(weights, index[CANDIDATES * i + k])
            b += read(weights, index[CANDIDATES * (i + half) + k])
        if odd:
            b += read(weights, index[CANDIDATES * 2 * half + k])
        return a + b

    return value_of_move


def greedy_choice(value_of_move: ValueOfMove) -> ChooseMove:
    """Choose by these values."""

    @compiled(inline=True)
    def choose_move(weights: Array, thread: ThreadState, g: int) -> tuple[int, np.float32, np.float32]:
        best, total, value = 0, NOTHING, NONE
        for k in range(thread.legal[g]):  # no branches: which move wins cannot be foretold
            v = value_of_move(weights, thread, g, k)
            sum = v + np.float32(thread.rewards[g, k])
            best, value = k if sum > total else best, v if sum > total else value
            total = sum if sum > total else total
        return best, total if thread.legal[g] else NONE, value

    return choose_move


def _value_of(evaluator: Evaluator, read: Read) -> ValueOf:
    half, odd = np.int64(evaluator.reads // 2), evaluator.reads % 2 == 1

    @compiled
    def value_of(weights: Array, entries: Array) -> np.float32:
        a, b = np.float32(0), np.float32(0)
        for i in range(half):
            a += read(weights, entries[i])
            b += read(weights, entries[i + half])
        if odd:
            b += read(weights, entries[2 * half])
        return a + b

    return value_of


def _copy_entries_of_move(evaluator: Evaluator) -> CopyEntriesOfMove:
    reads = np.int64(evaluator.reads)

    @compiled
    def copy_entries_of_move(thread: ThreadState, g: int, k: int, target: Array) -> None:
        index = thread.entries[g]
        for i in range(reads):
            target[i] = index[CANDIDATES * i + k]

    return copy_entries_of_move


def _copy_entries_of_state(evaluator: Evaluator) -> CopyEntriesOfState:
    reads = np.int64(evaluator.reads)

    @compiled
    def copy_entries_of_state(thread: ThreadState, g: int, target: Array) -> None:
        for i in range(reads):
            target[i] = thread.state_entries[g, i]

    return copy_entries_of_state


def _find_entries(evaluator: Evaluator) -> FindEntries:
    network = evaluator.network
    entries, reads = entries_of(evaluator.layout, network.symmetries, 1), np.int64(network.reads)
    seen, offset, several = evaluator.seen, evaluator.offset, network.sets > 1

    @compiled
    def find_entries(weights: Array, board: np.uint64, aux: np.uint64, target: Array) -> None:
        entries(seen(board, aux), target)
        first = np.uint32(offset(board, aux)) if several else np.uint32(0)
        for i in range(reads):
            target[i] += first
            prefetch(weights, np.uint64(target[i]))

    return find_entries


def _begin_episode(game: Game, stages: tuple[int, ...], ahead: bool) -> BeginEpisode:
    fresh, value_of_board, begin_ahead = game.rules.start, game.rules.value_of_board, make_ahead(game, stages)
    score_is_value = game.score_is_value

    @compiled
    def begin_episode(rows: Array, thread: ThreadState, g: int) -> None:
        thread.origin[g] = 0
        if ahead:
            thread.board[g], thread.aux[g], thread.rng[g], thread.origin[g] = begin_ahead(rows, thread.rng[g])
        else:
            thread.board[g], thread.aux[g], thread.rng[g] = fresh(rows, thread.rng[g])
        thread.score[g] = value_of_board(thread.board[g], thread.aux[g]) if score_is_value else 0
        thread.gain[g], thread.length[g] = 0, 0

    return begin_episode


def _play_move(game: Game) -> PlayMove:
    spawn = game.rules.spawn

    @compiled(inline=True)
    def play_move(thread: ThreadState, g: int, k: int) -> np.int64:
        thread.board[g], thread.aux[g], placed, thread.rng[g] = spawn(
            thread.afters[g, k], thread.auxes[g, k], thread.rng[g]
        )
        thread.score[g] += thread.rewards[g, k] + placed
        thread.length[g] += 1
        thread.tally[MOVES] += 1
        return placed  # type: ignore[no-any-return]

    return play_move


def _end_episode(game: Game) -> EndEpisode:
    largest = game.rules.largest

    @compiled
    def end_episode(thread: ThreadState, g: int) -> None:
        if thread.origin[g] == 0:
            thread.tally[GAMES] += 1
            thread.tally[POINTS] += thread.score[g]
            thread.tally[SQUARES] += thread.score[g] * thread.score[g]
            thread.tally[BEST] = max(thread.tally[BEST], thread.score[g])
            thread.tiles[largest(thread.board[g], thread.aux[g])] += 1
        else:
            thread.tally[REPLAYS] += 1

    return end_episode
