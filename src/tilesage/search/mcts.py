"""Monte Carlo tree search with the network at the leaves instead of rollouts.

Positions and afterstates alternate: a position has four moves, an afterstate has the outcomes that chance has shown
so far. One iteration walks down, choosing moves by PUCT on values scaled to the range seen in the tree and letting
the game's own chance choose outcomes, until it meets a position that is not in the tree. That position is added, its
four afterstates are read from the network, and the best r + V is carried back up with the rewards on the way.

A move starts with what the network says of its afterstate, counted as one visit. The part of the tree under the
position that really came up is kept for the next move.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
SIZE = 0  # field of `meter`: positions in the tree


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
    meter: Array  # [1] int64: positions in the tree
    spread: Array  # [2] float64: smallest and largest value seen


def new_tree(positions: int) -> Tree:
    four = (positions, 4)
    return Tree(
        np.zeros(positions, np.uint64),
        np.zeros(positions, np.uint64),
        np.zeros(positions),
        np.zeros(four),
        np.zeros(four),
        np.zeros(four),
        np.zeros(four, np.int32),
        np.zeros(positions, np.int32),
        np.zeros((DEEPEST, 3), np.int64),
        np.zeros(1, np.int64),
        np.zeros(2),
    )


class Mcts(NamedTuple):
    """The compiled search of a game on some leaves."""

    search: Callable[..., Any]  # (rows, weights, notes, tree, board, aux, rng, iterations, seconds, c) -> rng
    begin: Callable[..., Any]  # (rows, weights, notes, tree, board, aux, iterations)
    descend: Callable[..., Any]  # (rows, tree, rng, c) -> depth, new, board, aux, rng
    iterate: Callable[..., Any]  # (rows, weights, notes, tree, rng, c) -> rng
    root_values: Callable[..., Any]  # (tree, out)
    most_visited: Callable[..., Any]  # (tree) -> action


def make_mcts(game: Game, leaves: ValueFunction) -> Mcts:
    """The search, compiled for this game and these leaves."""
    slide, spawn, after_value = game.rules.slide, game.rules.spawn, leaves.after_value
    keep_below = make_keep_below()

    @compiled
    def add(rows: Array, weights: Any, notes: Notes, tree: Tree, board: Board, aux: np.uint64) -> Number:
        """Put a position into the tree; its value by the network, 0 when no move is legal."""
        node, best = tree.meter[SIZE], 0.0
        tree.meter[SIZE] = node + 1
        tree.boards[node], tree.auxes[node], tree.visits[node] = board, aux, 0.0
        for action in range(4):
            after, after_aux, reward = slide(rows, board, aux, action)
            tree.counts[node, action], tree.totals[node, action] = 0.0, 0.0
            tree.firsts[node, action], tree.outcomes[node, action] = math.nan, NO_NODE
            if after != board:
                value = reward + max(after_value(weights, notes, after, after_aux), 0.0)
                tree.firsts[node, action] = value
                tree.spread[0], tree.spread[1] = min(tree.spread[0], value), max(tree.spread[1], value)
                best = max(best, value)
        return best

    @compiled
    def mean(tree: Tree, node: Number, action: Number) -> Number:
        """What a move is worth so far: the mean of its returns and of the network's first word."""
        return (tree.totals[node, action] + tree.firsts[node, action]) / (tree.counts[node, action] + 1.0)

    @compiled
    def select(tree: Tree, node: Number, c: float) -> Number:
        """The move by PUCT with equal priors on scaled values; NO_MOVE when none is legal."""
        best, best_bound = NO_MOVE, -math.inf
        scale = max(tree.spread[1] - tree.spread[0], 1e-6)
        explore = c * math.sqrt(tree.visits[node] + 1.0)
        for action in range(4):
            if not math.isnan(tree.firsts[node, action]):
                bound = mean(tree, node, action) / scale + explore / (1.0 + tree.counts[node, action])
                if bound > best_bound:
                    best, best_bound = action, bound
        return best

    @compiled
    def outcome(tree: Tree, node: Number, action: Number, board: Board, aux: np.uint64) -> Number:
        """The outcome of a move that is this position, NO_NODE when it has not come up yet."""
        child = np.int64(tree.outcomes[node, action])
        while child != NO_NODE and (tree.boards[child] != board or tree.auxes[child] != aux):
            child = np.int64(tree.siblings[child])
        return child

    @compiled(inline=True)
    def descend(
        rows: Array, tree: Tree, rng: np.uint64, c: float
    ) -> tuple[Number, bool, Board, np.uint64, np.uint64]:
        """Select moves down to a position that is new, or to the end of a game; `tree.path` is the way there."""
        node: Number = np.int64(ROOT)
        depth, board, aux = 0, tree.boards[ROOT], tree.auxes[ROOT]
        while depth < DEEPEST:
            action = select(tree, node, c)
            if action == NO_MOVE:
                break
            after, after_aux, reward = slide(rows, tree.boards[node], tree.auxes[node], action)
            board, aux, placed, rng = spawn(after, after_aux, rng)
            tree.path[depth, 0], tree.path[depth, 1], tree.path[depth, 2] = node, action, reward + placed
            depth += 1
            child = outcome(tree, node, action, board, aux)
            if child == NO_NODE:
                return depth, True, board, aux, rng
            node = child
        return depth, False, board, aux, rng

    @compiled
    def iterate(rows: Array, weights: Any, notes: Notes, tree: Tree, rng: np.uint64, c: float) -> np.uint64:
        """One walk down and back up: a new position is added, and what it is worth is backed up with the rewards."""
        depth, new, board, aux, rng = descend(rows, tree, rng, c)
        value = 0.0
        if new:
            node, action = tree.path[depth - 1, 0], tree.path[depth - 1, 1]
            tree.siblings[tree.meter[SIZE]] = tree.outcomes[node, action]
            tree.outcomes[node, action] = tree.meter[SIZE]
            value = add(rows, weights, notes, tree, board, aux)
        while depth > 0:
            depth -= 1
            node, action = tree.path[depth, 0], tree.path[depth, 1]
            value += np.float64(tree.path[depth, 2])
            tree.visits[node] += 1.0
            tree.counts[node, action] += 1.0
            tree.totals[node, action] += value
        return rng

    @compiled
    def begin(
        rows: Array, weights: Any, notes: Notes, tree: Tree, board: Board, aux: np.uint64, iterations: int
    ) -> None:
        """The tree of this position: what is known of it from the move before, unless so many more have no room."""
        room = tree.boards.size
        if not keep_below(tree, board, aux) or tree.meter[SIZE] + min(iterations, room // 2) > room:
            tree.meter[SIZE] = 0
            tree.spread[0], tree.spread[1] = math.inf, -math.inf
            add(rows, weights, notes, tree, board, aux)

    @compiled
    def search(
        rows: Array,
        weights: Any,
        notes: Notes,
        tree: Tree,
        board: Board,
        aux: np.uint64,
        rng: np.uint64,
        iterations: int,
        seconds: float,
        c: float,
    ) -> np.uint64:
        """Grow the tree of this position."""
        end = now() + seconds if seconds > 0 else math.inf
        begin(rows, weights, notes, tree, board, aux, iterations)
        for _ in range(iterations):
            if tree.meter[SIZE] == tree.boards.size:
                break
            rng = iterate(rows, weights, notes, tree, rng, c)
            if seconds > 0 and now() >= end:
                break
        return rng

    @compiled
    def root_values(tree: Tree, out: Array) -> None:
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

    return Mcts(search, begin, descend, iterate, root_values, most_visited)


def make_keep_below() -> Callable[..., Any]:
    """`keep_below(tree, board, aux) -> found`: make an outcome of the root the new root, forget the rest."""

    @compiled
    def find(tree: Tree, board: Board, aux: np.uint64) -> Number:
        if tree.meter[SIZE] > 0:
            for action in range(4):
                child = np.int64(tree.outcomes[ROOT, action])
                while child != NO_NODE:
                    if tree.boards[child] == board and tree.auxes[child] == aux:
                        return child
                    child = np.int64(tree.siblings[child])
        return NO_NODE

    @compiled
    def move(tree: Tree, source: int, target: int) -> None:
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
        """Outcomes have larger indices than the position they come from, so one sweep moves the subtree down."""
        root = find(tree, board, aux)
        if root == NO_NODE:
            return False
        size = tree.meter[SIZE]
        moved_to = np.full(size, NO_NODE, np.int32)
        kept = np.zeros(size, np.bool_)
        kept[root] = True
        for node in range(root, size):
            if kept[node]:
                for action in range(4):
                    child = np.int64(tree.outcomes[node, action])
                    while child != NO_NODE:
                        kept[child] = True
                        child = np.int64(tree.siblings[child])
        new_size = 0
        tree.spread[0], tree.spread[1] = math.inf, -math.inf
        for node in range(root, size):
            if kept[node]:
                moved_to[node] = new_size
                move(tree, node, new_size)
                new_size += 1
        tree.siblings[ROOT] = NO_NODE
        for node in range(new_size):
            if node > ROOT and tree.siblings[node] != NO_NODE:
                tree.siblings[node] = moved_to[tree.siblings[node]]
            for action in range(4):
                first = tree.firsts[node, action]
                if not math.isnan(first):
                    tree.spread[0], tree.spread[1] = min(tree.spread[0], first), max(tree.spread[1], first)
                if tree.outcomes[node, action] != NO_NODE:
                    tree.outcomes[node, action] = moved_to[tree.outcomes[node, action]]
        tree.meter[SIZE] = new_size
        return True

    return keep_below
