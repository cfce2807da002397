"""The tables of a network on the GPU: reading a value, collecting errors, applying them.

The weights lie alone and dense, because choosing moves reads nothing else. Beside them every weight has a record, one
64-bit word for TD and two for temporal coherence:

    word 0   hits of this step in the upper 20 bits, the sum of their errors in sixteenths in the lower 44
    word 1   E in the lower half, A in the upper half (float32)

Errors are collected by integer additions, so their order does not matter and a seed gives the same weights every
time. The addition returns what was there before: the lane that found 0 owns the weight in this step and alone
applies it.

The functions below are chains, one link a pattern: the loads of
all patterns are under way before the first one is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from afterstate.games.compiler import Array
from afterstate.games.errors import Mistake

from .machine import (
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
    uint64,
)

Link = Callable[..., Any]

ZERO, ONE, TWO, HIGH_HALF = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
HIT, HITS_SHIFT, HALF_A_HIT = np.uint64(1 << 44), np.uint64(44), np.uint64(1 << 43)
NOTHING, WHOLE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
SIXTEEN, SIXTEENTH = np.float32(16), np.float32(1 / 16)
NO_BITS = np.int32(0)
MOST_PATTERNS = 31
AT_ONCE = 8


class Tables(NamedTuple):
    """What the GPU needs to know of a network: how a lane finds the entries it reads.

    With eight symmetries a lane reads one of them. With fewer, several lanes share a symmetry, and each reads every
    n-th pattern of it.
    """

    entries: tuple[Link, ...]  # one a pattern: word -> place of its entry in a set of tables
    word_of: Link  # (board, aux, lane) -> the word of the symmetric board that this lane reads
    offset_of: Link  # (board, aux) -> place of the first entry of that position's set of tables
    symmetries: int
    by_aux: bool  # does a value depend on aux?
    weights: int  # in all sets of tables
    reads: int  # entries summed for one position

    @property
    def sharers(self) -> int:
        """How many lanes share a symmetry."""
        return LANES // self.symmetries


def tables_of(evaluator: Any) -> Tables:
    """The tables of a network, laid out as its evaluator says."""
    network = evaluator.network
    if len(evaluator.tables) > MOST_PATTERNS:
        raise Mistake(f"{len(evaluator.tables)} patterns are too many for the GPU: at most {MOST_PATTERNS}")
    return Tables(
        entries=evaluator.tables,
        word_of=_lane_word(evaluator),
        offset_of=evaluator.offset,
        symmetries=network.symmetries,
        by_aux=network.by_hint,
        weights=evaluator.size,
        reads=evaluator.reads,
    )


def _lane_word(evaluator: Any) -> Link:
    turned, spread = evaluator.turned, evaluator.spread
    mirror, flip, transpose = evaluator.mirror, evaluator.flip, evaluator.transpose

    @device
    def one_of_eight(board: np.uint64, aux: np.uint64, lane: int) -> Any:
        """Bit 0 of the lane mirrors, bit 1 flips, bit 2 transposes."""
        word = spread(turned(board, aux))
        word = mirror(word) if lane & 1 else word
        word = flip(word) if lane & 2 else word
        return transpose(word) if lane & 4 else word

    @device
    def one_of_two(board: np.uint64, aux: np.uint64, lane: int) -> Any:
        word = spread(turned(board, aux))
        return flip(word) if lane & 1 else word

    return one_of_eight if evaluator.network.symmetries == LANES else one_of_two


def _mine(tables: Tables, pattern: int) -> Link:
    """mine(lane): does this lane read this pattern?"""
    symmetries, turn, shared = tables.symmetries, pattern % tables.sharers, tables.sharers > 1

    @device
    def mine(lane: int) -> Any:
        return not shared or lane // symmetries == turn

    return mine


def _groups(tables: Tables) -> list[range]:
    """The patterns in groups whose loads fit into the registers, the last group first."""
    patterns = len(tables.entries)
    return [range(first, min(first + AT_ONCE, patterns)) for first in range(0, patterns, AT_ONCE)][::-1]


def make_read(tables: Tables) -> Link:
    """read(weights, offset, word, lane, wanted, total): total + the entries that this lane reads, if wanted."""

    @device
    def read(weights: Array, offset: np.uint64, word: np.uint64, lane: int, wanted: int, total: Any) -> Any:
        return total

    for pattern in reversed(range(len(tables.entries))):
        read = _read_one(tables.entries[pattern], _mine(tables, pattern), read)
    return read


def _read_one(entry: Link, mine: Link, others: Link) -> Link:
    @device
    def read(weights: Array, offset: np.uint64, word: np.uint64, lane: int, wanted: int, total: Any) -> Any:
        total = total + load_if(weights, offset + entry(word), wanted if mine(lane) else 0)
        return others(weights, offset, word, lane, wanted, total)

    return read


def make_collect(tables: Tables, words: int) -> Link:
    """collect(records, offset, word, lane, hit): add `hit` to the records of this lane; a bit for each one owned."""

    @device
    def collect(records: Array, offset: np.uint64, word: np.uint64, lane: int, hit: np.uint64) -> Any:
        return NO_BITS

    rest = collect
    for group in _groups(tables):
        chain = collect
        for pattern in reversed(group):
            chain = _collect_one(tables.entries[pattern], _mine(tables, pattern), chain, pattern, words)
        rest = _collect_both(chain, rest) if rest is not collect else chain
    return rest


def _collect_both(first: Link, second: Link) -> Link:
    @device
    def collect(records: Array, offset: np.uint64, word: np.uint64, lane: int, hit: np.uint64) -> Any:
        owned = first(records, offset, word, lane, hit)
        return owned | second(records, offset, word, lane, hit)

    return collect


def _collect_one(entry: Link, mine: Link, others: Link, pattern: int, words: int) -> Link:
    bit, stride = np.int32(1 << pattern), np.uint64(words)

    @device
    def collect(records: Array, offset: np.uint64, word: np.uint64, lane: int, hit: np.uint64) -> Any:
        found = ONE
        if mine(lane):
            found = cuda.atomic.add(records, (offset + entry(word)) * stride, hit)
        owned = others(records, offset, word, lane, hit)
        return owned | (bit if found == ZERO else NO_BITS)

    return collect


@device
def hit_of(error: Any) -> Any:
    """One hit with this error, as it is added to a record."""
    return HIT + uint64(int64(math.floor(error * SIXTEEN + HALF)))


@device
def taken_apart(record: np.uint64) -> Any:
    """The number of hits in a record and the sum of their errors."""
    hits = (record + HALF_A_HIT) >> HITS_SHIFT
    return hits, float32(int64(record - (hits << HITS_SHIFT))) * SIXTEENTH


@device
def batch_rate(rate: Any, hits: np.uint64) -> Any:
    """1 - (1 - rate) ** hits: what that many updates, one after the other, come to. By squaring: products only."""
    if hits == ONE:
        return rate
    kept, factor = WHOLE, minus(WHOLE, rate)
    while hits != ZERO:
        if hits & ONE:
            kept = kept * factor
        factor = factor * factor
        hits >>= ONE
    return minus(WHOLE, kept)


@device
def batch_step(total: Any, rate: Any, hits: np.uint64) -> Any:
    """The step of V: the mean error times the batch rate."""
    step = total * batch_rate(rate, hits)
    if hits != ONE:
        step = step / float32(hits)
    return step


def make_settle(tables: Tables, words: int) -> Link:
    """settle(weights, records, offset, word, owned, rate): apply and clear the owned records of this lane."""

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, word: np.uint64, owned: int, rate: Any) -> None:
        return

    link = _settle_td if words == 1 else _settle_tc
    rest = settle
    for group in _groups(tables):
        chain = settle
        for pattern in reversed(group):
            chain = link(tables.entries[pattern], chain, pattern, tables.reads)
        rest = _settle_both(chain, rest) if rest is not settle else chain
    return rest


def _settle_both(first: Link, second: Link) -> Link:
    @device
    def settle(weights: Array, records: Array, offset: np.uint64, word: np.uint64, owned: int, rate: Any) -> None:
        first(weights, records, offset, word, owned, rate)
        second(weights, records, offset, word, owned, rate)

    return settle


def _settle_td(entry: Link, others: Link, pattern: int, reads: int) -> Link:
    bit, share = np.int32(1 << pattern), np.float32(1 / reads)

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, word: np.uint64, owned: int, rate: Any) -> None:
        place = offset + entry(word)
        mine = owned & bit
        record = ZERO
        if mine:
            record = records[place]
        others(weights, records, offset, word, owned, rate)
        if mine:
            records[place] = ZERO
            hits, total = taken_apart(record)
            cuda.atomic.add(weights, place, batch_step(total, rate, hits) * share)

    return settle


def _settle_tc(entry: Link, others: Link, pattern: int, reads: int) -> Link:
    bit, share = np.int32(1 << pattern), np.float32(1 / reads)

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, word: np.uint64, owned: int, rate: Any) -> None:
        place = offset + entry(word)
        mine = owned & bit
        record, memory = ZERO, ZERO
        if mine:
            record, memory = load_pair(records, place * TWO)
        others(weights, records, offset, word, owned, rate)
        if mine:
            hits, total = taken_apart(record)
            error, absolute = float_of(memory), float_of(memory >> HIGH_HALF)
            coherence = abs(error) / absolute if absolute > NOTHING else WHOLE
            memory = bits_of(error + total) | (bits_of(absolute + abs(total)) << HIGH_HALF)
            store_pair(records, place * TWO, ZERO, memory)
            cuda.atomic.add(weights, place, batch_step(total, rate * coherence, hits) * share)

    return settle


__all__ = ["Tables", "hit_of", "make_collect", "make_read", "make_settle", "tables_of"]
