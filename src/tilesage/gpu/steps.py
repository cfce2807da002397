"""One step of batch learning: every game in flight makes one move against frozen weights, then the weights move.

Two kernels a step. `choose` picks each game's move, collects the error of an earlier position and goes on to the
next position; `apply` settles the weights that were hit. Both give eight lanes to a game. turns.py says what learns
from which error.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import seed_of
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import LANE_BITS, LANE_MASK, cuda, int32, launched, meet, thread_number, uint64
from tilesage.gpu.slots import IDLE, Slots, playing
from tilesage.gpu.turns import of_afterstates, of_states, with_traces
from tilesage.learning.rules import AGE_SHARE

# Places in `settings`: the learning rate, and whether anything moves at all.
RATE, RUNNING, SETTINGS = range(3)
ZERO, ONE, NOTHING = np.uint64(0), np.uint64(1), np.float32(0)


class Kernels(NamedTuple):
    """The kernels of a lesson."""

    deal: Any  # (rows, slots, seed): start a game in every slot
    choose: Any  # (weights, records, rows, slots, stats, settings): a move of every game, and the errors
    apply: Any  # (weights, records, slots, settings): the weights move


@cache
def build(lesson: Lesson) -> Kernels:
    """Made once for every lesson."""
    collect, settle, collect_age, settle_age = lesson.tables[1:]
    play, by_age = playing(lesson), lesson.by_age
    begin, way = play.begin, of_states if lesson.of_states else with_traces if lesson.history > 1 else of_afterstates
    look, go_on = way(lesson, play)

    @launched
    def deal(rows: Array, slots: Slots, seed: np.uint64) -> None:
        g = uint64(thread_number())
        if g < slots.boards.size:
            begin(rows, g, slots, seed_of(seed, g))

    @launched
    def choose(weights: Array, records: Array, rows: Array, slots: Slots, stats: Array, settings: Array) -> None:
        thread = uint64(thread_number())
        g, lane = thread >> LANE_BITS, int32(thread & LANE_MASK)
        if settings[RUNNING] == NOTHING:
            return
        hit, hit_aux, age, error, move = look(weights, rows, slots, g, lane)
        owned, hit_age = int32(0), ZERO
        if hit != ZERO:
            if by_age and lane == 0:
                hit_age = collect_age(records, age, error)
            owned = collect(weights, records, hit, hit_aux, lane, error)
        slots.owned[thread] = owned
        meet()
        if lane == 0:
            slots.hit[g], slots.hit_auxes[g] = hit, hit_aux
            slots.worst[g] = max(slots.worst[g], abs(error))
            if by_age:
                slots.hit_ages[g] = hit_age
            if move[0] == ZERO:
                cuda.atomic.add(stats, IDLE, ONE)
            go_on(rows, g, slots, stats, move)

    @launched
    def apply(weights: Array, records: Array, slots: Slots, settings: Array) -> None:
        thread = uint64(thread_number())
        g, lane, owned = thread >> LANE_BITS, int32(thread & LANE_MASK), int32(slots.owned[thread])
        if settings[RUNNING] == NOTHING:
            return
        if by_age and lane == 0 and slots.hit_ages[g] != ZERO:
            settle_age(weights, records, slots.hit_ages[g], AGE_SHARE if settings[RATE] > NOTHING else NOTHING)
        if owned != 0:
            settle(weights, records, slots.hit[g], slots.hit_auxes[g], lane, owned, settings[RATE])

    return Kernels(deal, choose, apply)
