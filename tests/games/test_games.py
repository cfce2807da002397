"""Every registered game against its slow reference: slides, chance, ends, symmetries, text.

The same checks run compiled here and, in `test_with_the_compiler_off`, as plain Python.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from tilesage import games
from tilesage.core import random as chance
from tilesage.core.errors import InputError
from tilesage.games import Game, State, board, exact, fibonacci, g2048, threes, threes_phone
from tilesage.games import state as play
from tilesage.games.board import ACTIONS

NAMES = games.names()
every_game = pytest.mark.parametrize("name", NAMES)


def tiles_of(name: str) -> st.SearchStrategy[list[int]]:
    """Boards with every tile in every cell, full and sparse, many of them with pairs that merge."""
    top = len(games.get(name).tiles) - 1
    any_tile = st.integers(0, top)
    few = st.sampled_from([0, 1, 2, 3, top - 1, top])
    return st.one_of(*(st.lists(tile, min_size=16, max_size=16) for tile in (any_tile, few)))


def state_of(game: Game, cells: list[int], hint: int = 1) -> State:
    book = reference.get(game.name)
    bag = ((0, 0, 0), (1, 1, 1), (4, 3, 2))[min(book.COPIES, 2)]
    position, aux = game.read(cells, book.fields(reference.State(tuple(cells), (hint,), bag)))
    score = int(game.rules.value_of_board(position, aux)) if game.score_is_value else 0
    return State(game, position, aux, score)


def as_reference(state: State) -> reference.State:
    """The same position in the reference's words."""
    cells, fields = state.game.write(state.board, state.aux)
    found: reference.State = reference.get(state.game.name).state_of(tuple(cells), fields)
    return found


def check_slides(name: str, cells: list[int]) -> None:
    game, book = games.get(name), reference.get(name)
    state = state_of(game, cells)
    value = game.rules.value_of_board
    assert state.indices == cells
    assert value(state.board, state.aux) == book.value(tuple(cells))
    for action in range(4):
        expected, reward, moved = book.slide(tuple(cells), action)
        after, aux, gained = game.rules.slide(game.rows, state.board, state.aux, action)
        assert game.write(np.uint64(after), np.uint64(aux))[0] == list(expected)
        assert (after != state.board) == any(moved)
        assert gained == reward
        assert value(np.uint64(after), np.uint64(aux)) - value(state.board, state.aux) == reward
    assert state.over == book.over(as_reference(state))
    assert game.rules.largest(state.board, state.aux) == max(cells)


def check_outcomes(state: State, action: int) -> None:
    """All chance outcomes with their probabilities, and a spawn that is one of them."""
    book = reference.get(state.game.name)
    expected: Counter[reference.State] = Counter()
    for share, outcome in book.outcomes(as_reference(state), action):
        expected[outcome] += share  # type: ignore[assignment]
    found: Counter[reference.State] = Counter()
    for probability, outcome in state.slide(action).outcomes():
        found[as_reference(outcome)] += probability  # type: ignore[assignment]
        if book.NEW_TILES_COUNT:
            assert outcome.score == book.value(tuple(outcome.indices))
    assert set(found) == set(expected)
    for outcome, share in expected.items():
        assert found[outcome] == pytest.approx(float(Fraction(share)))
    played = state.play(action)
    assert as_reference(played) in expected
    if book.NEW_TILES_COUNT:
        assert played.score == book.value(tuple(played.indices))
    else:
        assert played.score == state.score + book.slide(tuple(state.indices), action)[1]


@every_game
def test_what_a_game_says_of_itself(name: str) -> None:
    game, book = games.get(name), reference.get(name)
    assert game.name == game.key == name
    assert game.tiles == book.TILES
    assert game.tiles[game.goal] == book.GOAL
    assert game.starting_tiles == book.STARTING_TILES
    assert game.score_is_value == book.NEW_TILES_COUNT
    assert (game.hint.copies if game.hint else 0) == book.COPIES
    assert game.rows.shape == (65536,)
    assert not game.rows.flags.writeable


def test_every_game_has_a_reference() -> None:
    """A new game is written once more, slowly, in tests/reference, and then all that follows holds for it."""
    assert set(NAMES) == set(reference.names())


@every_game
def test_pairs_merge_as_the_game_says(name: str) -> None:
    """What pictures are told of merging is what slides do."""
    game, book = games.get(name), reference.get(name)
    for one in range(1, len(game.tiles)):
        for other in range(1, len(game.tiles)):
            cells, _, _ = book.slide((one, other, *[0] * 14), ACTIONS.index("left"))
            assert game.merged(one, other) == (cells[0] if not cells[1] else 0)


@pytest.mark.parametrize("module", [g2048, fibonacci, threes, play])
def test_examples_in_the_docstrings(module: Any) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


@every_game
@given(data=st.data())
def test_slides_as_the_reference_says(name: str, data: st.DataObject) -> None:
    check_slides(name, data.draw(tiles_of(name)))


@every_game
def test_every_pair_of_tiles_in_every_place(name: str) -> None:
    top = len(games.get(name).tiles)
    for first in range(1, top):
        for second in range(1, top):
            for where in range(15):
                cells = [0] * 16
                cells[where], cells[where + 1] = first, second
                check_slides(name, cells)


@given(st.lists(st.integers(0, 14), min_size=16, max_size=16))
def test_the_quick_slide_of_2048_needs_no_second_look(cells: list[int]) -> None:
    """The four look-ups alone; a wrong reward could send every slide to the slow rule, which hides it."""
    after, reward = g2048.slide_left(games.get("2048").rows, board.pack(cells))
    expected, earned, _ = reference.get("2048").slide(tuple(cells), ACTIONS.index("left"))
    assert board.unpack(np.uint64(after)) == [min(tile, 15) for tile in expected]
    assert reward == earned


@every_game
@given(data=st.data())
def test_chance_as_the_reference_says(name: str, data: st.DataObject) -> None:
    game = games.get(name)
    state = state_of(game, data.draw(tiles_of(name)), data.draw(st.integers(1, 3)))
    for action in state.legal:
        check_outcomes(state, action)


@every_game
def test_the_room_for_outcomes_is_what_the_worst_positions_take(name: str) -> None:
    game, (slid, placed) = games.get(name), reference.get(name).MOST
    after = game.parse(slid).slide("left") if slid else State(game, np.uint64(0), np.uint64(0))
    state = game.parse(placed)
    boards, auxes, shares = np.zeros(99, np.uint64), np.zeros(99, np.uint64), np.zeros(99)
    assert game.rules.placements(after.board, after.aux, boards, auxes, shares) == game.max_placements
    assert shares.sum() == pytest.approx(1)
    shares[:] = 0
    assert game.rules.draws(state.board, state.aux, auxes, shares) == game.max_draws
    assert shares.sum() == pytest.approx(1)


@every_game
@given(seed=st.integers(0, 2**64 - 1), choices=st.lists(st.integers(0, 3), max_size=60))
def test_played_positions_stay_within_the_rules(name: str, seed: int, choices: list[int]) -> None:
    state = games.get(name).new(seed)
    assert sum(map(bool, state.cells)) == state.game.starting_tiles
    for choice in choices:
        if state.over:
            break
        action = state.legal[choice % len(state.legal)]
        check_outcomes(state, action)
        state = state.play(action)


@given(seed=st.integers(0, 2**64 - 1))
def test_the_tiles_of_a_start_come_from_the_first_bags(seed: int) -> None:
    state = games.get("threes").new(seed)
    assert sorted(filter(None, state.cells)) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert sorted([*state.hint, *map(int, state.text.split("bag=")[1])]) == [1, 2, 3]
    state = games.get("threes-phone").new(seed)
    seen, left = Counter([*filter(None, state.cells), *state.hint]), state.text.split("deck=")[1].split(",")
    assert [seen[tile] + int(count) for tile, count in zip((1, 2, 3), left)] == [4, 4, 4]
    assert seen.total() == 10


@every_game
@given(data=st.data())
def test_slides_commute_with_the_symmetries(name: str, data: st.DataObject) -> None:
    """Turning the board and sliding is sliding and turning: 2048 past 32768 has its second plane, so without it."""
    game = games.get(name)
    cells = [min(tile, 14) for tile in data.draw(tiles_of(name))]
    state = state_of(game, cells)
    turned = {0: (0, 1, 2, 3), 1: (0, 3, 2, 1), 2: (2, 1, 0, 3), 4: (3, 2, 1, 0)}
    for k, actions in turned.items():
        for action in range(4):
            after, _, reward = game.rules.slide(game.rows, state.board, state.aux, action)
            other, _, gained = game.rules.slide(
                game.rows, np.uint64(board.symmetry(state.board, k)), state.aux, actions[action]
            )
            assert (other, gained) == (board.symmetry(np.uint64(after), k), reward)


@given(st.integers(0, 2**64 - 1))
def test_symmetries_of_a_board(number: int) -> None:
    cells = board.unpack(np.uint64(number))
    assert board.pack(cells) == number
    grid = np.array(cells).reshape(4, 4)
    x = np.uint64(number)
    assert board.unpack(board.mirror(x)) == grid[:, ::-1].ravel().tolist()
    assert board.unpack(board.flip(x)) == grid[::-1].ravel().tolist()
    assert board.unpack(board.transpose(x)) == grid.T.ravel().tolist()
    eight = {int(board.symmetry(x, k)) for k in range(8)}
    assert {int(board.smallest_symmetric(np.uint64(b))) for b in eight} == {min(eight)}
    empties = board.empty_cells(x)
    assert board.count(np.uint64(empties)) == cells.count(0)
    for action in range(4):
        assert board.turn_back(np.uint64(board.turn(x, action)), action) == number


@given(tiles_of("threes-phone"), st.integers(0, 15))
def test_every_cell_is_asked_for_a_tile_at_once(cells: list[int], tile: int) -> None:
    x = board.pack(cells)
    assert board.holds(x, np.uint64(tile)) == (tile in cells)
    assert board.unpack(board.tiles_above(x, np.uint64(tile))) == [int(cell > tile) for cell in cells]


@every_game
@given(data=st.data())
def test_text_round_trips(name: str, data: st.DataObject) -> None:
    game = games.get(name)
    state = state_of(game, data.draw(tiles_of(name)))
    again = game.parse(state.text)
    assert (again.board, again.aux, again.text) == (state.board, state.aux, state.text)
    numbers = game.parse(" ".join([*map(str, state.cells), *state.text.split()[1:]]))
    assert (numbers.board, numbers.aux) == (state.board, state.aux)


@every_game
def test_a_game_is_a_function_of_its_seed_and_actions(name: str) -> None:
    def played(seed: int) -> list[str]:
        state, texts = games.get(name).new(seed), []
        while not state.over:
            state = state.play(state.legal[state.moves % len(state.legal)])
            texts.append(state.text)
        return texts

    assert played(7) == played(7)
    assert played(7) != played(8)


@every_game
def test_a_seed_deals_the_same_game_for_ever(name: str) -> None:
    state = games.get(name).new(2584)
    while not state.over:
        state = state.play(state.legal[state.moves % len(state.legal)])
    assert (state.moves, state.score, state.text) == reference.get(name).GOLDEN


def test_the_generator_is_splitmix64() -> None:
    """The first numbers after the seed 1234567, as other implementations print them."""
    rng, found = np.uint64(1234567), []
    for _ in range(5):
        bits, rng = (np.uint64(x) for x in chance.draw(rng))
        found.append(int(bits))
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def backwards(x: int) -> int:
    """The number that SplitMix64 mixes into x: every step undone, the last one first."""
    for shift, factor in ((31, chance.MIX_2), (27, chance.MIX_1), (30, 1)):
        y = x
        for _ in range(64 // shift):
            y = x ^ (y >> shift)
        x = y * pow(int(factor), -1, 2**64) % 2**64
    return x


def generator_before(bits: int) -> np.uint64:
    """The generator that draws exactly these bits next: what chance does at the edge of a probability."""
    return np.uint64((backwards(bits) - int(chance.GOLDEN)) % 2**64)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_streams_are_told_apart_before_they_are_mixed(seed: int, stream: int) -> None:
    assert chance.draw(generator_before(seed))[0] == seed
    inner = backwards(int(chance.seed_of(np.uint64(seed), np.uint64(stream))))
    first = backwards((inner - stream * int(chance.STREAM)) % 2**64)
    assert (first - int(chance.GOLDEN)) % 2**64 == seed


def test_numbers_below_a_bound_have_equal_shares_of_the_upper_half() -> None:
    for n in range(1, 33):
        starts = [-(-(k << 32) // n) for k in range(n + 1)]  # the least upper half that gives k
        for k in range(n):
            for upper, lower in ((starts[k], 0), (starts[k + 1] - 1, 2**32 - 1)):
                assert chance.below(np.uint64(upper << 32 | lower), np.uint64(n)) == k
    assert chance.low_half(np.uint64(0xFEDC_BA98_7654_3210)) == 0x7654_3210
    assert [int(chance.chance_of(p)) for p in (0.0, 0.1, 0.5, 1.0)] == [0, 429496730, 2**31, 2**32]


@pytest.mark.parametrize(("upper", "cell"), [(0, 1), (2**32 - 1, 15)])
def test_a_four_comes_below_its_rate_and_not_at_it(upper: int, cell: int) -> None:
    game = games.get("2048")
    after = game.parse("1.../..../..../....").board
    for lower, tile in ((0, 2), (429496729, 2), (429496730, 1), (2**32 - 1, 1)):
        placed, aux, reward, rng = game.rules.spawn(after, np.uint64(0), generator_before(upper << 32 | lower))
        assert board.unpack(np.uint64(placed)) == [tile if i == cell else int(i == 0) for i in range(16)]
        assert (aux, reward) == (0, 0)
        assert rng == (int(generator_before(upper << 32 | lower)) + int(chance.GOLDEN)) % 2**64


@pytest.mark.parametrize(("upper", "bonus", "card"), [(0, "6+12+24", "1"), (2**32 - 1, "12+24+48", "3")])
def test_a_bonus_comes_below_its_rate_and_not_at_it(upper: int, bonus: str, card: str) -> None:
    state = games.get("threes-phone").parse("A.../..../..../.... hint=1 deck=1,2,3")
    for lower, hint in ((0, bonus), (204522251, bonus), (204522252, card), (2**32 - 1, card)):
        aux, _ = threes_phone.draw_hint(state.board, state.aux, generator_before(upper << 32 | lower))
        assert State(state.game, state.board, np.uint64(aux)).hint == tuple(map(int, hint.split("+")))


def chi_square(observed: list[float], expected: list[float]) -> float:
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected))


@every_game
def test_spawns_follow_their_probabilities(name: str) -> None:
    """30,000 spawns of one afterstate against its outcomes; the bound is the 99.99 % point for that many outcomes."""
    game = games.get(name)
    after = game.parse(reference.get(name).EXAMPLE).slide("left")
    outcomes = {outcome.text: share for share, outcome in after.outcomes()}
    seen: Counter[str] = Counter()
    rng = np.uint64(12345)
    for _ in range(30_000):
        placed, aux, _, rng = (np.uint64(x) for x in game.rules.spawn(after.board, after.aux, rng))
        seen[State(game, placed, aux).text] += 1
    assert set(seen) <= set(outcomes)
    statistic = chi_square([seen[text] for text in outcomes], [30_000 * share for share in outcomes.values()])
    freedom = len(outcomes) - 1
    bound = freedom * (1 - 2 / (9 * freedom) + 3.719 * (2 / (9 * freedom)) ** 0.5) ** 3  # Wilson and Hilferty 1931
    assert statistic < bound


@pytest.mark.parametrize(("name", "parameter"), [("2048", "four_rate"), ("fibonacci", "two_rate")])
def test_the_rate_of_the_second_new_tile_is_a_parameter(name: str, parameter: str) -> None:
    for rate in (0.0, 0.25, 1.0):
        game = games.get(name, **{parameter: rate})
        assert (game.name, game.key, game.second_rate) == (name, f"{name}:{rate:g}", rate)
        rng, fours = np.uint64(5), 0
        for _ in range(20_000):
            placed, _, _, rng = (np.uint64(x) for x in game.rules.spawn(np.uint64(0), np.uint64(0), rng))
            fours += int(game.rules.largest(placed, np.uint64(0))) == 2
        assert abs(fours / 20_000 - rate) <= 4 * (rate * (1 - rate) / 20_000) ** 0.5
        shares = Counter({1: 0.0, 2: 0.0})
        for share, outcome in game.parse("1.../..../..../....").slide("right").outcomes():
            shares[max(tile for i, tile in enumerate(outcome.indices) if i != 3)] += share  # type: ignore[assignment]
        assert shares[2] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("line", "expected", "reward"),
    [
        ("2 2 2 0", "4 2 0 0", 4),
        ("2 2 2 2", "4 4 0 0", 8),
        ("4 2 2 0", "4 4 0 0", 4),
        ("32768 32768 0 0", "65536 0 0 0", 65536),
        ("65536 65536 32768 32768", "131072 65536 0 0", 196608),
        ("131072 131072 0 2", "131072 131072 2 0", 0),
        ("65536 32768 0 0", "65536 32768 0 0", 0),
    ],
)
def test_2048_lines(line: str, expected: str, reward: int) -> None:
    game = games.get("2048")
    state = game.parse(f"{line} 0 0 0 0 0 0 0 0 0 0 0 0")
    after, aux, gained = game.rules.slide(game.rows, state.board, state.aux, ACTIONS.index("left"))
    cells = [game.tiles[i] for i in game.write(np.uint64(after), np.uint64(aux))[0]]
    assert (" ".join(map(str, cells[:4])), gained) == (expected, reward)


@pytest.mark.parametrize("rules", [g2048, fibonacci])
@given(data=st.data())
def test_rows_are_spelled_out_as_the_table_has_them(rules: ModuleType, data: st.DataObject) -> None:
    """The rule for rows with tiles past 15 is right for all rows; they are only slower."""
    line = data.draw(st.lists(st.integers(0, rules.HIGHEST), min_size=4, max_size=4))
    row, more = (np.uint64(x) for x in exact.read(line, {}))
    after, after_more, reward = (np.uint64(x) for x in rules.slide_row(row, more))
    assert (exact.write(after, after_more)[0][:4], reward) == rules.slide_line(line)


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("fibonacci", "4 " + "0 " * 15, "4 is no tile of 2584"),
        ("fibonacci", "X.../..../..../....", "past the largest tile"),
        ("2048", "1 2 3", "is no board"),
        ("2048", "3 " + "0 " * 15, "3 is no tile of 2048"),
        ("2048", "Z.../..../..../....", "past the largest tile"),
        ("2048", "..../..../..../.... mood=good", "unknown word mood="),
        ("2048", "..../..../..../.... score=many", "no whole number"),
        ("threes", "..../..../..../....", "add hint=1"),
        ("threes", "..../..../..../.... hint=1 bag=11", "is no bag"),
        ("threes-phone", "..../..../..../.... hint=1+6", "needs the next tile"),
        ("threes-phone", "..../..../..../.... hint=1 deck=9,9,9", "a deck is three counts"),
        ("threes", "..../..../..../....", "got none"),
        ("threes", "..../..../..../.... hint=6", "got 6"),
        ("threes", "..../..../..../.... hint=1 bag=", "bag= is no bag"),
        ("threes", "..../..../..../.... hint=1 bag=14", "bag=14 is no bag"),
        ("threes", "..../..../..../.... hint=1 bag=" + 99 * "1", "bag=1{20} is no bag"),
    ],
)
def test_boards_that_cannot_be(name: str, text: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        games.get(name).parse(text)


def test_hints_and_decks_of_the_phone() -> None:
    parse = games.get("threes-phone").parse
    for hint in ("1", "2", "3", "6", "12", "6+12", "48+96", "6+12+24", "384+768+1536"):
        for deck in ("4,4,4", "0,0,1", "1,0,0", "0,4,0"):
            text = f"..../.A../..../.... hint={hint} deck={deck}"
            assert parse(text).text == text
    for hint in ("", "0", "5", "x", "0+1", "1+2", "2+3", "3+6", "6+24", "12+6", "6+6", "6+12+24+48"):
        with pytest.raises(InputError, match="needs the next tile"):
            parse(f"..../.A../..../.... hint={hint}")
    for deck in ("0,0,0", "4,4", "4,4,4,4", "5,4,4", "4,4,-1", "4,x,4", ""):
        with pytest.raises(InputError, match="a deck is three counts"):
            parse(f"..../.A../..../.... hint=1 deck={deck}")


def test_a_bag_or_deck_that_is_not_told() -> None:
    """After a hint the bag of the course holds the other two; the phone takes a full deck."""
    for hint, bag in (("1", "23"), ("2", "13"), ("3", "12")):
        empty = f"..../..../..../.... hint={hint}"
        assert games.get("threes").parse(empty).text == f"{empty} bag={bag}"
        assert games.get("threes-phone").parse(empty).text == f"{empty} deck=4,4,4"


def test_mistakes_say_what_is_right() -> None:
    with pytest.raises(InputError, match="write one of 2048, threes, threes-phone"):
        games.get("2084")
    with pytest.raises(InputError, match="share of fours among the new tiles, a number from 0 to 1, not 2"):
        games.get("2048", four_rate=2.0)
    state = games.get("2048").parse("1.../..../..../....")
    with pytest.raises(InputError, match="legal: right, down"):
        state.play("up")
    with pytest.raises(InputError, match="write up, right, down or left"):
        state.play("north")


def test_with_the_compiler_off() -> None:
    """The same properties, with every rule as plain Python."""
    environment: dict[str, Any] = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    chosen = "slides_as or chance_as or symmetries or 2048_lines or text_round"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", chosen, str(Path(__file__))]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
