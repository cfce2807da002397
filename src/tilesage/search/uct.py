"""UCT on random rollouts: Monte Carlo tree search (Kocsis and Szepesvári 2006) as it is often first written for 2048.

The tree is open-loop: a node stands for a sequence of moves, and every iteration lets chance answer anew. One
iteration has four phases: select walks down by Q/N + c·√(2 ln N_parent / N), where c is the mean Q/N of the node that
chooses instead of a constant; expand tries one new move; evaluate plays at random to the end; backup adds the score
gained since the root to Q of every node on the way.

The report D1 differs in two points, which are limits of a search here. Its code removes illegal moves at the root
only: below it a node has all four, and one that moves nothing leaves the position as it is. Its text counts what the
random game alone gains, not the points on the way to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilesage.core.clock import now
from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.random import below, draw
from tilesage.games import Game
from tilesage.games.board import Board
from tilesage.search import rollouts

ROOT = 0
NO_CHILD = 0  # the root is nobody's child
NO_NODE = -1
ALL_MOVES = 15


class Tree(NamedTuple):
    """Nodes as arrays; one node is one index."""

    visits: Array  # [nodes] float64, N
    totals: Array  # [nodes] float64, Q: the sum of the scores gained since the root
    children: Array  # [nodes, 4] int32, NO_CHILD where untried
    parents: Array  # [nodes] int32
    size: Array  # [1] int64: so many nodes are in use


class Limits(NamedTuple):
    """When a search ends, and how much it explores."""

    iterations: float
    seconds: float  # a move; 0: no limit
    late_score: float  # past it,
    late_seconds: float  # so many seconds a move
    c: float  # a factor of the dynamic constant
    all_moves: bool = False  # of a node below the root, those that move nothing too; only legal ones otherwise
    rollout_alone: bool = False  # counts, without the points between the root and it


class SearchState(NamedTuple):
    """Everything one search works on."""

    rows: Array  # the row table of the game
    tree: Tree
    limits: Limits


class Search(Protocol):
    """Grow a new tree."""

    def __call__(self, state: SearchState, board: Board, aux: np.uint64, rng: np.uint64, seconds: float) -> np.uint64:
        """Returns the generator. A full tree only goes on collecting rollouts.

        Args:
            state: its tree is written anew, its limits tell the iterations.
            board, aux: the position at the root.
            seconds: 0: no limit of time.
        """


def new_tree(nodes: int) -> Tree:
    four = np.zeros((nodes, 4), np.int32)
    return Tree(np.zeros(nodes), np.zeros(nodes), four, np.zeros(nodes, np.int32), np.zeros(1, np.int64))


@compiled(inline=True)
def ucb(tree: Tree, node: Number, moves: Number, c: float) -> Number:
    """The move with the largest upper bound; all of them have been tried."""
    best, best_bound = -1, -math.inf
    explore, parent_mean = 2.0 * math.log(tree.visits[node]), tree.totals[node] / tree.visits[node]
    for action in range(4):
        if moves >> action & 1:
            child = tree.children[node, action]
            n = tree.visits[child]
            mean = tree.totals[child] / n
            bound = mean + c * parent_mean * math.sqrt(explore / n)
            if bound > best_bound:
                best, best_bound = action, bound
    return best


@compiled(inline=True)
def any_of(moves: Number, rng: np.uint64) -> tuple[Number, np.uint64]:
    """One of a set of moves, given as bits; all are equally likely."""
    size = np.uint64(0)
    for action in range(4):
        size += np.uint64(moves >> action & 1)
    bits, rng = draw(rng)
    skip: Number = np.int64(below(bits, size))
    action = 0
    while skip > 0 or not moves >> action & 1:
        skip -= moves >> action & 1
        action += 1
    return action, rng


@compiled(inline=True)
def expand(tree: Tree, parent: Number, action: Number) -> Number:
    """The new node for a move."""
    node = tree.size[0]
    tree.size[0] = node + 1
    tree.visits[node], tree.totals[node], tree.children[node] = 0.0, 0.0, NO_CHILD
    tree.parents[node] = parent
    if parent != NO_NODE:
        tree.children[parent, action] = node
    return node


@compiled(inline=True)
def backup(tree: Tree, node: Number, score: Number) -> None:
    """Count the score for a node and all above it."""
    while node != NO_NODE:
        tree.visits[node] += 1.0
        tree.totals[node] += score
        node = np.int64(tree.parents[node])


@compiled
def root_values(tree: Tree, out: Array) -> None:
    """Q/N of each move, nan where untried or illegal."""
    for action in range(4):
        child = tree.children[ROOT, action]
        out[action] = tree.totals[child] / tree.visits[child] if child != NO_CHILD else math.nan


@cache
def build(game: Game) -> Search:
    """The search, compiled for this game."""
    slide, play, evaluate = game.rules.slide, one_move(game), rollouts.build(game).rollout

    @compiled(inline=True)
    def select(
        state: SearchState, board: Board, aux: np.uint64, rng: np.uint64
    ) -> tuple[Number, Number, Board, np.uint64, Number, np.uint64]:
        """Walk down to a node with untried moves, or to the end of a game: node, these moves, position, points."""
        tree = state.tree
        node, gained = np.int64(ROOT), np.int64(0)
        while True:
            moves, untried = 0, 0
            for action in range(4):
                if slide(state.rows, board, aux, action)[0] != board:
                    moves |= 1 << action
            if moves and node != ROOT and state.limits.all_moves:
                moves = ALL_MOVES
            for action in range(4):
                if tree.children[node, action] == NO_CHILD:
                    untried |= moves & 1 << action
            if moves == 0 or untried:
                return node, untried, board, aux, gained, rng
            action = ucb(tree, node, moves, state.limits.c)
            board, aux, points, rng = play(state.rows, board, aux, action, rng)
            gained += points
            node = np.int64(tree.children[node, action])

    @compiled
    def iterate(state: SearchState, board: Board, aux: np.uint64, rng: np.uint64) -> np.uint64:
        """Select, expand, evaluate, backup."""
        tree = state.tree
        node, untried, board, aux, gained, rng = select(state, board, aux, rng)
        if untried and tree.size[0] < tree.visits.size:
            action, rng = any_of(untried, rng)
            node = expand(tree, node, action)
            board, aux, points, rng = play(state.rows, board, aux, action, rng)
            gained += points
        more, rng = evaluate(state.rows, board, aux, rng)
        backup(tree, node, more if state.limits.rollout_alone else gained + more)
        return rng

    @compiled
    def search(state: SearchState, board: Board, aux: np.uint64, rng: np.uint64, seconds: float) -> np.uint64:
        end = now() + seconds if seconds > 0 else math.inf
        state.tree.size[0] = 0
        expand(state.tree, NO_NODE, 0)
        for _ in range(np.int64(state.limits.iterations)):
            rng = iterate(state, board, aux, rng)
            if seconds > 0 and now() >= end:
                break
        return rng

    return search


def one_move(game: Game) -> Callable[..., Any]:
    """`play(rows, board, aux, action, rng)`: a move and the answer of chance."""
    slide, spawn = game.rules.slide, game.rules.spawn

    @compiled
    def play(
        rows: Array, board: Board, aux: np.uint64, action: Number, rng: np.uint64
    ) -> tuple[Board, np.uint64, Number, np.uint64]:
        """A move and the answer of chance, which waits for a legal one: next position, points, generator."""
        after, after_aux, reward = slide(rows, board, aux, action)
        if after == board:
            return board, aux, np.int64(0), rng
        board, aux, placed, rng = spawn(after, after_aux, rng)
        return board, aux, reward + placed, rng

    return play
