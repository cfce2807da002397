"""Learning rules: by hand, against their slow twin, and by whether they learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.learning import Run, TrainConfig, make_trainer
from tilesage.learning.config import MOST_ENTRIES, check_entries
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.rules import tc_update, td_update
from tilesage.learning.schedules import parse_schedule
from tilesage.learning.states import expectation
from tilesage.learning.steps import steps_for
from tilesage.learning.traces import backward_target, delayed_error, history_of
from tilesage.learning.weights import reader
from tilesage.networks.ntuple import evaluator, promote_all
from tilesage.networks.patterns import parse_network

F = np.float32
SMALL = "tiny"

# --- one update, by hand -------------------------------------------------------------------------------------


def test_td_moves_every_entry_by_rate_times_error() -> None:
    weights, entries = np.array([1, 2, 3, 4], F), np.array([0, 2, 2], np.uint32)
    td_update(weights, np.zeros(2, F), entries, F(10), F(0.1))
    assert weights.tolist() == [2, 2, 5, 4]  # an entry that is read twice moves twice


def test_tc_scales_by_how_well_errors_agree() -> None:
    weights, memory, entries = np.zeros(3, F), np.zeros(6, F), np.array([1], np.uint32)
    for error, weight, total, path in (
        (10, 1.0, 10, 10),  # fresh: full rate
        (-5, 0.5, 5, 15),  # |10| / 10 of -0.5
        (3, 0.5 + 0.3 * 5 / 15, 8, 18),  # |5| / 15 of 0.3
    ):
        tc_update(weights, memory, entries, F(error), F(0.1))
        assert weights[1] == pytest.approx(weight)
        assert memory[2:4].tolist() == [total, path]
    assert weights[[0, 2]].tolist() == [0, 0]


def test_delayed_error_discounts_what_followed() -> None:
    ring = np.array([16, 2, 4, 8], F)  # errors 4, 1, 2, 3: number 4 has taken the place of number 0
    assert delayed_error(ring, 4, 1, 5, F(0.5)) == 2 + 4 / 2 + 8 / 4 + 16 / 8
    assert delayed_error(ring, 4, 3, 5, F(0.5)) == 8 + 16 / 2
    assert delayed_error(ring, 4, 1, 5, F(1)) == 30  # n-step


def test_backward_target_mixes_outcome_and_value() -> None:
    assert backward_target(F(4), F(100), F(60), F(0)) == 64
    assert backward_target(F(4), F(100), F(60), F(0.5)) == 84
    assert backward_target(F(4), F(100), F(60), F(1)) == 104


def test_history_reaches_to_a_tenth() -> None:
    assert [history_of(decay) for decay in (0, 0.5, 0.8)] == [1, 4, 11]
    assert history_of(0, steps=3) == 3


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("0.1", (0.1, 0.1, 0.1)),
        ("0.5>0.01", (0.5, 0.255, 0.01)),
        ("0.1,0.01@0.5", (0.1, 0.01, 0.01)),
        ("1,1>0@0.5", (1, 1, 0)),
    ],
)
def test_schedules(text: str, rates: tuple[float, ...]) -> None:
    assert [parse_schedule(text).at(done) for done in (0, 0.5, 1)] == pytest.approx(rates)


@pytest.mark.parametrize("text", ["fast", "0.1>", "1>>0.1", "0.1,0.2", "0.1@0.5", "1@2", "-1", ""])
def test_wrong_schedules_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_schedule(text)


# --- values of states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["2048", "threes"])
def test_expectations_equal_the_mean_over_all_outcomes(name: str) -> None:
    config = TrainConfig(game=name, network=SMALL, of="states", rule="td", threads=1, games=1, seed=4)
    trainer = make_trainer(config)
    assert isinstance(trainer, CpuTrainer)
    trainer.advance(3000, 1 << 40, 0.1)
    e, game, thread, weights = trainer.evaluator, trainer.game, trainer.threads[0], trainer.weights()
    expect = expectation(game, trainer.network, steps_for(game, e))
    boards, auxes = (np.zeros(game.max_placements, np.uint64) for _ in range(2))
    shares, compared = np.zeros(game.max_placements), 0
    for _ in range(40):
        trainer.advance(1, 1 << 40, 0.0)
        for k in range(int(thread.legal[0])):
            after, aux = np.uint64(thread.afters[0, k]), np.uint64(thread.auxes[0, k])
            mean = 0.0
            for i in range(game.rules.placements(after, aux, boards, auxes, shares)):
                board, new_aux = np.uint64(boards[i]), np.uint64(auxes[i])
                gained = 0.0
                if game.score_is_value:
                    gained = float(game.rules.value_of_board(board, new_aux) - game.rules.value_of_board(after, aux))
                mean += float(shares[i]) * (gained + float(e.value(weights, board, new_aux)))
            assert float(expect(weights, thread, 0, k)) == pytest.approx(mean, rel=1e-3, abs=0.01)
            compared += 1
    assert compared > 40


# --- do they learn? ------------------------------------------------------------------------------------------


# The bounds are four fifths of what was seen, with three seeds each.


def learnt(settings: dict[str, Any]) -> list[float]:
    """The means of every 100 games of a short run."""
    run = Run.begin(TrainConfig(**{"network": SMALL, "threads": 1, "games": 1500, "block": 100} | settings), None)
    means: list[float] = []
    run.train(lambda line, _: means.append(line["mean"]) if line else None)
    assert run.progress.games >= run.config.games
    return means


@pytest.mark.parametrize(
    ("settings", "enough"),
    [
        ({"rule": "td"}, 13_500),
        ({"rule": "tc"}, 15_500),
        ({"rule": "tc", "decay": 0.5}, 19_000),
        ({"rule": "td", "steps": 3}, 12_500),
        ({"rule": "tc", "direction": "backward", "decay": 0.5}, 21_500),
        ({"rule": "td", "of": "states", "rate": "0.5", "games": 600}, 8_500),
        ({"rule": "tc", "stages": "512"}, 13_500),
        ({"rule": "tc", "stages": "512", "by_age": True}, 13_500),
        ({"rule": "td", "fold": "512", "by_age": True, "threads": 2}, 12_500),
        ({"rule": "td", "optimism": 5000.0}, 16_000),
        ({"phases": "td:0.1:0.5,tc:1:0.5"}, 16_500),
        ({"rule": "tc", "threads": 2}, 15_000),
    ],
    ids=str,
)
def test_every_rule_learns_2048(settings: dict[str, Any], enough: float) -> None:
    """A random player makes 1,100."""
    assert np.mean(learnt(settings)[-5:]) > enough


@pytest.mark.parametrize(
    ("name", "flags", "enough"),
    [
        ("threes", {"by_hint": True}, 4_600),
        ("threes", {"by_age": True}, 2_800),
        ("threes-phone", {}, 2_100),
        ("threes-phone", {"by_hint": True, "turned": False}, 3_200),
    ],
)
def test_threes_is_learnt(name: str, flags: dict[str, Any], enough: float) -> None:
    assert np.mean(learnt({"game": name, "games": 2000, "block": 200} | flags)[-5:]) > enough


# --- stages --------------------------------------------------------------------------------------------------


def test_an_unlearnt_entry_reads_the_stage_before_and_becomes_its_copy() -> None:
    network = parse_network("tiny", (9, 11))
    e = evaluator(games.get("2048"), network)
    read, own = reader(network, e.entries)
    weights = np.full(e.size, np.nan, F)
    weights[: e.entries] = 7
    weights[1 * e.entries + 5] = 3
    third = np.uint32(3 * e.entries + 5)
    assert read(weights, third) == 3  # stage 3 -> 1
    assert read(weights, third + np.uint32(1)) == 7  # stage 3 -> 1 -> 0
    assert np.isnan(weights[third])
    own(weights, np.array([third], np.uint32))
    assert weights[third] == 3
    weights[third] += 1
    promote_all(weights, network, e.entries)
    assert not np.isnan(weights).any()
    assert weights[third] == 4
    assert weights[2 * e.entries + 5] == 7


# --- what must not happen ------------------------------------------------------------------------------------


def test_divergence_is_noticed() -> None:
    run = Run.begin(TrainConfig(network="tiny", rule="td", rate="50", threads=1, games=3000), None)
    with pytest.raises(InputError, match="diverged"):
        run.train()


def test_more_entries_than_the_loops_can_name_are_refused() -> None:
    check_entries(MOST_ENTRIES)
    with pytest.raises(InputError, match="more than 4,294,967,296"):
        check_entries(MOST_ENTRIES + 1)


def test_too_much_memory_is_refused_before_it_is_taken() -> None:
    config = TrainConfig(network="0123456,1234567", stages="1024,2048,4096,8192,16384,32768", games=1)
    with pytest.raises(InputError, match="GiB of memory"):
        make_trainer(config)


@pytest.mark.parametrize(
    "settings",
    [
        {"decay": 2.0},
        {"steps": 3, "decay": 0.5},
        {"stages": "1000"},
        {"phases": "td:0.1:0.5"},
        {"phases": "sgd:0.1:1"},
        {"by_hint": True},
        {"game": "threes", "by_hint": True, "of": "states"},
        {"threads": 0},
        {"seconds": float("nan")},
        {"games": -1},
        {"rate": "quick"},
        {"game": "chess"},
        {"network": "zzz"},
        {"stages": "²"},
        {"stages": "9" * 5000},
        {"fold": "٤٠٩٦"},
        {"decay": 1},
        {"flight": 100},
        {"turned": False},
        {"game": "threes", "parameters": "four_rate=0.2"},
        {"game": "2048-walls", "stages": "4096"},
        {"game": "2048-block", "stages": "2048", "start": "ahead"},
    ],
    ids=str,
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TrainConfig(**settings)
