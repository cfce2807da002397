"""What happens to all weights at once, by hand: optimism, promotion, the mean of the weights, softened coherence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilesage import games
from tilesage.games import State
from tilesage.learning import TrainConfig
from tilesage.learning.cpu import CpuTrainer, take_in
from tilesage.learning.rules import TC
from tilesage.learning.weights import fresh_weights
from tilesage.networks.ntuple import evaluator, promote_all
from tilesage.networks.patterns import AGES, parse_network

F = np.float32
NAN = float("nan")


def trainer_of(**settings: Any) -> CpuTrainer:
    return CpuTrainer(TrainConfig(**{"network": "012", "threads": 1, "games": 1} | settings))


def now(trainer: CpuTrainer, weights: list[float]) -> None:
    """Its first weights become these, the others 0."""
    trainer.state()["weights"][:] = 0
    trainer.state()["weights"][: len(weights)] = weights


# --- the mean of the weights ---------------------------------------------------------------------------------


def test_the_mean_is_that_of_all_looks() -> None:
    trainer = trainer_of()
    for weights, mean in (([4, 0, -1], [4, 0, -1]), ([8, 3, -1], [6, 1.5, -1]), ([0, 3, -7], [4, 2, -3])):
        now(trainer, weights)
        trainer.average()
        np.testing.assert_allclose(trainer.weights()[:3], mean, rtol=1e-6)
    now(trainer, [100, 100, 100])
    np.testing.assert_allclose(trainer.weights()[:3], [4, 2, -3], rtol=1e-6)  # not looked at: not in the mean
    assert trainer.state()["weights"][0] == 100  # learning goes on from the weights, not from their mean
    trainer.average(afresh=True)
    assert trainer.weights()[:3].tolist() == [100, 100, 100]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_mean_covers_every_entry(threads: int) -> None:
    trainer, random = trainer_of(threads=threads), np.random.default_rng(1)
    looks = []
    for _ in range(3):
        trainer.state()["weights"][:] = random.normal(size=16**3)
        looks.append(trainer.state()["weights"].copy())
        trainer.average()
    np.testing.assert_allclose(trainer.weights(), np.mean(looks, axis=0), rtol=1e-4, atol=1e-6)


def test_an_entry_that_was_learnt_later_begins_its_mean_then() -> None:
    mean = np.array([NAN, NAN, 2, NAN], F)
    for weights, share, expected in (
        ([NAN, 5, 4, NAN], 1 / 2, [NAN, 5, 3, NAN]),
        ([7, 8, 6, NAN], 1 / 3, [7, 6, 4, NAN]),
    ):
        take_in(mean, np.array(weights, F), F(share))
        np.testing.assert_allclose(mean, expected, rtol=1e-6)


def test_the_mean_of_a_later_stage_is_promoted_where_nothing_was_learnt() -> None:
    trainer = trainer_of(stages="1024")
    size = 16**3
    weights = trainer.state()["weights"]
    assert np.isnan(weights[size:]).all()
    weights[0] = 6
    trainer.average()
    weights[0], weights[1], weights[size + 1] = 12, 2, 10
    trainer.average()
    found = trainer.weights()
    assert found[[0, size]].tolist() == [9, 9]
    assert found[[1, size + 1]].tolist() == [1, 10]
    assert np.isnan(weights[size])  # still reads the stage before when it is met


def test_a_restored_mean_counts_as_many_looks_as_it_has_seen() -> None:
    first, second = trainer_of(), trainer_of()
    for weight in (3, 6, 9):
        now(first, [weight])
        first.average()
    second.restore({name: array.copy() for name, array in first.state().items()})
    assert second.weights()[0] == 6
    for trainer in (first, second):
        now(trainer, [2])
        trainer.average()
        assert trainer.weights()[0] == pytest.approx(5)


# --- coherence -----------------------------------------------------------------------------------------------


def test_soften_leaves_a_twentieth_of_both_sums() -> None:
    trainer = trainer_of(rule="tc")
    trainer.state()["memory"][:4] = [10, 40, -20, 20]
    trainer.state()["weights"][:2] = [5, 7]
    trainer.begin_phase(TC, soften=True)
    np.testing.assert_allclose(trainer.state()["memory"][:4], [0.5, 2, -1, 1], rtol=1e-6)
    assert trainer.state()["weights"][:2].tolist() == [5, 7]
    trainer.begin_phase(TC)
    assert not trainer.state()["memory"].any()
    assert trainer.state()["weights"][:2].tolist() == [5, 7]


# --- optimism ------------------------------------------------------------------------------------------------

NETWORKS: list[dict[str, Any]] = [
    {},
    {"network": "tiny", "stages": "16,64"},
    {"network": "tiny", "by_age": True},
    {"network": "tiny", "fold": "256"},
    {"network": "tiny", "stages": "256"},
    {"network": "tiny", "of": "states"},
    {"game": "threes", "network": "tiny", "by_hint": True, "stages": "12"},
    {"game": "threes-phone", "network": "tiny", "by_hint": True, "turned": False},
]


def some_positions(name: str) -> list[State]:
    game = games.get(name)
    found = [game.new(seed) for seed in range(4)]
    for _ in range(60):
        found += [state.play(state.legal[-1]) for state in found[-4:] if state.legal]
    assert len(found) > 100
    return found


@pytest.mark.parametrize("settings", NETWORKS, ids=str)
def test_every_position_of_a_fresh_trainer_is_worth_what_was_hoped_for(settings: dict[str, Any]) -> None:
    trainer = trainer_of(**settings, optimism=4800.0)
    weights, e = trainer.weights(), trainer.evaluator
    assert np.isfinite(weights).all()
    for state in some_positions(trainer.game.name):
        for after in filter(None, state.slides):
            assert float(e.value(weights, after.board, after.aux)) == pytest.approx(4800, rel=1e-5)


def test_new_weights_make_every_position_worth_as_much() -> None:
    game = games.get("2048")
    e = evaluator(game, parse_network("tiny", by_age=True))
    for state in some_positions("2048")[::20]:
        assert float(
            e.value(fresh_weights(e.size, e.network, e.entries, 120.0), state.board, state.aux)
        ) == pytest.approx(120, rel=1e-5)


def test_fresh_weights_by_hand() -> None:
    """One pattern of two cells is read eight times; two stages make four sets of 256, three of them unknown."""
    network = parse_network("01", (9, 11), by_age=True)
    weights = fresh_weights(1024 + AGES, network, 256, 40.0)
    assert set(weights[:256].tolist()) == {5}
    assert np.isnan(weights[256:1024]).all()
    assert not weights[1024:].any()


# --- promotion -----------------------------------------------------------------------------------------------


def test_promotion_of_all_by_hand() -> None:
    """Sets by stage: none, the smaller tile, the larger, both. Both falls back to the smaller, that to none."""
    network = parse_network("01", (9, 11), by_age=True)
    weights = np.full(1024 + AGES, NAN, F)
    weights[:256], weights[1024:] = 1, 7
    weights[256 + 3], weights[512 + 4], weights[768 + 5], weights[512 + 6] = 2, 3, 4, 5
    promote_all(weights, network, 256)
    sets = weights[:1024].reshape(4, 256)
    assert sets[:, 0].tolist() == [1, 1, 1, 1]
    assert sets[:, 3].tolist() == [1, 2, 1, 2]
    assert sets[:, 4].tolist() == [1, 1, 3, 1]
    assert sets[:, 5].tolist() == [1, 1, 1, 4]
    assert set(weights[1024:].tolist()) == {7}
