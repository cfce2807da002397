"""The reference implementations against examples and laws that follow from the rules alone."""

from __future__ import annotations

import doctest
from fractions import Fraction
from random import Random

import pytest
import reference
from reference import State, fibonacci, g2048, threes, threes_phone

GAMES = reference.names()


@pytest.mark.parametrize("module", [reference, *map(reference.get, GAMES)], ids=lambda module: module.__name__)
def test_examples_in_the_docstrings(module):
    result = doctest.testmod(module)
    assert result.failed == 0


@pytest.mark.parametrize("name", GAMES)
def test_random_games_obey_the_laws(name):
    rules = reference.get(name)
    for seed in range(3):
        random = Random(seed)
        state = rules.start(random)
        score = rules.value(state.cells)
        while not rules.over(state):
            action = random.choice(rules.legal(state))
            outcomes = rules.outcomes(state, action)
            assert sum(p for p, _ in outcomes) == 1
            assert len({s for _, s in outcomes}) == len(outcomes)
            state, reward = rules.play(state, action, random)
            assert state in [s for _, s in outcomes]
            score += reward
            if rules.NEW_TILES_COUNT:
                assert score == rules.value(state.cells)
                assert sum(state.bag) > 0


def test_2048_stays_exact_at_the_top():
    cells = (15, 15, 16, 16, 17, 17, 0, 0) + (0,) * 8
    after, reward, moved = g2048.slide(cells, reference.LEFT)
    assert after == (16, 17, 0, 0, 17, 17, 0, 0) + (0,) * 8
    assert reward == 65536 + 131072
    assert moved == (True, False, False, False)


def test_2584_stays_exact_at_the_top():
    cells = (30, 31, 31, 32, 32, 32, 1, 1) + (0,) * 8
    after, reward, moved = fibonacci.slide(cells, reference.LEFT)
    assert after == (32, 31, 32, 0, 32, 32, 2, 0) + (0,) * 8
    assert reward == 3524578 + 2
    assert moved == (True, True, False, False)


def test_rate_of_fours_zero_and_one_leave_one_tile():
    state = State((1, *[0] * 15))
    assert {e for _, _, e in g2048.placements(state, reference.RIGHT, Fraction(0))} == {1}
    assert {e for _, _, e in g2048.placements(state, reference.RIGHT, Fraction(1))} == {2}


def test_course_tiles_land_on_any_line_phone_tiles_on_moved_lines():
    cells = (0, 3, 0, 0, 1, 0, 0, 0) + (0,) * 8
    state = State(cells, (2,), (1, 0, 1))
    assert [cell for _, cell, _ in threes.placements(state, reference.LEFT)] == [3, 7, 11, 15]
    assert [cell for _, cell, _ in threes_phone.placements(state, reference.LEFT)] == [3]


def test_6144_merges_on_the_phone_only_and_ends_the_game():
    cells = (14, 14) + (0,) * 14
    assert threes.legal(State(cells, (1,), (0, 1, 1))) == [1, 2]
    after, reward, _ = threes_phone.slide(cells, reference.LEFT)
    assert after[0] == 15
    assert reward == 3**13 - 2 * 3**12
    assert threes_phone.over(State(after, (1,), (1, 1, 1)))


def test_bonus_windows_grow_with_the_largest_tile():
    assert threes_phone.windows(9) == [(4, 5, 6)]
    assert len(threes_phone.windows(14)) == 6
    draws = threes_phone.draws((10, *[0] * 15), (4, 0, 0))
    assert draws == [
        (Fraction(20, 21), (1,), (3, 0, 0)),
        (Fraction(1, 42), (4, 5, 6), (4, 0, 0)),
        (Fraction(1, 42), (5, 6, 7), (4, 0, 0)),
    ]
