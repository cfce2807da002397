"""The motions of the tiles agree with the engine in every game, on every legal move of random games."""

from __future__ import annotations

import random

import pytest

from tilesage import games
from tilesage.drawing.motions import compact, motions, slide_motions


@pytest.mark.parametrize("name", games.names())
def test_motions_lead_to_the_engines_board(name: str) -> None:
    game, choice = games.get(name), random.Random(3)
    for seed in range(12):
        state = game.new(seed)
        while not state.over:
            for action in state.legal:
                after = state.play(action)
                moved = motions(state, action, after)
                assert moved, (state.text, action)
                assert {start for start, _ in moved} == {i for i, tile in enumerate(state.cells) if tile}
            for action in set(range(4)) - set(state.legal):
                assert all(start == end for start, end in slide_motions(game, state.cells, action)), state.text
            state = state.play(choice.choice(state.legal))


@pytest.mark.parametrize(
    ("name", "row", "expected"),
    [
        ("2048", [2, 2, 2, 0], "001021"),
        ("2048", [2, 2, 2, 2], "00102131"),
        ("2048", [4, 2, 2, 0], "001121"),
        ("2048", [131072, 131072, 0, 0], "0011"),
        ("threes", [1, 2, 1, 2], "00102132"),
        ("threes", [1, 1, 0, 2], "001132"),
        ("threes", [0, 3, 0, 3], "1032"),
        ("threes", [6144, 6144, 0, 0], "0011"),
        ("threes-phone", [6144, 6144, 0, 0], "0010"),
        ("fibonacci", [1, 1, 1, 2], "00102131"),
        ("fibonacci", [3, 0, 2, 2], "002031"),
        ("fibonacci", [8, 8, 5, 3], "00112132"),
        ("fibonacci", [3524578, 2178309, 1346269, 0], "001121"),
    ],
)
def test_motions_of_known_rows(name: str, row: list[int], expected: str) -> None:
    assert compact(slide_motions(games.get(name), row + [0] * 12, 3)) == expected


def test_a_position_that_does_not_follow_has_no_motions() -> None:
    game = games.get("2048")
    state = game.parse("2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
    assert motions(state, 1, game.parse("0 0 4 4 0 0 0 0 0 0 0 0 0 0 0 0")) == ()
