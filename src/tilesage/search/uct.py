"""UCT on random rollouts: Monte Carlo tree search (Kocsis and Szepesvári 2006) as it is often first written for 2048.

The tree is open-loop: a node stands for a sequence of moves, and every iteration lets chance answer anew. One
iteration walks down by Q/N + c·√(2 ln N_parent / N), where c is the mean Q/N of the node that chooses instead of a
constant, tries one new move, plays at random to the end, and adds the score gained since the root to Q of every node
on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.random import below, draw
from tilesage.games import Game
from tilesage.games.board import Board
from tilesage.search.rollouts import make_rollout

ROOT = 0
NO_CHILD = 0  # the root is nobody's child
NO_NODE = -1


class Tree(NamedTuple):
    """Nodes as arrays; one node is one index."""

    visits: Array  # [nodes] float64, N
    totals: Array  # [nodes] float64, Q: the sum of the scores gained since the root
    children: Array  # [nodes, 4] int32, NO_CHILD where untried
    parents: Array  # [nodes] int32


def new_tree(nodes: int) -> Tree:
    return Tree(np.zeros(nodes), np.zeros(nodes), np.zeros((nodes, 4), np.int32), np.zeros(nodes, np.int32))


class Uct(NamedTuple):
    """The compiled search of a game."""

    search: Callable[..., Any]  # (rows, tree, board, aux, rng, iterations, seconds, c) -> nodes used, rng
    root_values: Callable[..., Any]  # (tree, out): Q/N of each move, nan where untried or illegal


def make_uct(game: Game) -> Uct:
    """The search, compiled for this game."""
    slide, spawn, rollout = game.rules.slide, game.rules.spawn, make_rollout(game)

    @compiled
    def select(tree: Tree, node: Number, legal: Number, c: float) -> Number:
        """The legal move with the largest upper bound; every legal move has been tried."""
        best, best_bound = -1, -math.inf
        explore, parent_mean = 2.0 * math.log(tree.visits[node]), tree.totals[node] / tree.visits[node]
        for action in range(4):
            if legal >> action & 1:
                child = tree.children[node, action]
                n = tree.visits[child]
                mean = tree.totals[child] / n
                bound = mean + c * parent_mean * math.sqrt(explore / n)
                if bound > best_bound:
                    best, best_bound = action, bound
        return best

    @compiled
    def iterate(
        rows: Array, tree: Tree, size: Number, board: Board, aux: np.uint64, rng: np.uint64, c: float
    ) -> tuple[Number, np.uint64]:
        """Walk down, try one new move, play to the end, and carry the score back up."""
        node: Number = ROOT
        gained, new = np.int64(0), False
        while not new:
            legal, untried, n_untried = 0, 0, np.uint64(0)
            for action in range(4):
                if slide(rows, board, aux, action)[0] != board:
                    legal |= 1 << action
                    if tree.children[node, action] == NO_CHILD:
                        untried |= 1 << action
                        n_untried += np.uint64(1)
            if legal == 0 or (untried and size == tree.visits.size):
                break
            if untried:
                bits, rng = draw(rng)
                skip: Number = np.int64(below(bits, n_untried))
                action = 0
                while skip > 0 or not untried >> action & 1:
                    skip -= untried >> action & 1
                    action += 1
                tree.children[node, action], tree.parents[size] = size, node
                tree.visits[size], tree.totals[size], tree.children[size] = 0.0, 0.0, NO_CHILD
                size += 1
                new = True
            else:
                action = select(tree, node, legal, c)
            after, after_aux, reward = slide(rows, board, aux, action)
            board, aux, placed, rng = spawn(after, after_aux, rng)
            gained += reward + placed
            node = np.int64(tree.children[node, action])
        more, rng = rollout(rows, board, aux, rng)
        while node != NO_NODE:
            tree.visits[node] += 1.0
            tree.totals[node] += gained + more
            node = np.int64(tree.parents[node])
        return size, rng

    @compiled
    def search(
        rows: Array,
        tree: Tree,
        board: Board,
        aux: np.uint64,
        rng: np.uint64,
        iterations: int,
        seconds: float,
        c: float,
    ) -> tuple[Number, np.uint64]:
        """Grow a new tree. `seconds` 0: no limit of time. A full tree only goes on collecting rollouts."""
        size, end = 1, now() + seconds if seconds > 0 else math.inf
        tree.visits[ROOT], tree.totals[ROOT], tree.parents[ROOT] = 0.0, 0.0, NO_NODE
        tree.children[ROOT] = NO_CHILD
        for _ in range(iterations):
            size, rng = iterate(rows, tree, size, board, aux, rng, c)
            if seconds > 0 and now() >= end:
                break
        return size, rng

    @compiled
    def root_values(tree: Tree, out: Array) -> None:
        for action in range(4):
            child = tree.children[ROOT, action]
            out[action] = tree.totals[child] / tree.visits[child] if child != NO_CHILD else math.nan

    return Uct(search, root_values)
