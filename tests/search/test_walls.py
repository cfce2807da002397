"""The practice among walls against its rules spelled out, and the player that hands over to who has practised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import g2048
from small_models import tiny_model

from tilesage import games
from tilesage.cli import main
from tilesage.evaluation.evaluate import LocalWorker
from tilesage.games import State
from tilesage.games.board import pack, symmetry, unpack
from tilesage.games.walls import OVER
from tilesage.networks.files import load_model, save_model
from tilesage.search.agents import make_agent
from tilesage.search.game_2048.walls import as_walls, find_walls
from tilesage.search.kinds import NOWHERE

WHOLE, WALLS = games.get("2048"), games.get("2048-walls")
NOTHING = np.uint64(0)
# fmt: off
SOME = [14, 13, 12, 11,  0, 1, 0, 4,  0, 0, 0, 2,  0, 0, 1, 1]
# fmt: on


def by_the_rules(cells: list[int], action: int) -> tuple[list[int], int] | None:
    """Afterstate and points of 2048, if walls were large tiles that differ; None once a 4096 is made."""
    names = iter((13, 14, 15))
    told_apart = [next(names) if tile == 12 else tile for tile in cells]
    slid, points, _ = g2048.slide(tuple(told_apart), action)
    if 12 in slid:
        return None
    return [min(tile, 12) for tile in slid], points


def some_positions(number: int) -> list[list[int]]:
    """Three walls anywhere and other tiles, many of them 2048s beside each other."""
    random, found = np.random.default_rng(1), []
    while len(found) < number:
        cells = [int(tile) for tile in random.integers(0, 12, 16) * (random.random(16) < random.random())]
        for cell in random.permutation(16)[:3]:
            cells[cell] = 12
        if random.random() < 0.3:
            cells[5:7] = [11, 11]
        if sum(tile == 12 for tile in cells) == 3:
            found.append(cells)
    return found


def test_slides_are_those_of_2048_with_walls_that_differ() -> None:
    made = legal = 0
    for cells in some_positions(2000):
        for action in range(4):
            after, aux, points = WALLS.rules.slide(WALLS.rows, pack(cells), NOTHING, action)
            expected = by_the_rules(cells, action)
            assert aux == NOTHING
            if expected is None:
                assert after == OVER
                assert points > 100_000
                made += 1
                continue
            assert (unpack(after), int(points)) == expected
            legal += expected[0] != cells
    assert min(made, legal) > 100


def test_after_the_target_the_game_is_over() -> None:
    state = State(WALLS, pack([12, 12, 12, 0, 11, 11, *[0] * 10]), NOTHING)
    (after,) = {slid.board for slid in state.slides if slid is not None and slid.board == OVER}
    assert State(WALLS, np.uint64(after), NOTHING).over
    assert State(WALLS, np.uint64(after | np.uint64(1)), NOTHING).over  # with its new tile
    assert not State(WHOLE, pack([12, 12, 12, 0, 12, *[0] * 11]), NOTHING).over


def test_games_begin_anywhere_on_the_way() -> None:
    bare, sums = 0, []
    for seed in range(400):
        cells = WALLS.new(seed).indices
        others = sorted(tile for tile in cells if 2 < tile < 12)
        assert cells[:3] == [12, 12, 12]
        assert others == sorted(set(others))
        assert sum(tile in (1, 2) for tile in cells) == 2
        snake = [cells[cell] for cell in (3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12)]
        assert snake[: len(others)] == others[::-1]
        bare += not others
        sums.append(sum(2**tile for tile in others))
    assert 150 < bare < 250
    assert min(sum(1024 * k <= total < 1024 * (k + 1) for total in sums) for k in range(4)) > 30


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize(
    ("cells", "handed"),
    [
        (SOME, True),
        ([15, 13, 12, *SOME[3:]], True),
        ([15, 14, 12, *SOME[3:]], True),
        ([1, 13, 12, *SOME[3:-1], 14], True),  # wherever they lie
        ([14, 14, 12, *SOME[3:]], False),  # two that merge
        ([14, 12, 12, *SOME[3:]], False),
        ([15, 14, 13, *SOME[3:]], False),  # the next one has to be an 8192
        ([15, 14, 13, 12, *SOME[4:]], False),
        ([14, 12, 5, *SOME[3:]], False),
    ],
)
def test_which_boards_are_handed_over(cells: list[int], handed: bool, k: int) -> None:
    board = np.uint64(symmetry(pack(cells), k))
    assert (find_walls(WHOLE.rows, board, NOTHING) != NOWHERE) == handed
    assert find_walls(WHOLE.rows, board, np.uint64(1)) == NOWHERE  # a tile past 32768
    assert unpack(np.uint64(as_walls(board))) == [min(tile, 12) for tile in unpack(board)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """Tiny networks of both games, with the second one in a file."""
    practised = tiny_model("2048-walls")
    file = save_model(practised, tmp_path_factory.mktemp("walls") / "walls.safetensors")
    return tiny_model("2048"), practised, file


def test_a_player_hands_over(models: tuple[Any, Any, Path]) -> None:
    """Among walls it is the player of the practice; elsewhere it is itself."""
    model, practised, file = models
    both = make_agent(f"expectimax:2,walls={file}", WHOLE, model)
    alone, other = make_agent("expectimax:2", WHOLE, model), make_agent("expectimax:2", WALLS, practised)
    differ = 0
    for cells in some_positions(200):
        first, second, third = (cell for cell, tile in enumerate(cells) if tile == 12)
        real = list(cells)
        real[first], real[second], real[third] = 13, 14, 12
        handed = State(WHOLE, pack(real), NOTHING)
        assert both.values(handed) == other.values(State(WALLS, pack(cells), NOTHING))
        differ += both.values(handed) != alone.values(handed)
        real[first] = 14
        assert both.values(State(WHOLE, pack(real), NOTHING)) == alone.values(State(WHOLE, pack(real), NOTHING))
    assert differ > 100


@pytest.mark.parametrize("game", games.PRACTICE_GAMES)
def test_practice_is_not_recorded(game: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record begins with an empty board, and these games do not."""
    words = ("evaluate", "--agent", "random", "--game", game, "--games", "1", "--save", str(tmp_path / "records.txt"))
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"games of {game} cannot be recorded" in err
    assert list(tmp_path.iterdir()) == []


def test_practice_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Train, stop, go on, evaluate; the practice finds out what the 4096 is worth."""
    run = tmp_path / "walls"
    words = ["train", "2048-walls", "--network", "8x5", "--decay", "0.5", "--threads", "1", "--out", str(run)]
    assert main([*words, "--moves", "9000000"]) == 0
    assert main(["train", "--resume", str(run), "--moves", "10000000"]) == 0
    assert main(["evaluate", str(run), "--games", "20"]) == 0
    assert "20 games of 2048-walls" in capsys.readouterr().out
    model = load_model(run)
    assert model.game is WALLS
    scores = LocalWorker(make_agent("greedy", WALLS, model), keep_actions=False).play(3, 0, 2000).scores
    assert (scores > 100_000).sum() > 10
    assert main(["train", "2048-walls", "--fold", "8192", "--out", str(tmp_path / "folded")]) == 2
