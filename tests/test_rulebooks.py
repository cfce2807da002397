"""The referee's rule books against the references, on lines and boards that no recorded game will ever reach."""

from __future__ import annotations

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from afterstate.arena.replay import Fault, Referee, Replay
from afterstate.arena.rulebooks import rule_book, turned

GAMES = ("2048", "threes", "threes-phone")
HIGHEST = {"2048": 17, "threes": 14, "threes-phone": 14}


def packed(cells):
    return [sum(cells[4 * row + k] << 5 * k for k in range(4)) for row in range(4)]


def at_board(game, cells, dealer_hint=1):
    """A replay in the middle of a game, on this board, with this hint shown."""
    replay = Replay(Referee(game), "", 0, 0)
    replay.lines = packed(cells)
    dealer = replay.dealer
    if game == "threes":
        dealer.hint = dealer_hint
    elif game == "threes-phone":
        dealer.low = dealer.high = dealer_hint
    return replay


@given(st.sampled_from(GAMES), st.data(), st.integers(0, 3))
def test_slides_and_landing_cells_are_those_of_the_reference(game, data, action):
    cells = tuple(data.draw(st.lists(st.integers(0, HIGHEST[game]), min_size=16, max_size=16)))
    rules = reference.get(game)
    after, reward, moved = rules.slide(cells, action)
    replay = at_board(game, cells)
    if not any(moved):
        with pytest.raises(Fault, match="moves nothing"):
            replay.slide(action, None)
        return
    replay.slide(action, str(reward))
    rows = replay.lines if replay.across else list(turned(*replay.lines))
    assert rows == packed(after)
    places = rules.placements(reference.State(cells, (1,), (1, 1, 1)), action)
    assert replay.candidates == sum(1 << cell for cell in {cell for _, cell, _ in places})


@given(st.sampled_from(GAMES), st.data())
def test_the_end_is_that_of_the_reference(game, data):
    cells = tuple(data.draw(st.lists(st.integers(1, HIGHEST[game]), min_size=16, max_size=16)))
    replay = at_board(game, cells)
    if reference.get(game).legal(reference.State(cells)):
        with pytest.raises(Fault, match="the game stops here while"):
            replay.check_end()
    else:
        replay.check_end()


def test_131072_does_not_merge():
    replay = at_board("2048", (17, 17, *[1] * 14))
    assert rule_book("2048").tables[3][17 | 17 << 5][0] == 17 | 17 << 5
    replay.slide(3, str(6 * 4 + 4))
    assert replay.lines[0] == 17 | 17 << 5 | 2 << 10


def test_12288_ends_the_game_on_the_phone():
    replay = at_board("threes-phone", (14, 14, *[0] * 14))
    replay.slide(3, str(3**13 - 2 * 3**12))
    replay.place(3, 1, "22", None)
    replay.check_end()
    with pytest.raises(Fault, match="illegal slide"):
        replay.slide(2, None)


def test_6144_does_not_merge_in_the_course_variant():
    replay = at_board("threes", (14, 14, *[0] * 14))
    with pytest.raises(Fault, match="illegal slide: left moves nothing"):
        replay.slide(3, None)


def test_every_bonus_window_is_known():
    for largest in range(7, 16):
        windows = reference.get("threes-phone").windows(largest)
        for low in range(1, 16):
            for high in range(low, 16):
                dealer = at_board("threes-phone", [0] * 16).dealer
                text = f"{low:X}{high:X}"
                wrong = dealer.deal(1, text, packed([largest, *[0] * 15]))
                deck = low == high <= 3
                assert (wrong is None) == (deck or tuple(range(low, high + 1)) in windows)
