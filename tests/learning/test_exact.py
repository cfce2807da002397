"""Exact learning: the batch rule on threads equals the one in plain Python, and does not depend on their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slow_batch import BatchLearner

from tilesage.core.errors import InputError
from tilesage.games.board import pack
from tilesage.learning import Run, TrainConfig
from tilesage.learning.batch import BatchTrainer

NO_LIMIT = 1 << 40
GAMES, STEPS = 16, 60
CROWDED = pack([9, 8, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 2])  # one merge is left; 128 is missing
WAYS: dict[str, dict[str, Any]] = {
    "td": {"rule": "td"},
    "tc": {},
    "stages": {"stages": "8,16"},
    "fold": {"fold": "256", "rule": "td", "optimism": 500.0},
    "by age": {"by_age": True, "rule": "td"},
    "tc, lambda, by age": {"decay": 0.5, "by_age": True},
    "td, 3 steps": {"rule": "td", "steps": 3},
    "threes": {"game": "threes"},
    "threes, by hint": {"game": "threes", "network": "01,5", "by_hint": True, "decay": 0.5},
    "phone, not turned": {"game": "threes-phone", "network": "01,5", "by_hint": True, "turned": False},
}


def trainer_of(threads: int, **settings: Any) -> BatchTrainer:
    settings = {"network": "01,15,56", "flight": GAMES, "seed": 3, "moves": 1, "average": False} | settings
    return BatchTrainer(TrainConfig(exact=True, threads=threads, **settings))


def rate_of(trainer: BatchTrainer) -> float:
    return 0.1 if trainer.rule.name == "td" else 1.0


def twin_of(trainer: BatchTrainer) -> BatchLearner:
    """The same lesson in plain Python."""
    config, coherent = trainer.config, trainer.rule.name == "tc"
    return BatchLearner(
        trainer.game,
        trainer.evaluator,
        trainer.state()["weights"].copy(),
        GAMES,
        config.seed,
        rate_of(trainer),
        coherence=coherent,
        history=config.history,
        decay=config.trace,
    )


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("way", WAYS)
def test_exact_learning_equals_the_batch_rule_in_plain_python(way: str) -> None:
    trainer = trainer_of(1, **WAYS[way])
    twin = twin_of(trainer)
    if trainer.game.name == "2048":  # so that some games end, and a fold has something to do
        for g in range(0, GAMES, 2):
            trainer.threads[0].board[g] = twin.slots[g].board = CROWDED
    trainer.advance(STEPS * GAMES, NO_LIMIT, rate_of(trainer))
    for _ in range(STEPS):
        twin.step()
    state = trainer.state()
    assert np.array_equal(state["weights"].view(np.uint32), twin.weights.view(np.uint32))
    if trainer.rule.name == "tc":
        assert np.array_equal(state["memory"], np.stack([twin.errors, twin.absolutes], axis=1).ravel())
    assert state["thread0.board"].tolist() == [int(slot.board) for slot in twin.slots]
    assert state["thread0.score"].tolist() == [slot.score for slot in twin.slots]
    assert twin.finished or trainer.game.name != "2048"


@pytest.mark.parametrize("way", ["td", "tc, lambda, by age", "stages", "threes, by hint"])
def test_any_number_of_threads_learns_the_same_weights(way: str) -> None:
    def learnt(threads: int) -> tuple[bytes, ...]:
        trainer = trainer_of(threads, flight=50, **WAYS[way])
        tally = trainer.advance(400 * 50, NO_LIMIT, rate_of(trainer))
        assert tally.games > 10
        return trainer.state()["weights"].tobytes(), trainer.memory.tobytes(), tally.tiles.tobytes()

    alone = learnt(1)
    for threads in (2, 5, 16):
        assert learnt(threads) == alone


def test_a_run_goes_on_exactly_with_other_threads(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"network": "012,0145", "rule": "tc", "rate": "1>0.5", "exact": True, "flight": 64}
    whole = Run.begin(TrainConfig(moves=120_000, threads=1, **settings), tmp_path / "whole")
    whole.train()
    begun = Run.begin(TrainConfig(moves=120_000, threads=3, **settings), tmp_path / "begun")
    for _ in begun.blocks():
        begun.stop()
    begun.close()
    config = (tmp_path / "begun" / "run.toml").read_text().replace("threads = 3", "threads = 2")
    (tmp_path / "begun" / "run.toml").write_text(config)
    again = Run.resume(tmp_path / "begun")
    again.train()
    assert np.array_equal(whole.model.weights, again.model.weights)


@pytest.mark.parametrize(
    "settings",
    [
        {"of": "states"},
        {"direction": "backward"},
        {"device": "cuda"},
        {"flight": 1 << 17},
        {"rule": "nowhere:rule"},
    ],
)
def test_what_cannot_be_exact_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TrainConfig(exact=True, **settings)


def test_a_graphics_card_has_learnt_the_same_weights_bit_for_bit() -> None:
    """The sum of all weights as whole numbers, which benchmarks/gpu.py printed on an H200."""
    trainer = trainer_of(2, network="4x6", rule="td", flight=8192, seed=7)
    trainer.advance(200 * 8192, NO_LIMIT, 0.1)
    assert int(trainer.state()["weights"].view(np.uint32).astype(np.uint64).sum()) == 685302801987155
    trainer.close()
