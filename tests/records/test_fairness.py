"""Fair chance passes, loaded chance is caught; the chi-square function agrees with the tables in books."""

from __future__ import annotations

import doctest
from fractions import Fraction
from functools import cache

import pytest
import reference
from recording import fair, play_game

from tilesage.records import fairness
from tilesage.records.fairness import Group, chi_square_tail, grouped_test, position_test, rank_test
from tilesage.records.notation import Line
from tilesage.records.record import format_record
from tilesage.records.referee import fairness as all_tests
from tilesage.records.referee import judge_lines
from tilesage.records.rulebooks import rule_book

GAMES = reference.names()


def p_values(game, choose, games=90, slider=None, **parameters):
    lines = [Line(i, format_record(play_game(game, i, choose, slider))) for i in range(1, games + 1)]
    tally = judge_lines(lines, game, parameters)
    assert tally.reason == ""
    return {test.name: test.p for test in all_tests(rule_book(game, **parameters).questions, tally.chance)}


@cache
def fair_p_values(game):
    return p_values(game, fair, 150)


@pytest.mark.parametrize(
    ("x", "freedom", "p"),
    [
        (2.706, 1, 0.10),
        (6.635, 1, 0.01),
        (0.0039, 1, 0.95),
        (5.991, 2, 0.05),
        (11.070, 5, 0.05),
        (3.940, 10, 0.95),
        (23.209, 10, 0.01),
        (124.342, 100, 0.05),
        (149.449, 100, 0.001),
    ],
)
def test_chi_square_tail_agrees_with_the_tables(x, freedom, p):
    assert chi_square_tail(x, freedom) == pytest.approx(p, rel=2e-3)


def test_chi_square_tail_where_the_formula_is_exact():
    """With two degrees of freedom the tail is exp(-x/2)."""
    for x, tail in ((1.0, 0.6065306597126334), (10.0, 0.006737946999085467), (100.0, 1.9287498479639178e-22)):
        assert chi_square_tail(x, 2) == pytest.approx(tail, rel=1e-12)
    assert chi_square_tail(0.0, 3) == 1.0
    assert chi_square_tail(1e6, 3) == 0.0


def test_pearson_by_hand():
    """60 throws of a die: 8 9 19 6 8 10 give chi-square 10.6."""
    test = grouped_test("die", "each face", [Group([8, 9, 19, 6, 8, 10], [1 / 6] * 6)])
    assert test.statistic == pytest.approx(10.6)
    assert (test.freedom, test.observations) == (5, 60)
    assert grouped_test("die", "too few throws", [Group([1, 2, 3], [1 / 3] * 3)]) is None


def test_position_test_by_hand():
    """With always the same candidates it is Pearson's statistic."""
    landings = {0b1111 << 4 | cell: times for cell, times in enumerate((30, 20, 25, 45))}
    pearson = sum((o - 30) ** 2 / 30 for o in (30, 20, 25, 45))
    for test in (position_test(landings), rank_test(landings)):
        assert test.statistic == pytest.approx(pearson)
        assert test.freedom == 3


@pytest.mark.parametrize("game", GAMES)
def test_fair_chance_passes(game):
    p = fair_p_values(game)
    copies = reference.get(game).COPIES
    assert {"cells", "places", "hints" if copies else "tiles"} <= set(p)
    assert ("bonus" in p) == (copies > 1)
    assert min(p.values()) > 1e-3


def loaded(which, share=0.25):
    """A placer that now and then picks the cell it likes best; `which` rates a cell."""

    def choose(kind, choices, random):
        if kind == "place" and random.random() < share:
            return max(choices, key=lambda choice: (which(choice[1]), random.random()))
        return fair(kind, choices, random)

    return choose


@pytest.mark.parametrize("game", GAMES)
def test_a_placer_that_likes_the_first_cell_is_caught(game):
    p = p_values(game, loaded(lambda cell: -cell))
    assert p["cells"] < 1e-6
    assert p["places"] < 1e-6


@pytest.mark.parametrize("game", GAMES)
def test_a_placer_that_likes_corners_is_caught(game):
    assert p_values(game, loaded(lambda cell: cell in (0, 3, 12, 15)))["places"] < 1e-6


def test_too_many_fours_are_caught():
    def choose(kind, choices, random):
        twos_and_fours = [(p * (2 if tile == 2 else Fraction(8, 9)), *rest, tile) for p, *rest, tile in choices]
        return fair(kind, twos_and_fours if kind == "place" else choices, random)

    assert p_values("2048", choose)["tiles"] < 1e-6
    assert p_values("2048", choose, four_rate=0.2)["tiles"] > 1e-3


@pytest.mark.parametrize("game", ["threes", "threes-phone"])
def test_a_loaded_bag_is_caught(game):
    def choose(kind, choices, random):
        if kind == "draw":
            choices = [(p * (2 if hint == (3,) else 1), hint, bag) for p, hint, bag in choices]
        return fair(kind, choices, random)

    assert p_values(game, choose)["hints"] < 1e-6


def cornered(state, legal, random):
    """A player that gets far enough to meet bonus tiles."""
    return next(action for action in (2, 3, 1, 0) if action in legal)


def test_bonus_tiles_that_come_too_often_or_too_small_are_caught():
    def often(kind, choices, random):
        if kind == "draw":
            choices = [(p * (4 if hint[0] > 3 else 1), hint, bag) for p, hint, bag in choices]
        return fair(kind, choices, random)

    def small(kind, choices, random):
        if kind == "place" and random.random() < 0.9:
            choices = [choice for choice in choices if choice[2] == min(tile for _, _, tile in choices)]
        return fair(kind, choices, random)

    p = p_values("threes-phone", often, slider=cornered)
    assert p["bonus"] < 1e-6
    assert p_values("threes-phone", small, 500, slider=cornered)["inside"] < 1e-6


def test_examples_in_the_docstrings():
    assert doctest.testmod(fairness).failed == 0
