"""Numbers that cannot lie: errors that mean what theory says, counters that do not overflow, learning that notices
when it has diverged."""

from __future__ import annotations

import json
from math import erf, isclose, sqrt
from random import Random

import numpy as np
import pytest

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import evaluate
from tilesage.evaluation.playing import chance_in, dice_in
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.trainer import Tally
from tilesage.records.statistics import TABLES, Statistics
from tilesage.search.agents import make_agent

TRILLION = 10**12


def within(sigmas: float) -> float:
    """The share of a normal distribution within so many standard deviations."""
    return erf(sigmas / sqrt(2))


def sample(random: Random, skewed: bool) -> int:
    return int(1000 * random.lognormvariate(0, 0.5)) if skewed else random.randrange(10_001)


@pytest.mark.parametrize("skewed", [False, True])
def test_the_true_mean_lies_within_the_error_as_often_as_theory_says(skewed: bool) -> None:
    random, sets, size = Random(7), 2000, 100
    true = sum(sample(random, skewed) for _ in range(400_000)) / 400_000 if skewed else 5000.0
    hits = {1.0: 0, 1.96: 0}
    for _ in range(sets):
        stats = Statistics("2048")
        for _ in range(size):
            stats.add(sample(random, skewed), 5)
        for sigmas in hits:
            hits[sigmas] += abs(stats.mean - true) <= sigmas * stats.stderr
    for sigmas, count in hits.items():
        share = within(sigmas)
        assert abs(count / sets - share) < 4 * sqrt(share * (1 - share) / sets) + 0.01


def test_the_error_of_uniform_scores_is_their_known_deviation() -> None:
    random, stats = Random(3), Statistics("2048")
    for _ in range(100_000):
        stats.add(random.randrange(10_001), 5)
    assert isclose(stats.stderr, sqrt((10_001**2 - 1) / 12 / 100_000), rel_tol=0.01)


def test_errors_of_real_games_predict_how_far_batches_scatter() -> None:
    """60 batches of 100 games: their means scatter as the error of one batch says (chi-square with 59)."""
    agent = make_agent("random", games.get("2048"))
    batches = [evaluate(agent, 100, seed=seed).statistics for seed in range(60)]
    whole = Statistics("2048")
    for batch in batches:
        whole.merge(batch)
    variance = (whole.stderr * sqrt(whole.games)) ** 2 / 100
    chi_square = sum((batch.mean - whole.mean) ** 2 for batch in batches) / variance
    assert 59 - 4 * sqrt(2 * 59) < chi_square < 59 + 4 * sqrt(2 * 59)
    predicted = sum(batch.stderr**2 for batch in batches) / 60
    assert isclose(predicted, variance, rel_tol=0.1)


def test_statistics_are_exact_after_a_trillion_moves() -> None:
    stats = Statistics("2048")
    stats.add(3_932_100, 17, slides=TRILLION, placements=TRILLION + 2, ms=TRILLION)
    part = Statistics("2048")
    part.add(3_932_099, 17, slides=1, placements=3, ms=1)
    for _ in range(3):
        stats.merge(part)
    assert (stats.slides, stats.placements, stats.ms) == (TRILLION + 3, TRILLION + 11, TRILLION + 3)
    assert stats.total == 3_932_100 + 3 * 3_932_099
    assert json.loads(json.dumps(stats.summary()))["moves"] == TRILLION + 3
    for table in TABLES.values():
        assert "e+" not in table(stats).split("\n")[0].replace("avg = 3.9321e+06", "")


def test_a_trillion_games_have_a_trillion_seeds() -> None:
    """Game numbers past 2^32 and 2^40 begin differently from the small numbers that share their low bits."""
    seed, low = np.uint64(1), 12_345
    numbers = [low, low + 2**31, low + 2**32, low + 2**40, low + TRILLION]
    assert len({int(chance_in(seed, n)) for n in numbers} | {int(dice_in(seed, n)) for n in numbers}) == 10


def test_tallies_of_training_do_not_overflow() -> None:
    whole = Tally()
    for _ in range(4):
        part = Tally(games=TRILLION, moves=1000 * TRILLION, points=3_932_100 * TRILLION, best=3_932_100)
        part.tiles[17] = TRILLION
        whole.add(part)
    assert (whole.games, whole.moves, whole.mean) == (4 * TRILLION, 4000 * TRILLION, 3_932_100)
    assert whole.reach(17) == 1.0
    assert int(whole.tiles.sum()) == 4 * TRILLION


def learn(trainer: CpuTrainer, rate: float, times: int) -> list[Tally]:
    with np.errstate(over="ignore"):
        return [trainer.advance(trainer.stride, 10**6, rate) for _ in range(times)]


@pytest.mark.parametrize(
    "settings",
    [
        {"rule": "td", "rate": "1000"},
        {"rule": "td", "rate": "0.1", "optimism": 1e18},
        {"rule": "tc", "rate": "1e30"},
    ],
)
def test_learning_that_diverges_says_so_and_what_to_change(settings: dict[str, object]) -> None:
    config = TrainConfig(network="012", moves=10_000_000, threads=1, **settings)  # type: ignore[arg-type]
    trainer = CpuTrainer(config)
    rate = config.phase_list[0].rate_at(0)
    with pytest.raises(InputError, match=r"diverged.*lower --rate"):
        learn(trainer, rate, 40)
    trainer.close()


@pytest.mark.parametrize("value", [10**400, -1, 2**63, float("nan"), float("inf")])
def test_budgets_beyond_counting_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="--moves is a number from 0"):
        TrainConfig(network="012", moves=value)  # type: ignore[arg-type]


def test_learning_at_a_sane_rate_stays_finite() -> None:
    trainer = CpuTrainer(TrainConfig(network="012", moves=1, threads=1))
    assert all(tally.worst < 1e6 for tally in learn(trainer, 1.0, 3))
    assert np.isfinite(trainer.weights()).all()
    trainer.close()
