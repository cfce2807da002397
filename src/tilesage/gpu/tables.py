"""The tables of a network on the GPU: reading a value, collecting errors, applying them.

The weights lie alone and dense, because choosing moves reads nothing else. Beside them every weight has a record, one
64-bit word for TD and two for temporal coherence:

    word 0   hits of this step in the upper 20 bits, the sum of their errors in sixteenths in the lower 44
    word 1   E in the lower half, A in the upper half (float32)

Errors are collected by integer additions, so their order does not matter and a seed gives the same weights every
time. The addition returns what was there before: the lane that found 0 owns the weight in this step and alone
applies it (by an atomic addition, only because that is one request to memory instead of two).

The functions below are chains, one link a pattern: the loads of
all patterns are under way before the first one is used.
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
from tilesage.learning.rules import AGE_RATE, AGE_SHARE
from tilesage.networks.ntuple import Evaluator

Link = Callable[..., Any]
Word: TypeAlias = np.uint64

ZERO, ONE, TWO, HIGH_HALF = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
HIT, HITS_SHIFT, HALF_A_HIT = np.uint64(1 << 44), np.uint64(44), np.uint64(1 << 43)
NOTHING, WHOLE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
SIXTEEN, SIXTEENTH = np.float32(16), np.float32(1 / 16)
NO_BITS = np.int32(0)
MOST_PATTERNS = 32
AT_ONCE = 8


class Tables(NamedTuple):
    """What the GPU needs to know of a network: how a lane finds the entries it reads.

    With eight symmetries a lane reads one of them. With fewer, several lanes share a symmetry, and each reads every
    n-th pattern of it. On the GPU an entry lies at Σ tile[k] << 4k in its table, which takes the fewest operations;
    arrange.py goes from and to the layout of the CPU and of files.
    """

    entries: tuple[Link, ...]  # one a pattern: board -> place of its entry in a set of tables
    board_of: Link  # (board, aux, lane) -> the symmetric board that this lane reads
    offset_of: Link  # (board, aux) -> place of the first entry of that position's set of tables
    symmetries: int
    by_aux: bool  # does a value depend on aux?
    stage_size: int  # entries of one stage, 0 if there is only one
    weights: int  # in all sets of tables
    reads: int  # entries summed for one position

    @property
    def sharers(self) -> int:
        """How many lanes share a symmetry."""
        return LANES // self.symmetries


@cache
def tables_of(evaluator: Evaluator) -> Tables:
    """The tables of a network on the GPU."""
    network, entries, base = evaluator.network, [], 0
    if len(evaluator.layout.tables) > MOST_PATTERNS:
        raise InputError(f"{len(evaluator.layout.tables)} patterns are too many for the GPU: at most {MOST_PATTERNS}")
    for table in evaluator.layout.tables:
        entries.append(_entry_at(base, table.cells))
        base += 16 ** len(table.cells)
    return Tables(
        entries=tuple(entries),
        board_of=_lane_board(evaluator),
        offset_of=evaluator.offset,
        symmetries=network.symmetries,
        by_aux=network.by_hint,
        stage_size=evaluator.tables_size >> len(network.stages) if network.stages else 0,
        weights=evaluator.size,
        reads=evaluator.reads,
    )


def _entry_at(base: int, cells: Sequence[int]) -> Link:
    """board -> base + Σ tile on the k-th cell << 4k. Cells that move by the same distance move together."""
    runs: dict[int, int] = {}
    for k, cell in enumerate(cells):
        runs[4 * (cell - k)] = runs.get(4 * (cell - k), 0) | 15 << 4 * k
    place = np.uint64(base)

    @device
    def entry(board: np.uint64) -> Any:
        return place

    for distance, mask in runs.items():
        entry = _and_run(entry, distance, mask)
    return entry


def _and_run(entry: Link, distance: int, mask: int) -> Link:
    far, bits = np.uint64(abs(distance)), np.uint64(mask)

    @device
    def shifted_down(board: np.uint64) -> Any:
        return entry(board) + ((board >> far) & bits)

    @device
    def shifted_up(board: np.uint64) -> Any:
        return entry(board) + ((board << far) & bits)

    return shifted_down if distance >= 0 else shifted_up


def _lane_board(evaluator: Evaluator) -> Link:
    turned = evaluator.turned

    @device
    def one_of_eight(board: np.uint64, aux: np.uint64, lane: int) -> Any:
        """Bit 0 of the lane mirrors, bit 1 flips, bit 2 transposes."""
        board = turned(board, aux)
        board = mirror(board) if lane & 1 else board
        board = flip(board) if lane & 2 else board
        return transpose(board) if lane & 4 else board

    @device
    def one_of_two(board: np.uint64, aux: np.uint64, lane: int) -> Any:
        board = turned(board, aux)
        return flip(board) if lane & 1 else board

    @device
    def the_only_one(board: np.uint64, aux: np.uint64, lane: int) -> Any:
        return turned(board, aux)

    return {1: the_only_one, 2: one_of_two, LANES: one_of_eight}[evaluator.network.symmetries]


def _mine(tables: Tables, pattern: int) -> Link:
    """mine(lane): does this lane read this pattern?"""
    symmetries, turn, shared = tables.symmetries, pattern % tables.sharers, tables.sharers > 1

    @device
    def mine(lane: int) -> Any:
        return not shared or lane // symmetries == turn

    return mine


def _bit(pattern: int) -> np.int32:
    return np.uint32(1 << pattern).view(np.int32)


def _groups(tables: Tables) -> list[range]:
    """The patterns in groups whose loads fit into the registers, the last group first."""
    patterns = len(tables.entries)
    return [range(first, min(first + AT_ONCE, patterns)) for first in range(0, patterns, AT_ONCE)][::-1]


def make_read(tables: Tables) -> Link:
    """read(weights, offset, board, lane, wanted): the sum of the entries that this lane reads; 0 unless wanted.

    With stages, an entry that was never learnt is NaN, and stands for the entry of the stage before. A NaN makes the
    sum NaN, so the rule costs nothing where there is none.
    """

    @device
    def read(weights: Array, offset: np.uint64, board: np.uint64, lane: int, wanted: int, total: Any) -> Any:
        return total

    slow = read
    for pattern in reversed(range(len(tables.entries))):
        entry, mine = tables.entries[pattern], _mine(tables, pattern)
        read = _read_one(entry, mine, read, load_if)
        slow = _read_one(entry, mine, slow, _load_promoted(tables.stage_size))
    fast, careful, staged = read, slow, tables.stage_size > 0

    @device
    def read_sum(weights: Array, offset: np.uint64, board: np.uint64, lane: int, wanted: int) -> Any:
        return fast(weights, offset, board, lane, wanted, NOTHING)

    @device
    def read_promoted(weights: Array, offset: np.uint64, board: np.uint64, lane: int, wanted: int) -> Any:
        total = fast(weights, offset, board, lane, wanted, NOTHING)
        if total != total:
            total = careful(weights, offset, board, lane, wanted, NOTHING)
        return total

    return read_promoted if staged else read_sum


def _read_one(entry: Link, mine: Link, others: Link, load: Link) -> Link:
    @device
    def read(weights: Array, offset: np.uint64, board: np.uint64, lane: int, wanted: int, total: Any) -> Any:
        total = total + load(weights, offset + entry(board), wanted if mine(lane) else 0)
        return others(weights, offset, board, lane, wanted, total)

    return read


def make_promoted(stage_size: int) -> Link:
    """promoted(weights, place): the entry at `place`, or of the stage before it if it was never learnt."""
    size = np.uint64(max(1, stage_size))

    @device
    def promoted(weights: Array, place: np.uint64) -> Any:
        value = weights[place]
        while value != value:
            stage, bit = place // size, ONE
            while bit << ONE <= stage:
                bit <<= ONE
            place -= bit * size
            value = weights[place]
        return value

    return promoted


def _load_promoted(stage_size: int) -> Link:
    promoted = make_promoted(stage_size)

    @device
    def load(weights: Array, place: np.uint64, wanted: int) -> Any:
        value = NOTHING
        if wanted:
            value = promoted(weights, place)
        return value

    return load


def make_own(stage_size: int) -> Link:
    """own(weights, place): before a weight is learnt, it becomes a copy of its stand-in if it never was.

    This happens while the weights are frozen, so it does not matter who reads before and who after it.
    """
    promoted = make_promoted(stage_size)

    @device
    def nothing_to_do(weights: Array, place: np.uint64) -> None:
        return

    @device
    def own(weights: Array, place: np.uint64) -> None:
        if weights[place] != weights[place]:
            weights[place] = promoted(weights, place)

    return own if stage_size else nothing_to_do


def make_collect(tables: Tables, words: int) -> Link:
    """collect(weights, records, offset, board, lane, hit): hit the records of this lane; a bit for each one owned."""

    @device
    def collect(weights: Array, records: Array, offset: Word, board: Word, lane: int, hit: Word) -> Any:
        return NO_BITS

    rest = collect
    for group in _groups(tables):
        chain = collect
        for pattern in reversed(group):
            chain = _collect_one(tables, chain, pattern, words)
        rest = _collect_both(chain, rest) if rest is not collect else chain
    return rest


def _collect_both(first: Link, second: Link) -> Link:
    @device
    def collect(weights: Array, records: Array, offset: Word, board: Word, lane: int, hit: Word) -> Any:
        owned = first(weights, records, offset, board, lane, hit)
        return owned | second(weights, records, offset, board, lane, hit)

    return collect


def _collect_one(tables: Tables, others: Link, pattern: int, words: int) -> Link:
    bit, stride = _bit(pattern), np.uint64(words)
    entry, mine, own = tables.entries[pattern], _mine(tables, pattern), make_own(tables.stage_size)

    @device
    def collect(weights: Array, records: Array, offset: Word, board: Word, lane: int, hit: Word) -> Any:
        place, found = offset + entry(board), ONE
        if mine(lane):
            found = cuda.atomic.add(records, place * stride, hit)
        owned = others(weights, records, offset, board, lane, hit)
        if found == ZERO:
            own(weights, place)
            owned |= bit
        return owned

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
    """settle(weights, records, offset, board, owned, rate): apply and clear the owned records of this lane."""

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        return

    link = _settle_td if words == 1 else _settle_tc
    rest = settle
    for group in _groups(tables):
        chain = settle
        for pattern in reversed(group):
            chain = link(tables, chain, pattern)
        rest = _settle_both(chain, rest) if rest is not settle else chain
    return rest


def _settle_both(first: Link, second: Link) -> Link:
    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        first(weights, records, offset, board, owned, rate)
        second(weights, records, offset, board, owned, rate)

    return settle


def _settle_td(tables: Tables, others: Link, pattern: int) -> Link:
    bit, share, entry = _bit(pattern), np.float32(1 / tables.reads), tables.entries[pattern]

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        place = offset + entry(board)
        mine = owned & bit
        record = ZERO
        if mine:
            record = records[place]
        others(weights, records, offset, board, owned, rate)
        if mine:
            records[place] = ZERO
            hits, total = taken_apart(record)
            cuda.atomic.add(weights, place, batch_step(total, rate, hits) * share)

    return settle


def _settle_tc(tables: Tables, others: Link, pattern: int) -> Link:
    bit, share, entry = _bit(pattern), np.float32(1 / tables.reads), tables.entries[pattern]

    @device
    def settle(weights: Array, records: Array, offset: np.uint64, board: np.uint64, owned: int, rate: Any) -> None:
        place = offset + entry(board)
        mine = owned & bit
        record, memory = ZERO, ZERO
        if mine:
            record, memory = load_pair(records, place * TWO)
        others(weights, records, offset, board, owned, rate)
        if mine:
            hits, total = taken_apart(record)
            error, absolute = float_of(memory), float_of(memory >> HIGH_HALF)
            coherence = abs(error) / absolute if absolute > NOTHING else WHOLE
            memory = bits_of(error + total) | (bits_of(absolute + abs(total)) << HIGH_HALF)
            store_pair(records, place * TWO, ZERO, memory)
            cuda.atomic.add(weights, place, batch_step(total, rate * coherence, hits) * share)

    return settle


def make_collect_age(words: int) -> Link:
    """collect_age(records, age, error): hit the record of an age; its place for the one that owns it, else 0."""
    stride = np.uint64(words)

    @device
    def collect_age(records: Array, age: Word, error: Any) -> Any:
        found = cuda.atomic.add(records, age * stride, hit_of(error))
        return age if found == ZERO else ZERO

    return collect_age


def make_settle_age(words: int) -> Link:
    """settle_age(weights, records, age, share): apply a share of the record of an age, and clear it."""
    stride, rate = np.uint64(words), np.float32(AGE_RATE / AGE_SHARE)

    @device
    def settle_age(weights: Array, records: Array, age: Word, share: Any) -> None:
        hits, total = taken_apart(records[age * stride])
        records[age * stride] = ZERO
        weights[age] += times(batch_step(total, rate, hits), share)

    return settle_age


__all__ = [
    "Tables",
    "hit_of",
    "make_collect",
    "make_collect_age",
    "make_read",
    "make_settle",
    "make_settle_age",
    "tables_of",
]
