"""The searches as agents: settings become small arrays, so that players of one kind share their compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.games.board import Board, symmetry
from tilesage.networks.functions import ValueFunction
from tilesage.networks.outside import value_function
from tilesage.search import mcts, rollouts, uct
from tilesage.search.agents import Agent, CompiledAgent, Memory, need_model
from tilesage.search.expectimax import MOST_LAYERS, MOVES, Desk, best_of_values, make_expectimax, new_desk
from tilesage.search.game_2048 import downgrade as halving
from tilesage.search.game_2048.endgames import (
    BLOCK,
    FEWEST,
    SNAKE,
    SOLVED,
    Chain,
    leave,
    make_overrule,
    turned_action,
)
from tilesage.search.game_2048.practice import Part, practice_wanted
from tilesage.search.game_2048.solving import solved_once
from tilesage.search.kinds import NOWHERE
from tilesage.search.specs import Spec

if TYPE_CHECKING:
    from tilesage.networks.files import Model

TABLE_BITS = 14
LAYERS, PRUNE, NODES, SECONDS, THRESHOLD = range(5)  # the plan of an expectimax player
BUDGETED = ("s", "nodes")  # units of searches that go deeper until the budget is spent
# `deep`: one line of play against whatever is likely enough. Likely is measured along the path, so that a crowded
# board, where little can happen, is looked into further than an empty one.
DEEP_LAYERS, DEEP_WIDTH, DEEP_PRUNE = 8, 1, 0.01
# The limits of D1: 400 iterations and 1 second a move, 2 seconds once the score passes 7,000.
D1_ITERATIONS, D1_SECONDS, D1_LATE_SECONDS, D1_LATE_SCORE = 400, 1.0, 2.0, 7000
ENDGAME_TILES = ("128", "256", "512", "1024")
MOST_ITERATIONS = 1 << 40
MOST_POSITIONS = 1 << 19


def make_smaller(game: Game) -> Callable[..., Any]:
    """`smaller(board, aux, threshold)`: tile-downgrading, in a game that allows it."""
    can, halve = game.downgrades, halving.downgrade

    @compiled
    def smaller(board: Board, aux: np.uint64, threshold: float) -> tuple[Board, np.uint64]:
        return halve(board, aux, np.int64(threshold)) if can else (board, aux)

    return smaller


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


def make_search(
    game: Game, leaves: ValueFunction, budgeted: bool, use_table: bool, narrow: bool
) -> Callable[..., Any]:
    """`search(desk, plan, board, aux, out)`: values of the moves, by layers or within a budget."""
    root_values, deepen = make_expectimax(game, leaves, use_table, narrow)

    @compiled
    def search(desk: Desk, plan: Array, board: Board, aux: np.uint64, out: Array) -> None:
        if budgeted:
            deepen(desk, board, aux, plan[NODES], plan[SECONDS], plan[PRUNE], out)
        else:
            root_values(desk, board, aux, np.int64(plan[LAYERS]), plan[PRUNE], out)

    return search


def make_look_ahead(game: Game, search: Callable[..., Any]) -> Callable[..., Any]:
    """`look_ahead(memory, board, aux, out)`: search a position, or the smaller one instead of it."""
    smaller = make_smaller(game)

    @compiled
    def look_ahead(memory: Memory, board: Board, aux: np.uint64, out: Array) -> None:
        desk, plan = memory[0], memory[1]
        seen, seen_aux = smaller(board, aux, plan[THRESHOLD])
        search(desk, plan, seen, seen_aux, out)

    return look_ahead


def make_hand_over(look_ahead: Callable[..., Any], search_part: Callable[..., Any], part: Part) -> Callable[..., Any]:
    """`look_ahead` with a second network, for the boards that this one has practised."""
    find, see = part.find, part.see

    @compiled
    def hand_over(memory: Memory, board: Board, aux: np.uint64, out: Array) -> None:
        plan, desk, values = memory[1], memory[3], memory[4]
        k = find(memory[0].rows, board, aux)
        if k == NOWHERE:
            look_ahead(memory, board, aux, out)
            return
        search_part(desk, plan, see(symmetry(board, k)), aux, values)
        for action in range(MOVES):
            out[action] = values[turned_action(action, k)]

    return hand_over


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


def expectimax_agent(spec: Spec, game: Game, model: Model | None) -> Agent:
    """Greedy and expectimax, by layers, or by iterative deepening within a budget."""
    plan, leaves, best_of = (
        _expectimax_plan(spec, game),
        value_function(need_model(spec.text, model), game),
        best_of_values(),
    )
    bits, width, tables = spec.whole("table", TABLE_BITS, 0, 28), depth_of(spec)[1], tables_wanted(spec, game)
    how = (spec.unit in BUDGETED, bits > 0, width < MOVES)
    look_ahead = make_look_ahead(game, make_search(game, leaves, *how))
    overrule = make_overrule() if tables else leave
    practice = practice_wanted(spec, game)
    if practice:
        part, second = practice
        practised = value_function(second, second.game)
        look_ahead = make_hand_over(look_ahead, make_search(second.game, practised, *how), part)

    @compiled(title=f"{spec.name} for {game.title} on {leaves.name}")
    def decide(
        memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        look_ahead(memory, board, aux, values)
        overrule(memory[2], board, values)
        action = best_of(values)
        add_score(values, score)
        return action, rng

    def new_memory() -> Memory:
        endgames = solved_once(game, tuple(tables)) if tables else ()
        rest = (new_desk(second.game, practised, bits, width), np.zeros(MOVES)) if practice else ()
        return new_desk(game, leaves, bits, width), plan, endgames, *rest

    return CompiledAgent(spec.text, game, decide, new_memory, model)


def _expectimax_plan(spec: Spec, game: Game) -> Array:
    plan = np.zeros(5)
    plan[LAYERS], _, plan[PRUNE] = depth_of(spec)
    plan[NODES] = spec.budget if spec.unit == "nodes" else math.inf
    plan[SECONDS] = spec.budget if spec.unit == "s" else math.inf
    plan[THRESHOLD] = downgrade_threshold(spec, game)
    return plan


def rollouts_agent(spec: Spec, game: Game, model: Model | None = None) -> Agent:
    """Flat Monte Carlo."""
    flat, best_of = rollouts.build(game).flat, best_of_values()
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
    """D1's UCT: random rollouts, c = mean of the node, a new tree for every move."""
    search, root_values, limits = uct.build(game), uct.root_values, _uct_limits(spec)
    best_of = best_of_values()

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
    c = spec.number("c", 1.0, 0.0, 100.0)
    if spec.unit == "d1":
        return uct.Limits(float(D1_ITERATIONS), D1_SECONDS, float(D1_LATE_SCORE), D1_LATE_SECONDS, c)
    if spec.unit == "s":
        return uct.Limits(float(MOST_ITERATIONS), spec.budget, math.inf, spec.budget, c)
    return uct.Limits(spec.budget, 0.0, math.inf, 0.0, c)


def mcts_agent(spec: Spec, game: Game, model: Model) -> Agent:
    """Monte Carlo tree search with the network at the leaves."""
    if spec.unit == "d1":
        raise InputError(f"{spec.text!r}: d1 plays random rollouts, so write mcts:d1, or mcts:400,leaf=value")
    value = value_function(model, game)
    search, root_values, most_visited = mcts.build(game, value.code).search, mcts.root_values, mcts.most_visited
    seconds = spec.budget if spec.unit == "s" else 0.0
    iterations = MOST_ITERATIONS if seconds else int(spec.budget)
    limits = mcts.Limits(float(iterations), seconds, spec.number("c", 0.2, 0.0, 100.0))

    @compiled(title=f"Monte Carlo tree search for {game.title} on {value.name}")
    def decide(
        memory: mcts.SearchState, board: Board, aux: np.uint64, score: int, rng: np.uint64, values: Array
    ) -> tuple[Number, np.uint64]:
        rng = search(memory, board, aux, rng)
        root_values(memory.tree, values)
        add_score(values, score)
        return most_visited(memory.tree), rng

    def new_memory() -> mcts.SearchState:
        tree = mcts.new_tree(min(8 * iterations + 8, MOST_POSITIONS))
        return mcts.SearchState(game.rows, value.weights, value.new_notes(), tree, limits)

    return CompiledAgent(spec.text, game, decide, new_memory, model)
