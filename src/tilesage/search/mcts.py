"""Monte Carlo tree search with the network at the leaves instead of rollouts.

Positions and afterstates alternate: a position has four moves, an afterstate has the outcomes that chance has shown
so far. One iteration has four phases. Select walks down, choosing moves by PUCT on values scaled to the range seen in
the tree and letting the game's own chance choose outcomes, until it meets a position that is not in the tree. Expand
adds that position, evaluate reads its four afterstates from the network, and backup carries the best r + V up with
the rewards on the way.

A move starts with what the network says of its afterstate, counted as one visit. The part of the tree under the
position that really came up is kept for the next move.
"""

from __future__ import annotations

import math
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
LOW, HIGH = 0, 1  # of `Tree.spread`


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
    spread: Array  # [2] float64: smallest and largest value seen


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
        ...


class Begin(Protocol):
    """Make the tree that of a position."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64) -> None:
        """Keeps what is known of it from the move before, unless the next iterations would have no room."""
        ...


class Select(Protocol):
    """The first phase of an iteration."""

    def __call__(self, state: SearchState, rng: np.uint64) -> tuple[Number, bool, Board, np.uint64, np.uint64]:
        """Walk down to a position that is new, or to the end of a game. `Tree.path` becomes the way there.

        Returns its length, whether the position at its end is new, the position (board, aux), and the generator.
        """
        ...


class Iterate(Protocol):
    """Select, expand, evaluate, backup."""

    def __call__(self, state: SearchState, rng: np.uint64) -> np.uint64:
        """Returns the generator."""
        ...


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
        spread=np.zeros(2),
    )


@compiled(inline=True)
def mean(tree: Tree, node: Number, action: Number) -> Number:
    """What a move is worth so far: the mean of its returns and of the network's first word."""
    return (tree.totals[node, action] + tree.firsts[node, action]) / (tree.counts[node, action] + 1.0)


@compiled(inline=True)
def puct(tree: Tree, node: Number, c: float) -> Number:
    """The move by PUCT with equal priors on scaled values; NO_MOVE when none is legal."""
    best, best_bound = NO_MOVE, -math.inf
    scale = max(tree.spread[HIGH] - tree.spread[LOW], 1e-6)
    explore = c * math.sqrt(tree.visits[node] + 1.0)
    for action in range(4):
        if not math.isnan(tree.firsts[node, action]):
            bound = mean(tree, node, action) / scale + explore / (1.0 + tree.counts[node, action])
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
    """Put the position at the end of the path into the tree, its moves still unknown; at depth 0 it is the root."""
    node = tree.size[0]
    tree.size[0] = node + 1
    tree.boards[node], tree.auxes[node], tree.visits[node] = board, aux, 0.0
    for action in range(4):
        tree.counts[node, action], tree.totals[node, action] = 0.0, 0.0
        tree.firsts[node, action], tree.outcomes[node, action] = math.nan, NO_NODE
    if depth > 0:
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
    slide, spawn, after_value = game.rules.slide, game.rules.spawn, value.after_value

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
    def evaluate(state: SearchState, node: Number) -> Number:
        """Know the moves of a new position; its value by the network, 0 when no move is legal."""
        tree, best = state.tree, 0.0
        board, aux = tree.boards[node], tree.auxes[node]
        for action in range(4):
            after, after_aux, reward = slide(state.rows, board, aux, action)
            if after != board:
                value = reward + max(after_value(state.weights, state.notes, after, after_aux), 0.0)
                tree.firsts[node, action] = value
                tree.spread[LOW], tree.spread[HIGH] = min(tree.spread[LOW], value), max(tree.spread[HIGH], value)
                best = max(best, value)
        return best

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
        tree, room = state.tree, state.tree.boards.size
        iterations = np.int64(state.limits.iterations)
        if not keep_below(tree, board, aux) or tree.size[0] + min(iterations, room // 2) > room:
            tree.size[0] = 0
            tree.spread[LOW], tree.spread[HIGH] = math.inf, -math.inf
            evaluate(state, expand(tree, 0, board, aux))

    @compiled
    def search(state: SearchState, board: Board, aux: np.uint64, rng: np.uint64) -> np.uint64:
        tree, seconds = state.tree, state.limits.seconds
        end = now() + seconds if seconds > 0 else math.inf
        begin(state, board, aux)
        for _ in range(np.int64(state.limits.iterations)):
            if tree.size[0] == tree.boards.size:
                break
            rng = iterate(state, rng)
            if seconds > 0 and now() >= end:
                break
        return rng

    return Mcts(search, begin, select, iterate)


# --- from move to move --------------------------------------------------------------------------------------------


@compiled
def find(tree: Tree, board: Board, aux: np.uint64) -> Number:
    """An outcome of the root; NO_NODE when the position has not come up."""
    for action in range(4 if tree.size[0] > 0 else 0):
        child = outcome(tree, ROOT, action, board, aux)
        if child != NO_NODE:
            return child
    return NO_NODE


@compiled
def descendants(tree: Tree, root: Number) -> Array:
    """[positions] bool: is it the root or below? An outcome has a larger index than the position it comes from."""
    below = np.zeros(tree.size[0], np.bool_)
    below[root] = True
    for node in range(root, tree.size[0]):
        for action in range(4 if below[node] else 0):
            child = np.int64(tree.outcomes[node, action])
            while child != NO_NODE:
                below[child] = True
                child = np.int64(tree.siblings[child])
    return below


@compiled
def move(tree: Tree, source: int, target: int) -> None:
    """Write a position to another place of the arrays."""
    tree.boards[target], tree.auxes[target] = tree.boards[source], tree.auxes[source]
    tree.visits[target] = tree.visits[source]
    for action in range(4):
        tree.counts[target, action] = tree.counts[source, action]
        tree.totals[target, action] = tree.totals[source, action]
        tree.firsts[target, action] = tree.firsts[source, action]
        tree.outcomes[target, action] = tree.outcomes[source, action]
    tree.siblings[target] = tree.siblings[source]


@compiled
def keep_below(tree: Tree, board: Board, aux: np.uint64) -> bool:
    """Make an outcome of the root the new root and forget the rest. False, and nothing done, when there is none."""
    root = find(tree, board, aux)
    if root == NO_NODE:
        return False
    below = descendants(tree, root)
    moved_to = np.full(below.size, NO_NODE, np.int32)
    new_size = 0
    tree.spread[LOW], tree.spread[HIGH] = math.inf, -math.inf
    for node in range(root, below.size):
        if below[node]:
            moved_to[node] = new_size
            move(tree, node, new_size)
            new_size += 1
    tree.siblings[ROOT] = NO_NODE
    for node in range(new_size):
        if tree.siblings[node] != NO_NODE:
            tree.siblings[node] = moved_to[tree.siblings[node]]
        for action in range(4):
            first = tree.firsts[node, action]
            if not math.isnan(first):
                tree.spread[LOW], tree.spread[HIGH] = min(tree.spread[LOW], first), max(tree.spread[HIGH], first)
            if tree.outcomes[node, action] != NO_NODE:
                tree.outcomes[node, action] = moved_to[tree.outcomes[node, action]]
    tree.size[0] = new_size
    return True
