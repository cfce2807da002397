"""Small models with random weights, and positions to look ahead from, for the tests of values and of searches."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from tilesage import games
from tilesage.networks.files import Model
from tilesage.networks.patterns import parse_network

POSITIONS = {name: reference.get(name).SEARCHED for name in games.names()}
STARTS = {name: reference.get(name).FEW_EMPTY for name in games.names()}


def tiny_model(name: str, of: str = "afterstates", by_hint: bool = False, scale: float = 50.0) -> Model:
    """A small network with random weights, some of them negative."""
    game, network = games.get(name), parse_network("tiny", by_hint=by_hint)
    model = Model(game, network, np.zeros(1, np.float32), of)
    weights = np.random.default_rng(7).normal(scale / 4, scale, model.evaluator.size).astype(np.float32)
    return Model(game, network, weights, of)


def approximately(values: list[float | None]) -> list[object]:
    return [None if value is None else pytest.approx(value, rel=1e-5, abs=1e-2) for value in values]
