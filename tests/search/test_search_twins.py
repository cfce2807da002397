"""The searches against their slow twins (slow_search.py): the same trees, visit by visit, and the same values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from slow_search import Node, Position, ValueTree, by_definition, deepened, dice_of, final, flat, leaf, uct
from small_models import POSITIONS, STARTS, approximately, tiny_model

from tilesage import games
from tilesage.networks.files import Model
from tilesage.search import mcts
from tilesage.search.agents import make_agent
from tilesage.search.uct import NO_CHILD, ROOT, Tree, new_tree

every_game = pytest.mark.parametrize("name", games.names())
# Left and right merge the two 64s into the largest tile; whatever lands then, no move is left.
FORCED = "3145/1231/3545/6623 score=1000"


# --- random games -------------------------------------------------------------------------------------------------


@every_game
def test_rollouts_have_the_means_of_the_slow_twin(name: str) -> None:
    game = games.get(name)
    agent = make_agent("rollouts:4", game)
    for text in STARTS[name]:
        state = game.parse(text + " seed=5")
        means = flat(state, dice_of(state), 4)
        assert agent.values(state) == final(state, means)
        best = max(state.legal, key=lambda action, means=means: means[action])
        assert agent.choose(state) == best


def test_rollouts_of_a_forced_ending_are_exact() -> None:
    state = games.get("2048").parse(FORCED)
    assert make_agent("rollouts:20", state.game).values(state) == [None, 1128, None, 1128]


# --- UCT ----------------------------------------------------------------------------------------------------------


def assert_same_nodes(tree: Tree, index: int, node: Node) -> None:
    """All nodes below this one: their visits, their totals, and which moves were tried."""
    assert (tree.visits[index], tree.totals[index]) == (node.visits, node.total)
    children = {action: int(child) for action, child in enumerate(tree.children[index]) if child != NO_CHILD}
    assert children.keys() == node.children.keys()
    for action, child in children.items():
        assert_same_nodes(tree, child, node.children[action])


@every_game
@pytest.mark.parametrize("c", [1.0, 0.25])
def test_uct_grows_the_tree_of_the_slow_twin(name: str, c: float) -> None:
    game = games.get(name)
    agent = make_agent(f"mcts:50,c={c}", game)
    memory = agent.new_memory()
    for text in STARTS[name]:  # one after the other: nothing is kept between them
        state = game.parse(text + " seed=3")
        root = uct(state, dice_of(state), 50, c)
        action = agent.choose(state, memory)
        assert_same_nodes(memory[1], ROOT, root)
        assert action == max(state.legal, key=lambda action, root=root: root.children[action].mean)


@every_game
@pytest.mark.parametrize(
    ("options", "below", "gain"),
    [
        (",below=all", "all", "root"),
        (",gain=rollout", "legal", "rollout"),
        (",below=all,gain=rollout", "all", "rollout"),
    ],
)
def test_the_players_of_d1_grow_the_trees_of_the_slow_twin(name: str, options: str, below: str, gain: str) -> None:
    game = games.get(name)
    agent = make_agent(f"mcts:60{options}", game)
    for text in STARTS[name]:
        state, memory = game.parse(text + " seed=3"), agent.new_memory()
        root = uct(state, dice_of(state), 60, below=below, gain=gain)
        action = agent.choose(state, memory)
        assert_same_nodes(memory[1], ROOT, root)
        assert action == max(state.legal, key=lambda action, root=root: root.children[action].mean)


def test_below_the_root_the_code_of_d1_tries_moves_that_move_nothing() -> None:
    """In this corner only two moves are legal at the root; further down, all four are nodes, and change nothing."""
    game = games.get("2048")
    state = game.parse("2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2")
    trees = {}
    for spec in ("mcts:400", "mcts:400,below=all"):
        agent = make_agent(spec, game)
        memory = agent.new_memory()
        agent.choose(state, memory)
        trees[spec] = memory.tree
    for tree in trees.values():
        assert {action for action in range(4) if tree.children[ROOT, action] != NO_CHILD} == set(state.legal)
    children = {
        spec: [int((tree.children[child] != NO_CHILD).sum()) for child in tree.children[ROOT] if child]
        for spec, tree in trees.items()
    }
    assert set(children["mcts:400,below=all"]) == {4}


def test_a_full_tree_of_uct_goes_on_collecting_rollouts() -> None:
    game = games.get("2048")
    state, agent = game.parse(POSITIONS["2048"][0]), make_agent("mcts:50", game)
    small = new_tree(7)
    agent.choose(state, agent.new_memory()._replace(tree=small))
    assert_same_nodes(small, ROOT, uct(state, dice_of(state), 50, room=7))
    assert small.visits[ROOT] == 50


def test_the_values_of_uct_are_the_means_of_its_moves() -> None:
    game = games.get("2048")
    state = game.parse(POSITIONS["2048"][0] + " score=300")
    root = uct(state, dice_of(state), 50)
    means = [root.children[action].mean if action in root.children else None for action in range(4)]
    assert make_agent("mcts:50", game).values(state) == final(state, means)


def test_d1_has_400_iterations_and_thinks_twice_as_long_once_the_score_passes_7000() -> None:
    """With a first limit of next to nothing and none later, the visits tell which of them held."""
    game = games.get("2048")
    agent = make_agent("mcts:d1", game)
    memory = agent.new_memory()
    assert memory.limits == (400, 1.0, 7000, 2.0, 1.0, True, False)
    assert make_agent("mcts:d1,gain=rollout", game).new_memory().limits[5:] == (True, True)
    assert make_agent("mcts:d1,below=legal", game).new_memory().limits[5:] == (False, False)
    limits = memory.limits._replace(iterations=30.0, seconds=1e-300, late_seconds=0.0)
    for score, visits in ((7000, 1), (7001, 30)):
        state = replace(game.parse(POSITIONS["2048"][0]), score=score)
        agent.choose(state, memory._replace(limits=limits))
        assert memory.tree.visits[ROOT] == visits


# --- Monte Carlo tree search on network leaves --------------------------------------------------------------------


def assert_same_positions(tree: mcts.Tree, index: int, position: Position) -> None:
    """All positions below this one, with everything that is known of them."""
    assert (tree.boards[index], tree.auxes[index]) == (position.state.board, position.state.aux)
    assert tree.visits[index] == position.visits
    assert tree.counts[index].tolist() == position.counts
    assert tree.totals[index].tolist() == position.totals
    firsts = [None if math.isnan(first) else first for first in tree.firsts[index].tolist()]
    assert firsts == position.firsts
    for action in range(4):
        found, child = {}, int(tree.outcomes[index, action])
        while child != mcts.NO_NODE:
            found[int(tree.boards[child]), int(tree.auxes[child])] = child
            child = int(tree.siblings[child])
        assert found.keys() == position.outcomes[action].keys()
        for place, child in found.items():
            assert_same_positions(tree, child, position.outcomes[action][place])


@every_game
@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 8, 100])
def test_the_tree_on_leaves_is_that_of_the_slow_twin(name: str, iterations: int) -> None:
    model = tiny_model(name)
    agent = make_agent(f"mcts:{iterations},leaf=value", model.game, model)
    for text in STARTS[name]:
        state, memory = model.game.parse(text + " seed=3"), agent.new_memory()
        slow = ValueTree(model)
        slow.search(state, dice_of(state), iterations)
        action = agent.choose(state, memory)
        tree = memory.tree
        assert_same_positions(tree, mcts.ROOT, slow.root)
        assert (tree.size[0], tree.scale[0]) == (slow.size, slow.scale)
        assert action == slow.most_visited


@every_game
def test_the_tree_explores_as_it_is_told(name: str) -> None:
    model = tiny_model(name)
    agent = make_agent("mcts:80,leaf=value,c=1.5", model.game, model)
    state, memory = model.game.parse(STARTS[name][0] + " score=300"), agent.new_memory()
    slow = ValueTree(model, c=1.5)
    slow.search(state, dice_of(state), 80)
    values = agent.values(state, memory)
    assert_same_positions(memory.tree, mcts.ROOT, slow.root)
    assert values == final(state, [None if after is None else slow.root.mean(after.action) for after in state.slides])


@every_game
def test_a_full_tree_goes_on_without_keeping_what_is_new(name: str) -> None:
    """One move after the other in the same tree: nothing of the move before is left in it."""
    model = tiny_model(name)
    agent, tree = make_agent("mcts:60,leaf=value", model.game, model), mcts.new_tree(21)
    memory, state = agent.new_memory()._replace(tree=tree), model.game.parse(STARTS[name][0] + " seed=3")
    for _ in range(10):
        slow = ValueTree(model, room=20)
        slow.search(state, dice_of(state), 60)
        action = agent.choose(state, memory)
        assert_same_positions(tree, mcts.ROOT, slow.root)
        assert (tree.size[0], tree.scale[0]) == (slow.size, slow.scale)
        assert tree.visits[mcts.ROOT] == 60
        assert action == slow.most_visited
        state = state.play(action)
        if state.over:
            break


# --- expectimax ---------------------------------------------------------------------------------------------------


@every_game
@pytest.mark.parametrize("table", [14, 0])
def test_five_layers_along_likely_paths(name: str, table: int) -> None:
    """Probabilities are multiplied once along the path, layer after layer."""
    model = tiny_model(name)
    for text in POSITIONS[name]:
        state = model.game.parse(text)
        agent = make_agent(f"expectimax:5,width=1,prune=0.02,table={table}", model.game, model)
        assert agent.values(state) == approximately(by_definition(model, state, 5, 1, 0.02)), text


@every_game
@pytest.mark.parametrize(("words", "width", "prune"), [("", 1, 0.01), (",prune=0.1", 1, 0.1), (",width=2", 2, 0.01)])
def test_deep_is_eight_layers_of_the_best_move_down_to_one_percent(
    name: str, words: str, width: int, prune: float
) -> None:
    model = tiny_model(name)
    state = model.game.parse(POSITIONS[name][0])
    deep = make_agent("expectimax:deep" + words, model.game, model)
    assert deep.values(state) == approximately(by_definition(model, state, 8, width, prune))


@pytest.mark.parametrize(("width", "budgets"), [(1, (1, 10, 40, 150, 400, 1200)), (4, (1, 10, 60, 200, 600))])
def test_deepening_by_nodes_ends_with_the_round_of_the_slow_twin(width: int, budgets: tuple[int, ...]) -> None:
    model = tiny_model("2048")
    reached = []
    for text in POSITIONS["2048"][::2]:
        state = model.game.parse(text)
        for nodes in budgets:
            agent = make_agent(f"expectimax:{nodes}nodes,width={width},table=0", model.game, model)
            rounds, values = deepened(model, state, nodes, width)
            assert agent.values(state) == approximately(values), (text, nodes)
            reached.append(rounds)
    assert len(set(reached)) > 2


@every_game
@pytest.mark.parametrize("prune", [0.5, 0.1, 0.03])
def test_deepening_ends_with_the_paths_of_that_probability(name: str, prune: float) -> None:
    model = tiny_model(name)
    state = model.game.parse(POSITIONS[name][0])
    ended = make_agent(f"expectimax:100000000nodes,prune={prune}", model.game, model)
    assert ended.values(state) == approximately(by_definition(model, state, 12, 1, prune))


def test_fours_come_at_the_rate_of_the_game() -> None:
    game, tiny = games.get("2048", four_rate=0.5), tiny_model("2048")
    model = Model(game, tiny.network, tiny.weights)
    usual, often = (make_agent("expectimax:2", one.game, one) for one in (tiny, model))
    for text in POSITIONS["2048"]:
        state = game.parse(text)
        assert often.values(state) == approximately(by_definition(model, state, 2)), text
        assert often.values(state) != usual.values(state)


@every_game
def test_a_word_of_the_network_below_nothing_counts_as_nothing(name: str) -> None:
    """In the tree as in expectimax: values are rectified before they are backed up."""
    tiny = tiny_model(name)
    gloomy = Model(tiny.game, tiny.network, tiny.weights - np.float32(100.0))
    state = gloomy.game.parse(STARTS[name][0])
    assert min(leaf(gloomy, after) for after in state.slides if after is not None) < 0
    slow = ValueTree(gloomy)
    slow.search(state, dice_of(state), 40)
    agent = make_agent("mcts:40,leaf=value", gloomy.game, gloomy)
    memory = agent.new_memory()
    agent.choose(state, memory)
    assert_same_positions(memory.tree, mcts.ROOT, slow.root)
