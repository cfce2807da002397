"""Games that begin ahead: which tiles they begin with, where these lie, and that they are practised."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from tilesage import games
from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.learning.ahead import make_ahead
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.rules import TC
from tilesage.learning.runs import Run, train

CORNERS = (0, 3, 12, 15)
BESIDE = {0: (1, 4), 3: (2, 7), 12: (8, 13), 15: (11, 14)}


def begin(name: str, stages: tuple[int, ...], number: int) -> list[tuple[list[int], int]]:
    """The cells of so many new games, and how many tiles each was given."""
    game = games.get(name)
    ahead = make_ahead(game, stages)

    @compiled
    def begin_all(rows: Array, boards: Array, given: Array) -> None:
        rng = np.uint64(7)
        for i in range(boards.size):
            boards[i], _, rng, given[i] = ahead(rows, rng)

    boards, given = np.zeros(number, np.uint64), np.zeros(number, np.int64)
    begin_all(game.rows, boards, given)
    return [([int(board) >> 4 * cell & 15 for cell in range(16)], int(n)) for board, n in zip(boards, given)]


@pytest.mark.parametrize("name", ["2048", "threes", "threes-phone"])
def test_every_second_game_has_the_tile_in_a_corner(name: str) -> None:
    found = begin(name, (13,), 4000)
    helped = [cells for cells, given in found if given]
    assert abs(len(helped) - 2000) < 200
    corners = [cells.index(13) for cells in helped]
    for corner in CORNERS:
        assert corners.count(corner) > 350
    assert set(corners) == set(CORNERS)
    assert all(cells.count(13) == 1 for cells in helped)
    assert all(max(cells) < 13 for cells, given in found if not given)
    assert any(sum(tile > 0 for tile in cells) > 2 for cells in helped)  # the tiles of a new game are there too


def test_any_of_several_tiles_alike_side_by_side() -> None:
    found = begin("threes-phone", (12, 14), 6000)
    kinds = [tuple(tile for tile in (12, 14) if tile in cells) for cells, _ in found]
    assert abs(kinds.count(()) - 3000) < 250
    for kind in ((12,), (14,), (12, 14)):
        assert abs(kinds.count(kind) - 1000) < 150
    for (cells, given), kind in zip(found, kinds):
        assert given == len(kind)
        if kind:
            assert cells.index(max(kind)) in CORNERS
        if len(kind) == 2:
            assert cells.index(12) in BESIDE[cells.index(14)]
    assert len({(cells.index(14), cells.index(12)) for (cells, _), kind in zip(found, kinds) if len(kind) == 2}) == 8


def trained(start: str, threads: int = 1) -> CpuTrainer:
    config = TrainConfig(
        game="threes-phone",
        network="012,0145",
        stages="6144",
        by_hint=True,
        start=start,
        moves=40_000,
        threads=threads,
    )
    trainer = CpuTrainer(config)
    trainer.begin_phase(TC)
    trainer.tally = trainer.advance(config.moves, 10**9, 1.0)
    return trainer


def test_what_comes_after_the_tile_is_learnt() -> None:
    """Nobody makes a 6144 in so few games: without a head start, its stage stays as it was."""
    learnt = {}
    for start in ("fresh", "ahead"):
        trainer = trained(start)
        small, large = np.asarray(trainer.state()["weights"]).reshape(2, -1)
        learnt[start] = np.isfinite(large).any()
        assert (small != 0).any()
        assert max(chain(*np.nonzero(trainer.tally.tiles))) < 12  # games that began ahead do not count
    assert learnt == {"fresh": False, "ahead": True}


def test_one_seed_one_result() -> None:
    first, second = (np.asarray(trained("ahead").state()["weights"]) for _ in range(2))
    assert np.array_equal(first.view(np.uint32), second.view(np.uint32))


def test_runs_with_several_stages_go_on(tmp_path: Path) -> None:
    """A game may be stopped that began with both tiles."""
    config = TrainConfig(network="012", stages="64,128", start="ahead", threads=1, moves=20_000)
    with_both = 0
    for seed in range(12):
        folder = tmp_path / str(seed)
        run = train(replace(config, seed=seed), folder)
        with_both += int((run.trainer.state()["thread0.origin"] == 2).any())
        Run.resume(folder, moves=30_000).train()
    assert with_both


def test_it_takes_stages() -> None:
    with pytest.raises(InputError, match="give --stages"):
        TrainConfig(game="2048", start="ahead")
