"""The figure beside a move: one meaning, one number for a position, whoever decides."""

from __future__ import annotations

import numpy as np
import pytest

from tilesage import games
from tilesage.evaluation.forecast import OWN, PROMISE, RANDOM_GAMES, Forecast, opinion_of
from tilesage.networks.files import load_model
from tilesage.search.agents import Agent, agent

BOARD = "2 4 8 16 0 2 4 8 0 0 2 4 0 0 0 2 score=500"
# Lines of two tiles, and a curve that halves what lies above a thousand.
FORECAST = Forecast({4: (100.0, 0.5, 0.0), 9: (0.0, 1.0, -1.0)}, [0.0, 1000.0, 3000.0], [0.0, 1000.0, 2000.0])


def test_a_forecast_is_a_line_by_the_largest_tile_and_a_curve_over_it() -> None:
    largest, promised, score = np.array([4, 9, 12]), np.array([200.0, 2500.0, 2500.0]), np.array([0, 500, 500])
    assert FORECAST.points_to_come(largest, promised, score).tolist() == [200, 1500, 1500]
    assert FORECAST.final_score(games.get("2048").parse(BOARD), 200.0) == 700


def opinion(player: Agent) -> tuple[int, list[float | None], list[float | None], str]:
    state = player.game.parse(BOARD)
    thought = player.think(state)
    found = opinion_of(player, state, thought)
    assert found.best == thought.action
    return found.best, found.values, found.losses, found.name


@pytest.mark.parametrize("spec", ["greedy", "expectimax:2", "rollouts:20", "mcts:50"])
def test_the_move_that_is_made_loses_nothing_and_no_other_is_worth_more(spec: str) -> None:
    best, values, losses, name = opinion(agent(spec, None if spec in ("greedy", "expectimax:2") else "2048"))
    assert losses[best] == 0
    assert values[best] == max(value for value in values if value is not None)
    assert [value is None for value in values] == [loss is None for loss in losses] == [True, True, False, False]
    assert name != OWN
    assert (name == RANDOM_GAMES) == spec.startswith(("rollouts", "mcts"))


def test_a_model_without_a_forecast_says_that_it_is_the_networks_value() -> None:
    model = load_model("2048-walls")
    state = model.game.new(1)
    greedy = agent("greedy", model=model)
    found = opinion_of(greedy, state, greedy.think(state))
    assert found.name == PROMISE
    assert found.value == pytest.approx(state.score + model.value(state))


def test_the_figure_of_a_position_is_the_same_whichever_player_reads_the_network() -> None:
    figures = [opinion(agent(spec))[1:] for spec in ("greedy", "expectimax:2", "best")]
    assert len({max(value for value in values if value is not None) for values, _, _ in figures}) == 1
    assert len({name for _, _, name in figures}) == 1


def test_a_player_without_opinion_and_a_game_that_is_over_have_no_figures() -> None:
    _, values, losses, name = opinion(agent("random", "2048"))
    assert values == losses == [None] * 4
    assert name == OWN
    player = agent("rollouts:2", "2048")
    over = player.game.parse("1212/2121/1212/2121")
    assert opinion_of(player, over, player.think(over)).value is None
