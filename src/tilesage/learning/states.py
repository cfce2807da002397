"""Values of states, the board before the move: choosing asks what chance may do after every move.

In 2048 a new tile changes only the entries whose pattern covers its cell, and V is a sum. So the expectation over
all cells and both tiles is the value of the afterstate plus, for every entry and every empty cell it covers, the mean
difference that a tile there makes: a third of the reads of trying every board, and most of them in cache lines that
were just read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.board import count, empty_cells
from tilesage.games.game import Game
from tilesage.learning.parts import NONE, chooser, parts
from tilesage.learning.rules import UpdateRule
from tilesage.learning.seat import CANDIDATES, GAMES, MOVES, NO_GAME, SLOTS, Seat
from tilesage.learning.traces import delayed_error
from tilesage.learning.weights import reader
from tilesage.networks.ntuple import Evaluator, evaluator
from tilesage.networks.patterns import Network

LOWEST_STAGE = 3  # stages by smaller tiles could change with a new tile


def expectation(game: Game, network: Network) -> Callable[..., Any]:
    """`expect(weights, seat, g, k) -> E[reward of chance + V(next)]` of candidate k."""
    ev = evaluator(game, network)
    if game.second_rate is not None and not any(stage < LOWEST_STAGE for stage in network.stages):
        return _expectation_by_differences(game, ev)
    return _expectation_by_outcomes(game, ev)


def _cell_bits(ev: Evaluator) -> tuple[Array, Array, Array]:
    """[tables, cells] the bits of an index that belong to a cell, its lowest (tile 1), its next (2); 0: no cell."""
    tables = ev.layout.tables
    width = max(len(table.pattern) for table in tables)
    masks, firsts, seconds = (np.zeros((len(tables), width), np.uint32) for _ in range(3))
    for t, table in enumerate(tables):
        for to, bit in enumerate(table.bits):
            if bit >= 0:
                masks[t, bit // 4] |= np.uint32(1 << to)
                if bit % 4 < 2:
                    (firsts, seconds)[bit % 4][t, bit // 4] = 1 << to
    return masks, firsts, seconds


def _expectation_by_differences(game: Game, ev: Evaluator) -> Callable[..., Any]:
    masks, firsts, seconds = _cell_bits(ev)
    begins = np.array([table.offset for table in ev.layout.tables], np.uint32)
    read, _ = reader(ev.network, ev.entries)
    tables, width, symmetries = len(ev.layout.tables), masks.shape[1], ev.network.symmetries
    second_rate = np.float32(game.second_rate or 0)
    first_rate, several, offset = np.float32(1) - second_rate, ev.network.sets > 1, ev.offset

    @compiled
    def expect(weights: Array, seat: Seat, g: int, k: int) -> np.float32:
        after, index = seat.afters[g, k], seat.entries[g]
        first = np.uint32(offset(after, seat.auxes[g, k])) if several else np.uint32(0)
        total, change = np.float32(0), np.float32(0)
        for t in range(tables):
            for s in range(symmetries):
                entry = index[CANDIDATES * (symmetries * t + s) + k]
                weight = read(weights, entry)
                total += weight
                for c in range(width):
                    if masks[t, c] and not (entry - begins[t] - first) & masks[t, c]:
                        change += first_rate * read(weights, entry + firsts[t, c])
                        change += second_rate * read(weights, entry + seconds[t, c]) - weight
        return total + change / np.float32(count(empty_cells(after)))

    return expect


def _expectation_by_outcomes(game: Game, ev: Evaluator) -> Callable[..., Any]:
    """Any game: every placement, and every hint where tables go by hint. The reward of chance counts."""
    placements, value, gained = game.rules.placements, ev.value, game.rules.value_of_board
    score_is_value, most = game.score_is_value, game.max_placements

    @compiled
    def expect(weights: Array, seat: Seat, g: int, k: int) -> np.float32:
        after, aux = seat.afters[g, k], seat.auxes[g, k]
        boards, auxes, shares = seat.out_boards, seat.out_auxes, seat.out_shares
        total = np.float32(0)
        for i in range(min(placements(after, aux, boards, auxes, shares), most)):
            reward = gained(boards[i], auxes[i]) - gained(after, aux) if score_is_value else np.int64(0)
            total += np.float32(shares[i]) * (np.float32(reward) + value(weights, boards[i], auxes[i]))
        return total

    return expect


def forward_states(game: Game, network: Network, rule: UpdateRule, history: int, ahead: bool) -> Callable[..., Any]:
    """The forward loop on values of states: V(s) moves toward r + V(next s), that of the last one toward 0."""
    part = parts(game, evaluator(game, network), ahead)
    choose, locate, push = chooser(expectation(game, network)), part.locate, part.push
    look, total_of, own, update = part.look, part.total_of, part.own, rule.update
    open_episode, close, spawn = part.open, part.close, game.rules.spawn

    @compiled(title=f"the {network.name} trainer for {game.name}, states")
    def train(
        rows: Array,
        weights: Array,
        memory: Array,
        seat: Seat,
        rate: np.float32,
        decay: np.float32,
        moves: int,
        games: int,
    ) -> None:
        until, enough = seat.tally[MOVES] + moves, seat.tally[GAMES] + games
        while seat.tally[MOVES] < until and seat.tally[GAMES] < enough:
            for g in range(SLOTS):
                n, t, ring, errors = seat.legal[g], seat.length[g], seat.ring[g], seat.errors[g]
                if t > 0:
                    reached = np.float32(seat.gain[g]) + total_of(weights, seat.here[g])
                    errors[(t - 1) % history] = reached - total_of(weights, ring[(t - 1) % history])
                    if t >= history:
                        error = delayed_error(errors, history, t - history, t, decay)
                        own(weights, ring[t % history])
                        update(weights, memory, ring[t % history], error, rate)
                        seat.worst[0] = max(seat.worst[0], abs(error))
                if t != NO_GAME:
                    push(seat, g, ring[t % history])
                if n:
                    best, _ = choose(weights, seat, g)
                    seat.board[g], seat.aux[g], placed, seat.rng[g] = spawn(
                        seat.afters[g, best], seat.auxes[g, best], seat.rng[g]
                    )
                    seat.gain[g] = seat.rewards[g, best] + placed
                    seat.score[g] += seat.gain[g]
                    seat.length[g] = t + 1
                    seat.tally[MOVES] += 1
                else:
                    if t != NO_GAME:
                        errors[t % history] = NONE - total_of(weights, ring[t % history])
                        for q in range(max(t + 1 - history, 0), t + 1):
                            error = delayed_error(errors, history, q, t + 1, decay)
                            own(weights, ring[q % history])
                            update(weights, memory, ring[q % history], error, rate)
                        close(seat, g)
                    open_episode(rows, seat, g)
                look(rows, weights, seat, g)
                locate(weights, seat.board[g], seat.aux[g], seat.here[g])

    return train
