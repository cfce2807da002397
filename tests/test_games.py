"""Every registered game against its slow reference: slides, chance, ends, symmetries, text.

The same checks run compiled here and, in `test_with_the_compiler_off`, as plain Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from afterstate import games
from afterstate.games import Game, Mistake, State, board
from afterstate.games.board import ACTIONS

NAMES = games.names()
every_game = pytest.mark.parametrize("name", NAMES)


def tiles_of(name: str) -> st.SearchStrategy[list[int]]:
    """Boards with every tile in every cell, full and sparse, many of them with pairs that merge."""
    top = len(games.get(name).tiles) - 1
    any_tile = st.integers(0, top)
    few = st.sampled_from([0, 1, 2, 3, top - 1, top])
    return st.one_of(*(st.lists(tile, min_size=16, max_size=16) for tile in (any_tile, few)))


def state_of(game: Game, cells: list[int], hint: int = 1) -> State:
    fields = {"2048": {}, "threes": {"hint": str(hint)}, "threes-phone": {"hint": str(hint), "deck": "4,3,2"}}
    position, aux = game.read(cells, fields[game.name])
    score = int(game.rules.value_of_board(position, aux)) if game.score_is_value else 0
    return State(game, position, aux, score)


def as_reference(state: State) -> reference.State:
    """The same position in the reference's words."""
    cells, fields = state.game.write(state.board, state.aux)
    if state.game.name == "2048":
        return reference.State(tuple(cells))
    hint = tuple(state.game.tiles.index(tile) for tile in state.hint)
    if "bag" in fields:
        bag = tuple(int(tile in fields["bag"]) for tile in "123")
    else:
        bag = tuple(int(count) for count in fields["deck"].split(","))
    return reference.State(tuple(cells), hint, bag)  # type: ignore[arg-type]


def check_slides(name: str, cells: list[int]) -> None:
    game, book = games.get(name), reference.get(name)
    state = state_of(game, cells)
    assert state.indices == cells
    for action in range(4):
        expected, reward, moved = book.slide(tuple(cells), action)
        after, aux, gained = game.rules.slide(game.rows, state.board, state.aux, action)
        assert game.write(np.uint64(after), np.uint64(aux))[0] == list(expected)
        assert (after != state.board) == any(moved)
        assert gained == reward
        value = game.rules.value_of_board
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
        if state.game.score_is_value:
            assert outcome.score == book.value(tuple(outcome.indices))
    assert set(found) == set(expected)
    for outcome, share in expected.items():
        assert found[outcome] == pytest.approx(float(Fraction(share)))
    assert as_reference(state.play(action)) in expected


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


@every_game
@given(data=st.data())
def test_chance_as_the_reference_says(name: str, data: st.DataObject) -> None:
    game = games.get(name)
    state = state_of(game, data.draw(tiles_of(name)), data.draw(st.integers(1, 3)))
    for action in state.legal:
        check_outcomes(state, action)


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
    if state.game.score_is_value:
        assert state.score == state.game.rules.value_of_board(state.board, state.aux)


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


def chi_square(observed: list[float], expected: list[float]) -> float:
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected))


@every_game
def test_spawns_follow_their_probabilities(name: str) -> None:
    """30,000 spawns of one afterstate against its outcomes; the bound is the 99.99 % point for that many outcomes."""
    game = games.get(name)
    position = {
        "2048": "1234/5.../..../...1",
        "threes": "1234/5.6./12../..13 hint=3 bag=12",
        "threes-phone": "1.8A/5.3./12../..13 hint=6+12+24 deck=1,2,3",
    }[name]
    after = game.parse(position).slide("left")
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


def test_rate_of_fours_is_a_parameter() -> None:
    for rate in (0.0, 0.25, 1.0):
        game = games.get("2048", four_rate=rate)
        rng, fours = np.uint64(5), 0
        for _ in range(20_000):
            placed, _, _, rng = (np.uint64(x) for x in game.rules.spawn(np.uint64(0), np.uint64(0), rng))
            fours += int(game.rules.largest(placed, np.uint64(0))) == 2
        assert abs(fours / 20_000 - rate) <= 4 * (rate * (1 - rate) / 20_000) ** 0.5
        shares = Counter({2: 0.0, 4: 0.0})
        for share, outcome in game.parse("1.../..../..../....").slide("right").outcomes():
            shares[max(tile for i, tile in enumerate(outcome.cells) if i != 3)] += share  # type: ignore[assignment]
        assert shares[4] == pytest.approx(rate)


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


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("2048", "1 2 3", "is no board"),
        ("2048", "3 " + "0 " * 15, "3 is no tile of 2048"),
        ("2048", "Z.../..../..../....", "past the largest tile"),
        ("2048", "..../..../..../.... mood=good", "unknown word mood="),
        ("2048", "..../..../..../.... score=many", "no whole number"),
        ("threes", "..../..../..../....", "add hint=1"),
        ("threes", "..../..../..../.... hint=1 bag=11", "is no bag"),
        ("threes-phone", "..../..../..../.... hint=1+6", "needs the next tile"),
        ("threes-phone", "..../..../..../.... hint=1 deck=9,9,9", "a deck is three counts"),
    ],
)
def test_boards_that_cannot_be(name: str, text: str, part: str) -> None:
    with pytest.raises(Mistake, match=part):
        games.get(name).parse(text)


def test_mistakes_say_what_is_right() -> None:
    with pytest.raises(Mistake, match="write one of 2048, threes, threes-phone"):
        games.get("2084")
    with pytest.raises(Mistake, match="probability from 0 to 1"):
        games.get("2048", four_rate=2.0)
    state = games.get("2048").parse("1.../..../..../....")
    with pytest.raises(Mistake, match="legal: right, down"):
        state.play("up")
    with pytest.raises(Mistake, match="write up, right, down or left"):
        state.play("north")


def test_with_the_compiler_off() -> None:
    """The same properties, with every rule as plain Python."""
    environment: dict[str, Any] = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    chosen = "slides_as or chance_as or symmetries or 2048_lines or text_round"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", chosen, str(Path(__file__))]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
