"""The tables of a network on the GPU: reading a value, collecting errors, applying them.

The weights lie alone and dense, because choosing moves reads nothing else. Beside them every weight has a record, one
64-bit word for TD and two for temporal coherence:

    word 0   hits of this step in the upper 20 bits, the sum of their errors in sixteenths in the lower 44
    word 1   E in the lower half, A in the upper half (float32)

Errors are collected by integer additions, so their order does not matter and a seed gives the same weights every time.
The addition returns what was there before: the lane that found 0 owns the weight in this step and alone applies it.

A network is a list of index functions, one a pattern. The functions below are chains, one link a pattern: the loads of
all patterns are under way before the first one is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int64, uint64

from afterstate.games.compiler import Array

from .machine import bits_of, device, float_of, load_if, load_pair, minus, store_pair

Link = Callable[..., Any]

ZERO, ONE, TWO, HIGH_HALF = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
HIT, HITS_SHIFT, HALF_A_HIT = np.uint64(1 << 44), np.uint64(44), np.uint64(1 << 43)
NOTHING, WHOLE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
SIXTEEN, SIXTEENTH = np.float32(16), np.float32(1 / 16)
NO_BITS = np.int32(0)


class Tables(NamedTuple):
    """What the GPU needs to know of a network."""

    indices: tuple[Link, ...]  # one a pattern: board -> place of its entry among the weights of a stage
    offset_of: Link  # (board, aux) -> place of the first weight of that position's stage
    by_aux: bool  # does a value depend on aux?
    weights: int  # in all stages
    reads: int  # entries summed for one position


def make_read(indices: Sequence[Link]) -> Link:
    """read(weights, offset, board, wanted): the entries of one symmetric board, summed; 0 unless wanted."""

    @device
    def read(weights: Array, offset: np.uint64, board: np.uint64, wanted: int) -> Any:
        return NOTHING

    for index in reversed(indices):
        read = _read_one(index, read)
    return read


def _read_one(index: Link, others: Link) -> Link:
    @device
    def read(weights: Array, offset: np.uint64, board: np.uint64, wanted: int) -> Any:
        return load_if(weights, offset + index(board), wanted) + others(weights, offset, board, wanted)

    return read


def make_collect(indices: Sequence[Link], words: int) -> Link:
    """collect(records, offset, board, hit): add `hit` to every record of this board; a bit for each one owned."""

    @device
    def collect(records: Array, offset: np.uint64, board: np.uint64, hit: np.uint64) -> Any:
        return NO_BITS

    for pattern in reversed(range(len(indices))):
        collect = _collect_one(indices[pattern], collect, pattern, words)
    return collect


def _collect_one(index: Link, others: Link, pattern: int, words: int) -> Link:
    bit, stride = np.int32(1 << pattern), np.uint64(words)

    @device
    def collect(records: Array, offset: np.uint64, board: np.uint64, hit: np.uint64) -> Any:
        found = cuda.atomic.add(records, (offset + index(board)) * stride, hit)
        owned = others(records, offset, board, hit)
        return owned | (bit if found == ZERO else NO_BITS)

    return collect


@device
def hit_of(error: Any) -> Any:
    """One hit with this error, as it is added to a record."""
    return HIT + uint64(int64(math.floor(error * SIXTEEN + HALF)))


@device
def taken_apart(word: np.uint64) -> Any:
    """The number of hits in a record and the sum of their errors."""
    hits = (word + HALF_A_HIT) >> HITS_SHIFT
    return hits, float32(int64(word - (hits << HITS_SHIFT))) * SIXTEENTH


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


def make_settle(indices: Sequence[Link], words: int, reads: int) -> Link:
    """settle(weights, records, offset, board, owned, rate): apply and clear the owned records of this board."""

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        return

    link = _settle_td if words == 1 else _settle_tc
    for pattern in reversed(range(len(indices))):
        settle = link(indices[pattern], settle, pattern, reads)
    return settle


def _settle_td(index: Link, others: Link, pattern: int, reads: int) -> Link:
    bit, share = np.int32(1 << pattern), np.float32(1 / reads)

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        place = offset + index(board)
        mine = owned & bit
        word = ZERO
        if mine:
            word = records[place]
        others(weights, records, offset, board, owned, rate)
        if mine:
            records[place] = ZERO
            hits, total = taken_apart(word)
            cuda.atomic.add(weights, place, batch_step(total, rate, hits) * share)

    return settle


def _settle_tc(index: Link, others: Link, pattern: int, reads: int) -> Link:
    bit, share = np.int32(1 << pattern), np.float32(1 / reads)

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        place = offset + index(board)
        mine = owned & bit
        word, memory = ZERO, ZERO
        if mine:
            word, memory = load_pair(records, place * TWO)
        others(weights, records, offset, board, owned, rate)
        if mine:
            hits, total = taken_apart(word)
            error, absolute = float_of(memory), float_of(memory >> HIGH_HALF)
            coherence = abs(error) / absolute if absolute > NOTHING else WHOLE
            memory = bits_of(error + total) | (bits_of(absolute + abs(total)) << HIGH_HALF)
            store_pair(records, place * TWO, ZERO, memory)
            cuda.atomic.add(weights, place, batch_step(total, rate * coherence, hits) * share)

    return settle


__all__ = ["Tables", "hit_of", "make_collect", "make_read", "make_settle"]
