"""Values of states, the board before the move: choosing asks what chance may do after every move.

In 2048 a new tile changes only the entries whose pattern covers its cell, and V is a sum. So the expectation over
all cells and both tiles is the value of the afterstate plus, for every entry and every empty cell it covers, the mean
difference that a tile there makes: a third of the reads of trying every board, and most of them in cache lines that
were just read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import LOW_BITS, ONE, count, empty_cells
from tilesage.games.game import Game
from tilesage.learning.rules import UpdateRule
from tilesage.learning.steps import NONE, Shared, Steps, Train, ValueOfMove, greedy_choice, loop_of, steps_for
from tilesage.learning.thread_state import CANDIDATES, NO_GAME, ThreadState
from tilesage.learning.traces import delayed_error
from tilesage.learning.weights import reader
from tilesage.networks.layout import Layout
from tilesage.networks.ntuple import Evaluator, evaluator
from tilesage.networks.patterns import Network
from tilesage.networks.vector_words import symmetric_words

LOWEST_STAGE = 3  # stages by smaller tiles could change with a new tile


def expectation(game: Game, network: Network, steps: Steps) -> ValueOfMove:
    """E[reward of chance + V(next state)] after a move."""
    ev = evaluator(game, network)
    if game.second_rate is not None and not any(stage < LOWEST_STAGE for stage in network.stages):
        return _expectation_by_differences(game, ev, steps)
    return _expectation_by_outcomes(game, ev)


class Covers(NamedTuple):
    """Which reads cover a cell, and what a tile there adds to their entries: those of cell c from begins[c] on."""

    begins: Array  # [17]
    reads: Array  # [covers]
    firsts: Array  # [covers] with a tile 1
    seconds: Array  # [covers] with a tile 2


def covers_of(layout: Layout, symmetries: int) -> Covers:
    """Found by trying: the entries of the empty board, and of one tile on each cell."""
    found, begins = [], [0]
    empty = _all_entries(layout, symmetries, 0)
    for cell in range(16):
        first, second = (_all_entries(layout, symmetries, tile << 4 * cell) - empty for tile in (1, 2))
        covering = np.nonzero(first)[0]
        found.append((covering, first[covering], second[covering]))
        begins.append(begins[-1] + len(covering))
    columns = (np.concatenate(column).astype(np.uint32) for column in zip(*found, strict=True))
    return Covers(np.array(begins, np.int64), *columns)


def _all_entries(layout: Layout, symmetries: int, board: int) -> Array:
    """[reads] the entries of a board, in the order of `entries_of`."""
    words = symmetric_words(board, symmetries)
    return np.array([int(table.entry(word)) for table in layout.tables for word in words], np.int64)


def _expectation_by_differences(game: Game, ev: Evaluator, steps: Steps) -> ValueOfMove:
    network = ev.network
    begins, reads, firsts, seconds = covers_of(ev.layout, network.symmetries)
    read, _ = reader(network, ev.entries)
    value_of_move, changed = steps.value_of_move, network.turned or bool(network.fold)
    places = CANDIDATES * reads
    second_rate = np.float32(game.second_rate or 0)
    first_rate = np.float32(1) - second_rate

    @compiled
    def expect(weights: Array, thread: ThreadState, g: int, k: int) -> np.float32:
        """By empty cells, not by entries: which cells of an entry are empty is nothing a processor can guess."""
        index = thread.entries[g]
        more, less = np.float32(0), np.float32(0)
        cells = empty_cells(thread.seen[g, k] if changed else thread.afters[g, k])
        share = np.float32(1) / np.float32(count(cells))
        while cells:
            cell = np.int64(count((cells - ONE) & ~cells & LOW_BITS))
            cells &= cells - ONE
            for j in range(begins[cell], begins[cell + 1]):
                entry = index[places[j] + np.uint32(k)]
                more += first_rate * read(weights, entry + firsts[j])
                more += second_rate * read(weights, entry + seconds[j])
                less += read(weights, entry)
        return value_of_move(weights, thread, g, k) + (more - less) * share

    return expect


def _expectation_by_outcomes(game: Game, ev: Evaluator) -> ValueOfMove:
    """Any game: every placement, and every hint where tables go by hint. The reward of chance counts."""
    placements, value, gained = game.rules.placements, ev.value, game.rules.value_of_board
    score_is_value, most = game.score_is_value, game.max_placements

    @compiled
    def expect(weights: Array, thread: ThreadState, g: int, k: int) -> np.float32:
        after, aux = thread.afters[g, k], thread.auxes[g, k]
        boards, auxes, shares = thread.out_boards, thread.out_auxes, thread.out_shares
        total = np.float32(0)
        for i in range(min(placements(after, aux, boards, auxes, shares), most)):
            reward = gained(boards[i], auxes[i]) - gained(after, aux) if score_is_value else np.int64(0)
            total += np.float32(shares[i]) * (np.float32(reward) + value(weights, boards[i], auxes[i]))
        return total

    return expect


def forward_states(game: Game, network: Network, rule: UpdateRule, history: int, ahead: bool) -> Train:
    """The forward loop on values of states: V(s) moves toward r + V(next s), that of the last one toward 0."""
    steps = steps_for(game, evaluator(game, network), ahead)
    find_moves, find_entries, copy_entries = steps.find_moves, steps.find_entries, steps.copy_entries_of_state
    choose_move, value_of, promote = greedy_choice(expectation(game, network, steps)), steps.value_of, steps.promote
    begin_episode, end_episode, play_move = steps.begin_episode, steps.end_episode, steps.play_move
    update = rule.update

    @compiled(inline=True)
    def turn(shared: Shared, thread: ThreadState, g: int) -> None:
        rows, weights, memory, rate, decay = shared
        n, t, ring, errors = thread.legal[g], thread.length[g], thread.ring[g], thread.errors[g]
        if t > 0:
            reached = np.float32(thread.gain[g]) + value_of(weights, thread.state_entries[g])
            errors[(t - 1) % history] = reached - value_of(weights, ring[(t - 1) % history])
            if t >= history:
                error = delayed_error(errors, history, t - history, t, decay)
                promote(weights, ring[t % history])
                update(weights, memory, ring[t % history], error, rate)
                thread.worst[0] = max(thread.worst[0], abs(error))
        if t != NO_GAME:
            copy_entries(thread, g, ring[t % history])
        if n:
            best, _, _ = choose_move(weights, thread, g)
            thread.gain[g] = thread.rewards[g, best] + play_move(thread, g, best)
        else:
            if t != NO_GAME:
                errors[t % history] = NONE - value_of(weights, ring[t % history])
                for q in range(max(t + 1 - history, 0), t + 1):
                    error = delayed_error(errors, history, q, t + 1, decay)
                    promote(weights, ring[q % history])
                    update(weights, memory, ring[q % history], error, rate)
                end_episode(thread, g)
            begin_episode(rows, thread, g)
        find_moves(rows, weights, thread, g)
        find_entries(weights, thread.board[g], thread.aux[g], thread.state_entries[g])

    return loop_of(turn, f"the {network.name} trainer for {game.name}, states")
