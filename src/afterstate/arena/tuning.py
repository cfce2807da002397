"""Find out from games at which tile a network should begin to downgrade."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from afterstate.games import Mistake
from afterstate.search.agents import make_agent
from afterstate.search.downgrade import threshold_of
from afterstate.search.specs import OPTIONS, parse_spec
from afterstate.values.files import Model, write_training

from .evaluate import evaluate

HOLES = (64, 512)  # the smallest missing tile that counts
SURE = 2.0  # standard errors that a gain must exceed


@dataclass(frozen=True)
class Trial:
    """One setting, played."""

    threshold: int | None  # None: no downgrading
    hole: int | None
    mean: float
    error: float

    def beats(self, other: Trial) -> bool:
        """Better by more than chance explains."""
        return self.mean - other.mean > SURE * math.hypot(self.error, other.error)


def tune_downgrade(
    model: Model,
    games: int,
    seed: int = 1,
    workers: int = 1,
    player: str = "greedy",
    report: Callable[[Trial], None] | None = None,
) -> list[Trial]:
    """Play without downgrading, see where the wall is, then try the tiles below it. The best setting comes first."""
    if not model.game.downgrades:
        raise Mistake(f"tile-downgrading is for 2048, and this model plays {model.game.name}")
    if "downgrade" not in OPTIONS[parse_spec(player).name]:
        raise Mistake(f"{player} does not downgrade: write greedy or an expectimax such as expectimax:2")

    def play(threshold: int | None, hole: int | None) -> Trial:
        words = "downgrade=off" if threshold is None else f"downgrade={threshold},hole={hole}"
        result = evaluate(make_agent(f"{player},{words}", model.game, model), games, seed, workers)
        if not result.complete:  # Ctrl-C: games that were cut off decide nothing
            raise KeyboardInterrupt
        found = result.statistics
        for tile in model.game.tiles[1:]:
            reach[tile] = found.reach(tile) if threshold is None else reach[tile]
        trial = Trial(threshold, hole, found.mean, found.stderr)
        if report is not None:
            report(trial)
        return trial

    reach: dict[int, float] = {}
    trials = [play(None, None)]
    below_wall = threshold_of(model.game, reach)
    if below_wall is not None and below_wall >= 2 * HOLES[0]:
        trials += [play(below_wall, hole) for hole in HOLES if hole < below_wall]
    return sorted(trials, key=lambda trial: -trial.mean)


def keep_downgrade(model: Model, trials: list[Trial]) -> Path | None:
    """Write the best setting into the model's metadata if it is surely better than none."""
    plain = next(trial for trial in trials if trial.threshold is None)
    best = trials[0]
    if best.threshold is None or not best.beats(plain) or model.path is None:
        return None
    setting = {"threshold": best.threshold, "hole": best.hole}
    return write_training(model.path, {**model.training, "downgrade": setting})
