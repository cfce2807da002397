"""What a figure beside a move means: a forecast of the final score, or what else it is, by its name.

A network promises points to come, but not as many as are made: some are learnt optimistically, some see a smaller
board past a tile, and whoever searches makes more of them. So a built-in model may come with a forecast, in the file
`models/forecasts.json`: for each largest tile a line through games that the player `best` finished,

    points to come = level + slope · (points the network promises) + by_score · (score so far),

and a rising curve over all of them, from what the lines say to what the games made. `benchmarks/calibration.py` plays
those games, fits both, holds them against other games and writes the file. Where it is not there, a figure is the
score plus the network's value, and is called so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.networks.files import BUILT_IN
from tilesage.search.kinds import NO_MOVE

if TYPE_CHECKING:
    from tilesage.games import State
    from tilesage.networks.files import Model
    from tilesage.search.agents import Agent, Thought

FILE = BUILT_IN / "forecasts.json"
FORECAST, PROMISE = "expected final score", "score plus the network's value"
RANDOM_GAMES, OWN = "mean final score of random games", "the player's own value"


@dataclass(frozen=True)
class Forecast:
    """The lines of one model, by the index of the largest tile, and the curve over them."""

    lines: Mapping[int, tuple[float, float, float]]  # level, slope >= 0, by_score
    told: Sequence[float]  # points to come by the lines, rising
    made: Sequence[float]  # what the games made of them, never falling

    def points_to_come(self, largest: Array, promised: Array, score: Array) -> Array:
        """Points from here to the end of the game, for many positions at once."""
        level, slope, by_score = np.array([self.line(int(tile)) for tile in largest]).T
        points: Array = np.interp(level + slope * promised + by_score * score, self.told, self.made)
        return points

    def line(self, largest: int) -> tuple[float, float, float]:
        """Of the nearest tile that games were seen with."""
        return self.lines[min(self.lines, key=lambda tile: abs(tile - largest))]

    def final_score(self, state: State, promised: float) -> float:
        """The final score that is expected where the network promises so many points to come."""
        largest = np.array([max(state.indices)])
        return state.score + float(self.points_to_come(largest, np.array([promised]), np.array([state.score]))[0])

    def written(self) -> dict[str, Any]:
        """As the file of forecasts has it."""
        return {
            "lines": {str(tile): list(line) for tile, line in self.lines.items()},
            "curve": [self.told, self.made],
        }


@cache
def forecasts() -> dict[str, Forecast]:
    """Those that come with the package, by the name of the model."""
    found = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    return {
        name: Forecast({int(tile): tuple(line) for tile, line in told["lines"].items()}, *told["curve"])
        for name, told in found.items()
    }


def forecast_of(model: Model | None) -> Forecast | None:
    """The forecast of a built-in model; others have none."""
    if model is None or model.path is None or model.path.resolve().parent != BUILT_IN:
        return None
    return forecasts().get(model.path.stem)


@dataclass(frozen=True)
class Opinion:
    """What a player says of a position: its move, and a figure for each of the four with the name of the figure."""

    best: int  # the move that the player makes; NO_MOVE when the game is over
    values: list[float | None]  # None where illegal, or for a player without an opinion
    losses: list[float | None]  # what each move gives away against the best, in the same unit
    name: str  # what the figures are

    @property
    def value(self) -> float | None:
        """The figure of the move that the player makes."""
        return None if self.best == NO_MOVE else self.values[self.best]


def opinion_of(agent: Agent, state: State, thought: Thought) -> Opinion:
    """What a thought means: the same figure for a position, whichever part of the player found the move.

    The position is worth what the forecast says, or the network alone where there is none, and that is the figure of
    the move that is made. The other moves are worth less by what the player says they lose.
    """
    best, own = thought
    if best == NO_MOVE or own[best] is None:
        return Opinion(best, own, [None] * 4, OWN)
    top = max(value for value in own if value is not None)
    losses = [None if value is None else max(0.0, top - value) for value in own]
    losses[best] = 0.0
    worth, name = top, RANDOM_GAMES if agent.spec.startswith(("mcts", "rollouts")) else OWN
    if agent.model is not None:
        promised, forecast = agent.model.value(state), forecast_of(agent.model)
        worth, name = state.score + promised, PROMISE
        if forecast:
            worth, name = forecast.final_score(state, promised), FORECAST
            losses = [
                None if loss is None else worth - forecast.final_score(state, promised - loss) for loss in losses
            ]
    return Opinion(best, [None if loss is None else worth - loss for loss in losses], losses, name)
