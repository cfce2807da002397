"""What a trainer is, whatever device it runs on: it advances, hands out weights, and can be stored and put back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.devices import trainer_maker
from tilesage.learning.config import TrainConfig
from tilesage.learning.rules import UpdateRule
from tilesage.learning.thread_state import TILES

SOFTNESS = 0.05  # of what a rule remembers, when a soften phase begins: E / A stays, and changes faster from then on
TOO_LARGE = 1e9  # an error that no game can cause


@dataclass
class Tally:
    """What happened in some stretch of training. Only games from the beginning count for score and tiles."""

    games: int = 0
    moves: int = 0
    points: int = 0
    best: int = 0
    replays: int = 0  # episodes from positions met before
    worst: float = 0.0  # the largest error
    seconds: float = 0.0
    squares: int = 0  # the sum of the squares of the scores; 0 where nobody counts them
    tiles: Array = field(default_factory=lambda: np.zeros(TILES, np.int64))  # finished games by largest tile

    def add(self, other: Tally) -> None:
        for name in ("games", "moves", "points", "squares", "replays", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.best, self.worst = max(self.best, other.best), max(self.worst, other.worst)
        self.tiles = self.tiles + other.tiles

    @property
    def mean(self) -> float:
        return self.points / self.games if self.games else 0.0

    @property
    def error(self) -> float:
        """One standard error of the mean; where squares are not known, as if scores spread as far as they reach."""
        n, mean = self.games, self.mean
        spread = math.sqrt(max(0.0, self.squares - n * mean**2) / (n - 1)) if n > 1 and self.squares else mean
        return spread / math.sqrt(n) if n else 0.0

    def reach(self, index: int) -> float:
        """Share of games whose largest tile is at least this index."""
        return float(self.tiles[index:].sum()) / self.games if self.games else 0.0


class Trainer(Protocol):
    """The seam between runs and devices."""

    config: TrainConfig
    rule: UpdateRule  # by which it learns now

    @property
    def stride(self) -> int:
        """Moves that `advance` makes when nothing else limits it; the rate is constant within."""

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        """Learn for about so many moves, or until so many games are finished."""

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        """From now on this rule, with fresh memory; or, softened, with SOFTNESS of what it was."""

    def average(self, afresh: bool = False) -> None:
        """The run nears its end: take the weights into their mean, or begin it afresh, without them."""

    def weights(self) -> Array:
        """A copy of the weights as a model file keeps them (their mean if there is one), every entry readable."""

    def state(self) -> dict[str, Array]:
        """All that `restore` needs to go on exactly here."""

    def restore(self, state: Mapping[str, Array]) -> None: ...


def make_trainer(config: TrainConfig) -> Trainer:
    """The trainer of the device that the settings name."""
    trainer: Trainer = trainer_maker(config.device)(config)
    return trainer
