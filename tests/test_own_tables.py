"""Each thread's own copy of what is met all the time, and how the copies become one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from afterstate import games
from afterstate.learning.config import TrainConfig
from afterstate.learning.cpu import ALONE, CpuTrainer
from afterstate.learning.own_tables import HOT, OwnTables
from afterstate.learning.seat import CANDIDATES, Seat, new_seat
from afterstate.values.ntuple import evaluator
from afterstate.values.patterns import parse_network

GAME = games.get("2048")
MIXED = "01234,0145,012"  # one large table, two small ones


def tables(network: str = MIXED, threads: int = 3, **shape: Any) -> OwnTables:
    return OwnTables(evaluator(GAME, parse_network(network, **shape)), threads)


def seat_of(own: OwnTables, thread: int) -> Seat:
    seat = new_seat(GAME, own.evaluator.network, 1, 1, thread)
    own.give(seat, thread)
    return seat


def test_copies_lie_behind_the_weights_and_nowhere_twice() -> None:
    own = tables()
    size, small = own.evaluator.size, 16**4 + 16**3
    assert (own.entries, own.extra) == (HOT + small, 2 * (HOT + small))
    assert not seat_of(own, 0).owns[0]
    places = []
    for thread in (1, 2):
        seat = seat_of(own, thread)
        assert seat.owns[0]
        for k in range(0, 3 * 8 * CANDIDATES, 8 * CANDIDATES):
            first = int(seat.own_firsts[k] + seat.own_shifts[k])
            places.append((first, first + int(seat.own_lengths[k])))
    places.sort()
    assert places[0][0] == size
    assert places[-1][1] == size + own.extra
    assert all(a[1] == b[0] for a, b in pairwise(places))


def test_tables_that_share_lines_share_a_copy() -> None:
    own = tables("4x6", threads=2)
    assert own.entries == 2 * HOT
    seat = seat_of(own, 1)
    shifts = seat.own_shifts.reshape(4, -1)[:, 0].tolist()
    assert len(set(shifts)) == 2


def test_nothing_is_copied_where_nothing_is_shared() -> None:
    assert tables(threads=1).extra == 0
    assert tables(stages=(5,)).extra == 0


@pytest.mark.parametrize("width", [0, 1, 2])
def test_what_threads_learnt_becomes_one(width: int) -> None:
    own = tables("012", threads=2)
    weights, memory = np.zeros(2 * 4096, np.float32), np.zeros(width * 2 * 4096 or 2, np.float32)
    weights[:4096] = 10
    own.hand_out(weights, memory)
    assert (weights == 10).all()
    alone, both, mine, theirs = 5, 6, slice(0, 4096), slice(4096, 8192)
    weights[theirs][alone], weights[mine][both], weights[theirs][both] = 14, 12, 18
    if width:
        learnt = memory.reshape(2, 4096, width)
        learnt[1, alone], learnt[0, both], learnt[1, both] = 2, 1, 3
    own.bring_together(weights, memory)
    assert weights[alone] == 14  # met by one thread: as that thread says
    assert weights[both] == (10 + (2 + 8) / 2 if not width else 10 + (1 * 2 + 3 * 8) / 4)
    assert (np.delete(weights[mine], [alone, both]) == 10).all()
    if width:
        assert (learnt[0, alone] == 2).all()
        assert (learnt[0, both] == 4).all()
    own.hand_out(weights, memory)
    assert np.array_equal(weights[mine], weights[theirs])


@pytest.mark.parametrize(("rule", "network"), [("td", "0145,1256,569a,0123"), ("tc", "01245,0123")])
def test_threads_with_own_tables_learn(rule: str, network: str) -> None:
    config = TrainConfig(network=network, rule=rule, threads=2, games=1)
    trainer = CpuTrainer(config)
    trainer.advance(ALONE, 10**9, 0.1 if rule == "td" else 1.0)
    before = trainer.advance(2 * ALONE, 10**9, 0.1 if rule == "td" else 1.0).mean
    for _ in range(8):
        tally = trainer.advance(2 * ALONE, 10**9, 0.1 if rule == "td" else 1.0)
    assert tally.mean > 1.2 * before
    state = trainer.state()
    assert state["weights"].size == trainer.evaluator.size  # a checkpoint keeps one set of tables
    again = CpuTrainer(config)
    again.restore(state)
    assert np.array_equal(again.weights(), trainer.weights())
    trainer.close()
    again.close()
