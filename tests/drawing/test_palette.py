"""The tile colours: readable, distinct from step to step, defined for every tile of every game."""

from __future__ import annotations

import itertools

import pytest

from tilesage import games
from tilesage.drawing import palette

TILES = {name: len(games.get(name).tiles) - 1 for name in games.names()}
LADDER = 19  # larger tiles all look like the last of the ladder


@pytest.mark.parametrize("theme", palette.THEMES)
@pytest.mark.parametrize("game", TILES)
def test_every_number_can_be_read_on_its_tile(game: str, theme: str) -> None:
    for index in range(1, TILES[game] + 1):
        face = palette.paint(game, index, theme)
        assert palette.contrast(face.background, face.text) >= 4.5, (game, index, theme)


@pytest.mark.parametrize("theme", palette.THEMES)
@pytest.mark.parametrize("game", TILES)
def test_tiles_that_follow_each_other_look_different(game: str, theme: str) -> None:
    faces = [
        palette.rgb(palette.paint(game, index, theme).background) for index in range(min(TILES[game], LADDER) + 1)
    ]
    for one, other in itertools.pairwise(faces):
        assert sum(abs(a - b) for a, b in zip(one, other)) >= 40


def test_a_game_that_is_not_listed_goes_up_the_ladder():
    assert palette.paint("my_module:my_game", 11) == palette.paint("2048", 11)


def test_a_larger_tile_than_the_scale_keeps_its_last_colour() -> None:
    assert palette.paint("2048", 40) == palette.paint("2048", 17)
