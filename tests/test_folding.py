"""Folding: which board the tables see, and what the value is times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterstate import games
from afterstate.games import Mistake, State
from afterstate.values.folding import SMALLEST_HOLE, make_fold
from afterstate.values.ntuple import evaluator
from afterstate.values.patterns import parse_network

GAME = games.get("2048")


def folded(text: str, limit: int) -> tuple[str, float]:
    state = GAME.parse(text)
    board, aux, scale = make_fold(limit)(state.board, state.aux)
    assert aux == (scale > 1)
    assert make_fold(limit, 1)(state.board, state.aux) == (board, aux, 1.0)
    return State(GAME, np.uint64(board), np.uint64(0)).text, float(scale)


def by_hand(cells: list[int], limit: int) -> tuple[list[int], float]:
    """The same in plain Python: halve above the largest hole until the largest tile is below the limit."""
    scale = 1.0
    while max(cells) >= limit:
        holes = [tile for tile in range(SMALLEST_HOLE, max(cells)) if tile not in cells]
        if not holes:
            break
        cells = [tile - 1 if tile > max(holes) else tile for tile in cells]
        scale *= 2
    return [min(tile, 15) for tile in cells], scale


@pytest.mark.parametrize(
    ("text", "limit", "expected", "scale"),
    [
        ("C123/..../..../....", 13, "C123/..../..../....", 1),
        ("D123/..../..../....", 13, "C123/..../..../....", 2),
        ("ED12/..../..../....", 13, "CB12/..../..../....", 4),
        ("DCBA/9876/.21./....", 13, "DCBA/9876/.21./....", 1),
        ("GFE1/..../..../....", 14, "DCB1/..../..../....", 8),
        ("H.../..../..../...H", 15, "E.../..../..../...E", 8),
    ],
)
def test_examples(text: str, limit: int, expected: str, scale: float) -> None:
    assert folded(text, limit) == (expected, scale)


@given(st.lists(st.integers(0, 17), min_size=16, max_size=16), st.integers(8, 15))
def test_as_spelled_out(cells: list[int], limit: int) -> None:
    board, aux = GAME.read(cells, {})
    seen, seen_aux, scale = make_fold(limit)(board, aux)
    assert seen_aux == (scale > 1)
    assert (GAME.write(np.uint64(seen), np.uint64(0))[0], float(scale)) == by_hand(cells, limit)


def test_values_scale() -> None:
    network, plain = parse_network("tiny", (), False, 13), parse_network("tiny")
    e, p = evaluator(GAME, network), evaluator(GAME, plain)
    weights = np.random.default_rng(2).normal(0, 10, e.size).astype(np.float32)
    large, small = GAME.parse("ED12/3..4/..../...1"), GAME.parse("CB12/3..4/..../...1")
    for value in (e.value, e.value_by_words):
        assert float(value(weights, large.board, large.aux)) == pytest.approx(
            4 * float(p.value(weights, small.board, small.aux)), rel=1e-5
        )


def test_large_boards_have_a_stage_of_their_own() -> None:
    staged, plain = parse_network("tiny", (13,), False, 13), parse_network("tiny")
    e, p = evaluator(GAME, staged), evaluator(GAME, plain)
    weights = np.random.default_rng(2).normal(0, 10, e.size).astype(np.float32)
    of_stage = {False: weights[: p.size], True: weights[p.size :]}
    for text, seen, scale in (
        ("C123/..../..../....", "C123/..../..../....", 1),
        ("D123/..../..../....", "C123/..../..../....", 2),
        ("DCBA/9876/.21./....", "DCBA/9876/.21./....", 1),  # large, but without a hole
    ):
        large, small = GAME.parse(text), GAME.parse(seen)
        expected = scale * float(p.value(of_stage[text[0] == "D"], small.board, small.aux))
        for value in (e.value, e.value_by_words):
            assert float(value(weights, large.board, large.aux)) == pytest.approx(expected, rel=1e-5)


def test_only_where_it_makes_sense() -> None:
    with pytest.raises(Mistake, match="rules of 2048 only"):
        evaluator(games.get("threes"), parse_network("tiny", (), False, 13))
    with pytest.raises(Mistake, match="the same tile"):
        evaluator(GAME, parse_network("tiny", (12,), False, 13))
    with pytest.raises(Mistake, match="index 8 to 15"):
        parse_network("tiny", (), False, 3)


def test_a_folded_network_learns() -> None:
    """Folded from 256 on, so that a minute's games already use it: far better than before, and than random play."""
    from afterstate.arena.evaluate import evaluate
    from afterstate.learning.config import TrainConfig
    from afterstate.learning.cpu import CpuTrainer
    from afterstate.search.agents import make_agent
    from afterstate.values.files import Model

    config = TrainConfig(network="012,0123,0145", fold="256", rule="tc", decay=0.5, games=3000, threads=1)
    trainer = CpuTrainer(config)
    trainer.begin_phase(coherent=True)
    tally = trainer.advance(moves=10**9, games=3000, rate=1.0)
    assert tally.games >= 3000
    model = Model(GAME, config.the_network, trainer.weights())
    assert evaluate(make_agent("greedy", GAME, model), 100).statistics.mean > 5000
