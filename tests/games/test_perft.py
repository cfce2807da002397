"""The engine counts as many positions as the perft files say, and the files are what the reference says."""

from __future__ import annotations

import pytest
import reference
from perft.positions import GAMES, read_file, read_position, write_position
from perft.run import run


@pytest.mark.parametrize("game", GAMES)
def test_engine_agrees_with_every_count(game):
    wrong, counted, _ = run(game)
    assert wrong == []
    assert counted > 100_000


@pytest.mark.parametrize("game", GAMES)
def test_files_are_what_the_reference_counts(game):
    rules = reference.get(game)
    for text, counts in read_file(game):
        state = read_position(game, text)
        assert write_position(game, state) == text
        for depth, count in counts.items():
            if count < 300:
                assert rules.perft(state, depth) == count, text


def test_files_cover_the_top_of_the_board():
    boards = [text.split()[0].replace("/", "") for text, _ in read_file("2048")]
    for symbol in "FGH":
        assert sum(symbol in board for board in boards) >= 10
    assert sum(board[15] in "89ABCDEFGH" for board in boards) >= 10
    assert any("F" in text.split()[0] for text, _ in read_file("threes-phone"))
    assert any("+" in text for text, _ in read_file("threes-phone"))
