"""What the referee says and how it gets there: fairness in figures, points, speed, wording, portions of a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from recording import play_game

from tilesage.records import referee
from tilesage.records.fairness import Test as FairnessTest
from tilesage.records.notation import Line
from tilesage.records.record import Place, format_record, parse_record, write_records
from tilesage.records.referee import LARGE_FILE, Verdict, fairness, judge, judge_lines, processes_for
from tilesage.records.rulebooks import Chance, rule_book
from tilesage.records.statistics import Statistics


def fault_of(line, game="2048"):
    tally = judge_lines([Line(1, line)], game)
    return tally.action, tally.reason


# ---------------------------------------------------------------- fairness


def figures(game, choices, **parameters):
    """name -> (chi-square, degrees of freedom, observations) of what these choices are tested for."""
    found = fairness(rule_book(game, **parameters).questions, Chance(choices=Counter(choices)))
    return {test.name: (round(test.statistic, 9), test.freedom, test.observations) for test in found}


def test_counts_in_fair_proportion_leave_no_surprise():
    """As many as fair chance gives on average, of every kind: every chi-square is 0 with its degrees of freedom."""
    tiles = {("tile", (), 1): 900, ("tile", (), 2): 100}
    assert figures("2048", tiles) == {"tiles": (0, 1, 1000)}
    draws = {("draw", (1, 0, 1), 1): 50, ("draw", (1, 0, 1), 3): 50}
    draws |= {("draw", (4, 2, 1), tile): 10 * n for tile, n in ((1, 4), (2, 2), (3, 1))}
    assert figures("threes", draws) == {"hints": (0, 3, 170)}
    bonus = {("bonus", (), 0): 2000, ("bonus", (), 1): 100}
    windows = {("window", (largest,), k): 10 for largest in range(7, 16) for k in range(max(1, largest - 8))}
    inside = {("inside", (size,), k): 10 for size in (2, 3) for k in range(size)}
    assert figures("threes-phone", draws | bonus | windows | inside) == {
        "hints": (0, 3, 170),
        "bonus": (0, 1, 2100),
        "windows": (0, 1 + 2 + 3 + 4 + 5 + 6, 10 * (2 + 3 + 4 + 5 + 6 + 7)),  # one window alone is no choice
        "inside": (0, 1 + 2, 50),
    }


def test_a_choice_that_never_came_is_missed():
    assert figures("2048", {("tile", (), 1): 100}, four_rate=0.5) == {"tiles": (100, 1, 100)}
    assert figures("threes", {("draw", (1, 1, 1), 2): 30}) == {"hints": (60, 2, 30)}
    assert figures("threes-phone", {("window", (10,), 1): 20}) == {"windows": (20, 1, 20)}
    assert figures("threes-phone", {("inside", (3,), 0): 30}) == {"inside": (60, 2, 30)}
    assert figures("threes-phone", {("bonus", (), 0): 210}) == {"bonus": (10.5, 1, 210)}


def test_the_significance_itself_is_still_fair():
    verdict = Verdict("a.txt", "2048", Statistics("2048"), significance=0.25)
    verdict.tests = [FairnessTest("cells", "each alike", 100, 1.0, 1, 0.25)]
    assert verdict.ok
    assert verdict.json()["fairness"][0]["fair"]
    assert "fair    cells    p = 0.25 " in verdict.text()
    verdict.significance = 0.26
    assert not verdict.ok
    assert not verdict.json()["fairness"][0]["fair"]
    assert "UNFAIR  cells    p = 0.25 " in verdict.text()
    assert verdict.text().endswith("; fair is each alike")


# ---------------------------------------------------------------- points and speed


def verdict_of(game="threes", games=1000, mean=560, reached=932, **rest):
    """A verdict on so many games of one score, `reached` of which end with a 384."""
    statistics = Statistics(game)
    for i in range(games):
        statistics.add(mean, 10 if i < reached else 9, slides=20, placements=29, ms=50)
    return Verdict("a.txt", game, statistics, **rest)


def test_points_by_the_formulas_of_the_course():
    """60 + 40 / (1 + e^(-0.0065 (mean - 560))) and 100 times the square of the share that reaches 384."""
    assert verdict_of().points == {"project 1": 80.0, "project 2": 86.9}
    assert verdict_of(mean=700, reached=500).points == {"project 1": 88.5, "project 2": 25.0}
    assert verdict_of(mean=0, reached=1000).points == {"project 1": 61.0, "project 2": 100.0}
    assert verdict_of(expected_ops=980.0).points == {"project 1": 80.0, "project 2": 86.9}
    assert verdict_of(expected_ops=981.0).points == {"project 1": 56.0, "project 2": 60.8}
    assert verdict_of().text().endswith("points  project 1: 80.0, project 2: 86.9")


def test_points_are_for_a_thousand_games_of_threes_in_order():
    assert verdict_of(games=999).points is None
    assert verdict_of(game="2048").points is None
    assert "points" not in verdict_of(game="2048").text()
    assert verdict_of(reason="cut off").points is None
    assert verdict_of(reason="cut off").text().endswith("points  none: the records are not in order")


def test_points_of_the_course(tmp_path):
    path = tmp_path / "records.txt"
    line = format_record(play_game("threes", 0))
    path.write_text(f"{line}\n" * 999)
    few = judge(path, significance=0.0)
    assert few.points is None
    assert "the course wants at least 1,000 records, here are 999" in few.text()
    path.write_text(f"{line}\n" * 1000)
    enough = judge(path, significance=0.0)
    score = sum(action.reward for action in parse_record(line).actions)
    assert enough.statistics.mean == score
    one = 60 + 40 / (1 + 2.718281828459045 ** (-0.0065 * (score - 560)))
    assert enough.points == {"project 1": round(one, 1), "project 2": 0.0}
    assert enough.statistics.ops == 1000
    slow = judge(path, significance=0.0, expected_ops=1001.0)
    assert slow.points == {"project 1": round(0.7 * one, 1), "project 2": 0.0}
    assert "1,001 expected, not reached: points x 70 %" in slow.text()
    assert not judge(path).ok, "a thousand times the same game is not chance"


def test_speed_and_actions():
    """49 actions in 50 ms a game: 980 a second."""
    verdict = verdict_of(games=3)
    assert "speed   980 actions/s (147 actions in 150 ms)\n" in verdict.text() + "\n"
    assert (verdict.json()["actions"], verdict.json()["ops"]) == (147, 980.0)
    assert "; 980 expected, reached" in verdict_of(games=3, expected_ops=980.0).text()
    assert "; 981 expected, not reached: points x 70 %" in verdict_of(games=3, expected_ops=981.0).text()


def test_a_game_that_takes_no_time_has_no_speed(tmp_path):
    record = play_game("2048", 1)
    path = tmp_path / "records.txt"
    write_records(path, [replace(record, start_ms=5, end_ms=5)])
    verdict = judge(path)
    assert (verdict.reason, verdict.json()["ops"]) == ("", None)
    assert f"not measurable, the records state no time ({len(record.actions):,} actions in 0 ms)" in verdict.text()
    assert "1 game of 2048, all in order" in verdict.text()


def test_the_times_of_slides_and_placements_are_kept_apart():
    record = play_game("threes", 2)
    actions = [action._replace(ms=3 if isinstance(action, Place) else 5) for action in record.actions]
    line = format_record(replace(record, actions=actions, start_ms=1, end_ms=1001))
    statistics = judge_lines([Line(1, line)], "threes").statistics
    assert (statistics.ms, statistics.games) == (1000, 1)
    assert statistics.slide_ms == 5 * statistics.slides
    assert statistics.placement_ms == 3 * statistics.placements


# ---------------------------------------------------------------- wording


def test_what_cannot_be_read_is_quoted_in_part():
    junk = "?" * 99
    for moves, action, reason in (
        (junk, 1, f"unreadable placement '{'?' * 12}': 2048 writes POS TILE"),
        (f"0131{junk}", 3, f"unreadable text '{'?' * 12}'"),
        (f"0131#L[4]{junk}", 4, f"unreadable placement '{'?' * 12}': 2048 writes POS TILE"),
        (f"0131#L[4][{junk}", 3, f"unreadable reward or time '[{'?' * 15}'"),
        (f"0131#L({junk}", 3, f"unreadable reward or time '({'?' * 15}'"),
        ("0131#?", 3, "unknown slide '#?': write #U, #R, #D or #L"),
        ("013111#L", 3, "a slide is due, but a placement '11' follows"),
    ):
        assert fault_of(f"a:b@1|{moves}|b@2") == (action, reason)
    long = "#L[123456789012](123456789012)"
    assert fault_of(f"a:b@1|0131{long}{long}|b@2") == (4, "a placement is due, but another slide follows")
    assert fault_of("x" * 99) == (0, f"no record: '{'x' * 30}' is not SLIDER:PLACER@MILLISECONDS|")
    ending = f"the record ends with '|{'y' * 29}', not with |WINNER@MILLISECONDS"
    assert fault_of(f"a:b@1|0131|{'y' * 99}") == (0, ending)


def test_rewards_that_are_not_stated_are_0():
    assert fault_of("a:b@1|0131#L11|b@2") == (3, "the slide earns 4, the record says 0")
    assert fault_of("a:b@1|031|b@2", "threes") == (1, "the placement earns 3, the record says 0")
    assert fault_of("a:b@1|0131[2]|b@2") == (2, "the placement earns 0, the record says 2")


# ---------------------------------------------------------------- portions and processes


@pytest.mark.parametrize(("length", "portions"), [(9, [2, 2, 1]), (10, [1] * 5), (4, [3, 2])])
def test_portions_end_with_the_line_that_fills_them(monkeypatch, length, portions):
    monkeypatch.setattr(referee, "BATCH", 10)
    lines = [Line(number, "x" * length) for number in range(1, 6)]
    batches = list(referee._batches(lines))
    assert [len(batch) for batch in batches] == portions
    assert [line for batch in batches for line in batch] == lines


def test_more_than_one_process_only_for_large_files(monkeypatch):
    monkeypatch.setattr(referee, "processors", lambda: 7)
    assert (processes_for(0), processes_for(LARGE_FILE), processes_for(LARGE_FILE + 1)) == (1, 1, 7)


def test_two_portions_for_each_process_are_under_way():
    """Enough that no process waits for the next, few enough for the memory whatever the size of the file."""
    line, read = Line(1, format_record(play_game("2048", 1))), []

    def portions():
        for number in range(20):
            read.append(number)
            yield [line]

    tallies = referee._tallies(portions(), "2048", {}, 2)
    assert next(tallies).statistics.games == 1
    assert len(read) == 2 * 2 + 1  # four wait, and the one just read took the place of the first
    assert sum(tally.statistics.games for tally in tallies) == 19


def test_one_worker_is_this_process(tmp_path, monkeypatch):
    path = tmp_path / "records.txt"
    write_records(path, [play_game("threes", 1)])
    monkeypatch.setattr(referee, "ProcessPoolExecutor", None)
    assert judge(path, workers=1).reason == judge(path, workers=0).reason == ""
