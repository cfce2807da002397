"""Tile promotion: entries with an unseen tile inherit from those one tile lower."""

from __future__ import annotations

import numpy as np

from afterstate import games
from afterstate.values.ntuple import evaluator
from afterstate.values.patterns import parse_network
from afterstate.values.promotion import holders, promote


def digits(index: int, cells: int) -> list[int]:
    return [index >> 4 * k & 15 for k in range(cells)]


def test_the_run_below_the_tile_comes_down_with_it() -> None:
    targets, sources = holders(3, 8)
    pairs = {tuple(digits(int(t), 3)): tuple(digits(int(s), 3)) for t, s in zip(targets, sources)}
    assert pairs[8, 4, 1] == (7, 4, 1)
    assert pairs[8, 7, 1] == (7, 6, 1)
    assert pairs[8, 8, 0] == (7, 7, 0)
    assert pairs[1, 8, 6] == (1, 7, 6)
    assert all(max(t) == 8 for t in pairs)
    assert len(pairs) == 9**3 - 8**3


def test_a_board_with_an_unseen_tile_is_worth_what_its_smaller_twin_is() -> None:
    game, network = games.get("2048"), parse_network("012,0145")
    e = evaluator(game, network)
    weights = np.random.default_rng(1).normal(0, 10, e.size).astype(np.float32)
    for table in e.layout.tables:
        weights[table.entries_in_order()[holders(len(table.pattern), 12)[0]]] = 0
    seen, unseen = game.parse("B123/..../..../...."), game.parse("C123/..../..../....")
    before = float(e.value(weights, seen.board, seen.aux))
    assert promote(weights, network, 12) > 0
    assert float(e.value(weights, unseen.board, unseen.aux)) == before
    assert float(e.value(weights, seen.board, seen.aux)) == before


def test_what_was_learnt_stays() -> None:
    network = parse_network("012")
    weights = np.ones(evaluator(games.get("2048"), network).size, np.float32)
    assert promote(weights, network, 12) == 0
    assert (weights == 1).all()
