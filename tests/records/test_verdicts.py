"""What the referee says and how it gets there: fairness in figures, points, speed, wording, portions of a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from recording import play_game

from tilesage.records import referee
from tilesage.records.fairness import Test as FairnessTest
from tilesage.records.fairness import examined
from tilesage.records.notation import Line
from tilesage.records.record import Place, format_record, parse_record, write_records
from tilesage.records.referee import LARGE_FILE, judge, judge_lines, processes_for
from tilesage.records.rulebooks import Chance, rule_book
from tilesage.records.statistics import Statistics
from tilesage.records.verdict import Verdict


def fault_of(line, game="2048"):
    tally = judge_lines([Line(1, line)], game)
    return tally.action, tally.reason


# ---------------------------------------------------------------- fairness


def stakes(game, choices, **parameters):
    """name -> (stake, observations) of what these choices are tested for."""
    found = examined(rule_book(game, **parameters).questions, Chance(choices=Counter(choices)))
    return {test.name: (test.stake, test.observations) for test in found}


def test_counts_in_fair_proportion_win_nothing():
    """As many as fair chance gives on average, of every kind: who doubts them loses."""
    tiles = {("tile", (), 1): 900, ("tile", (), 2): 100}
    draws = {("draw", (1, 0, 1), 1): 50, ("draw", (1, 0, 1), 3): 50}
    draws |= {("draw", (4, 2, 1), tile): 10 * n for tile, n in ((1, 4), (2, 2), (3, 1))}
    bonus = {("bonus", (), 0): 2000, ("bonus", (), 1): 100}
    windows = {("window", (largest,), k): 10 for largest in range(7, 16) for k in range(max(1, largest - 8))}
    inside = {("inside", (size,), k): 10 for size in (2, 3) for k in range(size)}
    alone = sum(times for (_, (largest,), _), times in windows.items() if largest < 10)  # one window is no choice
    for game, choices, observations in (
        ("2048", tiles, {"tiles": 1000}),
        ("threes", draws, {"hints": 170}),
        (
            "threes-phone",
            draws | bonus | windows | inside,
            {"hints": 170, "bonus": 2100, "windows": sum(windows.values()) - alone, "inside": 50},
        ),
    ):
        found = stakes(game, choices)
        assert {name: times for name, (_, times) in found.items()} == observations
        assert all(stake < 1 for stake, _ in found.values())


def test_a_choice_that_never_came_is_missed():
    assert stakes("2048", {("tile", (), 1): 100}, four_rate=0.5)["tiles"][0] > 1e6
    assert stakes("threes", {("draw", (1, 1, 1), 2): 30})["hints"][0] > 1e6
    assert stakes("threes-phone", {("window", (10,), 1): 60})["windows"][0] > 1e6
    assert stakes("threes-phone", {("inside", (3,), 0): 30})["inside"][0] > 1e6
    assert stakes("threes-phone", {("bonus", (), 0): 2000})["bonus"][0] > 1e6


def test_the_significance_itself_is_still_fair():
    """It is that of the whole file: its tests share it."""
    verdict = Verdict("a.txt", "2048", Statistics("2048"), significance=0.5)
    verdict.tests = [FairnessTest("cells", "each alike", 100, 4.0), FairnessTest("tiles", "as likely", 100, 1.0)]
    assert verdict.ok
    assert verdict.json()["fairness"][0]["fair"]
    assert "fair    cells    p <= 0.25 " in verdict.text()
    verdict.significance = 0.51
    assert not verdict.ok
    assert [test["fair"] for test in verdict.json()["fairness"]] == [False, True]
    assert "UNFAIR  cells    p <= 0.25 " in verdict.text()
    assert "; fair is each alike" in verdict.text()


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
    lines = [format_record(play_game("threes", seed)) for seed in range(1000)]
    path.write_text("\n".join(lines[:-1]) + "\n")
    few = judge(path)
    assert few.points is None
    assert "the course wants at least 1,000 records, here are 999" in few.text()
    path.write_text("\n".join(lines) + "\n")
    enough = judge(path)
    scores = [sum(action.reward for action in parse_record(line).actions) for line in lines]
    assert enough.statistics.mean == sum(scores) / 1000
    one = 60 + 40 / (1 + 2.718281828459045 ** (-0.0065 * (enough.statistics.mean - 560)))
    assert enough.points == {"project 1": round(one, 1), "project 2": 0.0}
    assert enough.statistics.ops == 1000
    slow = judge(path, expected_ops=1001.0)
    assert slow.points == {"project 1": round(0.7 * one, 1), "project 2": 0.0}
    assert "1,001 expected, not reached: points x 70 %" in slow.text()


def test_a_game_that_is_there_twice_is_named(tmp_path):
    """Whatever it says of its player and of its times; games of a few moves may be equal by chance."""
    path = tmp_path / "records.txt"
    records = [play_game("2048", seed) for seed in range(20)]
    again = [replace(records[k], slider="another", start_ms=10**9, end_ms=10**9 + 10**6) for k in (7, 3)]
    again[0].actions[5] = again[0].actions[5]._replace(ms=4)
    write_records(path, [*records, *again])
    for workers in (1, 2):
        verdict = judge(path, workers=workers)
        assert (verdict.ok, verdict.repeated, verdict.line) == (False, 2, 21)
        assert verdict.reason == "this is the game of line 8 once more"
        assert "22 games of 2048, every move legal, but 2 of them repeat others" in verdict.text()
    line = "a:b@1|G0H1#LHF|b@2"
    assert judge_lines([Line(1, line), Line(2, line)], "2048").repeated() == (0, 0, 0)


def test_games_without_a_time_reach_no_speed(tmp_path):
    path = tmp_path / "records.txt"
    records = [play_game("threes", seed) for seed in range(3)]
    write_records(path, [records[0], replace(records[1], start_ms=0, end_ms=0), records[2]])
    verdict = judge(path, expected_ops=1.0)
    assert (verdict.ok, verdict.untimed, verdict.fast_enough) == (True, 1, False)
    assert "speed   not known: 1 game of 3 without a time" in verdict.text()
    assert "1 expected, not reached" in verdict.text()
    assert verdict.json()["games_without_time"] == 1
    write_records(path, [replace(record, start_ms=5, end_ms=5) for record in records])
    assert not judge(path, expected_ops=1e8).fast_enough


def test_actions_take_no_longer_than_their_game():
    record = play_game("threes", 2)
    actions = [action._replace(ms=3) for action in record.actions]
    whole, three = 2 * len(actions), 3 * len(actions)  # each may have been rounded up by a millisecond
    too_long = f"the actions took {three} ms, the whole game {whole - 1} ms"
    for end, wrong in ((whole, ""), (whole - 1, too_long)):
        line = format_record(replace(record, actions=actions, start_ms=1, end_ms=1 + end))
        assert fault_of(line, "threes") == (0, wrong)


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
