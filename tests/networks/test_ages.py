"""Networks by age: the sum of the tiles, the table behind all others, and what it is good for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.runs import Run
from tilesage.networks.files import Model, load_model, save_model
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import AGES, parse_network

GAMES = [games.get(name) for name in games.names()]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
@given(data=st.data())
def test_the_sum_of_the_tiles_is_kept_by_a_slide(game: Game, data: st.DataObject) -> None:
    state = game.new(data.draw(st.integers(0, 1000)))
    for _ in range(data.draw(st.integers(0, 60))):
        if not state.legal:
            break
        total = sum(game.tiles[index] for index in game.write(state.board, state.aux)[0])
        assert game.rules.sum_of_tiles(state.board, state.aux) == total
        for action in state.legal:
            after = state.slide(action)
            assert game.rules.sum_of_tiles(after.board, after.aux) == total
        state = state.play(data.draw(st.sampled_from(state.legal)))


def test_tiles_past_32768_count() -> None:
    game = games.get("2048")
    state = game.parse("HGF1/..../..../....")
    assert game.rules.sum_of_tiles(state.board, state.aux) == 131072 + 65536 + 32768 + 2


@pytest.mark.parametrize("fold", [0, 9])
def test_a_value_is_what_is_usual_and_what_the_tables_say(fold: int) -> None:
    game = games.get("2048")
    plain = evaluator(game, parse_network("tiny", (), False, fold))
    e = evaluator(game, parse_network("tiny", (), False, fold, by_age=True))
    assert e.size == plain.size + AGES == e.tables_size + AGES
    weights = np.random.default_rng(2).normal(0, 10, e.size).astype(np.float32)
    for text, age in (("C123/..../..../....", 64), ("A12./..../..../....", 16), ("HHHH/HHHH/HHHH/HHHH", AGES - 1)):
        state = game.parse(text)
        expected = float(weights[plain.size + age]) + float(plain.value(weights, state.board, state.aux))
        assert float(e.value(weights, state.board, state.aux)) == pytest.approx(expected, rel=1e-5)


def test_files_keep_the_table_of_ages(tmp_path: Path) -> None:
    game, network = games.get("threes"), parse_network("tiny", by_age=True)
    weights = np.arange(evaluator(game, network).size, dtype=np.float32)
    model = load_model(save_model(Model(game, network, weights), tmp_path / "by-age.safetensors"))
    assert model.network == network
    assert np.array_equal(model.weights, weights)


def test_packed_files_keep_the_ages_as_they_are(tmp_path: Path) -> None:
    game, network = games.get("2048"), parse_network("tiny", by_age=True)
    weights = np.random.default_rng(3).normal(0, 1000, evaluator(game, network).size).astype(np.float32)
    seldom = np.ones(weights.size)
    model = Model(game, network, weights)
    found = load_model(save_model(model, tmp_path / "packed.safetensors", packed=True, limit=2000, importance=seldom))
    assert np.array_equal(found.weights[-AGES:], weights[-AGES:])
    assert 0 < np.count_nonzero(found.weights[:-AGES]) < weights.size - AGES  # the limit left most of the others out
    packed = (tmp_path / "packed.safetensors").read_bytes()
    (tmp_path / "other.safetensors").write_bytes(packed.replace(b'"ages"', b'"days"'))
    with pytest.raises(InputError, match="its ages do not fit"):
        load_model(tmp_path / "other.safetensors")


def test_a_rate_of_zero_teaches_nothing() -> None:
    trainer = CpuTrainer(TrainConfig(network="012,0145", by_age=True, threads=1, games=1))
    trainer.advance(5000, 1 << 40, 1.0)
    before = trainer.weights()
    trainer.advance(5000, 1 << 40, 0.0)
    assert before[-AGES:].any()
    assert np.array_equal(before, trainer.weights())


def test_resumed_runs_go_on_to_the_same_weights(tmp_path: Path) -> None:
    config = TrainConfig(network="012,0145", by_age=True, fold="256", threads=1, moves=60_000, seed=5, average=False)
    whole = Run.begin(config, tmp_path / "whole")
    whole.train(None)
    half = Run.begin(config.with_budget(0, 30_000, 0), tmp_path / "parts")
    half.train(None)
    rest = Run.resume(tmp_path / "parts", moves=60_000)
    rest.train(None)
    assert whole.progress.moves == rest.progress.moves
    assert np.array_equal(whole.model.weights[-AGES:], rest.model.weights[-AGES:])
    assert whole.model.weights[-AGES:].any()


def test_only_where_it_makes_sense() -> None:
    with pytest.raises(InputError, match="--by-age goes with forward"):
        TrainConfig(by_age=True, of="states")
    with pytest.raises(InputError, match="--by-age goes with forward"):
        TrainConfig(by_age=True, direction="backward")
