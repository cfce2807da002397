"""The tables of a network on the GPU: reading a value, collecting errors, applying them.

The weights lie alone and dense, because choosing moves reads nothing else. Beside them every weight has a record, one
64-bit word for TD and two for temporal coherence:

    word 0   hits of this step in the upper 20 bits, the sum of their errors in sixteenths in the lower 44, as in
             learning/batch.py
    word 1   E in the lower half, A in the upper half (float32)

Errors are collected by integer additions, so their order does not matter and a seed gives the same weights every
time. The addition returns what was there before: the lane that found 0 owns the weight in this step and alone
applies it (by an atomic addition, only because that is one request to memory instead of two).

`build` puts everything together. Its functions are chains, one link a pattern: the loads of all patterns are under
way before the first one is used. A link does its part, lets the `others` do theirs, and finishes its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games.board import flip, mirror, transpose
from tilesage.gpu.machine import (
    LANES,
    bits_of,
    cuda,
    device,
    float32,
    float_of,
    int64,
    load_if,
    load_pair,
    minus,
    store_pair,
    times,
    uint64,
)
from tilesage.learning.batch import HALF, HALF_A_HIT, HIT, HITS_SHIFT, SIXTEEN, SIXTEENTH
from tilesage.learning.rules import AGE_RATE, AGE_SHARE
from tilesage.networks.ntuple import Evaluator

Link = Callable[..., Any]
Word: TypeAlias = np.uint64

ZERO, ONE, TWO, HIGH_HALF = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
NOTHING, WHOLE = np.float32(0), np.float32(1)
NO_BITS = np.int32(0)
MOST_PATTERNS = 32
AT_ONCE = 8  # patterns whose loads fit into the registers
TURNS = {1: (0, 0, 0), 2: (0, 1, 0), LANES: (1, 2, 4)}  # by symmetries: lanes that mirror, that flip, that transpose


class Tables(NamedTuple):
    """What eight lanes do with the entries of a position. A position is a board as the tables see it, and its aux."""

    worth: Link  # (weights, board, aux, lane, wanted) -> what this lane adds to its value; 0 unless wanted
    collect: Link  # (weights, records, board, aux, lane, error) -> the weights that this lane owns now, as bits
    settle: Link  # (weights, records, board, aux, lane, owned, rate): move them, and clear their records
    collect_age: Link  # (records, age, error) -> the place of an age if this lane owns it now, else 0
    settle_age: Link  # (weights, records, age, share): move what is usual at that age by a share of the mean error


class Pattern(NamedTuple):
    """One pattern, as the links of a chain know it."""

    entry: Link  # (board) -> the place of its entry in a set of tables
    mine: Link  # (lane) -> does it read this pattern? Lanes that share a symmetry take turns
    bit: np.int32  # that tells it from the others


def patterns_of(evaluator: Evaluator) -> list[Pattern]:
    """All patterns. An entry lies at Σ tile[k] << 4k in its table, which takes the fewest operations (arrange.py)."""
    base, found = 0, []
    for number, table in enumerate(evaluator.layout.tables):
        mine = _mine(evaluator.network.symmetries, number)
        found.append(Pattern(_entry_at(base, table.cells), mine, np.uint32(1 << number).view(np.int32)))
        base += 16 ** len(table.cells)
    return found


def _entry_at(base: int, cells: Sequence[int]) -> Link:
    """board -> base + Σ tile on the k-th cell << 4k. Cells that move by the same distance move together."""
    runs: dict[int, int] = {}
    for k, cell in enumerate(cells):
        runs[4 * (cell - k)] = runs.get(4 * (cell - k), 0) | 15 << 4 * k
    place = np.uint64(base)

    @device
    def entry(board: Word) -> Any:
        return place

    for distance, mask in runs.items():
        entry = _and_run(entry, distance, np.uint64(mask))
    return entry


def _and_run(entry: Link, distance: int, mask: Word) -> Link:
    down, up = np.uint64(max(distance, 0)), np.uint64(max(-distance, 0))

    @device
    def with_run(board: Word) -> Any:
        return entry(board) + ((board >> down << up) & mask)

    return with_run


def _mine(symmetries: int, pattern: int) -> Link:
    sharers = LANES // symmetries
    turn = pattern % sharers

    @device
    def mine(lane: int) -> Any:
        return sharers == 1 or lane // symmetries == turn

    return mine


@cache
def build(evaluator: Evaluator, coherence: bool = False) -> Tables:
    """Everything for one network and one rule."""
    network, turned, offset = evaluator.network, evaluator.turned, evaluator.offset
    if len(evaluator.layout.tables) > MOST_PATTERNS:
        raise InputError(f"{len(evaluator.layout.tables)} patterns are too many for the GPU: at most {MOST_PATTERNS}")
    mirrors, flips, transposes = TURNS[network.symmetries]
    stride, age_rate = np.uint64(2 if coherence else 1), np.float32(AGE_RATE / AGE_SHARE)
    patterns, promoted = patterns_of(evaluator), _promoted(evaluator)
    read, read_promoted = _reading(patterns, load_if), _reading(patterns, promoted or load_if)
    collect_all = _in_groups(patterns, lambda others, pattern: _collect_one(others, pattern, stride, promoted))
    share = np.float32(1 / evaluator.reads)
    settle_all = _in_groups(patterns, lambda others, pattern: _settle_one(others, pattern, share, coherence))
    staged = promoted is not None

    @device
    def board_of(board: Word, aux: Word, lane: int) -> Any:
        """The symmetric board that this lane reads."""
        board = turned(board, aux)
        board = mirror(board) if lane & mirrors else board
        board = flip(board) if lane & flips else board
        return transpose(board) if lane & transposes else board

    @device
    def worth(weights: Array, board: Word, aux: Word, lane: int, wanted: int) -> Any:
        """With stages an entry that was never learnt is NaN, and so is the sum: then it is read with care."""
        first, mine = offset(board, aux), board_of(board, aux, lane)
        total = read(weights, first, mine, lane, wanted, NOTHING)
        if staged and total != total:
            total = read_promoted(weights, first, mine, lane, wanted, NOTHING)
        return total

    @device
    def collect(weights: Array, records: Array, board: Word, aux: Word, lane: int, error: Any) -> Any:
        mine = board_of(board, aux, lane)
        return collect_all(weights, records, offset(board, aux), mine, lane, hit_of(error))

    @device
    def settle(weights: Array, records: Array, board: Word, aux: Word, lane: int, owned: int, rate: Any) -> None:
        settle_all(weights, records, offset(board, aux), board_of(board, aux, lane), owned, rate)

    @device
    def collect_age(records: Array, age: Word, error: Any) -> Any:
        found = cuda.atomic.add(records, age * stride, hit_of(error))
        return age if found == ZERO else ZERO

    @device
    def settle_age(weights: Array, records: Array, age: Word, share: Any) -> None:
        hits, total = taken_apart(records[age * stride])
        records[age * stride] = ZERO
        weights[age] += times(batch_step(total, age_rate, hits), share)

    return Tables(worth, collect, settle, collect_age, settle_age)


def _reading(patterns: list[Pattern], load: Link) -> Link:
    """(weights, offset, board, lane, wanted, total) -> total + the entries that this lane reads."""

    @device
    def read(weights: Array, offset: Word, board: Word, lane: int, wanted: int, total: Any) -> Any:
        return total

    for pattern in reversed(patterns):
        read = _read_one(read, pattern, load)
    return read


def _read_one(others: Link, pattern: Pattern, load: Link) -> Link:
    entry, mine = pattern.entry, pattern.mine

    @device
    def read(weights: Array, offset: Word, board: Word, lane: int, wanted: int, total: Any) -> Any:
        total = total + load(weights, offset + entry(board), wanted if mine(lane) else 0)
        return others(weights, offset, board, lane, wanted, total)

    return read


def _promoted(evaluator: Evaluator) -> Link | None:
    """(weights, place, wanted) -> the entry, or that of the stage before it if it was never learnt (NaN)."""
    stages = len(evaluator.network.stages)
    size = np.uint64(evaluator.tables_size >> stages)

    @device
    def promoted(weights: Array, place: Word, wanted: int) -> Any:
        value = weights[place] if wanted else NOTHING
        while value != value:
            stage, bit = place // size, ONE
            while bit << ONE <= stage:
                bit <<= ONE
            place -= bit * size
            value = weights[place]
        return value

    return promoted if stages else None


def _in_groups(patterns: list[Pattern], link: Callable[[Link, Pattern], Link]) -> Link:
    """(weights, records, offset, board, which, what) -> bits: a chain for each group of patterns."""

    @device
    def nothing(weights: Array, records: Array, offset: Word, board: Word, which: int, what: Any) -> Any:
        return NO_BITS

    rest = None
    for first in reversed(range(0, len(patterns), AT_ONCE)):
        chain = nothing
        for pattern in reversed(patterns[first : first + AT_ONCE]):
            chain = link(chain, pattern)
        rest = chain if rest is None else _both(chain, rest)
    return rest or nothing


def _both(first: Link, second: Link) -> Link:
    @device
    def both(weights: Array, records: Array, offset: Word, board: Word, which: int, what: Any) -> Any:
        bits = first(weights, records, offset, board, which, what)
        return bits | second(weights, records, offset, board, which, what)

    return both


def _collect_one(others: Link, pattern: Pattern, stride: Word, promoted: Link | None) -> Link:
    """Hit a record; who finds it empty owns the weight. One that never learnt becomes a copy of its stand-in first:
    the weights are frozen, so it does not matter who reads it before and who after that.
    """
    (entry, mine, bit), staged, read = pattern, promoted is not None, promoted or load_if

    @device
    def collect(weights: Array, records: Array, offset: Word, board: Word, lane: int, hit: Word) -> Any:
        place, found = offset + entry(board), ONE
        if mine(lane):
            found = cuda.atomic.add(records, place * stride, hit)
        owned = others(weights, records, offset, board, lane, hit)
        if found == ZERO:
            if staged and weights[place] != weights[place]:
                weights[place] = read(weights, place, 1)
            owned |= bit
        return owned

    return collect


def _settle_one(others: Link, pattern: Pattern, share: Any, coherence: bool) -> Link:
    """Clear an owned record and move its weight by TD, or by TC: then the rate is that of E and A, which grow."""
    entry, bit = pattern.entry, pattern.bit

    @device
    def settle(weights: Array, records: Array, offset: Word, board: Word, owned: int, rate: Any) -> Any:
        place, mine, record, memory = offset + entry(board), owned & bit, ZERO, ZERO
        if mine:
            record, memory = load_pair(records, place * TWO) if coherence else (records[place], ZERO)
        others(weights, records, offset, board, owned, rate)
        if mine:
            hits, total = taken_apart(record)
            own_rate = rate
            if coherence:
                error, absolute = float_of(memory), float_of(memory >> HIGH_HALF)
                own_rate = rate * (abs(error) / absolute if absolute > NOTHING else WHOLE)
                memory = bits_of(error + total) | (bits_of(absolute + abs(total)) << HIGH_HALF)
                store_pair(records, place * TWO, ZERO, memory)
            else:
                records[place] = ZERO
            cuda.atomic.add(weights, place, batch_step(total, own_rate, hits) * share)
        return NO_BITS

    return settle


@device
def hit_of(error: Any) -> Any:
    """One hit with this error, as it is added to a record."""
    return HIT + uint64(int64(math.floor(error * SIXTEEN + HALF)))


@device
def taken_apart(record: Word) -> Any:
    """The number of hits in a record and the sum of their errors."""
    hits = (record + HALF_A_HIT) >> HITS_SHIFT
    return hits, float32(int64(record - (hits << HITS_SHIFT))) * SIXTEENTH


@device
def batch_step(total: Any, rate: Any, hits: Word) -> Any:
    """The step of V: the mean error times 1 - (1 - rate) ** hits, what that many updates in a row come to.

    The power is taken by squaring: products only.
    """
    if hits == ONE:
        return total * rate
    kept, factor, left = WHOLE, minus(WHOLE, rate), hits
    while left != ZERO:
        if left & ONE:
            kept = kept * factor
        factor = factor * factor
        left >>= ONE
    return total * minus(WHOLE, kept) / float32(hits)
