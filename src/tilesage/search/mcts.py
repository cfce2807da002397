"""Monte Carlo tree search with the network at the leaves instead of rollouts.

Positions and afterstates alternate: a position has four moves, an afterstate has the outcomes that chance has shown
so far. One iteration has four phases. Select walks down, choosing moves by PUCT and letting the game's own chance
choose outcomes, until it meets a position that is not in the tree. Expand adds that position, evaluate reads its four
afterstates from the network, and backup carries the best r + V up with the rewards on the way.

A move starts with what the network says of its afterstate, counted as one visit. Exploration is measured in what
moves differ by: the running median of how far a move is below the best one of its position, by the network's word. A
position in which some move means death does not change it, however much that move gives away. Every move has a tree
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.games import Game
from tilesage.games.board import Board
from tilesage.networks.functions import Notes, ValueFunction
from tilesage.search.kinds import NO_MOVE

ROOT = 0
NO_NODE = -1
DEEPEST = 4096
NUDGE = 1.05  # of the running median, up or down by each difference that is met


class Tree(NamedTuple):
    """Positions as arrays: one position is one index; a move of it is (position, action)."""

    boards: Array  # [positions] uint64
    auxes: Array  # [positions] uint64
    visits: Array  # [positions] float64
    counts: Array  # [positions, 4] float64, visits of each move
    totals: Array  # [positions, 4] float64, sum of the returns of each move
    firsts: Array  # [positions, 4] float64, r + V(afterstate) by the network, nan where illegal
    outcomes: Array  # [positions, 4] int32, the latest outcome of each move, NO_NODE where none
    siblings: Array  # [positions] int32, the outcome of the same move before this one
    path: Array  # [DEEPEST, 3] int64, positions, actions and points gained on the way down
    size: Array  # [1] int64: so many positions are in the tree
    scale: Array  # [1] float64: what moves usually differ by; 0 while none have differed


class Limits(NamedTuple):
    """When a search ends, and how much it explores."""

    iterations: float
    seconds: float  # a move; 0: no limit
    c: float  # of PUCT


class SearchState(NamedTuple):
    """Everything one search works on."""

    rows: Array  # the row table of the game
    weights: Any  # what the value function reads,
    notes: Notes  # and its own room
    tree: Tree
    limits: Limits


class Search(Protocol):
    """Grow the tree of a position, as far as the limits of the state allow."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64, rng: np.uint64) -> np.uint64:
        """Returns the generator."""


class Begin(Protocol):
    """Make the tree that of a position."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64) -> None:
        """Nothing is left in it of positions before."""


class Select(Protocol):
    """The first phase of an iteration."""

    def __call__(self, state: SearchState, rng: np.uint64) -> tuple[Number, bool, Board, np.uint64, np.uint64]:
        """Walk down to a position that is new, or to the end of a game. `Tree.path` becomes the way there.

        Returns its length, whether the position at its end is new, the position (board, aux), and the generator.
        """


class Iterate(Protocol):
    """Select, expand, evaluate, backup."""

    def __call__(self, state: SearchState, rng: np.uint64) -> np.uint64:
        """Returns the generator."""


class Mcts(NamedTuple):
    """The search of a game on some value function; `begin`, `select` and `iterate` for those who go step by step."""

    search: Search
    begin: Begin
    select: Select
    iterate: Iterate


def new_tree(positions: int) -> Tree:
    four = (positions, 4)
    return Tree(
        boards=np.zeros(positions, np.uint64),
        auxes=np.zeros(positions, np.uint64),
        visits=np.zeros(positions),
        counts=np.zeros(four),
        totals=np.zeros(four),
        firsts=np.zeros(four),
        outcomes=np.zeros(four, np.int32),
        siblings=np.zeros(positions, np.int32),
        path=np.zeros((DEEPEST, 3), np.int64),
        size=np.zeros(1, np.int64),
        scale=np.zeros(1),
    )


@compiled(inline=True)
def mean(tree: Tree, node: Number, action: Number) -> Number:
    """What a move is worth so far: the mean of its returns and of the network's first word."""
    return (tree.totals[node, action] + tree.firsts[node, action]) / (tree.counts[node, action] + 1.0)


@compiled(inline=True)
def puct(tree: Tree, node: Number, c: float) -> Number:
    """The move by PUCT with equal priors; NO_MOVE when none is legal."""
    best, best_bound = NO_MOVE, -math.inf
    explore = c * tree.scale[0] * math.sqrt(tree.visits[node] + 1.0)
    for action in range(4):
        if not math.isnan(tree.firsts[node, action]):
            bound = mean(tree, node, action) + explore / (1.0 + tree.counts[node, action])
            if bound > best_bound:
                best, best_bound = action, bound
    return best


@compiled(inline=True)
def outcome(tree: Tree, node: Number, action: Number, board: Board, aux: np.uint64) -> Number:
    """The outcome of a move that is this position, NO_NODE when it has not come up yet."""
    child = np.int64(tree.outcomes[node, action])
    while child != NO_NODE and (tree.boards[child] != board or tree.auxes[child] != aux):
        child = np.int64(tree.siblings[child])
    return child


@compiled(inline=True)
def expand(tree: Tree, depth: Number, board: Board, aux: np.uint64) -> Number:
    """Put the position at the end of the path into the tree, its moves still unknown; at depth 0 it is the root.

    Once all places but the last are taken, it stands there for the time being, and nothing leads to it.
    """
    node = np.int64(tree.size[0])
    full = node == tree.boards.size - 1
    tree.size[0] += not full
    tree.boards[node], tree.auxes[node], tree.visits[node] = board, aux, 0.0
    for action in range(4):
        tree.counts[node, action], tree.totals[node, action] = 0.0, 0.0
        tree.firsts[node, action], tree.outcomes[node, action] = math.nan, NO_NODE
    if depth > 0 and not full:
        parent, action = tree.path[depth - 1, 0], tree.path[depth - 1, 1]
        tree.siblings[node] = tree.outcomes[parent, action]
        tree.outcomes[parent, action] = node
    return node


@compiled(inline=True)
def backup(tree: Tree, depth: Number, value: Number) -> None:
    """Carry a value up the path, with the points gained on the way."""
    while depth > 0:
        depth -= 1
        node, action = tree.path[depth, 0], tree.path[depth, 1]
        value += np.float64(tree.path[depth, 2])
        tree.visits[node] += 1.0
        tree.counts[node, action] += 1.0
        tree.totals[node, action] += value


@compiled(inline=True)
def learn_scale(tree: Tree, gap: Number) -> None:
    """One more difference between a move and the best one; nan where a move is illegal."""
    if gap > 0.0:
        scale = tree.scale[0]
        tree.scale[0] = gap if scale == 0.0 else scale * NUDGE if gap > scale else scale / NUDGE


@compiled
def root_values(tree: Tree, out: Array) -> None:
    """What each move of the root is worth, nan where illegal."""
    for action in range(4):
        out[action] = mean(tree, ROOT, action)


@compiled
def most_visited(tree: Tree) -> Number:
    """The move with the most visits, the better one of equals."""
    best = NO_MOVE
    for action in range(4):
        if math.isnan(tree.firsts[ROOT, action]):
            continue
        more = 1.0 if best == NO_MOVE else tree.counts[ROOT, action] - tree.counts[ROOT, best]
        if more > 0 or (more == 0 and mean(tree, ROOT, action) > mean(tree, ROOT, best)):
            best = action
    return best


@cache
def build(game: Game, value: ValueFunction) -> Mcts:
    """The search, compiled for this game and this value function, `value.code`."""
    slide, spawn, evaluate = game.rules.slide, game.rules.spawn, evaluation(game, value)

    @compiled(inline=True)
    def select(state: SearchState, rng: np.uint64) -> tuple[Number, bool, Board, np.uint64, np.uint64]:
        tree, node = state.tree, np.int64(ROOT)
        depth, board, aux = 0, tree.boards[ROOT], tree.auxes[ROOT]
        while depth < DEEPEST:
            action = puct(tree, node, state.limits.c)
            if action == NO_MOVE:
                break
            after, after_aux, reward = slide(state.rows, tree.boards[node], tree.auxes[node], action)
            board, aux, placed, rng = spawn(after, after_aux, rng)
            tree.path[depth, 0], tree.path[depth, 1], tree.path[depth, 2] = node, action, reward + placed
            depth += 1
            child = outcome(tree, node, action, board, aux)
            if child == NO_NODE:
                return depth, True, board, aux, rng
            node = child
        return depth, False, board, aux, rng

    @compiled(inline=True)
    def iterate(state: SearchState, rng: np.uint64) -> np.uint64:
        value = 0.0
        depth, new, board, aux, rng = select(state, rng)
        if new:
            value = evaluate(state, expand(state.tree, depth, board, aux))
        backup(state.tree, depth, value)
        return rng

    @compiled
    def begin(state: SearchState, board: Board, aux: np.uint64) -> None:
        state.tree.size[0], state.tree.scale[0] = 0, 0.0
        evaluate(state, expand(state.tree, 0, board, aux))

    @compiled
    def search(state: SearchState, board: Board, aux: np.uint64, rng: np.uint64) -> np.uint64:
        seconds = state.limits.seconds
        end = now() + seconds if seconds > 0 else math.inf
        begin(state, board, aux)
        for _ in range(np.int64(state.limits.iterations)):
            rng = iterate(state, rng)
            if seconds > 0 and now() >= end:
                break
        return rng

    return Mcts(search, begin, select, iterate)


def evaluation(game: Game, value: ValueFunction) -> Callable[[SearchState, Number], Number]:
    """`evaluate(state, node)`, the third phase of an iteration."""
    slide, after_value = game.rules.slide, value.after_value

    @compiled(inline=True)
    def evaluate(state: SearchState, node: Number) -> Number:
        """Know the moves of a new position; its value by the network, 0 when no move is legal."""
        tree, best = state.tree, 0.0
        board, aux = tree.boards[node], tree.auxes[node]
        for action in range(4):
            after, after_aux, reward = slide(state.rows, board, aux, action)
            if after != board:
                value = reward + max(after_value(state.weights, state.notes, after, after_aux), 0.0)
                tree.firsts[node, action] = value
                best = max(best, value)
        for action in range(4):
            learn_scale(tree, best - tree.firsts[node, action])
        return best

    return evaluate
