"""Folding: which board the tables see, and that its value is the one that counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import State
from tilesage.learning.rules import TC
from tilesage.networks.files import Model, load_model, save_model
from tilesage.networks.folding import SMALLEST_HOLE, make_fold
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network

GAME, PHONE = games.get("2048"), games.get("threes-phone")


def folded(text: str, limit: int) -> str:
    state = GAME.parse(text)
    return State(GAME, np.uint64(make_fold(GAME, limit)(state.board, state.aux)), np.uint64(0)).text


def by_hand(cells: list[int], limit: int) -> list[int]:
    """The same in plain Python: halve above the largest hole until the largest tile is below the limit."""
    while max(cells) >= limit:
        holes = [tile for tile in range(SMALLEST_HOLE, max(cells)) if tile not in cells]
        if not holes:
            break
        cells = [tile - 1 if tile > max(holes) else tile for tile in cells]
    return [min(tile, 15) for tile in cells]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("C123/..../..../....", 13, "C123/..../..../...."),
        ("D123/..../..../....", 13, "C123/..../..../...."),
        ("ED12/..../..../....", 13, "CB12/..../..../...."),
        ("DCBA/9876/.21./....", 13, "DCBA/9876/.21./...."),
        ("GFE1/..../..../....", 14, "DCB1/..../..../...."),
        ("H.../..../..../...H", 15, "E.../..../..../...E"),
        ("GEDC/BA98/76../....", 15, "FEDC/BA98/76../...."),  # halved once, in the aux alone
    ],
)
def test_examples(text: str, limit: int, expected: str) -> None:
    assert folded(text, limit) == expected


@given(st.lists(st.integers(0, 17), min_size=16, max_size=16), st.integers(8, 15))
def test_as_spelled_out(cells: list[int], limit: int) -> None:
    board, aux = GAME.read(cells, {})
    seen = make_fold(GAME, limit)(board, aux)
    assert GAME.write(np.uint64(seen), np.uint64(0))[0] == by_hand(cells, limit)


@given(st.lists(st.integers(0, 14), min_size=16, max_size=16), st.integers(8, 14), st.integers(0, 2**25 - 1))
def test_threes_folds_by_indices_whatever_its_hint(cells: list[int], limit: int, aux: int) -> None:
    board = np.uint64(sum(tile << 4 * cell for cell, tile in enumerate(cells)))
    seen = make_fold(PHONE, limit)(board, np.uint64(aux))
    assert [int(seen) >> 4 * cell & 15 for cell in range(16)] == by_hand(cells, limit)


@pytest.mark.parametrize("turned", [False, True])
def test_threes_by_hint(turned: bool) -> None:
    """6144 with a hole at 3072 is seen as 3072, in the tables of the hint."""
    plain = evaluator(PHONE, parse_network("tiny", (), True, 0, turned))
    weights = np.random.default_rng(2).normal(0, 10, plain.size).astype(np.float32)
    folded = evaluator(PHONE, parse_network("tiny", (), True, 14, turned))
    board, as_seen = (np.uint64(sum(t << 4 * i for i, t in enumerate([top, 11, 3, 2, 1, 7]))) for top in (14, 13))
    for hint in (1, 2, 3, 5):
        for slid in range(4):
            aux = np.uint64(hint | slid << 8)
            expected = float(plain.value(weights, as_seen, aux))
            assert float(folded.value(weights, board, aux)) == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_the_value_is_that_of_the_board_as_it_is_seen() -> None:
    network, plain = parse_network("tiny", (), False, 13), parse_network("tiny")
    e, p = evaluator(GAME, network), evaluator(GAME, plain)
    weights = np.random.default_rng(2).normal(0, 10, e.size).astype(np.float32)
    large, small = GAME.parse("ED12/3..4/..../...1"), GAME.parse("CB12/3..4/..../...1")
    expected = float(p.value(weights, small.board, small.aux))
    assert float(e.value(weights, large.board, large.aux)) == pytest.approx(expected, rel=1e-5)


def test_a_folded_model_comes_back_from_its_file(tmp_path: Path) -> None:
    network = parse_network("tiny", (), False, 13)
    model = Model(GAME, network, np.zeros(evaluator(GAME, network).size, np.float32))
    path = save_model(model, tmp_path / "model.safetensors")
    assert load_model(path).network == network


def test_only_where_it_makes_sense() -> None:
    with pytest.raises(InputError, match="one scale only"):
        evaluator(games.get("2048-block"), parse_network("tiny", (), False, 13))
    with pytest.raises(InputError, match="--fold or --stages"):
        evaluator(GAME, parse_network("tiny", (13,), False, 13))
    with pytest.raises(InputError, match="index 8 to 15"):
        parse_network("tiny", (), False, 3)


def test_a_folded_network_learns() -> None:
    """Folded from 256 on, so that a minute's games already use it: far better than before, and than random play."""
    from tilesage.evaluation.evaluate import evaluate
    from tilesage.learning.config import TrainConfig
    from tilesage.learning.cpu import CpuTrainer
    from tilesage.search.agents import make_agent

    config = TrainConfig(network="012,0123,0145", fold="256", rule="tc", decay=0.5, games=3000, threads=1)
    trainer = CpuTrainer(config)
    trainer.begin_phase(TC)
    tally = trainer.advance(moves=10**9, games=3000, rate=1.0)
    assert tally.games >= 3000
    model = Model(GAME, config.the_network, trainer.weights())
    assert evaluate(make_agent("greedy", GAME, model), 100).statistics.mean > 5000
