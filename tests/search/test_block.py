"""The practice of the block against its rules spelled out, and the player that hands over to who has practised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import g2048
from small_models import tiny_model

from tilesage import games
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.games import State
from tilesage.games.board import pack, symmetry, unpack
from tilesage.networks.files import load_model, save_model
from tilesage.search import players
from tilesage.search.agents import make_agent
from tilesage.search.game_2048.block import as_practised, find_block
from tilesage.search.kinds import NOWHERE

WHOLE, BLOCK = games.get("2048"), games.get("2048-block")
PLACES = {1: 14, 2: 13, 3: 12, 7: 11, 6: 10, 5: 9}
NOTHING = np.uint64(0)
# fmt: off
PUSHED = [0, 14, 13, 12,  1, 0, 2, 3,  0, 0, 1, 5,  0, 0, 0, 1]
AT_WALL = [14, 13, 12, 0,  0, 1, 0, 4,  0, 0, 0, 2,  0, 0, 1, 1]
# fmt: on


def in_place(cells: list[int]) -> int:
    """How many links lie in their places, the largest first; 0 if not even three."""
    there = [cells[cell] == tile for cell, tile in PLACES.items()]
    links = (*there, False).index(False)
    return links if links >= 3 else 0


def by_the_rules(cells: list[int], action: int) -> tuple[list[int], int]:
    """Afterstate and points, from the words of the rules; the board itself if the slide is not legal."""
    slid, points, _ = g2048.slide(tuple(cells), action)
    after = list(slid)
    before, now = in_place(cells), in_place(after)
    if before < 6 and now >= max(before, 3):
        new = list(PLACES)[max(before, 3) : now]
        return after, points + sum(100_000 if cell == 5 else 20_000 for cell in new)
    if 3 <= before < 6:
        *others, last = list(PLACES)[:before]
        if all(after[cell] == cells[cell] for cell in others) and after[last] == cells[last] + 1:
            return after, points + 100_000
    if before <= 3 and after[:3] == [14, 13, 12]:
        return after, points
    return cells, 0


def slide(cells: list[int], action: int) -> tuple[list[int], int]:
    after, aux, points = BLOCK.rules.slide(BLOCK.rows, pack(cells), NOTHING, action)
    assert aux == NOTHING
    return unpack(after), int(points) if unpack(after) != cells else 0


def some_positions(number: int) -> list[list[int]]:
    """Rows in place, at the wall and elsewhere, with some of the next links and small tiles."""
    random, found = np.random.default_rng(1), []
    while len(found) < number:
        cells = [int(tile) for tile in random.integers(0, 12, 16) * (random.random(16) < random.random())]
        links = list(PLACES.items())[: int(random.integers(3, 7))]
        aside = int(random.random() < 0.2)
        for cell, tile in links:
            cells[cell - aside] = tile
        if random.random() < 0.3:  # one more like the last link, beside it
            cells[links[-1][0] + 4] = links[-1][1]
        if random.random() < 0.1:
            cells[int(random.integers(16))] = 0
        found.append(cells)
    return found


def test_slides_are_those_of_the_rules() -> None:
    legal = links = illegal = merged = 0
    for cells in some_positions(3000):
        for action in range(4):
            after, points = slide(cells, action)
            assert (after, points) == by_the_rules(cells, action)
            legal += after != cells
            illegal += after == cells and list(g2048.slide(tuple(cells), action)[0]) != cells
            links += in_place(after) > max(in_place(cells), 3)
            merged += points > 100_000 and in_place(after) < 6
    assert min(legal, illegal, links, merged) > 100


def test_a_game_begins_with_three_links_and_ends_with_six_at_most() -> None:
    state = BLOCK.new(7)
    assert sorted(state.indices)[-3:] == [12, 13, 14]
    assert state.indices[1:4] == [14, 13, 12]
    assert sum(tile in (1, 2) for tile in state.indices) == 2
    finished = [9 if cell == 5 else tile for cell, tile in enumerate([1, 14, 13, 12, 0, 0, 10, 11, *[0] * 8])]
    assert State(BLOCK, pack(finished), NOTHING).over
    assert not State(WHOLE, pack(finished), NOTHING).over


def test_nobody_plays_it_by_accident() -> None:
    assert "2048-block" not in games.names()
    with pytest.raises(InputError, match="write one of 2048, threes, threes-phone"):
        games.get("2048-blok")


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize(
    ("cells", "handed"),
    [
        (PUSHED, True),
        (AT_WALL, True),
        ([*AT_WALL[:3], 5, *AT_WALL[4:]], True),
        ([*AT_WALL[:3], 11, *AT_WALL[4:]], False),  # a snake
        ([0, 15, 13, 12, *PUSHED[4:]], True),
        ([0, 15, 14, 12, *PUSHED[4:]], True),
        ([0, 13, 14, 12, *PUSHED[4:]], False),
        ([0, 14, 13, 11, *PUSHED[4:]], False),
        ([12, 14, 13, 12, *PUSHED[4:]], False),  # another 4096
        ([0, 14, 13, 12, 0, 9, 10, 11, *PUSHED[8:]], False),  # finished
        ([1, 14, 13, 12, 2, 1, 2, 11, 1, 2, 1, 2, 2, 1, 2, 1], False),  # nothing moves
    ],
)
def test_which_boards_are_handed_over(cells: list[int], handed: bool, k: int) -> None:
    board = np.uint64(symmetry(pack(cells), k))
    way = find_block(WHOLE.rows, board, NOTHING)
    assert (way != NOWHERE) == handed
    assert find_block(WHOLE.rows, board, np.uint64(1)) == NOWHERE  # a tile past 32768
    if handed:
        seen = unpack(as_practised(np.uint64(symmetry(board, way))))
        row = 1 if seen[3] == 12 else 0
        assert seen[row : row + 3] == [14, 13, 12]
        assert sorted(seen)[:-3] == sorted(cells)[:-3]


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize(
    ("row", "below", "seen"),
    [
        ([0, 15, 14, 13], [0, 0, 0, 11], [0, 0, 0, 11]),
        ([0, 15, 14, 13], [0, 0, 9, 12], [0, 0, 9, 11]),  # a 4096 is the next link
        ([0, 15, 14, 13], [0, 0, 11, 12], [0, 0, 10, 11]),
        ([15, 14, 13, 2], [0, 1, 0, 4], [0, 1, 0, 4]),
        ([15, 14, 13, 12], [0, 0, 0, 4], None),  # a snake
        ([0, 15, 14, 13], [8, 9, 10, 12], None),  # all six are there
        ([0, 15, 14, 12], [0, 0, 0, 13], None),
        ([0, 15, 14, 13], [10, 0, 11, 12], [9, 0, 10, 11]),
    ],
)
def test_on_the_way_to_65536_boards_are_seen_at_the_next_smaller_scale(
    row: list[int], below: list[int], seen: list[int] | None, k: int
) -> None:
    rest = [0, 1, 0, 8, 0, 0, 0, 7]
    board = np.uint64(symmetry(pack([*row, *below, *rest]), k))
    way = find_block(WHOLE.rows, board, NOTHING)
    assert (way != NOWHERE) == (seen is not None)
    if seen is not None:
        smaller = [{15: 14, 14: 13, 13: 12}.get(tile, tile) for tile in row]
        assert unpack(as_practised(np.uint64(symmetry(board, way)))) == [*smaller, *seen, *rest]


def test_without_a_hole_a_large_board_is_not_handed_over() -> None:
    board = pack([0, 15, 14, 13, 0, 0, 11, 12, 7, 8, 9, 10, 6, 0, 0, 1])
    assert find_block(WHOLE.rows, board, NOTHING) == NOWHERE


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """Tiny networks of both games, with the second one in a file."""
    practised = tiny_model("2048-block")
    file = save_model(practised, tmp_path_factory.mktemp("block") / "block.safetensors")
    return tiny_model("2048"), practised, file


def test_a_player_hands_over(models: tuple[Any, Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """On boards of the practice it is the player of the practice, turned; on others it is itself."""
    monkeypatch.setattr(players, "tables_wanted", lambda spec, game: [])
    model, practised, file = models
    both = make_agent(f"expectimax:2,endgames=128,block={file}", WHOLE, model)
    alone, other = make_agent("expectimax:2", WHOLE, model), make_agent("expectimax:2", BLOCK, practised)
    handed = turned = 0
    for number, cells in enumerate(some_positions(300)):
        board = np.uint64(symmetry(pack(cells), number % 8))
        way = find_block(WHOLE.rows, board, NOTHING)
        found = both.values(State(WHOLE, board, NOTHING))
        if way == NOWHERE:
            assert found == alone.values(State(WHOLE, board, NOTHING))
            continue
        seen = State(BLOCK, np.uint64(as_practised(np.uint64(symmetry(board, way)))), NOTHING)
        expected = {slid(seen, a): v for a, v in enumerate(other.values(seen)) if v is not None}
        state = State(WHOLE, board, NOTHING)
        real = {named(slid(state, a), way): v for a, v in enumerate(found) if v is not None}
        assert real == expected
        handed, turned = handed + 1, turned + (way != 0)
    assert handed > 50
    assert turned > 30


def slid(state: State, action: int) -> tuple[int, ...]:
    after = state.slides[action]
    assert after is not None
    return tuple(unpack(after.board))


def named(cells: tuple[int, ...], way: int) -> tuple[int, ...]:
    """A board turned, with the names that its largest tiles have in the practice."""
    turned = unpack(symmetry(pack(list(cells)), way))
    first, second = sorted((tile for tile in turned if tile > 12), reverse=True)
    return tuple({first: 14, second: 13}.get(tile, tile) for tile in turned)


def test_practice_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Train, stop, go on, evaluate: a practice is a game like any other to the command."""
    run = tmp_path / "block"
    words = ["train", "2048-block", "--network", "tiny", "--threads", "1", "--by-age", "--out", str(run)]
    assert main([*words, "--moves", "200000"]) == 0
    assert main(["train", "--resume", str(run), "--moves", "300000"]) == 0
    assert main(["evaluate", str(run), "--games", "20"]) == 0
    assert "20 games of 2048-block" in capsys.readouterr().out
    assert load_model(run).game is BLOCK
