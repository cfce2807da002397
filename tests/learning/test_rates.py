"""What a run tells its trainer: the rates of its phases, when phases begin, when weights are averaged."""

from __future__ import annotations

from typing import Any

import pytest

from tilesage.learning import Run, Tally, TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.rules import UpdateRule

MOVES, STEP = 4000, 40


class Recording(CpuTrainer):
    """The real trainer, in short strides, with a note of all that it is told."""

    stride = STEP

    def __init__(self, config: TrainConfig) -> None:
        self.made = 0
        self.rates: list[tuple[float, str, float]] = []  # share of the run done, rule, rate
        self.phases: list[tuple[float, str, bool]] = []  # share done, rule, softened
        self.looks: list[float] = []  # share done when the weights were taken into their mean
        super().__init__(config)

    def share(self) -> float:
        return self.made / (self.config.moves or 1)

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        self.rates.append((self.share(), self.rule.name, rate))
        tally = super().advance(moves, games, rate)
        self.made += tally.moves
        return tally

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        self.phases.append((self.share(), rule.name, soften))
        super().begin_phase(rule, soften)

    def average(self, afresh: bool = False) -> None:
        self.looks.append(self.share())
        super().average(afresh)


def recorded(**settings: Any) -> tuple[Recording, list[tuple[float, float]]]:
    """A run's trainer, and what its lines of metrics say: the share of the run done, the rate."""
    lines: list[tuple[float, float]] = []
    config = TrainConfig(**{"network": "tiny", "threads": 1, "moves": MOVES, "block": 1, "seed": 2} | settings)
    run = Run.begin(config, None, make=Recording)
    run.train(lambda line, _: lines.append((line["moves"] / MOVES, line["rate"])) if line else None)
    assert len(lines) > 5
    assert isinstance(run.trainer, Recording)
    assert len(run.trainer.rates) >= MOVES / (STEP + 1)
    return run.trainer, lines


def td_then_tc(done: float) -> float:
    """td:0.1>0:0.5,tc:1>0.1:0.5 by hand: each rate runs over its half, from its beginning to its end."""
    return 0.1 - 0.2 * done if done < 0.5 else 1.9 - 1.8 * done


def test_every_phase_runs_its_rate_from_end_to_end() -> None:
    trainer, lines = recorded(phases="td:0.1>0:0.5,tc:1>0.1:0.5")
    for done, rule, rate in trainer.rates:
        assert rate == pytest.approx(td_then_tc(done), abs=1e-9)
        assert rule == ("tc" if done >= 0.5 else "td")
    assert trainer.rates[0][2] == 0.1
    (_, first, _), (begun, second, softened) = trainer.phases
    assert (first, second, softened) == ("td", "tc", False)
    assert 0.5 <= begun <= 0.5 + STEP / MOVES
    for done, rate in lines:  # a line that ends a phase still belongs to it
        assert rate == pytest.approx(td_then_tc(done), abs=1e-9) or (rate == 0 and 0.5 <= done <= begun)


def test_a_plain_rate_runs_over_the_whole_run() -> None:
    trainer, lines = recorded(rule="td", rate="0.4>0.2,0.1@0.5,0.1>0@0.75")
    assert {rule for _, rule, _ in trainer.rates} == {"td"}
    for done, rate in [(done, rate) for done, _, rate in trainer.rates] + lines:
        by_hand = 0.4 - 0.4 * done if done < 0.5 else 0.1 if done < 0.75 else max(0.0, 0.4 * (1 - done))
        assert rate == pytest.approx(by_hand, abs=1e-9)


def test_soften_goes_on_where_tc_was() -> None:
    trainer, _ = recorded(phases="tc:1:0.25,soften:0.5>0.05:0.5,td:0.1:0.25")
    assert [(rule, softened) for _, rule, softened in trainer.phases] == [
        ("tc", False),
        ("tc", True),
        ("td", False),
    ]
    for (begun, _, _), share in zip(trainer.phases, (0, 0.25, 0.75)):
        assert share <= begun <= share + (STEP + 1) / MOVES
    for done, rule, rate in trainer.rates:
        by_hand = 1 if done < 0.25 else 0.5 - 0.9 * (done - 0.25) if done < 0.75 else 0.1
        assert rate == pytest.approx(by_hand, rel=1e-9)
        assert rule == ("tc" if done < 0.75 else "td")


def test_weights_are_averaged_nine_times_from_85_percent_on() -> None:
    trainer, _ = recorded(rule="td")
    assert len(trainer.looks) == 9
    for k, done in enumerate(trainer.looks):
        due = 0.85 + k * 0.15 / 8
        assert due - 1e-9 <= done <= due + (STEP + 1) / MOVES
    assert recorded(rule="td", average=False)[0].looks == []


def test_a_mean_of_weights_is_of_one_phase() -> None:
    """Five looks fall into the first phase and are forgotten, four into the second."""
    trainer, _ = recorded(phases="td:0.1:0.93,tc:1:0.07")
    assert trainer.averaged == 4


def test_the_budget_that_is_nearest_to_its_end_counts() -> None:
    run = Run(TrainConfig(games=200, moves=1000, seconds=50.0), None)
    for games, moves, seconds, share in ((0, 0, 0, 0), (20, 100, 25, 0.5), (60, 100, 1, 0.3), (2, 900, 9, 0.9)):
        run.progress.games, run.progress.moves, run.progress.seconds = games, moves, seconds
        assert run.done == pytest.approx(share)
    run.progress.games = 300
    assert run.done == 1


class Hasty(Recording):
    stride = 1 << 17


def test_phases_of_a_run_that_one_stretch_could_cover_begin_where_they_should() -> None:
    config = TrainConfig(network="tiny", threads=1, moves=MOVES, phases="td:0.1:0.3,tc:1:0.7", seed=2)
    run = Run.begin(config, None, make=Hasty)
    run.train()
    assert isinstance(run.trainer, Hasty)
    (_, first, _), (begun, second, _) = run.trainer.phases
    assert (first, second) == ("td", "tc")
    assert begun == pytest.approx(0.3, abs=2 / MOVES)


def test_stretches_do_not_depend_on_the_number_of_threads() -> None:
    """So that rates fall, and means are taken, as often with sixteen threads as with one."""
    strides = {CpuTrainer(TrainConfig(network="tiny", moves=MOVES, threads=n)).stride for n in (1, 3, 16)}
    assert strides == {MOVES // 100}
