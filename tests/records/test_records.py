"""Records: lines and back, the known example, streams of any size, clear mistakes."""

from __future__ import annotations

import doctest
import io
import re
import tracemalloc
from pathlib import Path

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from recording import is_in_order, play_game

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.records import notation
from tilesage.records import record as records
from tilesage.records.record import (
    Place,
    Record,
    Slide,
    format_record,
    parse_record,
    read_records,
    record_of,
    write_records,
)

GAMES = reference.names()
EXAMPLE = "unknown:place@1667102958189|C23A31[3]411E13132[3]223732[3]021D12#D023#D[3]331[3]#R011|place@1667102958507"

marks = st.integers(0, 10**12 - 1)
slides = st.builds(Slide, st.integers(0, 3), marks, marks)
cells, tiles = st.integers(0, 15), st.integers(0, 35)
hints = (  # by how many tiles a hint may leave open
    st.just(()),
    st.tuples(tiles),
    st.tuples(st.integers(0, 33), st.integers(1, 3)).map(lambda w: tuple(range(w[0], sum(w)))),
)
names = st.text(st.characters(exclude_characters="|:@", exclude_categories=["Cc", "Cs"]), max_size=20)


@st.composite
def any_record(draw):
    """Any actions in any order: what a reader must read back, whatever a referee would say."""
    game = draw(st.sampled_from(GAMES))
    hint = games.get(game).hint
    places = st.builds(Place, cells, tiles, hints[min(hint.values, 2) if hint else 0], marks, marks)
    times = draw(st.tuples(marks, marks))
    return Record(game, draw(st.lists(slides | places)), draw(names), draw(names), *times)


@given(any_record())
def test_line_and_back(record):
    assert parse_record(format_record(record), record.game) == record


def test_the_known_example():
    record = parse_record(EXAMPLE)
    assert record.game == "threes"
    assert (record.slider, record.placer) == ("unknown", "place")
    assert (record.start_ms, record.end_ms) == (1667102958189, 1667102958507)
    assert record.actions[:2] == [Place(12, 2, (3,)), Place(10, 3, (1,), 3)]
    assert record.actions[9:13] == [Slide(2), Place(0, 2, (3,)), Slide(2, 3), Place(3, 3, (1,), 3)]
    assert format_record(record) == EXAMPLE


def test_tiles_past_32768_have_letters():
    line = "a:b@1|G1H2#L(2)FG[131072](3)|b@2"
    record = parse_record(line, "2048")
    assert record.actions[-1] == Place(15, 16, (), 131072, 3)
    assert format_record(record) == line


def test_bonus_windows_of_the_phone():
    record = parse_record("a:b@1|0346[3]0411#U[6](7)F533[27]|b@2", "threes-phone")
    assert [action.hint for action in record.actions if isinstance(action, Place)] == [(4, 5, 6), (1,), (3,)]


@pytest.mark.parametrize("game", GAMES)
def test_the_game_of_a_line_is_recognised(game):
    line = format_record(play_game(game, 1))
    assert parse_record(line).game == game


def test_a_damaged_start_goes_to_the_nearest_game():
    """Starts are 4, 27 and 36 characters long; marks do not count."""
    for width in range(50):
        nearest = min((abs(width - 4), "2048"), (abs(width - 27), "threes"), (abs(width - 36), "threes-phone"))[1]
        for moves in ("0" * width + "#U", "0" * width + "|b@1", "[12](345)".join("0" * width)):
            assert notation.guess_game(moves) == nearest


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "does not begin with SLIDER:PLACER@MILLISECONDS"),
        ("hello", "does not begin with"),
        ("a:b@x|0151|b@2", "does not begin with"),
        ("a:b@1|0151", "cut off"),
        ("a:b@1|0151|b", "cut off"),
        ("a:b@1|0151|b@2|", "cut off"),
        ("a:b@1|0151#X01|b@2", "unknown slide '#X'"),
        ("a:b@1|0151#U[4|b@2", "unreadable action at '\\[4'"),
        ("a:b@1|0151#U0|b@2", "have 2 characters, found '0'"),
        ("a:b@1|0151#U[1234567890123]01|b@2", "unreadable action"),
    ],
)
def test_mistakes_say_what_is_wrong(line, reason):
    with pytest.raises(InputError, match=reason):
        parse_record(line)


def test_unknown_game_and_bad_names():
    with pytest.raises(InputError, match="write one of 2048, threes, threes-phone"):
        parse_record(EXAMPLE, "chess")
    with pytest.raises(InputError, match="cannot stand in a record"):
        format_record(Record("2048", [], slider="a:b"))


def test_files_stream_and_stop_at_the_first_empty_line(tmp_path):
    path = tmp_path / "records.txt"
    games_played = [play_game("threes", seed) for seed in range(5)]
    assert write_records(path, games_played) == 5
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\r\nnot a record\r\n")
    assert list(read_records(path)) == games_played
    with pytest.raises(InputError, match="line 2: no game record"):
        list(read_records((EXAMPLE + "\n???\n").encode()))
    with pytest.raises(InputError, match="cannot read"):
        list(read_records(tmp_path / "missing.txt"))
    with pytest.raises(InputError, match="cannot write"):
        write_records(tmp_path, games_played)


def test_memory_is_bounded_by_the_line_not_by_the_file(tmp_path):
    path = tmp_path / "large.txt"
    line = (format_record(play_game("2048", 1)) + "\n").encode()
    with path.open("wb") as stream:
        for _ in range(16):
            stream.write(line * (2**20 // len(line)))
    tracemalloc.start()
    with path.open("rb") as stream:
        count = sum(1 for _ in notation.read_lines(stream))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 16 * (2**20 // len(line))
    assert peak < 2**20


def test_a_line_longer_than_any_game_is_not_kept(tmp_path):
    path = tmp_path / "gigantic.txt"
    with path.open("wb") as stream:
        stream.write(b"a:b@1|")
        stream.truncate(3 * notation.LONGEST_LINE)
    with path.open("rb") as stream:
        (line,) = notation.read_lines(stream)
    assert not line.whole
    assert len(line.text) == 1000
    with pytest.raises(InputError, match="line 1: it is longer than any game"):
        list(read_records(path))


def test_the_longest_line_is_whole_and_a_longer_one_is_not(monkeypatch):
    monkeypatch.setattr(notation, "LONGEST_LINE", 20)
    for ending in (b"\n", b"\r\n", b""):
        whole, *rest = notation.read_lines(io.BytesIO(b"x" * 20 + ending + (b"y" * 21 if ending else b"")))
        assert whole == notation.Line(1, "x" * 20)
        assert rest == ([notation.Line(2, "y" * 21, False)] if ending else [])


@pytest.mark.parametrize("game", GAMES)
def test_games_of_the_engine_become_records(game):
    for seed in range(3):
        start = state = games.get(game).new(seed)
        actions = []
        while not state.over:
            actions.append(state.legal[(seed + len(actions)) % len(state.legal)])
            state = state.play(actions[-1])
        record = record_of(start, actions, ms=70)
        assert is_in_order(record)
        assert sum(action.reward for action in record.actions) == state.score
        assert sum(action.ms for action in record.actions) == 70
    with pytest.raises(InputError, match=r"move \d+ of the game to record, ., is illegal"):
        record_of(start, [*actions, 0])
    with pytest.raises(InputError, match="a record begins with the start of a game"):
        record_of(state, [])


def test_examples_in_the_docstrings():
    assert doctest.testmod(records).failed == 0


def test_the_page_about_records_tells_the_truth(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "records.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    write_records(tmp_path / "records.txt", [play_game("threes", 1)])
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out.startswith("threes unknown ")
    for text, hint in (("C122", (2,)), ("F346[3]", (4, 5, 6)), ("7544[27]", (4,))):
        assert f"`{text}`" in page
        (place,) = records.parse_moves("threes-phone", text)
        assert place.hint == hint
        assert place.reward == (0 if place.tile < 3 else 3 ** (place.tile - 2))
