"""How players are written, and tile-downgrading on drawn boards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import tiny_model

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.search.agents import make_agent, needs_model
from tilesage.search.game_2048.downgrade import NEVER, downgrade, exponent_of
from tilesage.search.players import downgrade_threshold
from tilesage.search.registry import ROWS
from tilesage.search.specs import parse_spec

GAME = games.get("2048")


def halved(tiles: str, threshold: int) -> list[int]:
    """The tiles of the board that is searched instead of this one."""
    state = GAME.parse(tiles)
    board, aux = downgrade(state.board, state.aux, exponent_of(threshold))
    return replace(state, board=np.uint64(board), aux=np.uint64(aux)).cells


def test_tiles_above_the_largest_hole_are_halved() -> None:
    board = "8192 4096 1024 512 / 2 4 8 16 / 0 0 0 2 / 0 0 0 0"  # 2048 is missing
    assert halved(board, 8192)[:4] == [4096, 2048, 1024, 512]
    assert halved(board, 8192)[4:] == [2, 4, 8, 16, 0, 0, 0, 2, 0, 0, 0, 0]


def test_below_the_threshold_nothing_happens() -> None:
    board = "4096 1024 512 2 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0"
    assert halved(board, 8192) == GAME.parse(board).cells


def test_a_hole_that_is_too_small_does_not_count() -> None:
    board = "4096 2048 1024 512 / 256 128 64 32 / 16 4 2 0 / 0 0 0 0"  # only 8 is missing
    assert halved(board, 4096) == GAME.parse(board).cells
    assert halved(board.replace("64", "0"), 4096)[0] == 2048


def test_a_full_chain_has_no_hole() -> None:
    board = "1024 512 256 128 / 64 32 16 8 / 4 2 0 0 / 0 0 0 0"
    assert halved(board, 1024) == GAME.parse(board).cells


def test_tiles_past_32768_come_down_to_the_threshold() -> None:
    board = "131072 65536 2 4 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0"
    assert halved(board, 16384)[:2] == [16384, 8192]
    assert halved("65536 16384 512 2 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0", 32768)[:3] == [32768, 16384, 512]


@given(st.lists(st.integers(0, 16), min_size=16, max_size=16), st.integers(3, 17))
def test_both_boards_have_the_same_moves(cells: list[int], threshold: int) -> None:
    board, aux = GAME.read(cells, {})
    small, small_aux = (np.uint64(x) for x in downgrade(board, aux, threshold))
    real = replace(GAME.new(), board=board, aux=aux)
    searched = replace(GAME.new(), board=small, aux=small_aux)
    assert searched.legal == real.legal
    assert [s > 0 for s in searched.cells] == [s > 0 for s in real.cells]


def test_the_threshold_is_the_tile_that_was_written() -> None:
    assert downgrade_threshold(parse_spec("greedy"), GAME) == NEVER
    assert downgrade_threshold(parse_spec("greedy,downgrade=8192"), GAME) == 13
    assert downgrade_threshold(parse_spec("expectimax:2,downgrade=16384"), GAME) == 14


def test_a_downgraded_player_searches_the_smaller_board() -> None:
    model = tiny_model("2048")
    real = GAME.parse("8192 4096 1024 512 / 2 4 8 16 / 0 4 0 2 / 0 0 0 0")
    small = GAME.parse("4096 2048 1024 512 / 2 4 8 16 / 0 4 0 2 / 0 0 0 0")
    plain = make_agent("expectimax:2", GAME, model)
    shrunk = make_agent("expectimax:2,downgrade=8192", GAME, model)
    assert shrunk.values(real) == plain.values(small)
    assert shrunk.choose(real) == plain.choose(small)
    assert make_agent("greedy,downgrade=8192", GAME, model).choose(real) in real.legal


@pytest.mark.parametrize(
    ("text", "budget", "unit"),
    [
        ("expectimax:3", 3, ""),
        ("expectimax:200ms", 0.2, "s"),
        ("expectimax:1.5s", 1.5, "s"),
        ("expectimax:5000nodes", 5000, "nodes"),
        ("mcts:d1", 0, "d1"),
        ("mcts:1s,leaf=value,c=0.3", 1, "s"),
        ("rollouts:100", 100, ""),
        ("greedy", 0, ""),
        ("best", 0, "deep"),
        ("best,endgames=128", 0, "deep"),
    ],
)
def test_specs_are_read(text: str, budget: float, unit: str) -> None:
    spec = parse_spec(text)
    assert (spec.budget, spec.unit) == (pytest.approx(budget), unit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("minimax:3", "best, random, greedy, expectimax:3"),
        ("expectimax", "layers"),
        ("expectimax:", "layers"),
        ("expectimax:0", "layers"),
        ("expectimax:2.5", "layers"),
        ("expectimax:3s3", "layers"),
        ("expectimax:3,depth=4", "width=…, prune=…, table=…"),
        ("expectimax:3,width=0", "from 1 to 4"),
        ("expectimax:3,prune=2", "from 0 to 1"),
        ("expectimax:3,table=x", "from 0 to 28"),
        ("expectimax:99", "at most"),
        ("mcts:400,leaf=network", "rollouts or value"),
        ("mcts:d1,leaf=value", "mcts:d1"),
        ("mcts:9,below=some", "legal or all"),
        ("mcts:d1,gain=all", "root or rollout"),
        ("mcts:9,leaf=value,gain=root", "leave it out"),
        ("mcts:nodes", "iterations"),
        ("rollouts:-3", "random games"),
        ("greedy:3", "no budget"),
        ("best:3", "no budget"),
        ("best,prune=0.1", "table=…, endgames=…"),
        ("greedy,downgrade=3000", "no tile of 2048"),
        ("greedy,downgrade=no", "downgrade=8192"),
    ],
)
def test_wrong_specs_say_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        make_agent(text, GAME, tiny_model("2048"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_downgrading_is_refused_in_threes() -> None:
    model = tiny_model("threes")
    with pytest.raises(InputError, match="2048"):
        make_agent("expectimax:2,downgrade=384", model.game, model)


def test_who_needs_a_model() -> None:
    asking = [row.name for row in ROWS if needs_model(f"{row.name}:10" if row.budget else row.name)]
    assert asking == ["best", "greedy", "expectimax"]
    assert needs_model("mcts:10,leaf=value")
