"""A game played on by the loop is the game that single moves make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilesage import games
from tilesage.app.web import players
from tilesage.app.web.library import Library
from tilesage.app.web.settings import Settings
from tilesage.evaluation.playing import Playing, loop_of
from tilesage.networks.files import Model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.search.agents import CompiledAgent, make_agent


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


def test_the_same_agent_made_again_shares_the_loop_and_another_agent_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code is never given back, so a server would grow with every agent that comes and goes."""
    monkeypatch.setattr(players, "MOST_AGENTS", 1)
    cache = players.AgentCache(Library(Settings(runs=tmp_path)))
    made = [cache.player("2048", spec, "").agent for spec in ("random", "rollouts:20", "random", "rollouts:30")]
    assert made[0] is not made[2], "it was dropped in between"
    loops = [loop_of(agent).args[0] for agent in made if isinstance(agent, CompiledAgent)]  # type: ignore[attr-defined]
    decides = [agent.decide for agent in made if isinstance(agent, CompiledAgent)]
    for functions in (loops, decides):
        assert functions[0] is functions[2]
        assert functions[1] is functions[3], "20 and 30 are memory, not code"
        assert functions[0] is not functions[1]


def test_it_ends_when_its_time_is_over() -> None:
    game = games.get("2048")
    agent = make_agent("random", game)
    assert len(Playing(agent, agent.new_memory()).go_on(game.new(1), 1000, 0.0)[2]) == 1
