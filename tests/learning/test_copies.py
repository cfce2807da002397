"""Copies of a network that learn apart: what is sent, what is averaged, and that all end up alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesage.core.compiler import Array
from tilesage.learning.copies import Changes, Composition, Copy, apply_changes

SIZE = 10_000


def new_copy(by_sums: bool) -> Copy:
    weights = np.random.default_rng(1).normal(size=SIZE).astype(np.float32)
    return Copy(weights, np.zeros(2 * SIZE if by_sums else SIZE, np.float32), by_sums)


def teach(copy: Copy, entries: Array, steps: Array, visits: Array) -> None:
    """What a trainer does to a copy's arrays."""
    copy.weights[entries] += steps
    if copy.by_sums:
        copy.memory[2 * entries] += steps
        copy.memory[2 * entries + 1] += visits
    else:
        copy.memory[entries] += visits


@pytest.mark.parametrize("by_sums", [False, True])
def test_only_touched_entries_travel(by_sums: bool) -> None:
    copy = new_copy(by_sums)
    teach(copy, np.array([7, 5000, 9999]), np.float32([1, -2, 0.5]), np.float32([1, 4, 2]))
    changes = copy.collect(0)
    assert changes.entries.tolist() == [7, 5000, 9999]
    np.testing.assert_allclose(changes.moved, [1, -2, 0.5], rtol=1e-6)
    assert changes.visits.tolist() == [1, 4, 2]
    assert changes.bytes == 3 * (16 if by_sums else 12)
    assert len(copy.collect(1).entries) == 0


def test_changes_are_weighted_by_visits() -> None:
    """Entry 3: one visit says +4, three visits say 0, so together +1. Entry 5: one copy alone, its whole change."""
    one, other = new_copy(False), new_copy(False)
    teach(one, np.array([3, 5]), np.float32([4, 2]), np.float32([1, 7]))
    teach(other, np.array([3]), np.float32([0]), np.float32([3]))
    common = Composition(SIZE, False).of([one.collect(0), other.collect(0)], 1.0, one.memory)
    assert common.entries.tolist() == [3, 5]
    np.testing.assert_allclose(common.moved, [1, 2], rtol=1e-5)
    assert common.visits.tolist() == [4, 7]


@pytest.mark.parametrize("by_sums", [False, True])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), copies=st.integers(1, 4), delay=st.integers(0, 2))
def test_all_copies_end_up_alike(by_sums: bool, seed: int, copies: int, delay: int) -> None:
    """Whatever was learnt while changes were under way, once all have come back every copy is the common one."""
    random = np.random.default_rng(seed)
    team, average = [new_copy(by_sums) for _ in range(copies)], Composition(SIZE, by_sums)
    weights, memory = team[0].weights.copy(), team[0].memory.copy()
    under_way: list[tuple[int, Changes]] = []
    for number in range(4):
        for copy in team:
            if number > delay:
                copy.absorb(*under_way[number - delay - 1])
            entries = random.choice(SIZE, 300, replace=False)
            teach(copy, entries, random.normal(size=300).astype(np.float32), random.integers(1, 9, 300))
        common = average.of([copy.collect(number) for copy in team], 0.1, memory)
        apply_changes(weights, memory, common, by_sums)
        under_way.append((number, common))
    for copy in team:
        for late in under_way[3 - delay :]:
            copy.absorb(*late)
        np.testing.assert_allclose(copy.weights, weights, atol=1e-5)
        if by_sums:
            np.testing.assert_allclose(copy.memory, memory, atol=1e-4)
        assert not copy.sent
        assert len(copy.collect(9).entries) == 0


def test_a_single_copy_is_left_alone() -> None:
    copy = new_copy(True)
    entries = np.arange(0, SIZE, 3)
    teach(copy, entries, np.full(len(entries), 0.25, np.float32), np.ones(len(entries), np.float32))
    before = copy.weights.copy()
    copy.absorb(0, Composition(SIZE, True).of([copy.collect(0)], 1.0, np.zeros(2 * SIZE, np.float32)))
    np.testing.assert_allclose(copy.weights, before, atol=1e-6)


def test_copies_that_adjust_an_entry_apart_come_to_what_one_would_have_come_to() -> None:
    """A weight moves toward 10 at rate 0.1, twice in one copy, five times in the other: as seven times in one."""
    team = [new_copy(False), new_copy(False)]
    for copy, times in zip(team, (2, 5)):
        teach(copy, np.array([3]), np.float32([10 * (1 - 0.9**times)]), np.float32([times]))
    common = Composition(SIZE, False).of([copy.collect(0) for copy in team], 0.1, team[0].memory)
    np.testing.assert_allclose(common.moved, [10 * (1 - 0.9**7)], rtol=1e-5)


def test_under_tc_the_rate_of_an_entry_says_whether_changes_add_up() -> None:
    """Both move two entries by 1 with one error each. E / A = 1: they agree on 1. E / A = 0.02: they add up."""
    memory = np.zeros(2 * SIZE, np.float32)
    memory[2 * np.array([3, 5])], memory[2 * np.array([3, 5]) + 1] = [100, 0.1], 100
    team = [new_copy(True), new_copy(True)]
    for copy in team:
        teach(copy, np.array([3, 5]), np.ones(2, np.float32), np.full(2, 0.01, np.float32))
    common = Composition(SIZE, True).of([copy.collect(0, hits=2) for copy in team], 1.0, memory)
    np.testing.assert_allclose(common.moved, [1, 2], rtol=2e-2)
