"""Expectimax: the best move against chance, N layers of moves deep (1 is greedy).

    value(position)   = max over legal moves of  r + max(0, value(afterstate)) + 1,   0 when no move is legal
    value(afterstate) = Σ probability · (value of the new tile + value(position)); on the last layer, the network's

Negative values are rectified and every legal move counts one point, so that a living position beats a dead one (as in
TDL2048+). In Threes! the next tile is known, only the cells of the entry side are chance, and the tile after the next
follows the bag; on the last layer no hints are told apart when the network does not look at them.

A narrow search follows only the best moves below the root, by the network's word: one line of play against chance
instead of all of them.

Afterstates met again are looked up in a transposition table by position and remaining layers, and where unlikely
paths are pruned by the probability of the path too. An entry is only used in the search of the move it was made in,
so a move depends on the position alone, never on what was searched before.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.random import LOW_32, mix
from tilesage.games import Game
from tilesage.games.board import ZERO, Board, smallest_symmetric
from tilesage.networks.functions import Notes, ValueFunction, make_placed_value, make_weigh
from tilesage.search import last_layer
from tilesage.search.kinds import NO_MOVE
from tilesage.search.last_layer import ALIVE

MOST_LAYERS = 12
# Deepening by probability: two rounds by layers, then rounds that follow rarer paths. One that goes down to RARER of
# the probability before costs about DEARER times as much; a last one that is less rare than NOT_WORTH_IT is left out.
FULL_ROUNDS, RARER, DEARER, NOT_WORTH_IT, CAREFUL, RAREST = 2, 0.2, 4.0, 0.8, 0.8, 1e-7
TIE = 1e-9  # values closer than this, relatively, are equal: the first move wins
MOVES = 4
S32, S40 = np.uint64(32), np.uint64(40)
SHARES = 2.0**62  # a probability as a whole number
GENERATION, NODES, STOPPED = 0, 1, 2  # of `SearchState.counters`
MOST_NODES, END = 0, 1  # of `SearchState.stop_at`


class TranspositionTable(NamedTuple):
    """The values of afterstates met before; a new one takes the place of the old."""

    keys: Array  # [entries] uint64, boards; in a pruned search mixed with the probability of getting there
    stamps: Array  # [entries] uint64: aux, remaining layers, generation
    values: Array  # [entries] float64


class SearchState(NamedTuple):
    """Everything one search works on."""

    rows: Array  # the row table of the game
    lines: Array  # [2, 65536] the rows slid left and right, in games whose last layer goes line by line
    weights: Any  # what the value function reads,
    notes: Notes  # and its own room
    boards: Array  # [layers, placements] uint64
    auxes: Array  # [layers, placements] uint64
    shares: Array  # [layers, placements] float64, probabilities
    hints: Array  # [layers, draws] uint64
    hint_shares: Array  # [layers, draws] float64, probabilities
    worths: Array  # [layers, 4] float64, what the network says of each move
    table: TranspositionTable
    width: Array  # [1] int64: so many moves a narrow search follows below the root
    counters: Array  # [3] int64: the generation of entries in the table, afterstates expanded, stopped
    stop_at: Array  # [2] float64: a number of afterstates, and a time


class Limits(NamedTuple):
    """How far a search looks."""

    layers: int
    prune: float = 0.0  # a path that is less likely is left to the network
    nodes: float = math.inf  # what deepening may spend: afterstates,
    seconds: float = math.inf  # and time


class Search(Protocol):
    """A search of one position."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64, limits: Limits, out: Array) -> None:
        """Find what each move is worth.

        Args:
            state: the room of the search; what it holds from other positions is not used.
            limits: `root_values` goes by layers and prune, `deepen` by nodes and seconds, and down to prune.
            out: [4] float64, becomes the values, nan where illegal.
        """


class Expect(Protocol):
    """The recursion."""

    def __call__(
        self, state: SearchState, after: Board, aux: np.uint64, layers: Number, share: Number, prune: Number
    ) -> Number:
        """The value of an afterstate, `layers` moves deep. It is reached with probability `share`.

        What is less likely than `prune` is left to the network: the last layer begins there.
        """


class Expectimax(NamedTuple):
    """The searches of a game on some value function."""

    root_values: Search  # so many layers deep
    deepen: Search  # in rounds, until the budget is spent


def new_state(game: Game, value: ValueFunction, table_bits: int, width: int = MOVES) -> SearchState:
    """Room for a search with a table of 2^bits entries that follows so many moves below the root."""
    entries, shape = 1 << table_bits, (MOST_LAYERS + 1, game.max_placements)
    hint_shape = (MOST_LAYERS + 1, game.max_draws)
    return SearchState(
        rows=game.rows,
        lines=last_layer.new_lines(game),
        weights=value.weights,
        notes=value.new_notes(),
        boards=np.zeros(shape, np.uint64),
        auxes=np.zeros(shape, np.uint64),
        shares=np.zeros(shape),
        hints=np.zeros(hint_shape, np.uint64),
        hint_shares=np.zeros(hint_shape),
        worths=np.zeros((MOST_LAYERS + 1, MOVES)),
        table=TranspositionTable(np.zeros(entries, np.uint64), np.zeros(entries, np.uint64), np.zeros(entries)),
        width=np.full(1, width, np.int64),
        counters=np.zeros(3, np.int64),
        stop_at=np.full(2, math.inf),
    )


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


@compiled
def position_key(after: Board, aux: np.uint64, symmetric: bool) -> Board:
    """One board for all symmetric ones, the one that is searched, in games whose rules are `symmetric`.

    Sums of float32 depend on the orientation; and what `aux` says of directions and cells is not symmetric.
    """
    return smallest_symmetric(after) if symmetric and aux == ZERO else after


@compiled
def next_generation(state: SearchState) -> None:
    """What is in the table counts no longer."""
    state.counters[GENERATION] = (state.counters[GENERATION] + 1) & 0xFFFFFF
    if state.counters[GENERATION] == 0:  # after 16 million moves the oldest entries would look fresh
        state.table.stamps[:] = np.uint64(0)
        state.counters[GENERATION] = 1


@compiled
def rarer(cost: Number, left: Number, narrow: bool) -> Number:
    """How much rarer the paths of the next round may be, by what the last one cost; 1 to stop."""
    if not narrow:  # a layer more costs several times as much
        return 1.0 if 2.0 * cost > left else 0.0
    if DEARER * cost <= left:
        return RARER
    return (cost / (CAREFUL * left)) ** 1.25 if left > 0.0 else 1.0


@compiled
def best_of(values: Array) -> Number:
    """The first of the best moves, NO_MOVE when all are nan."""
    best = NO_MOVE
    for action in range(MOVES):
        value = values[action]
        if not math.isnan(value) and (best < 0 or value > values[best] + TIE * abs(values[best])):
            best = action
    return best


@cache
def build(game: Game, value: ValueFunction, use_table: bool = True, narrow: bool = False) -> Expectimax:
    """The searches, compiled for this game and this value function, `value.code`."""
    slide, expect = game.rules.slide, recursion(game, value, use_table, narrow)

    @compiled
    def root_values(state: SearchState, board: Board, aux: np.uint64, limits: Limits, out: Array) -> None:
        next_generation(state)
        for action in range(MOVES):
            after, after_aux, reward = slide(state.rows, board, aux, action)
            out[action] = math.nan
            if after != board:
                v = expect(state, after, after_aux, limits.layers - 1, 1.0, limits.prune)
                out[action] = reward + max(v, 0.0)

    return Expectimax(root_values, deepening(root_values, narrow))


def recursion(game: Game, value: ValueFunction, use_table: bool, narrow: bool) -> Expect:
    """The value of an afterstate by the formulas above."""
    slide, placements, draws = game.rules.slide, game.rules.placements, game.rules.draws
    after_value, (expected, leaf_value) = value.after_value, last_layer.build(game, value)
    placed_value, weigh = make_placed_value(game), make_weigh(game, value)
    symmetric, tiles_in_aux = game.symmetric, game.index_at is not None  # then aux may fill all 64 bits

    @compiled
    def expect(
        state: SearchState, after: Board, aux: np.uint64, layers: Number, share: Number, prune: Number
    ) -> Number:
        if layers <= 0:
            return after_value(state.weights, state.notes, after, aux)
        after, table = position_key(after, aux, symmetric), state.table
        stamp = (aux & LOW_32) | np.uint64(layers) << S32 | np.uint64(state.counters[GENERATION]) << S40
        key = after ^ mix(np.uint64(share * SHARES)) if prune > 0.0 else after  # how much is pruned depends on it
        if tiles_in_aux:
            key ^= mix(aux >> S32)
        entry = mix(key ^ stamp) & np.uint64(table.keys.size - 1)
        if use_table and table.keys[entry] == key and table.stamps[entry] == stamp:
            return table.values[entry]
        state.counters[NODES] += 1
        boards, auxes, shares = state.boards[layers], state.auxes[layers], state.shares[layers]
        outcomes = placements(after, aux, boards, auxes, shares) if layers > 1 else 0
        if share * likeliest(shares, outcomes) < prune or layers == 1:
            value = expected(state, after, aux)
        else:
            value = 0.0
            hints, hint_shares, worths = state.hints[layers], state.hint_shares[layers], state.worths[layers]
            for i in range(outcomes):
                value += shares[i] * placed_value(after, boards[i])
                for k in range(draws(boards[i], auxes[i], hints, hint_shares)):
                    p, board, hint, best = shares[i] * hint_shares[k], boards[i], hints[k], 0.0
                    if share * p < prune:
                        value += p * leaf_value(state, board, hint)
                        continue
                    if narrow:
                        weigh(state.rows, state.weights, state.notes, board, hint, worths)
                    for action in range(MOVES):
                        if narrow and not among_best(worths, action, state.width[0]):
                            continue
                        next_after, next_aux, reward = slide(state.rows, board, hint, action)
                        if next_after != board:
                            v = expect(state, next_after, next_aux, layers - 1, share * p, prune)
                            best = max(best, reward + max(v, 0.0) + ALIVE)
                    value += p * best
                if state.counters[STOPPED]:
                    return 0.0
            if state.counters[NODES] >= state.stop_at[MOST_NODES] or now() >= state.stop_at[END]:
                state.counters[STOPPED] = 1
        if use_table:
            table.keys[entry], table.stamps[entry], table.values[entry] = key, stamp, value
        return value

    return expect


def deepening(root_values: Search, narrow: bool) -> Search:
    """Rounds of the search within a budget."""

    @compiled
    def deepen(state: SearchState, board: Board, aux: np.uint64, limits: Limits, out: Array) -> None:
        """The rounds look 1, 2, 3 … layers ahead. A narrow search goes by probability from the third on.

        Every round follows paths a fifth as likely as the one before, the last one as rare as the rest of the budget
        allows. `out` keeps the last round that was finished.
        """
        begin, found, prune = now(), np.zeros(MOVES), limits.prune
        state.counters[NODES], state.counters[STOPPED] = 0, 0
        state.stop_at[MOST_NODES], state.stop_at[END] = limits.nodes, begin + limits.seconds
        rounds, spent, least = 0, 0.0, 1.0
        while rounds < MOST_LAYERS or narrow:
            likely = narrow and rounds >= FULL_ROUNDS
            layers, down_to = (MOST_LAYERS, least) if likely else (rounds + 1, prune)
            root_values(state, board, aux, Limits(layers, down_to, limits.nodes, limits.seconds), found)
            if state.counters[STOPPED]:
                break
            out[:] = found
            rounds += 1
            before, spent = spent, max((now() - begin) / limits.seconds, state.counters[NODES] / limits.nodes)
            factor = rarer(spent - before, 1.0 - spent, narrow)
            if factor > NOT_WORTH_IT or (likely and least <= max(prune, RAREST)):
                break
            least = max(prune, least * factor) if rounds >= FULL_ROUNDS else 1.0
        state.counters[STOPPED] = 0
        state.stop_at[:] = math.inf

    return deepen
