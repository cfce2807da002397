"""A game played on by the loop is the game that single moves make."""

from __future__ import annotations

import numpy as np
import pytest

from tilesage import games
from tilesage.evaluation.playing import Playing
from tilesage.networks.files import Model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.search.agents import make_agent


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize("spec", ["random", "greedy"])
def test_at_any_speed_it_is_the_same_game(name: str, spec: str) -> None:
    game, network = games.get(name), parse_network("tiny")
    agent = make_agent(spec, game, Model(game, network, np.zeros(size_of(network), np.float32)))
    playing = Playing(agent, agent.new_memory())
    slow = fast = game.new(4)
    while not fast.over:
        before, fast, actions = playing.go_on(fast, 7, 60.0)
        assert 1 <= len(actions) <= 7
        for action in actions:
            assert agent.choose(slow) == action
            last, slow = slow, slow.play(action)
        assert (slow, last) == (fast, before)
    assert playing.go_on(fast, 7, 60.0)[2] == b"", "a finished game has no more moves"


def test_it_ends_when_its_time_is_over() -> None:
    game = games.get("2048")
    agent = make_agent("random", game)
    assert len(Playing(agent, agent.new_memory()).go_on(game.new(1), 1000, 0.0)[2]) == 1
