"""Expectimax of many games at once on a GPU, layer by layer.

One step makes a move in every game. The searches of all games grow together, in long lists: afterstates, positions,
questions to the network.

    open_moves  the moves of every game                                                    -> afterstates
    spread      what chance may make of the afterstates of a layer                         -> positions
    ask         which afterstates come next that have no known value (known_values.py)     -> questions
    look_up     these are read from the network
    answer      leaves take the best value, the others are followed by their moves         -> afterstates
    settle      positions hand their value up to the afterstate before them, last layer first
    go_on       every game makes its best move

It is the tree of search/expectimax.py, node by node, so these are the games of the CPU; afterstates that are met
again on a layer are found by a table here too. Values are added up as whole numbers, in parts of a point, so the
order of the threads does not matter.

When there is no more room, nobody moves, and from then on half as many games are searched at a time.

A second search with a network of its own (search/game_2048/practice.py) takes turns with the first: each moves in
the games whose boards are its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.games.board import symmetry
from tilesage.gpu import known_values
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.lists import (
    AFTERSTATE_ENDS,
    AFTERSTATES,
    COUNTS,
    FULL,
    ILLEGAL,
    LEAF,
    NO_ROOM,
    PARTS,
    POSITION_ENDS,
    POSITIONS,
    QUESTIONS,
    RESTING,
    SWEPT,
    TURN,
    ZERO,
    Afterstates,
    Positions,
    Questions,
    Roots,
    Table,
    add_afterstate,
    follow,
    layer,
    reserve,
)
from tilesage.gpu.machine import BLOCK, SIMULATED, cuda, device, int32, int64, launched, stride, thread_number
from tilesage.gpu.memory import check_room, free_memory, new
from tilesage.gpu.play import NO_GAME, Boards, GpuPlayer, itself, whole_games
from tilesage.gpu.repeated import repeated
from tilesage.search.expectimax import MOVES, among_best, best_of, likeliest, position_key
from tilesage.search.game_2048.endgames import Endgames, leave, make_overrule, turned_action
from tilesage.search.game_2048.practice import Part
from tilesage.search.kinds import NOWHERE
from tilesage.search.last_layer import ALIVE

POINT = float(1 << 30)  # values are whole numbers of so many parts of a point
GRID = (1, 1) if SIMULATED else (1056, BLOCK)  # more threads of the simulator wait for each other
MOST_NODES = 1 << 12 if SIMULATED else 1 << 25
FEWEST_NODES = 1 << 12
BYTES_A_NODE = 176  # an afterstate, a position with four moves, two places in the table, a question
GAMES_AT_ONCE = BLOCK if SIMULATED else 1 << 13
STEPS_A_GRAPH = 1 if SIMULATED else 16


class Search(NamedTuple):
    """How far a search looks: see search/expectimax.py."""

    layers: int
    width: int = MOVES
    prune: float = 0.0


class Practised(NamedTuple):
    """A second network, for the boards that it has practised."""

    part: Part
    lesson: Lesson
    weights: Any


class View(NamedTuple):
    """Which boards a search moves in, and what it sees of them."""

    way: Callable[..., Any]  # (rows of the game, board, aux) -> how it turns a board to see it; NOWHERE: not its own
    see: Callable[..., Any]  # (board, aux, way) -> board, aux


@compiled
def everywhere(rows: Array, board: np.uint64, aux: np.uint64) -> int:
    return 0


@cache
def view_of(seen: Callable[..., Any] | None, part: Part | None) -> View:
    """The view of a search of all boards but those of `part`; it looks at `seen(board, aux)` instead of a board."""
    through, find = seen or itself, part.find if part else everywhere

    @device
    def see(board: np.uint64, aux: np.uint64, way: int) -> Any:
        return through(board, aux)

    @device
    def elsewhere(rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        return 0 if find(rows, board, aux) == NOWHERE else NOWHERE

    return View(elsewhere if part else everywhere, see)


@cache
def view_of_part(part: Part) -> View:
    """The view of the search that has practised a part."""
    see_part = part.see

    @device
    def see(board: np.uint64, aux: np.uint64, way: int) -> Any:
        return see_part(symmetry(board, way)), aux

    return View(part.find, see)


@device
def fixed(value: float) -> Any:
    return int64(value * POINT)


@launched
def turn_over(counts: Array, positions: Positions) -> None:
    """Before a step: empty lists, and the next part of the games. One thread does it."""
    counts[SWEPT] = counts[FULL]
    if counts[FULL] != 0:
        counts[PARTS] *= 2
        counts[TURN] = 0
    elif counts[TURN] + 1 < counts[PARTS]:
        counts[TURN] += 1
    else:
        counts[TURN] = 0
        if counts[PARTS] > 1 and counts[POSITIONS] * 4 < positions.boards.size:
            counts[PARTS] //= 2
    counts[AFTERSTATES] = counts[POSITIONS] = counts[QUESTIONS] = counts[FULL] = 0


@launched
def sweep(counts: Array, table: Table) -> None:
    """After a step that found no room: an empty table. Other steps clear what they have used."""
    for i in range(thread_number(), table.keys.size if counts[SWEPT] != 0 else 0, stride()):
        table.keys[i] = ZERO


def roots(game: Game, played: Game, view: View, solved: bool) -> tuple[Any, Any]:
    """The kernels `open_moves`, which deals where a game has just begun, and `go_on`, which makes the best moves."""
    slide, symmetric, (deal, move), (way_of, see) = game.rules.slide, game.symmetric, whole_games(played), view
    overrule = make_overrule() if solved else leave

    @launched
    def open_moves(
        rows: Array, played_rows: Array, at: Boards, roots: Roots, nodes: Afterstates, counts: Array, seed: np.uint64
    ) -> None:
        for game in range(thread_number(), at.numbers.size, stride()):
            roots.afterstates[game, 0] = RESTING
            ready, way = at.numbers[game] != NO_GAME and game % counts[PARTS] == counts[TURN], NOWHERE
            if ready and at.boards[game] == ZERO:
                deal(played_rows, at, game, seed)
            if ready:
                way = way_of(played_rows, at.boards[game], at.auxes[game])
            if way != NOWHERE:
                roots.ways[game] = way
                board, aux = see(at.boards[game], at.auxes[game], way)
                for action in range(MOVES):
                    after, after_aux, reward = slide(rows, board, aux, action)
                    roots.afterstates[game, action], roots.rewards[game, action] = ILLEGAL, reward
                    if after != board:
                        key = position_key(after, after_aux, symmetric)
                        i = add_afterstate(nodes, counts, key, after_aux, 1.0)
                        if i != NO_ROOM:
                            roots.afterstates[game, action] = i

    @launched
    def go_on(
        rows: Array,
        at: Boards,
        roots: Roots,
        nodes: Afterstates,
        endgames: Any,
        counts: Array,
        results: Array,
        taken: Array,
    ) -> None:
        values = cuda.local.array(MOVES, np.float64)
        for game in range(thread_number(), at.numbers.size if counts[FULL] == 0 else 0, stride()):
            if roots.afterstates[game, 0] == RESTING:
                continue
            for action in range(MOVES):
                as_seen = turned_action(action, roots.ways[game])
                i = roots.afterstates[game, as_seen]
                values[action] = math.nan
                if i != ILLEGAL:
                    values[action] = float(roots.rewards[game, as_seen]) + max(float(nodes.values[i]) / POINT, 0.0)
            overrule(endgames, at.boards[game], values)
            move(rows, at, game, int32(best_of(values)), results, taken)

    return open_moves, go_on


def spreading(lesson: Lesson) -> Any:
    """The kernel that lays out what chance may make of the afterstates of a layer; `moves` layers are left."""
    game = lesson.game
    placements, draws, value_of_board = game.rules.placements, game.rules.draws, game.rules.value_of_board
    reads_hint = lesson.evaluator.network.by_hint or (lesson.of_states and game.max_draws > 1)
    counts_placed, most, most_draws = game.score_is_value, game.max_placements, game.max_draws

    @launched
    def spread(nodes: Afterstates, positions: Positions, counts: Array, level: int, moves: int, prune: float) -> None:
        boards, auxes = cuda.local.array(most, np.uint64), cuda.local.array(most, np.uint64)
        chances = cuda.local.array(most, np.float64)
        hints, hint_chances = cuda.local.array(most_draws, np.uint64), cuda.local.array(most_draws, np.float64)
        first, end = layer(counts, AFTERSTATE_ENDS, AFTERSTATES, level)
        for i in range(first, end, stride()):
            after, aux, share = nodes.boards[i], nodes.auxes[i], nodes.shares[i]
            outcomes = placements(after, aux, boards, auxes, chances)
            last = moves == 1 or share * likeliest(chances, outcomes) < prune
            spelled = reads_hint or not last
            wanted, placed = 0, 0.0
            for k in range(outcomes):
                wanted += draws(boards[k], auxes[k], hints, hint_chances) if spelled else 1
                if counts_placed:
                    placed += chances[k] * float(value_of_board(boards[k], auxes[k]) - value_of_board(after, aux))
            nodes.values[i] = fixed(placed)
            q = reserve(counts, POSITIONS, wanted, positions.boards.size)
            for k in range(outcomes if q != NO_ROOM else 0):
                drawn, hints[0], hint_chances[0] = 1, auxes[k], 1.0
                if spelled:
                    drawn = draws(boards[k], auxes[k], hints, hint_chances)
                for h in range(drawn):
                    chance = chances[k] * hint_chances[h]
                    path = share * chance
                    positions.boards[q], positions.auxes[q] = boards[k], hints[h]
                    positions.shares[q] = LEAF if last or path < prune else path
                    positions.chances[q], positions.parents[q] = chance, i
                    q += 1

    return spread


def answering(lesson: Lesson, width: int) -> Any:
    """The kernel that gives leaves their value, and lays out the moves of other positions."""
    slide, symmetric, narrow = lesson.game.rules.slide, lesson.game.symmetric, width < MOVES
    known_value = known_values.build(lesson, narrow).value

    @launched
    def answer(
        weights: Array,
        known: Array,
        rows: Array,
        nodes: Afterstates,
        positions: Positions,
        table: Table,
        counts: Array,
        level: int,
    ) -> None:
        worths = cuda.local.array(MOVES, np.float64)
        first, end = layer(counts, POSITION_ENDS, POSITIONS, level)
        for q in range(first, end, stride()):
            board, aux, share, best, followed = positions.boards[q], positions.auxes[q], positions.shares[q], 0.0, 0
            for action in range(MOVES if narrow or share == LEAF else 0):
                after, after_aux, reward = slide(rows, board, aux, action)
                worths[action] = -math.inf
                if after != board:
                    value = float(known_value(weights, known, after, after_aux))
                    worths[action] = float(reward) + value
                    best = max(best, float(reward) + max(value, 0.0) + ALIVE)
            positions.values[q] = fixed(best)
            for action in range(MOVES if share != LEAF else 0):
                after, after_aux, reward = slide(rows, board, aux, action)
                if after != board and (not narrow or among_best(worths, action, width)):
                    key = position_key(after, after_aux, symmetric)
                    positions.rewards[q, followed] = reward
                    positions.entries[q, followed] = follow(nodes, table, counts, key, after_aux, share, level)
                    followed += 1
            for k in range(followed, width if share != LEAF else 0):
                positions.rewards[q, k] = ILLEGAL

    return answer


@launched
def settle(nodes: Afterstates, positions: Positions, table: Table, counts: Array, level: int) -> None:
    """The afterstate before a position is worth what is to be expected, the position its best move."""
    first, end = counts[POSITION_ENDS + level] + thread_number(), counts[POSITION_ENDS + level + 1]
    for q in range(first, end if counts[FULL] == 0 else first, stride()):
        best = positions.values[q]
        if positions.shares[q] != LEAF:
            best = int64(0)
            for k in range(positions.rewards.shape[1]):
                reward = positions.rewards[q, k]
                if reward != ILLEGAL:
                    entry = positions.entries[q, k]
                    expected = nodes.values[table.places[entry]]
                    best = max(best, fixed(float(reward) + ALIVE) + max(expected, int64(0)))
                    table.keys[entry] = ZERO
        cuda.atomic.add(nodes.values, positions.parents[q], int64(positions.chances[q] * float(best)))


class Kernels(NamedTuple):
    """What is compiled for a network and a search."""

    open_moves: Any
    go_on: Any
    spread: Any
    ask: Any
    look_up: Any
    answer: Any


@cache
def build(lesson: Lesson, width: int, played: Game, view: View, solved: bool) -> Kernels:
    """The kernels of a search, made once for all layers and probabilities."""
    ask, look_up, _ = known_values.build(lesson, width < MOVES)
    asking = roots(lesson.game, played, view, solved)
    return Kernels(*asking, spreading(lesson), ask, look_up, answering(lesson, width))


class GpuSearcher(GpuPlayer):
    """Plays games 0, 1, 2, … under a seed with expectimax of two layers or more."""

    at_once = GAMES_AT_ONCE

    def __init__(
        self,
        lesson: Lesson,
        search: Search,
        weights: Any,
        seen: Callable[..., Any] | None = None,
        endgames: Endgames | None = None,
        practised: Practised | None = None,
        nodes: int = 0,
    ) -> None:
        super().__init__(lesson, weights, seen)
        self.stream, view = cuda.stream(), view_of(seen, practised.part if practised else None)
        self.searches = [OneSearch(self, self, search, view, endgames, nodes)]
        if practised:
            other, view = GpuPlayer(practised.lesson, practised.weights), view_of_part(practised.part)
            self.searches.append(OneSearch(self, other, search, view, endgames, nodes))

    def mover(self, at: Boards, results: Any, taken: Any, seed: int) -> Callable[[], None]:
        def steps() -> None:
            for _ in range(STEPS_A_GRAPH):
                step()

        def step() -> None:
            for search in self.searches:
                search.step(at, results, taken, seed)

        for search in self.searches:
            search.prepare(at.numbers.size)
        step()  # compiles
        self.stream.synchronize()
        many_steps = repeated(steps, self.stream)

        def make_moves() -> None:
            many_steps()
            self.stream.synchronize()
            if any(search.counts.copy_to_host()[PARTS] > 2 * at.numbers.size for search in self.searches):
                raise InputError(
                    "the search of a single game does not fit into the GPU: fewer layers, or a larger prune"
                )

        return make_moves


class OneSearch:
    """The lists of a search on one network."""

    def __init__(
        self,
        player: GpuSearcher,
        thinker: GpuPlayer,
        search: Search,
        view: View,
        endgames: Endgames | None,
        nodes: int,
    ) -> None:
        """A search for the games of `player`, with the rules and the network of `thinker`."""
        self.search, self.weights, self.rows, self.played_rows = search, thinker.weights, thinker.rows, player.rows
        self.grid, self.one = (*GRID, player.stream), (1, 1, player.stream)
        self.kernels = build(thinker.lesson, search.width, player.lesson.game, view, endgames is not None)
        nodes = nodes or room_for()
        self.nodes = Afterstates(new("u", nodes), new("u", nodes), new("d", nodes), new("j", nodes))
        moves = [new("i", nodes, search.width) for _ in range(2)]
        self.positions = Positions._make([*(new(kind, nodes) for kind in "uuddij"), *moves])
        entries = 2 << (nodes - 1).bit_length()
        self.table = Table(new("u", entries), new("i", entries))
        self.known, self.questions = known_values.new_known(), Questions(new("u", nodes), new("u", nodes))
        self.counts, self.roots = new("j", COUNTS), Roots(*(new("i", 1) for _ in range(3)))
        self.endgames = self.counts if endgames is None else endgames  # without them, nobody looks at what this is

    def prepare(self, games: int) -> None:
        """Room for so many games, and nothing searched yet."""
        begin = np.zeros(COUNTS, np.int64)
        begin[PARTS] = begin[SWEPT] = 1
        self.counts.copy_to_device(begin)
        self.roots = Roots(new("i", games, MOVES), new("i", games, MOVES), new("i", games))
        sweep[self.grid](self.counts, self.table)

    def step(self, at: Boards, results: Any, taken: Any, seed: int) -> None:
        """A move in every game whose board is its own."""
        nodes, positions, table, counts = self.nodes, self.positions, self.table, self.counts
        known, questions, kernels, grid = self.known, self.questions, self.kernels, self.grid
        rows, last = self.rows, self.search.layers - 1
        turn_over[self.one](counts, positions)
        sweep[grid](counts, table)
        kernels.open_moves[grid](rows, self.played_rows, at, self.roots, nodes, counts, np.uint64(seed))
        for level in range(last):
            kernels.spread[grid](nodes, positions, counts, level, last - level, self.search.prune)
            kernels.ask[grid](rows, positions, known, questions, counts, level)
            kernels.look_up[grid](self.weights, known, questions, counts, level)
            kernels.answer[grid](self.weights, known, rows, nodes, positions, table, counts, level)
        for level in reversed(range(last)):
            settle[grid](nodes, positions, table, counts, level)
        kernels.go_on[grid](self.played_rows, at, self.roots, nodes, self.endgames, counts, results, taken)


def room_for() -> int:
    """How many nodes the lists have: they take a quarter of what is free, at most."""
    check_room(4 * FEWEST_NODES * BYTES_A_NODE, "a search", "take a smaller network")
    return int(min(MOST_NODES, free_memory() // (4 * BYTES_A_NODE)))
