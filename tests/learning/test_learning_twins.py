"""The compiled loops against their slow twin: after hundreds of moves, every weight and every sum is the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import slow_learning as slow

from tilesage.cluster.connection import build
from tilesage.cluster.training import Learner
from tilesage.core.compiler import Array
from tilesage.learning import TrainConfig
from tilesage.learning.cpu import ALONE, CpuTrainer
from tilesage.learning.rules import TC
from tilesage.learning.thread_state import NO_GAME, SLOTS

NO_LIMIT = 1 << 40
BACK = {"direction": "backward"}
STATES = {"of": "states", "network": "012"}  # few patterns: the twin tries every outcome of chance


def positions(trainer: CpuTrainer, thread: int = 0) -> list[slow.Position]:
    state = trainer.state()
    return list(zip(state[f"thread{thread}.board"], state[f"thread{thread}.aux"]))


def together(trainer: CpuTrainer, twin: slow.SlowLearner, turns: int, rate: float) -> None:
    """Both learn for so many turns of both games, and play the same games."""
    for _ in range(turns):
        made = trainer.advance(1, NO_LIMIT, rate).moves
        while made > 0:
            made -= twin.turn(positions(trainer), rate)
        assert made == 0
        assert [slot.position for slot in twin.slots] == positions(trainer)
        assert [slot.score for slot in twin.slots] == trainer.state()["thread0.score"].tolist()


def same(found: Array, expected: Array) -> None:
    """Equal but for rounding, and unknown (NaN) in the same places."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def assert_learnt_alike(trainer: CpuTrainer, twin: slow.SlowLearner) -> None:
    state = trainer.state()
    same(state["weights"], twin.table.as_weights(trainer.evaluator))
    if twin.coherent:
        same(state["memory"], twin.table.as_coherence(trainer.evaluator))


def rate_of(settings: dict[str, Any]) -> float:
    return 0.1 if settings["rule"] == "td" else 1.0


def both(settings: dict[str, Any]) -> tuple[CpuTrainer, slow.SlowLearner]:
    config = TrainConfig(**{"network": "tiny", "threads": 1, "seed": 3, "games": 1} | settings)
    return CpuTrainer(config), slow.SlowLearner(config)


EVERY_WAY: dict[str, dict[str, Any]] = {
    "td": {"rule": "td"},
    "tc": {"rule": "tc"},
    "tc-0.5": {"rule": "tc", "decay": 0.5},
    "td-3-step": {"rule": "td", "steps": 3},
    "once": {"rule": "td", "network": "once:012,048,567", "decay": 0.5},
    "once-states": {"rule": "td", "of": "states", "network": "once:012"},
    "by-age": {"rule": "tc", "decay": 0.5, "by_age": True},
    "stages": {"rule": "tc", "decay": 0.5, "stages": "16,64", "optimism": 100.0},
    "backward": {"rule": "td", **BACK},
    "backward-tc-0.5": {"rule": "tc", "decay": 0.5, **BACK},
    "backward-stages": {"rule": "td", "stages": "16,64", **BACK},
    "states": {"rule": "td", **STATES},
    "states-fours": {"rule": "td", "parameters": "four_rate=0.5", **STATES},
    "states-stages-0.5": {"rule": "tc", "decay": 0.5, "stages": "16,64", **STATES},
    "states-backward": {"rule": "td", **STATES, **BACK},
    "states-backward-no-end": {"rule": "td", "learn_end": False, **STATES, **BACK},
    "threes-0.5": {"game": "threes", "rule": "tc", "decay": 0.5},
    "threes-by-hint": {"game": "threes", "rule": "td", "by_hint": True, "stages": "24", "by_age": True},
    "threes-fold": {"game": "threes", "rule": "tc", "fold": "96"},
    "threes-backward": {"game": "threes", "rule": "tc", "decay": 0.5, **BACK},
    "threes-backward-by-hint": {
        "game": "threes",
        "rule": "td",
        "by_hint": True,
        "turned": False,
        "stages": "12,48",
        **BACK,
    },
    "threes-states-0.5": {"game": "threes", "rule": "tc", "decay": 0.5, **STATES},
    "threes-states-backward": {"game": "threes", "rule": "td", "decay": 0.8, **STATES, **BACK},
    "phone-by-hint": {"game": "threes-phone", "rule": "tc", "by_hint": True},
    "phone-backward": {"game": "threes-phone", "rule": "td", **BACK},
    "phone-states-3-step": {"game": "threes-phone", "rule": "td", "steps": 3, **STATES},
}


@pytest.mark.parametrize("way", EVERY_WAY)
def test_loops_equal_their_slow_twin(way: str) -> None:
    settings = EVERY_WAY[way]
    trainer, twin = both(settings)
    turns = 0
    while turns < 200 or min(slot.ended for slot in twin.slots) < 1:
        together(trainer, twin, 20, rate_of(settings))
        turns += 20
    assert_learnt_alike(trainer, twin)
    if "stages" in settings:
        assert len({entry[0] for entry in twin.table.weights}) > 1  # some were promoted


def test_phases_begin_with_fresh_coherence_and_soften_keeps_its_ratio() -> None:
    trainer, twin = both({"rule": "td"})
    together(trainer, twin, 60, 0.1)
    for soften, rate in ((False, 1.0), (True, 0.5), (False, 1.0)):
        for learner in (trainer, twin):
            learner.begin_phase(TC, soften)
        together(trainer, twin, 60, rate)
        assert_learnt_alike(trainer, twin)


@pytest.mark.parametrize(
    "way", ["threes-0.5", "threes-by-hint", "states-stages-0.5", "threes-backward", "threes-states-backward"]
)
def test_a_restored_trainer_goes_on_as_the_twin_does(way: str) -> None:
    settings = EVERY_WAY[way]
    rate = rate_of(settings)
    trainer, twin = both(settings)
    for _ in range(4):
        together(trainer, twin, 25, rate)
        kept = {name: array.copy() for name, array in trainer.state().items()}
        trainer = both(settings)[0]
        trainer.restore(kept)
    together(trainer, twin, 25, rate)
    assert_learnt_alike(trainer, twin)


def test_visits_are_counted_one_by_one() -> None:
    trainer, twin = both({"game": "threes", "rule": "td"})
    trainer.count_visits()
    together(trainer, twin, 100, 0.1)
    np.testing.assert_array_equal(trainer.memory, twin.table.as_visits(trainer.evaluator))
    assert trainer.memory.max() > SLOTS


def test_learners_on_a_cluster_tell_what_moved_and_how_often() -> None:
    """Without the cluster: what one learner sends, round by round, adds up to what the twin has learnt."""
    config = both({"game": "threes", "rule": "td"})[0].config
    learner, twin = Learner(config, build()), slow.SlowLearner(config)
    assert isinstance(learner.trainer, CpuTrainer)
    e = learner.trainer.evaluator
    learner.begin(np.zeros(e.size, np.float32), np.zeros(2, np.float32))
    moved, visits = np.zeros(e.size, np.float32), np.zeros(e.size, np.float32)
    for number in range(40):
        report = learner.learn(number, 1000.0, 1, 0.1, [])
        assert twin.turn(positions(learner.trainer), 0.1) == report.tally.moves
        moved[report.changes.entries] += report.changes.moved
        visits[report.changes.entries] += report.changes.visits
    np.testing.assert_array_equal(visits, twin.table.as_visits(e))
    same(moved, twin.table.as_weights(e))


def lengths(trainer: CpuTrainer) -> list[list[int]]:
    return [thread.length.tolist() for thread in trainer.threads]


def test_one_thread_begins_alone_then_all_move_alike() -> None:
    trainer = CpuTrainer(TrainConfig(game="threes", network="tiny", rule="td", threads=3, seed=3, games=1))
    assert trainer.advance(40, NO_LIMIT, 0.1).moves == 40
    assert lengths(trainer) == [[20, 20], [NO_GAME] * 2, [NO_GAME] * 2]
    trainer.done = ALONE
    assert trainer.advance(60, NO_LIMIT, 0.1).moves == 60
    assert lengths(trainer) == [[30, 30], [10, 10], [10, 10]]


def test_every_thread_plays_games_of_its_own() -> None:
    """No two generators are alike, under one seed or two, and no position comes up in two games."""
    config = TrainConfig(game="threes", network="tiny", rule="td", threads=3, seed=3, games=1)
    trainer, other = CpuTrainer(config), CpuTrainer(replace(config, seed=4))
    generators = [int(rng) for thread in (*trainer.threads, *other.threads) for rng in thread.rng]
    assert len(set(generators)) == len(generators) == 2 * 3 * SLOTS
    trainer.done = ALONE
    played: list[set[tuple[int, int]]] = [set() for _ in range(3 * SLOTS)]
    for _ in range(100):
        assert trainer.advance(3, NO_LIMIT, 0.1).moves >= 3
        boards = [position for thread in range(3) for position in positions(trainer, thread)]
        for slot, (board, aux) in zip(played, boards):
            slot.add((int(board), int(aux)))
    assert all(len(slot) > 60 for slot in played)
    assert len(set.union(*played)) == sum(map(len, played))
