"""The searches as agents: settings become small arrays, so that players of one kind share their compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.board import Board, symmetry
from afterstate.games.compiler import Array, kernel, rule_for
from afterstate.values.folding import SMALLEST_HOLE
from afterstate.values.functions import ValueFunction
from afterstate.values.outside import value_function

from . import downgrade as halving
from .agents import Agent, Memory
from .endgames import BLOCK, FEWEST, SNAKE, Chain, leave, make_overrule, turned_action
from .expectimax import MOST_LAYERS, MOVES, Desk, best_of_values, make_expectimax, new_desk
from .kinds import NOWHERE, Number
from .mcts import Settings, make_mcts
from .mcts import new_tree as new_value_tree
from .practice import Part, practice_wanted
from .rollouts import make_flat
from .solving import solved_once
from .specs import Spec
from .uct import make_uct, new_tree

if TYPE_CHECKING:
    from afterstate.values.files import Model

TABLE_BITS = 14
LAYERS, PRUNE, NODES, SECONDS, THRESHOLD, HOLE = range(6)  # the plan of an expectimax player
LAYER_MODES = {"": 0, "deep": 0, "auto": 1, "s": 2, "nodes": 2}
# `deep`: one line of play against whatever is likely enough. Likely is measured along the path, so that a crowded
# board, where little can happen, is looked into further than an empty one.
DEEP_LAYERS, DEEP_WIDTH, DEEP_PRUNE = 8, 1, 0.01
# The limits of D1: 400 iterations and 1 second a move, 2 seconds once the score passes 7,000.
D1_ITERATIONS, D1_SECONDS, D1_LATE_SECONDS, D1_LATE_SCORE = 400, 1.0, 2.0, 7000
ENDGAME_TILES = ("128", "256", "512", "1024")
NO_DOWNGRADE = (halving.NEVER, SMALLEST_HOLE)
MOST_ITERATIONS = 1 << 40
MOST_POSITIONS = 1 << 19


def make_smaller(game: Game) -> Callable[..., Any]:
    """`smaller(board, aux, threshold, hole)`: tile-downgrading, which is for 2048 alone."""
    can, halve = game.name == "2048", halving.downgrade

    @rule_for("smaller", can)
    def smaller(board: Board, aux: np.uint64, threshold: float, hole: float) -> tuple[Board, np.uint64]:
        return halve(board, aux, np.int64(threshold), np.int64(hole)) if can else (board, aux)

    return smaller


def downgrade_settings(spec: Spec, game: Game, model: Model) -> tuple[int, int]:
    """Threshold and smallest hole as exponents: what the user wrote, or what the model knows of itself."""
    known = model.training.get("downgrade")
    known = known if isinstance(known, dict) else {}
    wanted, hole = spec.options.get("downgrade", "auto"), spec.options.get("hole")
    if game.name != "2048":
        if wanted not in ("auto", "off") or hole is not None:
            raise Mistake(f"downgrade in {spec.text!r}: tile-downgrading is for 2048")
        return NO_DOWNGRADE
    if wanted == "off" or (wanted == "auto" and "threshold" not in known):
        return NO_DOWNGRADE
    tiles = [known["threshold"] if wanted == "auto" else wanted, hole or known.get("hole", 64)]
    if not all(str(tile).isdecimal() and len(str(tile)) < 7 for tile in tiles):
        raise Mistake(
            f"downgrade and hole in {spec.text!r} are tiles: write downgrade=8192,hole=64, or downgrade=off"
        )
    threshold, smallest = (halving.exponent_of(int(tile)) for tile in tiles)
    return threshold, smallest


def depth_of(spec: Spec) -> tuple[int, int, float]:
    """How many layers an expectimax looks ahead, how many moves it follows below the root, and what it prunes."""
    deep, timed = spec.unit == "deep", spec.unit in ("s", "nodes")
    layers = 1 if spec.name == "greedy" else DEEP_LAYERS if deep else int(spec.budget)
    if spec.unit == "" and layers > MOST_LAYERS:
        raise Mistake(
            f"{spec.text!r} looks too far: at most {MOST_LAYERS} layers, or a time such as expectimax:200ms"
        )
    width = spec.whole("width", DEEP_WIDTH if deep or timed else MOVES, 1, MOVES)
    return layers, width, spec.number("prune", DEEP_PRUNE if deep else 0.0, 0.0, 1.0)


def tables_wanted(spec: Spec, game: Game) -> list[tuple[Chain, int]]:
    """The endgames to be solved, (chain, target): those with six and with five links, all targets up to one each."""
    tables, chains = [], (SNAKE, BLOCK) if "block" in spec.options else (SNAKE,)
    for name, links in (("endgames", len(SNAKE)), ("wide", FEWEST)):
        if (tile := spec.options.get(name)) is None:
            continue
        if game.name != "2048":
            raise Mistake(f"endgames in {spec.text!r}: solved endgames are for 2048")
        if tile not in ENDGAME_TILES:
            raise Mistake(f"{name}={tile} in {spec.text!r}: write one of {', '.join(ENDGAME_TILES)}")
        smaller = ENDGAME_TILES[: ENDGAME_TILES.index(tile) + 1]
        tables += [(chain[:links], halving.exponent_of(int(one))) for chain in chains for one in smaller]
    return tables


def make_search(game: Game, leaves: ValueFunction, mode: int, use_table: bool, narrow: bool) -> Callable[..., Any]:
    """`search(desk, plan, board, aux, out)`: values of the moves, by layers, by empty cells, or within a budget."""
    root_values, deepen, layers_for = make_expectimax(game, leaves, use_table, narrow)

    @rule_for("search", game.key, leaves.key, mode, use_table, narrow)
    def search(desk: Desk, plan: Array, board: Board, aux: np.uint64, out: Array) -> None:
        if mode == 2:
            deepen(desk, board, aux, plan[NODES], plan[SECONDS], plan[PRUNE], out)
        else:
            layers = layers_for(board) if mode == 1 else np.int64(plan[LAYERS])
            root_values(desk, board, aux, layers, plan[PRUNE], out)

    return search


def make_look_ahead(game: Game, search: Callable[..., Any], *key: object) -> Callable[..., Any]:
    """`look_ahead(memory, board, aux, out)`: search a position, or the smaller one instead of it."""
    smaller = make_smaller(game)

    @rule_for("look ahead", *key)
    def look_ahead(memory: Memory, board: Board, aux: np.uint64, out: Array) -> None:
        desk, plan = memory[0], memory[1]
        seen, seen_aux = smaller(board, aux, plan[THRESHOLD], plan[HOLE])
        search(desk, plan, seen, seen_aux, out)

    return look_ahead


def make_hand_over(
    look_ahead: Callable[..., Any], search_part: Callable[..., Any], part: Part, *key: object
) -> Callable[..., Any]:
    """`look_ahead` with a second network, for the boards that this one has practised."""
    find, see = part.find, part.see

    @rule_for("hand over", *key)
    def hand_over(memory: Memory, board: Board, aux: np.uint64, out: Array) -> None:
        plan, desk, values = memory[1], memory[4], memory[5]
        k = find(memory[0].rows, board, aux)
        if k == NOWHERE:
            look_ahead(memory, board, aux, out)
            return
        search_part(desk, plan, see(symmetry(board, k)), aux, values)
        for action in range(MOVES):
            out[action] = values[turned_action(action, k)]

    return hand_over


def expectimax_agent(spec: Spec, game: Game, model: Model) -> Agent:
    """Greedy and expectimax, by layers, by empty cells, or by iterative deepening within a budget."""
    plan, leaves, best_of = _expectimax_plan(spec, game, model), value_function(model, game), best_of_values()
    bits, width, tables = spec.whole("table", TABLE_BITS, 0, 28), depth_of(spec)[1], tables_wanted(spec, game)
    how = (LAYER_MODES[spec.unit], bits > 0, width < MOVES)
    kind: tuple[object, ...] = ("expectimax", game.key, leaves.key, *how, bool(tables))
    look_ahead = make_look_ahead(game, make_search(game, leaves, *how), *kind)
    overrule = make_overrule() if tables else leave
    practice = practice_wanted(spec, game)
    if practice:
        part, second = practice
        practised = value_function(second, second.game)
        kind = (*kind, practised.key)
        look_ahead = make_hand_over(look_ahead, make_search(second.game, practised, *how), part, *kind)

    @rule_for("think", *kind)
    def think(memory: Memory, board: Board, aux: np.uint64, out: Array) -> None:
        look_ahead(memory, board, aux, out)
        overrule(memory[3], board, out)

    @kernel(*kind, title=f"{spec.name} for {game.title} on {leaves.name}")
    def decide(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64) -> tuple[Number, np.uint64]:
        think(memory, board, aux, memory[2])
        return best_of(memory[2]), rng

    @kernel("values", *kind, title=f"advice by {spec.name} for {game.title} on {leaves.name}")
    def values_of(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> None:
        think(memory, board, aux, out)
        out += score

    def new_memory() -> Memory:
        endgames = solved_once(game, tuple(tables)) if tables else ()
        rest = (new_desk(second.game, practised, bits, width), np.zeros(MOVES)) if practice else ()
        return new_desk(game, leaves, bits, width), plan, np.zeros(MOVES), endgames, *rest

    return Agent(spec.text, game, kind, decide, new_memory, values_of, model)


def _expectimax_plan(spec: Spec, game: Game, model: Model) -> Array:
    plan = np.zeros(6)
    plan[LAYERS], _, plan[PRUNE] = depth_of(spec)
    plan[NODES] = spec.budget if spec.unit == "nodes" else math.inf
    plan[SECONDS] = spec.budget if spec.unit == "s" else math.inf
    plan[THRESHOLD], plan[HOLE] = downgrade_settings(spec, game, model)
    return plan


def rollouts_agent(spec: Spec, game: Game) -> Agent:
    """Flat Monte Carlo."""
    flat, best_of, kind = make_flat(game), best_of_values(), ("rollouts", game.key)
    seconds = spec.budget if spec.unit == "s" else 0.0
    plan = np.array([MOST_ITERATIONS if seconds else spec.budget, seconds])

    @kernel(*kind, title=f"rollouts for {game.title}")
    def decide(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64) -> tuple[Number, np.uint64]:
        rows, plan, out = memory
        rng = flat(rows, board, aux, rng, np.int64(plan[0]), plan[1], out)
        return best_of(out), rng

    @kernel("values", *kind, title=f"advice by rollouts for {game.title}")
    def values_of(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> None:
        rows, plan, _ = memory
        flat(rows, board, aux, rng, np.int64(plan[0]), plan[1], out)
        out += score

    return Agent(spec.text, game, kind, decide, lambda: (game.rows, plan, np.zeros(4)), values_of)


def uct_agent(spec: Spec, game: Game) -> Agent:
    """D1's UCT: random rollouts, c = mean of the node, a new tree for every move."""
    for option in ("trust", "downgrade", "hole"):
        if option in spec.options:
            raise Mistake(f"{option}=… in {spec.text!r} goes with leaf=value: random rollouts read no network")
    tools, best_of, kind = make_uct(game), best_of_values(), ("uct", game.key)
    grow, root_values, plan = tools.search, tools.root_values, _uct_plan(spec)

    @rule_for("think", *kind)
    def think(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> np.uint64:
        rows, tree, plan, _ = memory
        iterations, seconds, late_score, late_seconds, c = plan
        _, rng = grow(
            rows, tree, board, aux, rng, np.int64(iterations), late_seconds if score > late_score else seconds, c
        )
        root_values(tree, out)
        return rng

    @kernel(*kind, title=f"Monte Carlo tree search for {game.title}")
    def decide(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64) -> tuple[Number, np.uint64]:
        rng = think(memory, board, aux, score, rng, memory[3])
        return best_of(memory[3]), rng

    @kernel("values", *kind, title=f"advice by Monte Carlo tree search for {game.title}")
    def values_of(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> None:
        think(memory, board, aux, score, rng, out)
        out += score

    def new_memory() -> Memory:
        return game.rows, new_tree(int(min(plan[0] + 1, MOST_POSITIONS))), tuple(plan), np.zeros(4)

    return Agent(spec.text, game, kind, decide, new_memory, values_of)


def _uct_plan(spec: Spec) -> list[float]:
    """Iterations, seconds, score from which the later limit holds, that limit, c."""
    c = spec.number("c", 1.0, 0.0, 100.0)
    if spec.unit == "d1":
        return [float(D1_ITERATIONS), D1_SECONDS, float(D1_LATE_SCORE), D1_LATE_SECONDS, c]
    if spec.unit == "s":
        return [float(MOST_ITERATIONS), spec.budget, math.inf, spec.budget, c]
    return [spec.budget, 0.0, math.inf, 0.0, c]


def mcts_agent(spec: Spec, game: Game, model: Model) -> Agent:
    """Monte Carlo tree search with the network at the leaves."""
    if spec.unit == "d1":
        raise Mistake(f"{spec.text!r}: d1 plays random rollouts, so write mcts:d1, or mcts:400,leaf=value")
    leaves = value_function(model, game)
    tools, smaller, kind = make_mcts(game, leaves), make_smaller(game), ("mcts", game.key, leaves.key)
    search, root_values, most_visited = tools.search, tools.root_values, tools.most_visited
    settings = Settings(spec.number("c", 0.2, 0.0, 100.0), spec.number("trust", 1.0, 0.01, 1000.0))
    seconds = spec.budget if spec.unit == "s" else 0.0
    iterations = MOST_ITERATIONS if seconds else int(spec.budget)
    threshold, hole = downgrade_settings(spec, game, model)

    @rule_for("think", *kind)
    def think(memory: Memory, board: Board, aux: np.uint64, rng: np.uint64) -> Number:
        rows, weights, notes, tree, settings, plan = memory
        board, aux = smaller(board, aux, plan[2], plan[3])
        return search(rows, weights, notes, tree, board, aux, rng, np.int64(plan[0]), plan[1], settings)

    @kernel(*kind, title=f"Monte Carlo tree search for {game.title} on {leaves.name}")
    def decide(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64) -> tuple[Number, np.uint64]:
        rng = think(memory, board, aux, rng)
        return most_visited(memory[3]), rng

    @kernel("values", *kind, title=f"advice by Monte Carlo tree search for {game.title} on {leaves.name}")
    def values_of(memory: Memory, board: Board, aux: np.uint64, score: int, rng: np.uint64, out: Array) -> None:
        think(memory, board, aux, rng)
        root_values(memory[3], memory[4], out)
        out += score

    def new_memory() -> Memory:
        tree = new_value_tree(min(8 * iterations + 8, MOST_POSITIONS))
        plan = (float(iterations), seconds, float(threshold), float(hole))
        return game.rows, leaves.weights, leaves.new_notes(), tree, settings, plan

    return Agent(spec.text, game, kind, decide, new_memory, values_of, model)
