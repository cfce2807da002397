"""What a model says of positions: one at a time, many at once, and entry by entry."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_search import leaf
from small_models import POSITIONS, tiny_model

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import Afterstate, State
from tilesage.learning import TrainConfig
from tilesage.networks import Model, evaluator, files, outside, parse_network
from tilesage.networks import boards as many
from tilesage.networks.layout import layout_of
from tilesage.networks.patterns import Network

every_game = pytest.mark.parametrize("name", games.names())


def positions(name: str) -> list[State]:
    """Some in mid-game, one from each stretch of a played game, and one that is over."""
    game = games.get(name)
    found = [game.parse(text) for text in POSITIONS[name]]
    state = game.new(seed=5)
    while not state.over and state.moves < 60:
        found.append(state)
        state = state.play(state.legal[0])
    return [*found, game.parse("1313/3131/1313/3131" + (" hint=1" if game.hint else ""))]


def with_weights(network: Network, name: str, of: str = "afterstates") -> Model:
    """Random weights, so that no two entries are the same."""
    game = games.get(name)
    weights = np.random.default_rng(11).normal(0, 50, evaluator(game, network).size).astype(np.float32)
    return Model(game, network, weights, of)


@pytest.mark.parametrize("module", [files, outside, many])
def test_examples_in_the_docstrings(module: Any) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


# --- one position, and many ---------------------------------------------------------------------------------------


@every_game
def test_a_model_of_afterstates(name: str) -> None:
    model = tiny_model(name)
    for state in positions(name):
        moves = [after for after in state.slides if after is not None]
        for after in moves:
            assert model.value(after) == float(model.evaluator.value(model.weights, after.board, after.aux))
        best = max((after.reward + model.value(after) for after in moves), default=0.0)
        assert model.value(state) == best


@every_game
def test_a_model_of_states(name: str) -> None:
    model = tiny_model(name, "states")
    for state in positions(name)[::6]:
        assert model.value(state) == float(model.evaluator.value(model.weights, state.board, state.aux))
        for after in filter(None, state.slides):
            assert model.value(after) == pytest.approx(leaf(model, after), rel=1e-9)


@every_game
@pytest.mark.parametrize("of", ["afterstates", "states"])
def test_many_at_once_are_one_by_one(name: str, of: str) -> None:
    model = tiny_model(name, of)
    states = positions(name)
    mixed: list[State | Afterstate] = []
    for state in states:
        mixed += [state, *filter(None, state.slides)]
    values = model.values(mixed)
    assert values.dtype == np.float64
    assert values.tolist() == [model.value(position) for position in mixed]
    boards, aux = (np.array([getattr(state, part) for state in states]) for part in ("board", "aux"))
    assert np.array_equal(model.values(boards, aux, of="states"), model.values(states))
    tiles = np.array([state.cells for state in states]).reshape(-1, 4, 4)
    assert np.array_equal(model.values(tiles, of="states"), model.values(states))  # no hint is looked at
    afters = [next(filter(None, state.slides)) for state in states[:-1]]
    boards, aux = (np.array([getattr(after, part) for after in afters]) for part in ("board", "aux"))
    assert np.array_equal(model.values(boards, aux, of="afterstates"), model.values(afters))
    assert np.array_equal(model.values(boards, aux), model.values(boards, aux, of=of))


def test_no_boards_have_no_values() -> None:
    model = tiny_model("2048")
    for empty in ([], np.zeros(0, np.uint64), np.zeros((0, 4, 4), np.int64)):
        assert model.values(empty).shape == (0,)


def test_tiles_past_a_nibble_count() -> None:
    model = tiny_model("2048")
    state = model.game.parse("65536 131072 32768 2 / 65536 0 0 2 / 0 0 4 4 / 8 16 32 65536")
    tiles = np.array(state.cells).reshape(1, 4, 4)
    assert model.values(tiles, of="states")[0] == model.value(state)
    assert model.value(state) > 131072  # for the two 65536 that merge


def test_what_depends_on_the_hint_asks_for_it() -> None:
    model = tiny_model("threes", by_hint=True)
    state = model.game.parse(POSITIONS["threes"][0])
    tiles = np.array([state.cells]).reshape(1, 4, 4)
    with pytest.raises(InputError, match="depends on the hint"):
        model.values(tiles, of="states")
    assert model.values(tiles, np.array([state.aux]), of="states")[0] == model.value(state)
    with pytest.raises(InputError, match="depends on the hint"):
        tiny_model("threes", "states").values(tiles, of="afterstates")


@pytest.mark.parametrize(
    ("boards", "complaint"),
    [
        (np.zeros((2, 5, 4), np.int64), r"\[n, 4, 4\]"),
        (np.zeros((2, 4, 4)), r"\[n, 4, 4\]"),
        (np.full((1, 4, 4), 3), "3 is no tile of 2048"),
        (np.zeros(3, np.int64), "uint64"),
        ([1, 2], "uint64"),
        (np.zeros((2, 16), np.uint64), "uint64"),
        ([games.get("threes").new(1)], "plays 2048, not threes"),
    ],
)
def test_boards_that_are_none(boards: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        tiny_model("2048").values(boards)


def test_values_are_of_one_of_two_things() -> None:
    with pytest.raises(InputError, match="of afterstates or of states"):
        tiny_model("2048").values(np.zeros(1, np.uint64), of="moves")
    with pytest.raises(InputError, match="a State or an Afterstate, not int"):
        tiny_model("2048").values([games.get("2048").new(1), 5])


@given(st.lists(st.lists(st.integers(0, 17), min_size=16, max_size=16), min_size=1, max_size=5))
def test_boards_and_tiles_are_the_same(indices: list[list[int]]) -> None:
    game = games.get("2048")
    tiles = np.array(game.tiles)[np.array(indices)].reshape(-1, 4, 4)
    boards, aux = many.boards_of(game, tiles)
    assert [(board, extra) for board, extra in zip(boards, aux)] == [game.read(cells, {}) for cells in indices]
    assert np.array_equal(many.tiles_of(game, boards, aux), tiles)


# --- entries ------------------------------------------------------------------------------------------------------

NETWORKS = [
    ("2048", TrainConfig(network="012,0145,12569,0125a", stages="512,1024").the_network),
    ("2048", TrainConfig(network="tiny", fold="256", by_age=True).the_network),
    ("threes", parse_network("tiny", by_hint=True)),
    ("threes-phone", parse_network("tiny+01256", by_hint=True, turned=False)),
]


@pytest.mark.parametrize(("name", "network"), NETWORKS)
def test_a_value_is_the_sum_of_its_entries(name: str, network: Network) -> None:
    model = with_weights(network, name)
    sets = set()
    for state in positions(name)[:-1]:
        after = next(filter(None, state.slides))
        entries = model.entries(after)
        assert len(entries) == network.reads + network.by_age
        assert sum(entry.value for entry in entries) == pytest.approx(model.value(after), abs=0.05)
        for entry in entries:
            assert entry.value == model.weights[entry.index]
            if entry.pattern != "age":
                tables = entry.index // model.evaluator.entries
                assert model.entry(entry.pattern, entry.tiles, tables) == entry
                sets.add(tables)
    assert len(sets) > 1 or network.sets == 1


def test_entries_of_a_model_of_states() -> None:
    model = with_weights(parse_network("tiny"), "2048", "states")
    state = model.game.parse(POSITIONS["2048"][0])
    assert sum(entry.value for entry in model.entries(state)) == pytest.approx(model.value(state), abs=0.01)
    with pytest.raises(InputError, match="has values of states: give one"):
        model.entries(state.slide(state.legal[0]))


def test_an_entry_lies_where_other_programs_would_look_for_it() -> None:
    """Σ tile[k] · 16^k, in the order that files of other programs have."""
    model = with_weights(parse_network("012345,0125a"), "2048")
    entry = model.entry("0125a", [2, 0, 8, 32768, 65536])  # what is past a nibble is read as 32768
    plain = 1 + (3 << 8) + (15 << 12) + (15 << 16)
    assert entry.index == layout_of(model.network).tables[1].entries_in_order()[plain]
    assert entry.tiles == (2, 0, 8, 32768, 32768)


@pytest.mark.parametrize(
    ("pattern", "tiles", "tables", "complaint"),
    [
        ("0123", [2, 4, 8, 16], 0, "has no pattern 0123; it has 012, 456, 0145"),
        ("012", [2, 4], 0, "2 tiles do not fit"),
        ("012", [2, 4, 6], 0, "6 is no tile of 2048"),
        ("012", [2, 4, 8], 1, "1 sets of tables"),
    ],
)
def test_entries_that_are_none(pattern: str, tiles: list[int], tables: int, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        tiny_model("2048").entry(pattern, tiles, tables)
