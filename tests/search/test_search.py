"""Expectimax against its definition, spelled out on the friendly layer (slow_search.py)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from slow_search import by_definition, leaf
from small_models import POSITIONS, approximately, tiny_model

from tilesage import games
from tilesage.evaluation.evaluate import evaluate
from tilesage.networks.files import Model
from tilesage.networks.patterns import parse_network
from tilesage.search.agents import make_agent
from tilesage.search.expectimax import MOST_LAYERS, NODES
from tilesage.search.specs import parse_spec


@pytest.mark.parametrize("name", games.names())
def test_values_are_those_of_the_definition(name: str) -> None:
    model = tiny_model(name)
    for text in POSITIONS[name]:
        state = model.game.parse(text)
        for layers in (1, 2) if model.game.hint else (1, 2, 3):
            agent = make_agent(f"expectimax:{layers}", model.game, model)
            assert agent.values(state) == approximately(by_definition(model, state, layers)), (text, layers)


def test_three_layers_of_threes_follow_the_bag() -> None:
    model = tiny_model("threes")
    state = model.game.parse(POSITIONS["threes"][0])
    agent = make_agent("expectimax:3", model.game, model)
    assert agent.values(state) == approximately(by_definition(model, state, 3))


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_narrow_search_follows_the_moves_that_the_network_likes(name: str, width: int) -> None:
    model = tiny_model(name)
    state = model.game.parse(POSITIONS[name][0])
    narrow = make_agent(f"expectimax:3,width={width}", model.game, model).values(state)
    assert narrow == approximately(by_definition(model, state, 3, width))
    assert width == 3 or narrow != make_agent("expectimax:3", model.game, model).values(state)


@pytest.mark.parametrize("name", ["2048", "threes"])
def test_a_network_of_states_is_averaged_over_chance(name: str) -> None:
    model = tiny_model(name, "states")
    state = model.game.parse(POSITIONS[name][0])
    for layers in (1, 2):
        agent = make_agent(f"expectimax:{layers}", model.game, model)
        assert agent.values(state) == approximately(by_definition(model, state, layers))


@pytest.mark.parametrize("name", games.names())
def test_greedy_on_states_counts_the_tile_that_lands(name: str) -> None:
    model = tiny_model(name, "states")
    for text in POSITIONS[name]:
        state = model.game.parse(text)
        moves = [None if after is None else state.score + after.reward + leaf(model, after) for after in state.slides]
        assert make_agent("greedy", model.game, model).values(state) == approximately(moves), text


def test_a_network_by_hint_tells_the_hints_apart() -> None:
    model = tiny_model("threes", by_hint=True)
    state = model.game.parse(POSITIONS["threes"][0])
    agent = make_agent("expectimax:2", model.game, model)
    assert agent.values(state) == approximately(by_definition(model, state, 2))


def test_two_layers_of_threes_by_hand() -> None:
    """r + E[r' + V(s'')] on a drawn board, the hint tile 3, worth 3, on each border cell it can land on."""
    game = games.get("threes")
    network = parse_network("0")  # one cell and its images: the four corners, each read twice
    weights = np.zeros(Model(game, network, np.zeros(1, np.float32)).evaluator.size, np.float32)
    weights[:16] = 10 * np.arange(16)  # a corner tile is worth 20 times its index
    model = Model(game, network, weights)
    state = game.parse("1212/2121/1212/2...  hint=3 bag=12")
    # Left: in every full row the first 1 and 2 make a 3, worth 3, and the rest moves up one.
    after = state.slide("left")
    assert after.board == game.parse("312./321./312./2... hint=3").board
    assert after.reward == 9
    # The 3 lands on one of the cells 3, 7, b, f with chance 1/4 each.
    expected = 0.0
    for cell in (3, 7, 11, 15):
        tiles = [3, 1, 2, 0, 3, 2, 1, 0, 3, 1, 2, 0, 2, 0, 0, 0]
        tiles[cell] = 3
        answer = game.parse(" ".join(str(tile) for tile in tiles) + " hint=1")
        replies = []
        for reply in answer.slides:
            if reply is not None:
                corners = [int(reply.board) >> 4 * corner & 15 for corner in (0, 3, 12, 15)]
                replies.append(reply.reward + 20 * sum(corners) + 1)
        expected += max(replies) / 4
    left = make_agent("expectimax:2", game, model).values(state)[3]
    assert left == pytest.approx(state.score + 9 + 3 + expected)


@pytest.mark.parametrize("name", games.names())
def test_the_table_changes_nothing(name: str) -> None:
    model = tiny_model(name)
    layers = 3 if model.game.hint else 4
    with_table, without = (make_agent(f"expectimax:{layers},table={bits}", model.game, model) for bits in (8, 0))
    memory = with_table.new_memory()
    for text in POSITIONS[name]:
        state = model.game.parse(text)
        values = with_table.values(state, memory)  # the same memory for all positions
        assert values == [None if v is None else pytest.approx(v, rel=1e-6) for v in without.values(state)]
        assert with_table.choose(state, memory) == without.choose(state)


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize("player", ["expectimax:3", "expectimax:deep", "expectimax:3,prune=0.05"])
def test_whole_games_are_the_same_without_the_table(name: str, player: str) -> None:
    model = tiny_model(name)
    with_table, without = (make_agent(f"{player},table={bits}", model.game, model) for bits in (8, 0))
    assert evaluate(with_table, 5).statistics.summary() == evaluate(without, 5).statistics.summary()


def test_symmetric_boards_have_equal_values() -> None:
    model = tiny_model("2048")
    agent = make_agent("expectimax:3", model.game, model)
    up, right, down, left = agent.values(model.game.parse("1.23/2345/.987/3A12"))
    turned = agent.values(model.game.parse("32.1/5432/789./21A3"))  # left and right exchanged
    assert turned == approximately([up, left, down, right])


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize(("width", "prune"), [(4, 0.02), (1, 0.02), (2, 0.05), (1, 0.2)])
def test_what_is_unlikely_is_left_to_the_network(name: str, width: int, prune: float) -> None:
    model = tiny_model(name)
    for text in POSITIONS[name]:
        state = model.game.parse(text)
        cut = make_agent(f"expectimax:3,width={width},prune={prune},table=0", model.game, model)
        assert cut.values(state) == approximately(by_definition(model, state, 3, width, prune)), text


def test_pruning_only_cuts_unlikely_branches() -> None:
    model = tiny_model("2048")
    state = model.game.parse("1.23/2345/.987/3A12")
    full, cut, all_cut = (make_agent(f"expectimax:3,prune={p}", model.game, model).values(state) for p in (0, 0.2, 1))
    assert full == make_agent("expectimax:3", model.game, model).values(state)
    assert cut != full
    assert all_cut != cut


def test_living_beats_dying_even_when_the_network_is_gloomy() -> None:
    model = tiny_model("2048")
    gloomy = Model(model.game, model.network, np.full_like(model.weights, -1000.0))
    state = model.game.parse("1212/2121/1212/2122")  # every move keeps the score the same or better
    agent = make_agent("expectimax:2", model.game, gloomy)
    values = [value for value in agent.values(state) if value is not None]
    assert all(value >= state.score for value in values)
    assert agent.choose(state) in state.legal


def test_past_32768_the_search_is_exact() -> None:
    model = tiny_model("2048")
    state = model.game.parse("65536 32768 16384 8192 / 2 32768 2 4 / 4 2 4 2 / 2 4 2 0")
    agent = make_agent("expectimax:2", model.game, model)
    assert agent.values(state) == approximately(by_definition(model, state, 2))


def test_deepening_by_nodes_is_reproducible_and_stays_in_its_budget() -> None:
    model = tiny_model("2048")
    state = model.game.parse("1.23/2345/.987/3A12")
    agent = make_agent("expectimax:2000nodes", model.game, model)
    first, second = agent.new_memory(), agent.new_memory()
    assert agent.values(state, first) == agent.values(state, second)
    assert 1000 < first.state.counters[NODES] < 2100
    shallow, two = (make_agent(f"expectimax:{n}", model.game, model).values(state) for n in (1, 2))
    assert agent.values(state) not in (shallow, two)
    assert make_agent("expectimax:1nodes", model.game, model).values(state) in (shallow, two)


@pytest.mark.parametrize("name", games.names())
def test_every_larger_budget_looks_further(name: str) -> None:
    """Rounds of one and two layers, then narrow ones as far as paths are likely."""
    model = tiny_model(name)
    state = model.game.parse(POSITIONS[name][0])
    by_layers = [by_definition(model, state, layers) for layers in (1, 2)]
    one, *found = (
        make_agent(f"expectimax:{nodes}nodes", model.game, model).values(state) for nodes in (1, 100, 1000, 10000)
    )
    assert one == approximately(by_layers[1])
    assert len({tuple(values) for values in (by_layers[0], one, *found)}) == 5


def test_a_time_limit_finishes_some_rounds() -> None:
    model = tiny_model("2048")
    state = model.game.parse("1.23/2345/.987/3A12")
    values = make_agent("expectimax:20ms", model.game, model).values(state)
    assert [v is None for v in values] == [v is None for v in by_definition(model, state, 1)]
    assert all(v is None or math.isfinite(v) for v in values)


def test_too_many_layers_is_a_mistake() -> None:
    model = tiny_model("2048")
    with pytest.raises(games.InputError, match=f"at most {MOST_LAYERS} layers"):
        make_agent(f"expectimax:{MOST_LAYERS + 1}", model.game, model)
    assert parse_spec(f"expectimax:{MOST_LAYERS}").budget == MOST_LAYERS
