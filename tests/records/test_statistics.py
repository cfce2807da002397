"""Statistics against numbers worked out by hand, and the tables people know, character by character."""

from __future__ import annotations

import doctest
from math import inf, isnan, nan, sqrt

import pytest

from tilesage.records import statistics
from tilesage.records.statistics import Statistics, course_table, demo_table, our_table


def five_games() -> Statistics:
    stats = Statistics("2048")
    for score, largest in ((20_000, 11), (3_000, 8), (36_001, 12), (20_000, 11), (9_000, 9)):
        stats.add(score, largest, 100, 102, ms=10, slide_ms=8, placement_ms=2)
    return stats


def test_figures_by_hand():
    stats = five_games()
    assert stats.mean == 17_600.2
    deviations = [2_399.8, -14_600.2, 18_400.8, 2_399.8, -8_600.2]
    assert stats.stderr == pytest.approx(sqrt(sum(d * d for d in deviations) / 4 / 5))
    assert stats.median == 20_000
    assert stats.best == 36_001
    assert (stats.reach(2048), stats.end(2048)) == (0.6, 0.4)
    assert (stats.reach(4096), stats.reach(8192), stats.end(1024)) == (0.2, 0.0, 0.0)
    assert stats.tile_shares["256"] == {"reach": 1.0, "end": 0.2}
    assert stats.tile_shares["2"] == {"reach": 1.0, "end": 0.0}, "a tile that every game passed"
    assert list(stats.tile_shares) == [str(2**e) for e in range(1, 13)], "up to the largest that was made"


def test_median_of_an_even_number_and_of_one():
    stats = Statistics("threes")
    stats.add(3, 4)
    assert stats.median == 3
    assert isnan(stats.stderr)
    stats.add(8, 4)
    assert stats.median == 5.5


def test_large_scores_lose_nothing():
    """The error comes from exact integers: huge equal scores have no spread at all."""
    stats = Statistics("2048")
    for score in (3_932_100, 3_932_100, 3_932_102):
        stats.add(score, 17)
    assert stats.stderr == pytest.approx(sqrt((2 * (2 / 3) ** 2 + (4 / 3) ** 2) / 2 / 3))


def test_halves_merge_into_the_whole():
    one, two, whole = Statistics("2048"), Statistics("2048"), Statistics("2048")
    one.add_games([1, 5], [3, 4], [10, 20])
    two.add_games([9, 2, 2], [5, 3, 3], [30, 1, 2])
    whole.add_games([9, 2, 2, 1, 5], [5, 3, 3, 3, 4], [30, 1, 2, 10, 20])
    one.merge(two)
    assert one == whole


def test_course_table():
    assert course_table(five_games()).split("\n") == [
        "5\tavg = 17600, max = 36001, ops = 20200 (12500|51000)",
        "\t256\t100%\t(20%)",
        "\t512\t80%\t(20%)",
        "\t2048\t60%\t(40%)",
        "\t4096\t20%\t(20%)",
    ]


def test_percentages_have_six_digits_and_no_trailing_zeros():
    stats = Statistics("threes")
    stats.add_games([0] * 3, [10, 10, 9], [0] * 3)
    assert course_table(stats).split("\n")[1:] == ["\t192\t100%\t(33.3333%)", "\t384\t66.6667%\t(66.6667%)"]
    big = Statistics("2048")
    big.add_games([0] * 1000, [11] * 99 + [12] * 836 + [1] * 65, [0] * 1000)
    assert "\t2048\t93.5%\t(9.9%)" in course_table(big)


def test_sides_that_shared_a_clock_are_as_fast_as_both_together():
    stats = Statistics("2048", timed_apart=False)
    stats.add(20_000, 11, 100, 102, ms=10)
    assert course_table(stats).startswith("1\tavg = 20000, max = 20000, ops = 20200 (20200|20200)\n")


def test_no_time_is_printed_as_the_course_program_does():
    stats = Statistics("2048")
    stats.add(10, 3, 4, 6)
    assert stats.ops == inf
    assert "ops = inf (inf|inf)" in course_table(stats)
    assert isnan(Statistics("2048").mean)


def test_demo_table():
    stats = Statistics("2048")
    stats.add_games([68_663, 68_664, 68_664], [11, 12, 12], [1, 1, 1])
    assert demo_table(stats).split("\n") == [
        "3\tavg = 68663.7\tmax = 68664",
        "\t2048\t100%\t(33.3333%)",
        "\t4096\t66.6667%\t(66.6667%)",
    ]


def test_our_table():
    assert our_table(five_games()).split("\n") == [
        "5 games of 2048",
        f"  mean    17,600.2 ± {five_games().stderr:,.1f}",
        "  median  20,000.0",
        "  max     36,001",
        "  moves   500 (100.0 a game)",
        "    tile     reach       end",
        "     256  100.00 %   20.00 %",
        "     512   80.00 %   20.00 %",
        "    2048   60.00 %   40.00 %",
        "    4096   20.00 %   20.00 %",
    ]


def test_nothing_played():
    empty = Statistics("2048")
    assert (our_table(empty), course_table(empty), demo_table(empty)) == ("no games", "0", "0")
    assert empty.summary()["mean"] is None
    assert nan not in empty.summary().values()


def test_examples_in_the_docstrings():
    assert doctest.testmod(statistics).failed == 0
