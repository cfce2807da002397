"""Where a run stands, and which of its models is the one that the folder means."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

import numpy as np

from tilesage.core.errors import InputError
from tilesage.learning.trainer import Tally

ERRORS = 2.0  # a lead within so many standard errors of the difference is none
TALLIES = ("block", "recent", "level")


@dataclass
class Progress:
    """What a checkpoint keeps besides the trainer."""

    games: int = 0
    moves: int = 0
    seconds: float = 0.0
    phase: int = 0
    phases: str = ""  # of which it is one
    mean: float = 0.0  # score of the games before the last checkpoint that had some
    averaged: bool = False  # is the model that the folder means a mean of weights?
    behind: bool = False  # is the last checkpoint another, which plays worse?
    block: Tally = field(default_factory=Tally)  # games since the last line of metrics
    recent: Tally = field(default_factory=Tally)  # games since the last checkpoint
    level: Tally = field(default_factory=Tally)  # games before the checkpoints that play as well as that model

    def is_best(self, averaged: bool) -> bool:
        """Does the checkpoint that is written now play best? Its games are counted, and others are waited for.

        The model of a later checkpoint has learnt more. So it takes the place of an earlier one, unless the games
        played while that was learnt were better by more than two errors. A mean of weights plays better than the
        weights that it is of (some 4 % under TC), while the games are those of the weights: weights alone must lead.
        The highest of many noisy means is no measure: games of checkpoints that are level count together.
        """
        games, self.recent = self.recent, Tally()
        if games.games:
            self.mean = games.mean
        lead = games.mean - self.level.mean
        doubt = ERRORS * math.hypot(games.error, self.level.error)
        if averaged != self.averaged:
            better = clearly = averaged or lead > doubt
        elif games.games and self.level.games:
            better, clearly = lead >= -doubt, lead > doubt
        else:
            better, clearly = not self.behind, False
        self.behind = not better
        if better:
            self.averaged = averaged
            self.level = Tally() if clearly else self.level
            self.level.add(games)
        return better

    def to_json(self) -> str:
        """As a checkpoint keeps it."""
        tallies = {name: vars(getattr(self, name)) for name in TALLIES}
        found = {name: tally | {"tiles": tally["tiles"].tolist()} for name, tally in tallies.items()}
        return json.dumps(vars(self) | found)

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """From a checkpoint; an InputError or another ValueError where it cannot be true."""
        found = json.loads(text)
        for name in TALLIES:
            found[name] = Tally(**found[name] | {"tiles": np.array(found[name]["tiles"], np.int64)})
        progress = cls(**found)
        for part in (progress, *(found[name] for name in TALLIES)):
            for name, default in vars(type(part)()).items():
                _check(name, getattr(part, name), default)
        return progress


def _check(name: str, value: object, default: object) -> None:
    """Numbers are counts from 0 up, or finite; everything is of the kind that it begins as."""
    count = type(value) is int and value >= 0
    if isinstance(default, np.ndarray):
        right = isinstance(value, np.ndarray) and value.shape == default.shape
    elif type(default) is float:
        right = count or (type(value) is float and math.isfinite(value))
    else:
        right = count if type(default) is int else type(value) is type(default)
    if not right:
        raise InputError(f"{name} is {value!r}")
