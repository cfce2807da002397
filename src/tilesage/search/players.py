"""The searches as players: options become limits and room, and one compiled function makes the move.

What does not go into a search's machine code is handed to it as arrays and numbers, so that players of one kind share
their compiled code.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.games.board import Board, symmetry
from tilesage.networks.functions import ValueFunction
from tilesage.networks.outside import value_function
from tilesage.search import expectimax, mcts, rollouts, uct
from tilesage.search.agents import Agent, CompiledAgent, Memory, need_model
from tilesage.search.expectimax import MOST_LAYERS, MOVES, best_of
from tilesage.search.game_2048 import downgrade as halving
from tilesage.search.game_2048.endgames import BLOCK, FEWEST, SNAKE, SOLVED, Chain, make_overrule, turned_action
from tilesage.search.game_2048.practice import practice_wanted
from tilesage.search.game_2048.solving import solved_once
from tilesage.search.kinds import NOWHERE
from tilesage.search.specs import Spec

if TYPE_CHECKING:
    from tilesage.networks.files import Model

TABLE_BITS = 14
BUDGETED = ("s", "nodes")  # units of searches that go deeper until the budget is spent
# `deep`: one line of play against whatever is likely enough. Likely is measured along the path, so that a crowded
# board, where little can happen, is looked into further than an empty one.
DEEP_LAYERS, DEEP_WIDTH, DEEP_PRUNE = 8, 1, 0.01
# The limits of the report D1: 400 iterations and 1 second a move, 2 seconds once the score passes 7,000.
D1_ITERATIONS, D1_SECONDS, D1_LATE_SECONDS, D1_LATE_SCORE = 400, 1.0, 2.0, 7000
ENDGAME_TILES = ("128", "256", "512", "1024")
MOST_ITERATIONS = 1 << 40
MOST_POSITIONS = 1 << 19


def downgrade_threshold(spec: Spec, game: Game) -> int:
    """The exponent of the tile from which on a player sees smaller boards; NEVER if it was not asked to."""
    if (tile := spec.options.get("downgrade")) is None:
        return halving.NEVER
    if not game.downgrades:
        raise InputError(f"downgrade in {spec.text!r}: tile-downgrading is for 2048")
    if not tile.isdecimal() or len(tile) > 6:
        raise InputError(f"downgrade={tile} in {spec.text!r}: write a tile, such as downgrade=8192")
    return halving.exponent_of(int(tile))


def depth_of(spec: Spec) -> tuple[int, int, float]:
    """How many layers an expectimax looks ahead, how many moves it follows below the root, and what it prunes."""
    deep, budgeted = spec.unit == "deep", spec.unit in BUDGETED
    layers = 1 if spec.name == "greedy" else DEEP_LAYERS if deep else int(spec.budget)
    if spec.unit == "" and layers > MOST_LAYERS:
        raise InputError(
            f"{spec.text!r} looks too far: at most {MOST_LAYERS} layers, or a time such as expectimax:200ms"
        )
    width = spec.whole("width", DEEP_WIDTH if deep or budgeted else MOVES, 1, MOVES)
    return layers, width, spec.number("prune", DEEP_PRUNE if deep else 0.0, 0.0, 1.0)


def tables_wanted(spec: Spec, game: Game) -> list[tuple[Chain, int]]:
    """The endgames to be solved, (chain, target): those with six and with five links, all targets up to one each."""
    tables, chains = [], (SNAKE, BLOCK) if "block" in spec.options else (SNAKE,)
    for name, links in (("endgames", len(SNAKE)), ("wide", FEWEST)):
        if (tile := spec.options.get(name)) is None:
            continue
        if game.name not in SOLVED:
            raise InputError(f"endgames in {spec.text!r}: solved endgames are for 2048")
        if tile not in ENDGAME_TILES:
            raise InputError(f"{name}={tile} in {spec.text!r}: write one of {', '.join(ENDGAME_TILES)}")
        smaller = ENDGAME_TILES[: ENDGAME_TILES.index(tile) + 1]
        tables += [(chain[:links], halving.exponent_of(int(one))) for chain in chains for one in smaller]
    return tables


@compiled
def add_score(values: Array, score: int) -> None:
    """A search counts what is still to be gained; the expected final score has what is there already."""
    for action in range(MOVES):
        values[action] += score


def greedy_or_downgraded(spec: Spec, game: Game, model: Model | None) -> Agent:
    """Greedy play needs no search, unless it looks at a smaller board instead."""
    from tilesage.search.greedy import greedy_agent

    if "downgrade" in spec.options:
        return expectimax_agent(spec, game, model)
    return greedy_agent(game, need_model(spec.text, model))


class ExpectimaxMemory(NamedTuple):
    """What an expectimax player works on."""

    state: expectimax.SearchState
    limits: expectimax.Limits
    threshold: int  # the exponent from which on it sees smaller boards
    endgames: Any  # the tables, () without any
    second: Any  # the state of the search on a second network, () without one,
    turned: Array  # [4] float64, and what that one says of the moves, on the board as it sees it


def expectimax_agent(spec: Spec, game: Game, model: Model | None) -> Agent:
    """Greedy and expectimax, by layers, or by iterative deepening within a budget.

    Some boards of 2048 may be handed over to a second network, others be searched with smaller tiles, and solved
    endgames have the last word.
    """
    value, limits = value_function(need_model(spec.text, model), game), _expectimax_limits(spec)
    threshold, tables = downgrade_threshold(spec, game), tables_wanted(spec, game)
    search, room = _search(spec, game, value), (table_bits(spec), depth_of(spec)[1])
    downgrade, downgrades, overrule, solved = halving.downgrade, game.downgrades, make_overrule(), bool(tables)
    practice = practice_wanted(spec, game)
    hands_over = practice is not None
    find: Any = None  # where nothing is handed over, the compiler leaves out what would call these
    see: Any = None
    search_part: Any = None
    if practice:
        part, second = practice
        find, see, practised = part.find, part.see, value_function(second, second.game)
        search_part = _search(spec, second.game, practised)

    @compiled(title=f"{spec.name} for {game.title} on {value.name}")
    def decide(
        memory: ExpectimaxMemory, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        way = find(memory.state.rows, board, aux) if hands_over else NOWHERE
        if way == NOWHERE:
            seen, seen_aux = downgrade(board, aux, memory.threshold) if downgrades else (board, aux)
            search(memory.state, seen, seen_aux, memory.limits, values)
        elif hands_over:
            search_part(memory.second, see(symmetry(board, way)), aux, memory.limits, memory.turned)
            for action in range(MOVES):
                values[action] = memory.turned[turned_action(action, way)]
        if solved:
            overrule(memory.endgames, board, values)
        action = best_of(values)
        add_score(values, score)
        return action, rng

    def new_memory() -> ExpectimaxMemory:
        endgames = solved_once(game, tuple(tables)) if tables else ()
        state = expectimax.new_state(game, value, *room)
        other = expectimax.new_state(second.game, practised, *room) if practice else ()
        return ExpectimaxMemory(state, limits, threshold, endgames, other, np.zeros(MOVES))

    return CompiledAgent(spec.text, game, decide, new_memory, model)


def _search(spec: Spec, game: Game, value: ValueFunction) -> expectimax.Search:
    """The search by layers, or by deepening within a budget."""
    built = expectimax.build(game, value.code, use_table=table_bits(spec) > 0, narrow=depth_of(spec)[1] < MOVES)
    return built.deepen if spec.unit in BUDGETED else built.root_values


def table_bits(spec: Spec) -> int:
    """The transposition table has 2^bits entries; 0: there is none."""
    return spec.whole("table", TABLE_BITS, 0, 28)


def _expectimax_limits(spec: Spec) -> expectimax.Limits:
    layers, _, prune = depth_of(spec)
    nodes = spec.budget if spec.unit == "nodes" else math.inf
    seconds = spec.budget if spec.unit == "s" else math.inf
    return expectimax.Limits(layers, prune, nodes, seconds)


def rollouts_agent(spec: Spec, game: Game, model: Model | None = None) -> Agent:
    """Flat Monte Carlo."""
    flat = rollouts.build(game).flat
    seconds = spec.budget if spec.unit == "s" else 0.0
    limits = (MOST_ITERATIONS if seconds else int(spec.budget), seconds)

    @compiled(title=f"rollouts for {game.title}")
    def decide(
        memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        rows, (games, seconds) = memory
        rng = flat(rows, board, aux, rng, games, seconds, values)
        action = best_of(values)
        add_score(values, score)
        return action, rng

    return CompiledAgent(spec.text, game, decide, lambda: (game.rows, limits))


def tree_agent(spec: Spec, game: Game, model: Model | None) -> Agent:
    """Monte Carlo tree search, on random rollouts or on a network."""
    return mcts_agent(spec, game, need_model(spec.text, model)) if spec.needs_model else uct_agent(spec, game)


def uct_agent(spec: Spec, game: Game) -> Agent:
    """UCT: random rollouts, c = mean of the node, a new tree for every move."""
    search, root_values, limits = uct.build(game), uct.root_values, _uct_limits(spec)

    @compiled(title=f"Monte Carlo tree search for {game.title}")
    def decide(
        memory: uct.SearchState, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        limits = memory.limits
        seconds = limits.late_seconds if score > limits.late_score else limits.seconds
        rng = search(memory, board, aux, rng, seconds)
        root_values(memory.tree, values)
        action = best_of(values)
        add_score(values, score)
        return action, rng

    def new_memory() -> uct.SearchState:
        return uct.SearchState(game.rows, uct.new_tree(int(min(limits.iterations + 1, MOST_POSITIONS))), limits)

    return CompiledAgent(spec.text, game, decide, new_memory)


def _uct_limits(spec: Spec) -> uct.Limits:
    below = spec.word("below", ("all", "legal") if spec.unit == "d1" else ("legal", "all"))
    rest = spec.number("c", 1.0, 0.0, 100.0), below == "all", spec.word("gain", ("root", "rollout")) == "rollout"
    if spec.unit == "d1":
        return uct.Limits(float(D1_ITERATIONS), D1_SECONDS, float(D1_LATE_SCORE), D1_LATE_SECONDS, *rest)
    if spec.unit == "s":
        return uct.Limits(float(MOST_ITERATIONS), spec.budget, math.inf, spec.budget, *rest)
    return uct.Limits(spec.budget, 0.0, math.inf, 0.0, *rest)


def mcts_agent(spec: Spec, game: Game, model: Model) -> Agent:
    """Monte Carlo tree search with the network at the leaves."""
    if spec.unit == "d1":
        raise InputError(f"{spec.text!r}: d1 plays random rollouts, so write mcts:d1, or mcts:400,leaf=value")
    for option in ("below", "gain"):
        if option in spec.options:
            raise InputError(f"{option} in {spec.text!r} is for random rollouts: leave it out, or leaf=value")
    value = value_function(model, game)
    search, root_values, most_visited = mcts.build(game, value.code).search, mcts.root_values, mcts.most_visited
    seconds = spec.budget if spec.unit == "s" else 0.0
    iterations = MOST_ITERATIONS if seconds else int(spec.budget)
    limits = mcts.Limits(float(iterations), seconds, spec.number("c", 0.5, 0.0, 100.0))

    @compiled(title=f"Monte Carlo tree search for {game.title} on {value.name}")
    def decide(
        memory: mcts.SearchState, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        rng = search(memory, board, aux, rng)
        root_values(memory.tree, values)
        add_score(values, score)
        return most_visited(memory.tree), rng

    def new_memory() -> mcts.SearchState:
        tree = mcts.new_tree(min(iterations + 2, MOST_POSITIONS))
        return mcts.SearchState(game.rows, value.weights, value.new_notes(), tree, limits)

    return CompiledAgent(spec.text, game, decide, new_memory, model)
