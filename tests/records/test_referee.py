"""The referee accepts what is in order and names what is not: enumerated damage, random damage, hostile files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import is_in_order, play_game

from tilesage import games
from tilesage.cli import main
from tilesage.cli import referee as command
from tilesage.core.errors import InputError
from tilesage.records.notation import LONGEST_LINE, SYMBOLS, Line
from tilesage.records.record import Place, Record, Slide, format_record, parse_record, record_of, write_records
from tilesage.records.referee import judge, judge_lines

GAMES = reference.names()


@cache
def line_of(game: str, seed: int = 0) -> str:
    return format_record(play_game(game, seed))


def verdict_on(line: str, game: str) -> tuple[int, str]:
    """Action and reason of the fault of a line; (0, "") when it is in order."""
    tally = judge_lines([Line(1, line)], game)
    assert (tally.line == 1) == bool(tally.reason)
    return tally.action, tally.reason


def changed(game: str, change, seed: int = 0) -> str:
    """The line of a game after `change` has worked on the list of its actions."""
    record = parse_record(line_of(game, seed), game)
    actions = list(record.actions)
    change(actions)
    return format_record(Record(game, actions, record.slider, record.placer, record.start_ms, record.end_ms))


# ---------------------------------------------------------------- what is in order


@pytest.mark.parametrize("game", GAMES)
def test_games_in_order_are_accepted(game):
    for seed in range(30):
        record = play_game(game, seed)
        tally = judge_lines([Line(1, format_record(record))], game)
        assert tally.reason == ""
        assert tally.statistics.total == sum(action.reward for action in record.actions)
        assert tally.statistics.slides == sum(isinstance(action, Slide) for action in record.actions)
        assert tally.statistics.placements == sum(isinstance(action, Place) for action in record.actions)
        assert tally.statistics.ms == len(record.actions)


def test_a_game_by_hand():
    """2 2 on the top row; every state of this short game can be checked with a pencil."""
    stops = (7, "the record stops after a slide: a placement must follow")
    assert verdict_on("a:b@1|0131#L[4]11#D01#L[4]|b@2", "2048") == stops
    assert verdict_on("a:b@1|0131#L[4]11#D01|b@2", "2048") == (6, "the game stops here while up is legal")


def long_line_game() -> Record:
    """A player that keeps to the corner gets far enough on the phone to meet bonus tiles."""

    def cornered(state, legal, random):
        return next(action for action in (2, 3, 1, 0) if action in legal)

    return max((play_game("threes-phone", seed, slider=cornered) for seed in range(40)), key=lambda g: len(g.actions))


def test_bonus_tiles_are_accepted():
    record = long_line_game()
    windows = {action.hint for action in record.actions if isinstance(action, Place) and action.hint[0] > 3}
    assert windows
    assert verdict_on(format_record(record), "threes-phone") == (0, "")


@pytest.mark.parametrize("game", GAMES)
def test_games_of_the_engine_are_accepted_and_fair(game, tmp_path):
    path = tmp_path / "records.txt"

    def played(seed):
        start = state = games.get(game).new(seed)
        random, actions = Random(seed), []
        while not state.over:
            actions.append(random.choice(state.legal))
            state = state.play(actions[-1])
        return record_of(start, actions)

    write_records(path, map(played, range(80)))
    verdict = judge(path)
    assert verdict.reason == ""
    assert verdict.statistics.games == 80
    assert min(test.p for test in verdict.tests) > 1e-3


# ---------------------------------------------------------------- damage, one kind at a time


@pytest.mark.parametrize("game", GAMES)
def test_an_illegal_slide(game):
    def change(actions):
        actions.append(Slide(0))
        actions.append(actions[-2])

    record = parse_record(line_of(game), game)
    action, reason = verdict_on(changed(game, change), game)
    assert reason == "illegal slide: up moves nothing"
    assert action == len(record.actions) + 1


@pytest.mark.parametrize("game", GAMES)
def test_a_wrong_reward_of_a_slide(game):
    actions = parse_record(line_of(game), game).actions
    at = next(i for i, a in enumerate(actions) if isinstance(a, Slide) and a.reward)
    for stated in (0, actions[at].reward + 1):
        wrong = actions[at]._replace(reward=stated)
        line = changed(game, lambda actions, wrong=wrong: actions.__setitem__(at, wrong))
        reason = f"the slide earns {actions[at].reward}, the record says {stated}"
        assert verdict_on(line, game) == (at + 1, reason)


@pytest.mark.parametrize("game", GAMES)
def test_a_wrong_reward_of_a_placement(game):
    record = parse_record(line_of(game), game)
    last = len(record.actions) - 1
    worth = record.actions[last].reward
    line = changed(game, lambda actions: actions.__setitem__(last, actions[last]._replace(reward=worth + 3)))
    assert verdict_on(line, game) == (last + 1, f"the placement earns {worth}, the record says {worth + 3}")


@pytest.mark.parametrize("game", GAMES)
def test_a_tile_on_a_taken_cell(game):
    line = changed(game, lambda actions: actions.__setitem__(1, actions[1]._replace(cell=actions[0].cell)))
    action, reason = verdict_on(line, game)
    assert action == 2
    assert re.fullmatch(r"illegal placement: cell [0-9A-F] is taken", reason)


@pytest.mark.parametrize("game", GAMES)
def test_a_tile_off_the_board(game):
    line = changed(game, lambda actions: actions.__setitem__(-1, actions[-1]._replace(cell=16)))
    reason = "illegal placement: there is no cell G, cells are 0-9 and A-F"
    assert verdict_on(line, game) == (len(parse_record(line, game).actions), reason)


def test_a_tile_that_cannot_appear_in_2048():
    for tile in (0, 3, 15, 35):
        line = changed("2048", lambda actions, tile=tile: actions.__setitem__(0, actions[0]._replace(tile=tile)))
        action, reason = verdict_on(line, "2048")
        assert action == 1
        assert "cannot appear, only 2 or 4" in reason


def test_rates_of_fours_of_zero_and_one():
    assert (
        judge_lines([Line(1, "a:b@1|0232|b@2")], "2048", {"four_rate": 0.0}).reason
        == "a tile of index 2 cannot appear, only 2"
    )
    assert (
        judge_lines([Line(1, "a:b@1|0132|b@2")], "2048", {"four_rate": 1.0}).reason
        == "a tile of index 1 cannot appear, only 4"
    )


@pytest.mark.parametrize("game", ["threes", "threes-phone"])
def test_a_tile_other_than_the_hint(game):
    def change(actions):
        tile = actions[4].tile % 3 + 1
        actions[4] = actions[4]._replace(tile=tile, reward=3 if tile == 3 else 0)

    record = parse_record(line_of(game), game)
    hint = record.actions[3].hint[0]
    assert verdict_on(changed(game, change), game) == (5, f"the tile is {hint % 3 + 1}, but the hint was {hint}")


def test_a_hint_that_is_not_in_the_bag():
    record = parse_record(line_of("threes"), "threes")
    first = record.actions[0].tile
    line = changed("threes", lambda actions: actions.__setitem__(0, actions[0]._replace(hint=(first,))))
    action, reason = verdict_on(line, "threes")
    assert action == 1
    assert reason.startswith(f"the hint {first} was not in the bag: the bag held")
    assert verdict_on(line.replace("@", "x@", 1), "threes") == (action, reason)


def test_a_hint_that_is_not_in_the_deck():
    start = "".join(f"{cell}1{'1' if cell < 7 else '2'}{'1' if cell < 7 else '2'}" for cell in range(4))
    assert verdict_on(f"a:b@1|{start}|b@2", "threes-phone") == (
        4,
        "the hint 1 was not in the deck: the deck held 2 2 2 2 3 3 3 3",
    )


def test_bonus_hints_that_cannot_be():
    start = play_game("threes-phone", 0).actions[:9]
    for hint, reason in (
        ((4,), "the hint 44 is a bonus, but no tile is 48 or more"),
        ((1, 2), "the hint 12 is a bonus, but no tile is 48 or more"),
    ):
        actions = [*start[:8], start[8]._replace(hint=hint)]
        line = format_record(Record("threes-phone", actions))
        assert verdict_on(line, "threes-phone") == (9, reason)
    record = long_line_game()
    at = next(i for i, a in enumerate(record.actions) if isinstance(a, Place) and a.hint[0] > 3)
    for hint in ((4, 5, 6, 7), (9,), (3, 4)):
        actions = list(record.actions)
        actions[at] = actions[at]._replace(hint=hint)
        action, reason = verdict_on(format_record(Record("threes-phone", actions)), "threes-phone")
        assert action == at + 1
        assert "is no window of" in reason


def test_landing_cells_of_threes():
    for game, words in (
        ("threes", "at the border"),
        ("threes-phone", "on a line that moved, at the border"),
    ):
        found = set()
        for seed in range(20):
            actions = list(play_game(game, seed).actions)
            for cell in range(16):
                actions[10] = actions[10]._replace(cell=cell)
                action, reason = verdict_on(format_record(Record(game, actions[:11])), game)
                if "lands" in reason:
                    slid = games.board.ACTIONS[actions[9].action]
                    wrong = f"illegal placement: after {slid} a tile lands {words} opposite, not on cell {cell:X}"
                    assert (action, reason) == (11, wrong)
                    found.add(slid)
        assert found == {"up", "right", "down", "left"}


@pytest.mark.parametrize("game", GAMES)
def test_a_game_that_stops_too_early(game):
    line = changed(game, lambda actions: actions.__delitem__(slice(-2, None)))
    action, reason = verdict_on(line, game)
    assert action == len(parse_record(line, game).actions)
    assert re.fullmatch(r"the game stops here while (up|right|down|left) is legal", reason)


@pytest.mark.parametrize("game", GAMES)
def test_actions_out_of_turn(game):
    start = reference.get(game).STARTING_TILES
    assert verdict_on(changed(game, lambda a: a.pop(start + 1)), game) == (
        start + 2,
        "a placement is due, but another slide follows",
    )
    action, reason = verdict_on(changed(game, lambda a: a.pop(start)), game)
    assert action == start + 1
    assert reason.startswith("a slide is due, but a placement")
    assert verdict_on(changed(game, lambda a: a.pop()), game)[1].startswith("the record stops after a slide")
    few = changed(game, lambda a: a.__delitem__(slice(1, start)))
    reason = f"a game of {game} starts with {start} placements, here are 1"
    assert verdict_on(few, game) == (2, reason)


def test_text_that_cannot_be_read():
    for moves, action, reason in (
        ("0131#X01", 3, "unknown slide '#X': write #U, #R, #D or #L"),
        ("0131#L[4]1", 4, "unreadable placement '1': 2048 writes POS TILE"),
        ("0131#L[x]11", 3, "unreadable reward or time '[x]11'"),
        ("0131#L[4]11?", 5, "unreadable text '?'"),
        ("01?1", 2, "unreadable placement '?1': 2048 writes POS TILE"),
        ("", 1, "a game of 2048 starts with 2 placements, here are 0"),
    ):
        assert verdict_on(f"a:b@1|{moves}|b@2", "2048") == (action, reason)


@pytest.mark.parametrize("game", GAMES)
def test_names_and_times(game):
    line = line_of(game)
    placer = parse_record(line).placer
    for damage, reason in (
        (
            line.replace(f"|{placer}@", "|unknown@"),
            f"the winner is 'unknown', but the slider is stuck and '{placer}' has won",
        ),
        (re.sub(r"@\d+$", "@5", line), "the game ends at 5, before it starts at 1667102958189"),
        (line.rpartition("|")[0], "the record is cut off: '|WINNER@MILLISECONDS' is missing"),
        (line + "|", "not with |WINNER@MILLISECONDS"),
        (line.replace(":", ""), "no record: "),
    ):
        assert verdict_on(damage, game)[0] == 0
        assert reason in verdict_on(damage, game)[1]


@pytest.mark.parametrize("game", GAMES)
def test_no_part_of_a_record_is_a_record(game):
    line = line_of(game, 3)
    assert all(verdict_on(line[:end], game)[1] for end in range(len(line)))


def test_a_game_of_another_rule_set():
    for game in GAMES:
        for other in GAMES:
            assert (verdict_on(line_of(game), other)[1] == "") == (game == other)


# ---------------------------------------------------------------- damage at random, with a second opinion


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GAMES), st.integers(0, 5), st.data())
def test_referee_and_reference_agree_on_any_damage(game, seed, data):
    record = parse_record(line_of(game, seed), game)
    actions = list(record.actions)
    at = data.draw(st.integers(0, len(actions) - 1), "which action")
    if isinstance(actions[at], Slide):
        actions[at] = actions[at]._replace(action=data.draw(st.integers(0, 3)))
    else:
        kind = data.draw(st.sampled_from(["cell", "tile", "hint", "reward", "swap"]))
        if kind == "hint" and reference.get(game).COPIES:
            actions[at] = actions[at]._replace(hint=(data.draw(st.integers(1, 4)),))
        elif kind == "swap":
            other = data.draw(st.integers(0, len(actions) - 1))
            actions[at], actions[other] = actions[other], actions[at]
        elif kind != "hint":
            actions[at] = actions[at]._replace(**{kind: data.draw(st.integers(0, 15))})
    damaged = Record(game, actions, "unknown", "place", record.start_ms, record.end_ms)
    assert (verdict_on(format_record(damaged), game)[1] == "") == is_in_order(damaged)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(GAMES), st.integers(0, 10**6), st.text(max_size=3), st.integers(0, 3))
def test_any_text_gets_a_verdict(game, at, text, removed):
    line = line_of(game, 1)
    at %= len(line)
    damaged = line[:at] + text + line[at + removed :]
    action, reason = verdict_on(damaged, game)
    assert 0 <= action <= len(line)
    if reason == "":
        assert is_in_order(parse_record(damaged, game))


# ---------------------------------------------------------------- files


def test_first_fault_is_named_with_its_line(tmp_path):
    path = tmp_path / "records.txt"
    bad = line_of("2048", 2).replace("#U", "#D", 1)
    path.write_text("\n".join([line_of("2048", 0), line_of("2048", 1), bad, "rubbish"]) + "\n")
    verdict = judge(path)
    assert (verdict.line, verdict.ok, verdict.statistics.games) == (3, False, 2)
    assert verdict.text().startswith(f"{path}: line 3, action {verdict.action}: {verdict.reason}\n2 games of 2048")


def test_reading_stops_at_an_empty_line_and_says_so(tmp_path):
    path = tmp_path / "records.txt"
    path.write_bytes(f"{line_of('threes')}\r\n\r\nwhatever\r\n".encode())
    verdict = judge(path)
    assert verdict.ok
    assert verdict.unread
    assert "line 2 is empty: the lines after it were not read" in verdict.text()
    path.write_text(line_of("threes") + "\n\n\n")
    assert not judge(path).unread


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no game record: it is empty"),
        (b"\n\n" + b"x", "holds no game record"),
        (bytes(range(256)) * 100, "is no file of game records"),
        (b"\x7fELF\x02\x01\x01", "is no file of game records"),
        (b"hello world\n", "a record begins SLIDER:PLACER@MILLISECONDS"),
        (b"A" * 41, r"MILLISECONDS\|, not 'A{40}'$"),
    ],
)
def test_files_that_are_no_records(tmp_path, content, reason):
    path = tmp_path / "records.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as mistake:
        judge(path)
    assert "\n" not in str(mistake.value)


def test_missing_files_and_wrong_parameters(tmp_path):
    path = tmp_path / "records.txt"
    with pytest.raises(InputError, match="cannot read"):
        judge(path)
    with pytest.raises(InputError, match="cannot read"):
        judge(tmp_path)
    path.write_text(line_of("2048"))
    for name, wrong, right in (
        ("game", ("chess",), ("2048", "auto")),
        ("four_rate", (-0.1, 1.1), (0.1,)),
        ("significance", (-0.1, 1.1), (0.0, 1.0)),
        ("workers", (-1, 257), (0, 1)),
    ):
        for value in wrong:
            with pytest.raises(InputError, match=re.escape(str(value))):
                judge(path, **{name: value})
        for value in right:
            assert judge(path, **{name: value}).reason == ""
    assert judge(path, four_rate=0.0).reason == "a tile of index 2 cannot appear, only 2"
    assert judge(path, four_rate=1.0).reason == "a tile of index 1 cannot appear, only 4"


def test_gigantic_lines(tmp_path):
    path = tmp_path / "records.txt"
    with path.open("wb") as stream:
        stream.write(line_of("2048").encode() + b"\na:b@1|0131")
        stream.truncate(LONGEST_LINE + 2**21)
    verdict = judge(path, workers=1)
    assert (verdict.line, verdict.action, verdict.reason) == (2, 0, "the line is longer than any game can be")
    path.write_bytes(b"a:b@1|0131" + b"#L[" * 2**20 + b"|b@2")
    assert judge(path).reason == "unreadable reward or time '[#L[#L[#L[#L[#L['"
    path.write_bytes(b"A" * (LONGEST_LINE + 2**21))
    with pytest.raises(InputError, match="is no file of game records"):
        judge(path)


def test_verdicts_do_not_depend_on_the_number_of_workers(tmp_path, monkeypatch):
    game = "threes-phone"
    monkeypatch.setattr("tilesage.records.referee.BATCH", 20_000)
    path = tmp_path / "records.txt"
    write_records(path, (play_game(game, seed) for seed in range(60)))
    one, two = judge(path, workers=1), judge(path, workers=2)
    assert one.json() == two.json()
    assert one.statistics.games == 60
    with path.open("a") as stream:
        stream.write(line_of(game, 1)[:-30] + "\n" + line_of(game, 2)[:-40] + "\n")
    assert judge(path, workers=2).line == 61


def test_the_referee_shares_no_code_with_the_engine():
    package = Path(judge.__code__.co_filename).parent
    own = {"referee", "rulebooks", "fairness", "notation", "statistics", "verdict"}
    shared = {f"tilesage.records.{name}" for name in own} | {"tilesage.core.errors", "tilesage.core.processors"}
    # Games that have no row or rule book of the referee's are asked for what they say of themselves.
    for_others = {"notation": {"tilesage"}, "statistics": {"tilesage"}, "referee": {"tilesage.records.by_game_rules"}}
    for name in own:
        allowed = shared | for_others.get(name, set())
        for line in (package / f"{name}.py").read_text(encoding="utf-8").splitlines():
            if words := re.match(r"\s*(?:from|import)\s+([\w.]+)", line):
                module = words[1]
                assert not module.startswith((".", "tilesage")) or module in allowed
                assert module.split(".")[0] != "numba"


def test_unfair_chance_is_a_verdict_of_its_own(tmp_path):
    path = tmp_path / "records.txt"
    write_records(path, (play_game("2048", seed, lambda kind, choices, random: choices[0]) for seed in range(300)))
    verdict = judge(path)
    assert verdict.reason == ""
    assert not verdict.ok
    assert "300 games of 2048, every move legal, but chance is not fair" in verdict.text()
    assert "UNFAIR  cells    p <= " in verdict.text()
    assert verdict.json()["fault"] is None
    assert command.run(command.Command(path)) == 1


# ---------------------------------------------------------------- the command


def test_the_command(tmp_path, capsys):
    path, result = tmp_path / "records.txt", tmp_path / "verdict.json"
    write_records(path, [play_game("threes", seed) for seed in range(3)])
    assert command.run(command.Command(path, json=str(result), speed=10.0)) == 0
    assert "3 games of threes, all in order" in capsys.readouterr().out
    found = json.loads(result.read_text())
    assert (found["game"], found["ok"], found["games"], found["fault"]) == ("threes", True, 3, None)
    path.write_text(line_of("threes")[:-1] + "x\n")
    assert command.run(command.Command(path, json="-")) == 1
    assert json.loads(capsys.readouterr().out)["fault"]["line"] == 1


def test_exit_status_and_complaints(tmp_path, capsys):
    path = tmp_path / "records.txt"
    path.write_text(line_of("2048"))
    assert main(["referee", str(path), "--style", "ours"]) == 0
    assert "median" in capsys.readouterr().out
    path.write_text(line_of("2048")[:-40])
    assert main(["referee", str(path)]) == 1
    assert f"{path}: line 1: the record is cut off" in capsys.readouterr().out
    path.write_bytes(bytes(range(256)))
    flags = (["--game", "chess"], ["--speed", "x"])
    for words in ([str(path)], [str(tmp_path / "missing")], [], *([str(path), *flag] for flag in flags)):
        assert main(["referee", *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("tilesage: ")
        assert err.count("\n") == 1


def test_a_taken_cell_is_named_whatever_the_direction():
    """After slides across and down alike, on every cell that holds a tile."""
    record = play_game("2048", 11)
    rules, cells, named = reference.get("2048"), [0] * 16, set()
    for i, action in enumerate(record.actions):
        if isinstance(action, Slide):
            cells = list(rules.slide(tuple(cells), action.action)[0])
            continue
        for taken in (cell for cell in range(16) if cells[cell] and i >= 2):
            damaged = [*record.actions[:i], action._replace(cell=taken), *record.actions[i + 1 :]]
            tally = judge_lines([Line(1, format_record(replace(record, actions=damaged)))], "2048")
            assert tally.reason == f"illegal placement: cell {SYMBOLS[taken]} is taken"
            named.add((taken, record.actions[i - 1].action & 1))
        cells[action.cell] = action.tile
    assert len(named) == 32
