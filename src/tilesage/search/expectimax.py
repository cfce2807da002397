"""Expectimax: the best move against chance, N layers of moves deep (1 is greedy).

    value(position)   = max over legal moves of  r + max(0, value(afterstate)) + 1,   0 when no move is legal
    value(afterstate) = Σ probability · (value of the new tile + value(position)); on the last layer, the network's

Negative values are rectified and every legal move counts one point, so that a living position beats a dead one (as in
TDL2048+). In Threes! the next tile is known, only the cells of the entry side are chance, and the tile after the next
follows the bag; on the last layer no hints are told apart when the network does not look at them.

A narrow search follows only the best moves below the root, by the network's word: one line of play against chance
instead of all of them.

Afterstates met again are looked up in a table by position and remaining layers, and where unlikely paths are pruned
by the probability of the path too. An entry is only used in the search of the move it was made in, so a move depends
on the position alone, never on what was searched before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.random import LOW_32, mix
from tilesage.games import Game
from tilesage.games.board import Board, smallest_symmetric
from tilesage.networks.functions import Notes, ValueFunction, make_placed_value, make_weigh
from tilesage.search.kinds import NO_MOVE
from tilesage.search.last_layer import ALIVE, both_ways, make_best_leaf, make_last_layer

MOST_LAYERS = 12
# Deepening by probability: two rounds by layers, then rounds that follow rarer paths. One that goes down to RARER of
# the probability before costs about DEARER times as much; a last one that is less rare than NOT_WORTH_IT is left out.
FULL_ROUNDS, RARER, DEARER, NOT_WORTH_IT, CAREFUL, RAREST = 2, 0.2, 4.0, 0.8, 0.8, 1e-7
TIE = 1e-9  # values closer than this, relatively, are equal: the first move wins
MOVES = 4
S32, S40 = np.uint64(32), np.uint64(40)
SHARES = 2.0**62  # a probability as a whole number
GENERATION, NODES, STOPPED = 0, 1, 2  # fields of `meter`


class Desk(NamedTuple):
    """Everything one search works on."""

    rows: Array
    lines: Array  # [2, 65536] the rows slid left and right, in games whose last layer goes line by line
    weights: Any
    notes: Notes
    boards: Array  # [layers, placements] uint64
    auxes: Array  # [layers, placements] uint64
    shares: Array  # [layers, placements] float64
    hints: Array  # [layers, draws] uint64
    hint_shares: Array  # [layers, draws] float64
    keys: Array  # [entries] uint64, boards; in a pruned search mixed with the probability of getting there
    stamps: Array  # [entries] uint64: aux, remaining layers, generation
    values: Array  # [entries] float64
    worths: Array  # [layers, 4] float64, what the network says of each move
    width: Array  # [1] int64: so many moves a narrow search follows below the root
    meter: Array  # [3] int64: generation, nodes, stopped
    limits: Array  # [2] float64: nodes, and the time at which to stop


def new_desk(game: Game, leaves: ValueFunction, table_bits: int, width: int = MOVES) -> Desk:
    """Room for a search with a table of 2^bits entries that follows so many moves below the root."""
    entries, shape = 1 << table_bits, (MOST_LAYERS + 1, game.max_placements)
    hint_shape = (MOST_LAYERS + 1, game.max_draws)
    return Desk(
        game.rows,
        both_ways(game.rows) if game.second_rate is not None else np.zeros((2, 1), np.uint32),
        leaves.weights,
        leaves.new_notes(),
        np.zeros(shape, np.uint64),
        np.zeros(shape, np.uint64),
        np.zeros(shape),
        np.zeros(hint_shape, np.uint64),
        np.zeros(hint_shape),
        np.zeros(entries, np.uint64),
        np.zeros(entries, np.uint64),
        np.zeros(entries),
        np.zeros((MOST_LAYERS + 1, MOVES)),
        np.full(1, width, np.int64),
        np.zeros(3, np.int64),
        np.full(2, math.inf),
    )


class Expectimax(NamedTuple):
    """The compiled searches of a game on some leaves."""

    root_values: Callable[..., Any]  # (desk, board, aux, layers, prune, out)
    deepen: Callable[..., Any]  # (desk, board, aux, nodes, seconds, prune, out) -> rounds


@compiled
def likeliest(shares: Array, outcomes: Number) -> Number:
    """The probability of the likeliest outcome."""
    most = 0.0
    for i in range(outcomes):
        most = max(most, shares[i])
    return most


@compiled
def among_best(worths: Array, action: int, width: Number) -> bool:
    """Are fewer than `width` moves better than this one? Of equal ones the first is better."""
    better = 0
    for other in range(MOVES):
        if worths[other] > worths[action] or (worths[other] == worths[action] and other < action):
            better += 1
    return bool(better < width)


def make_position_key(game: Game) -> Callable[..., Any]:
    """`position_key(after, aux)`: one board for all symmetric ones, the one that is searched.

    Sums of float32 depend on the orientation; and what `aux` says of directions and cells is not symmetric.
    """
    symmetric = game.symmetric

    @compiled
    def position_key(after: Board, aux: np.uint64) -> Board:
        return smallest_symmetric(after) if symmetric and aux == np.uint64(0) else after

    return position_key


def make_expect(game: Game, leaves: ValueFunction, use_table: bool, narrow: bool) -> Callable[..., Any]:
    """`expect(desk, after, aux, layers, share, prune)`: the value of an afterstate, `layers` moves deep.

    It is reached with probability `share`; what is less likely than `prune` is left to the network: the last layer
    begins there.
    """
    slide, placements, draws = game.rules.slide, game.rules.placements, game.rules.draws
    after_value, last_layer, best_leaf = (
        leaves.after_value,
        make_last_layer(game, leaves),
        make_best_leaf(game, leaves),
    )
    placed_value, position_key, weigh = make_placed_value(game), make_position_key(game), make_weigh(game, leaves)
    tiles_in_aux = game.index_at is not None  # it may fill all 64 bits

    @compiled
    def expect(desk: Desk, after: Board, aux: np.uint64, layers: Number, share: Number, prune: Number) -> Number:
        if layers <= 0:
            return after_value(desk.weights, desk.notes, after, aux)
        after = position_key(after, aux)
        stamp = (aux & LOW_32) | np.uint64(layers) << S32 | np.uint64(desk.meter[GENERATION]) << S40
        key = after ^ mix(np.uint64(share * SHARES)) if prune > 0.0 else after  # how much is pruned depends on it
        if tiles_in_aux:
            key ^= mix(aux >> S32)
        entry = mix(key ^ stamp) & np.uint64(desk.keys.size - 1)
        if use_table and desk.keys[entry] == key and desk.stamps[entry] == stamp:
            return desk.values[entry]
        desk.meter[NODES] += 1
        boards, auxes, shares = desk.boards[layers], desk.auxes[layers], desk.shares[layers]
        outcomes = placements(after, aux, boards, auxes, shares) if layers > 1 else 0
        if share * likeliest(shares, outcomes) < prune or layers == 1:
            value = last_layer(desk, after, aux)
        else:
            value = 0.0
            hints, hint_shares, worths = desk.hints[layers], desk.hint_shares[layers], desk.worths[layers]
            for i in range(outcomes):
                value += shares[i] * placed_value(after, boards[i])
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    p, board, hint, best = shares[i] * hint_shares[k], boards[i], hints[k], 0.0
                    if share * p < prune:
                        value += p * best_leaf(desk, board, hint)
                        continue
                    if narrow:
                        weigh(desk.rows, desk.weights, desk.notes, board, hint, worths)
                    for action in range(MOVES):
                        if narrow and not among_best(worths, action, desk.width[0]):
                            continue
                        next_after, next_aux, reward = slide(desk.rows, board, hint, action)
                        if next_after != board:
                            v = expect(desk, next_after, next_aux, layers - 1, share * p, prune)
                            best = max(best, reward + max(v, 0.0) + ALIVE)
                    value += p * best
                if desk.meter[STOPPED]:
                    return 0.0
            if desk.meter[NODES] >= desk.limits[0] or now() >= desk.limits[1]:
                desk.meter[STOPPED] = 1
        if use_table:
            desk.keys[entry], desk.stamps[entry], desk.values[entry] = key, stamp, value
        return value

    return expect


def make_root_values(game: Game, leaves: ValueFunction, use_table: bool, narrow: bool) -> Callable[..., Any]:
    """`root_values(desk, board, aux, layers, prune, out)`: the value of each move, nan where illegal."""
    slide, expect = game.rules.slide, make_expect(game, leaves, use_table, narrow)

    @compiled
    def root_values(desk: Desk, board: Board, aux: np.uint64, layers: Number, prune: Number, out: Array) -> None:
        desk.meter[GENERATION] = (desk.meter[GENERATION] + 1) & 0xFFFFFF
        if desk.meter[GENERATION] == 0:  # after 16 million moves the oldest entries would look fresh
            desk.stamps[:] = np.uint64(0)
            desk.meter[GENERATION] = 1
        for action in range(MOVES):
            after, after_aux, reward = slide(desk.rows, board, aux, action)
            out[action] = math.nan
            if after != board:
                out[action] = reward + max(expect(desk, after, after_aux, layers - 1, 1.0, prune), 0.0)

    return root_values


def make_deepen(root_values: Callable[..., Any], narrow: bool) -> Callable[..., Any]:
    """`deepen(desk, board, aux, nodes, seconds, prune, out)`: search in rounds until the budget is spent.

    The rounds look 1, 2, 3 … layers ahead. A narrow search goes by probability from the third on: every round
    follows paths a fifth as likely as the one before, the last one as rare as the rest of the budget allows,
    but none below `prune`. `out` keeps the last round that was finished; the number of rounds is returned.
    """

    @compiled
    def rarer(cost: Number, left: Number) -> Number:
        """How much rarer the paths of the next round may be, by what the last one cost; 1 to stop."""
        if not narrow:  # a layer more costs several times as much
            return 1.0 if 2.0 * cost > left else 0.0
        if DEARER * cost <= left:
            return RARER
        return (cost / (CAREFUL * left)) ** 1.25 if left > 0.0 else 1.0

    @compiled
    def deepen(
        desk: Desk, board: Board, aux: np.uint64, nodes: float, seconds: float, prune: Number, out: Array
    ) -> Number:
        begin, found = now(), np.zeros(MOVES)
        desk.meter[NODES], desk.meter[STOPPED] = 0, 0
        desk.limits[0], desk.limits[1] = nodes, begin + seconds
        rounds, spent, least = 0, 0.0, 1.0
        while rounds < MOST_LAYERS or narrow:
            likely = narrow and rounds >= FULL_ROUNDS
            root_values(desk, board, aux, MOST_LAYERS if likely else rounds + 1, least if likely else prune, found)
            if desk.meter[STOPPED]:
                break
            out[:] = found
            rounds += 1
            spent_before, spent = spent, max((now() - begin) / seconds, desk.meter[NODES] / nodes)
            factor = rarer(spent - spent_before, 1.0 - spent)
            if factor > NOT_WORTH_IT or (likely and least <= max(prune, RAREST)):
                break
            least = max(prune, least * factor) if rounds >= FULL_ROUNDS else 1.0
        desk.meter[STOPPED] = 0
        desk.limits[:] = math.inf
        return rounds

    return deepen


def make_expectimax(game: Game, leaves: ValueFunction, use_table: bool = True, narrow: bool = False) -> Expectimax:
    """The searches, compiled for this game and these leaves."""
    root_values = make_root_values(game, leaves, use_table, narrow)
    return Expectimax(root_values, make_deepen(root_values, narrow))


def best_of_values() -> Callable[..., Any]:
    """`best_of(values) -> action`: the first of the best moves, NO_MOVE when all are nan."""

    @compiled
    def best_of(values: Array) -> Number:
        best = NO_MOVE
        for action in range(MOVES):
            value = values[action]
            if not math.isnan(value) and (best < 0 or value > values[best] + TIE * abs(values[best])):
                best = action
        return best

    return best_of
