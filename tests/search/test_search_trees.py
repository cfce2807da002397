"""Monte Carlo: rollouts, UCT, and the tree on network leaves; against slow twins in test_search_twins.py."""

from __future__ import annotations

import contextlib

import pytest
from small_models import POSITIONS, tiny_model

from tilesage import games
from tilesage.app.live import Adviser
from tilesage.app.web.players import Player as Visited
from tilesage.evaluation.advice import advise
from tilesage.evaluation.evaluate import evaluate
from tilesage.search.agents import make_agent
from tilesage.search.uct import ROOT


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize("spec", ["rollouts:30", "mcts:60", "mcts:60,leaf=value", "expectimax:2"])
def test_every_player_only_plays_legal_moves(name: str, spec: str) -> None:
    model = tiny_model(name)
    agent = make_agent(spec, model.game, model)
    memory, state = agent.new_memory(), model.game.new(seed=3)
    for _ in range(150):
        if state.over:
            break
        action = agent.choose(state, memory)
        assert action in state.legal
        state = state.play(action)
    ended = model.game.parse("1313/3131/1313/3131" + (" hint=1" if model.game.hint else ""))
    assert ended.over
    assert agent.choose(ended, memory) == -1


def test_uct_counts_every_iteration_once() -> None:
    game = games.get("2048")
    agent = make_agent("mcts:200", game)
    memory, state = agent.new_memory(), game.parse(POSITIONS["2048"][0])
    agent.choose(state, memory)
    tree = memory.tree
    assert tree.visits[ROOT] == 200
    children = [child for child in tree.children[ROOT] if child]
    assert sum(tree.visits[child] for child in children) == 200
    assert sum(tree.totals[child] for child in children) == pytest.approx(tree.totals[ROOT])
    assert len(children) == len(state.legal)


def test_same_seed_same_moves() -> None:
    for spec in ("mcts:50", "mcts:50,leaf=value", "rollouts:10"):
        model = tiny_model("2048")
        agent = make_agent(spec, model.game, model)

        def play(agent: object = agent, model: object = model) -> list[int]:
            memory, state, found = agent.new_memory(), model.game.new(seed=11), []
            while not state.over and len(found) < 60:
                found.append(agent.choose(state, memory))
                state = state.play(found[-1])
            return found

        assert play() == play()


@pytest.mark.parametrize("spec", ["expectimax:2", "mcts:20,leaf=value", "mcts:20"])
def test_games_do_not_depend_on_who_plays_them(spec: str) -> None:
    """What a worker remembers of its games before changes nothing in the next one."""
    model = tiny_model("2048")
    agent = make_agent(spec, model.game, model)
    alone, together = (evaluate(agent, 6, seed=9, workers=workers) for workers in (1, 2))
    assert alone.statistics.summary() == together.statistics.summary()


def test_everybody_names_the_move_that_the_tree_makes() -> None:
    """The most visited one, which need not have the largest value: terminal, hint and page are told the same."""
    model = tiny_model("2048")
    agent, state, differed = make_agent("mcts:7,leaf=value,c=100", model.game, model), model.game.new(seed=1), 0
    while differed < 3:
        thought = agent.think(state)
        largest = max(value for value in thought.values if value is not None)
        differed += thought.values[thought.action] != largest
        assert thought.action == agent.choose(state) == advise(agent, state).best
        assert Adviser(agent).think(state).best == thought.action
        visited = Visited(agent.spec, agent, contextlib.nullcontext()).think(state)
        assert visited.opinion.best == thought.action
        state = state.play(thought.action)
        assert not state.over


def test_values_of_the_tree_approach_expectimax() -> None:
    """On a nearly full board the tree sees all outcomes, and its best move is that of a deep search."""
    model = tiny_model("2048")
    state = model.game.parse("1.23/2345/6987/3A12")
    deep = make_agent("expectimax:4", model.game, model)
    tree = make_agent("mcts:20000,leaf=value", model.game, model)
    assert tree.choose(state) == deep.choose(state)


def test_time_limits_are_read_inside_compiled_code() -> None:
    game = games.get("2048")
    state = game.new(seed=1)
    for spec in ("mcts:20ms", "rollouts:20ms", "mcts:d1"):
        assert make_agent(spec, game).choose(state) in state.legal
