"""The value of a position against the sum spelled out entry by entry, on networks of mixed sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilesage import games
from tilesage.games import board
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network

NETWORKS = ["tiny", "group1", "01234,012,4567,45", "012,0145,01234", "8x4"]


@pytest.mark.parametrize("name", NETWORKS)
def test_value_is_the_sum_over_patterns_and_symmetries(name: str) -> None:
    game = games.get("2048")
    e = evaluator(game, parse_network(name))
    weights = np.random.default_rng(1).normal(0, 10, e.size).astype(np.float32)
    orders = [table.entries_in_order() for table in e.layout.tables]

    @settings(max_examples=40)
    @given(st.lists(st.integers(0, 15), min_size=16, max_size=16))
    def check(cells: list[int]) -> None:
        position, total = board.pack(cells), 0.0
        for table, order in zip(e.layout.tables, orders):
            for k in range(8):
                turned = board.unpack(np.uint64(board.symmetry(position, k)))
                total += float(weights[order[sum(turned[cell] << 4 * i for i, cell in enumerate(table.cells))]])
        assert float(e.value(weights, position, np.uint64(0))) == pytest.approx(total, rel=1e-4, abs=1e-2)

    check()
