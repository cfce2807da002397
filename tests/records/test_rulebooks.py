"""The referee's rule books against the references, on lines and boards that no recorded game will ever reach."""

from __future__ import annotations

from collections import Counter

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from recording import play_game

from tilesage.records.record import Place, format_record
from tilesage.records.referee import Fault, Referee, Replay
from tilesage.records.rulebooks import BITS, rule_book, turned

GAMES = reference.names()
HIGHEST = {game: getattr(reference.get(game), "LARGEST_IN_PLAY", reference.get(game).LARGEST) for game in GAMES}


def packed(cells):
    return [sum(cells[4 * row + k] << BITS * k for k in range(4)) for row in range(4)]


def at_board(game, cells, dealer_hint=1):
    """A replay in the middle of a game, on this board, with this hint shown."""
    replay = Replay(Referee(game), "", 0, 0)
    replay.lines = packed(cells)
    dealer = replay.dealer
    copies = reference.get(game).COPIES
    if copies == 1:
        dealer.hint = dealer_hint
    elif copies:
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


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("name", "border"),
    [("up", (12, 13, 14, 15)), ("right", (0, 4, 8, 12)), ("down", (0, 1, 2, 3)), ("left", (3, 7, 11, 15))],
)
def test_the_only_legal_slide_is_named(game, name, border):
    """Four tiles that do not merge fill one border: they can only leave it."""
    cells = [0] * 16
    for cell, tile in zip(border, (3, 5, 7, 9)):
        cells[cell] = tile
    with pytest.raises(Fault, match=f"the game stops here while {name} is legal"):
        at_board(game, cells).check_end()


def test_131072_does_not_merge():
    replay = at_board("2048", (17, 17, *[1] * 14))
    assert rule_book("2048").tables[3][17 | 17 << BITS][0] == 17 | 17 << BITS
    replay.slide(3, str(6 * 4 + 4))
    assert replay.lines[0] == 17 | 17 << BITS | 2 << 2 * BITS


def test_12288_ends_the_game_on_the_phone():
    assert rule_book("threes-phone").tables[3][15 | 15 << BITS][0] == 15 | 15 << BITS
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


@given(st.integers(7, 15), st.data())
def test_what_chance_did_with_a_bonus_is_counted(largest, data):
    """How the tile was chosen inside its window, that the next hint is a bonus, and which of the windows it shows."""
    windows = reference.get("threes-phone").windows(largest)
    before, after = data.draw(st.sampled_from(windows)), data.draw(st.sampled_from(windows))
    tile = data.draw(st.sampled_from(before))
    replay = at_board("threes-phone", [0] * 16)
    replay.dealer.low, replay.dealer.high = before[0], before[-1]
    board = packed([tile, largest, *[0] * 14])
    assert replay.dealer.deal(tile, f"{after[0]:X}{after[-1]:X}", board) is None
    expected = Counter({("bonus", (), 1): 1, ("window", (largest,), windows.index(after)): 1})
    if len(before) > 1:
        expected["inside", (len(before),), before.index(tile)] += 1
    assert replay.referee.chance.choices == expected


@pytest.mark.parametrize("largest", [6, 7])
def test_a_card_is_no_bonus_and_is_counted_as_such_from_48_on(largest):
    replay = at_board("threes-phone", [0] * 16)
    assert replay.dealer.deal(1, "33", packed([1, largest, *[0] * 14])) is None
    expected = Counter({("draw", (4, 4, 4), 3): 1})
    if largest == 7:
        expected["bonus", (), 0] += 1
    assert replay.referee.chance.choices == expected


def landings_of(record):
    """Candidates << 4 | cell of every placement, and the board at the end, by the reference."""
    rules, cells, found = reference.get(record.game), (0,) * 16, Counter()
    candidates = 0xFFFF
    for action in record.actions:
        if isinstance(action, Place):
            found[candidates << 4 | action.cell] += 1
            candidates &= ~(1 << action.cell)
            cells = (*cells[: action.cell], action.tile, *cells[action.cell + 1 :])
        else:
            places = rules.placements(reference.State(cells, (1,), (1, 1, 1)), action.action)
            candidates = sum(1 << cell for cell in {cell for _, cell, _ in places})
            cells = rules.slide(cells, action.action)[0]
    return found, cells


@pytest.mark.parametrize("game", GAMES)
def test_every_choice_of_a_game_is_counted_once(game):
    record = play_game(game, 3)
    places = [action for action in record.actions if isinstance(action, Place)]
    referee = Referee(game)
    outcome = referee.judge(format_record(record))
    landings, cells = landings_of(record)
    assert referee.chance.landings == landings
    assert outcome.largest == max(cells)
    choices = referee.chance.choices
    copies = reference.get(game).COPIES
    if not copies:
        assert choices == Counter(("tile", (), place.tile) for place in places)
        return
    drawn = [places[0].tile, *(place.hint[0] for place in places if place.hint[0] < 4)]
    left, expected = [0, 0, 0], Counter()
    for tile in drawn:
        left = left if any(left) else [copies] * 3
        expected["draw", tuple(left), tile] += 1
        left[tile - 1] -= 1
    assert {key: times for key, times in choices.items() if key[0] == "draw"} == expected


def test_a_window_that_cannot_be_is_told_what_can():
    for largest, hint, reason in (
        (7, "45", "the hint 45 is no window of 1 bonus tiles from index 4 to 4"),
        (10, "68", "the hint 68 is no window of 3 bonus tiles from index 4 to 7"),
        (14, "9A", "the hint 9A is no window of 3 bonus tiles from index 4 to B"),
    ):
        dealer = at_board("threes-phone", [0] * 16).dealer
        assert dealer.deal(1, hint, packed([1, largest, *[0] * 14])) == reason
    dealer.low, dealer.high = 9, 11
    assert dealer.deal(8, "11", packed([0] * 16)) == "the tile is 8, but the hint was 9 to B"
