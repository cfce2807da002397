"""Fair chance passes as often as promised, loaded chance is caught; the bets gain nothing on average."""

from __future__ import annotations

import doctest
from collections import Counter
from fractions import Fraction
from functools import cache
from math import comb, exp, log
from operator import mul

import pytest
import reference
from recording import fair, play_game

from tilesage.records import fairness
from tilesage.records.fairness import (
    FACTORS,
    PLACES,
    Group,
    asked,
    bet_on_places,
    examined,
    groups_by_rank,
    stake_on_habits,
)
from tilesage.records.notation import Line
from tilesage.records.record import format_record
from tilesage.records.referee import judge_lines
from tilesage.records.rulebooks import rule_book

GAMES = reference.names()


def p_values(game, choose, games=90, slider=None, **parameters):
    lines = [Line(i, format_record(play_game(game, i, choose, slider))) for i in range(1, games + 1)]
    tally = judge_lines(lines, game, parameters)
    assert tally.reason == ""
    return {test.name: test.p for test in examined(rule_book(game, **parameters).questions, tally.chance)}


@cache
def fair_p_values(game):
    return p_values(game, fair, 150)


def test_under_fair_chance_no_bet_gains_on_average():
    """The mean stake over all that can happen is 1, so 1/stake is below p with probability p at most: for a group of
    throws, and for landings whose candidates depend on where the tiles landed before."""
    for p in (0.1, 0.5):
        stakes = [stake_on_habits([Group([12 - k, k], [1 - p, p])]) for k in range(13)]
        shares = [comb(12, k) * p**k * (1 - p) ** (12 - k) for k in range(13)]
        assert sum(map(mul, shares, stakes)) == pytest.approx(1, abs=1e-9)

    def paths(candidates, throws, share, landings):
        if not throws:
            yield share, landings
            return
        cells = [cell for cell in range(16) if candidates >> cell & 1]
        for cell in cells:
            after = landings + Counter([candidates << 4 | cell])
            left = 0b1011 if cell == 0 else candidates & ~(1 << cell)
            yield from paths(left, throws - 1, share / len(cells), after)

    for bet in (lambda found: bet_on_places(found).stake, lambda found: stake_on_habits(groups_by_rank(found))):
        mean = sum(share * bet(landings) for share, landings in paths(0b1000_1010_1111, 4, 1.0, Counter()))
        assert mean == pytest.approx(1, abs=1e-9)


def test_a_bet_by_hand():
    """Somebody who imagines ten fair throws bets 5/10 on the first head, 6/11 on the second, 7/12 on the third."""
    alone = 5 / 10 * 6 / 11 * 7 / 12 * 2**3
    (found,) = {stake_on_habits([Group([3, 0], [0.5, 0.5])])}
    assert fairness._gain(Group([3, 0], [0.5, 0.5]), 10.0) == pytest.approx(log(alone))
    assert 1 < found < alone
    assert asked("die", "no choice", [Group([5], [1.0])]) is None
    assert bet_on_places({}) is None


def test_a_place_is_bet_on_by_hand():
    """Two candidates, and always the first one: with it e^3 times as likely a throw pays 2 e^3 / (1 + e^3)."""
    test = bet_on_places({0b11 << 4: 40})
    assert test.observations == 40
    assert test.p < len(PLACES) * len(FACTORS) * ((1 + exp(3)) / (2 * exp(3))) ** 40


@pytest.mark.parametrize("game", GAMES)
def test_honest_files_of_few_games_are_not_called_unfair(game):
    """At most as often as promised, however small the file: here 150 of them."""
    wrong = dict.fromkeys((0.05, 0.01), 0)
    for number in range(150):
        lines = [Line(1 + i, format_record(play_game(game, 10**6 + 2 * number + i))) for i in range(1 + number % 2)]
        tests = examined(rule_book(game).questions, judge_lines(lines, game).chance)
        for limit in wrong:
            wrong[limit] += min(test.p for test in tests) * len(tests) < limit
    assert all(times <= 150 * limit + 1 for limit, times in wrong.items()), wrong


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
