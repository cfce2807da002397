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
from tilesage.core.random import mix
from tilesage.games import Game
from tilesage.games.board import symmetry
from tilesage.gpu.known_values import make_ask, make_known_value, make_look_up, new_known, new_questions
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.lists import (
    AFTERSTATE_ENDS,
    AFTERSTATES,
    COUNTS,
    FULL,
    ILLEGAL,
    LEAF,
    PARTS,
    POSITION_ENDS,
    POSITIONS,
    QUESTIONS,
    RESTING,
    SWEPT,
    TURN,
    Afterstates,
    Positions,
    Roots,
    Table,
    reserve,
)
from tilesage.gpu.machine import BLOCK, SIMULATED, cuda, device, int32, int64, launched, stride, thread_number
from tilesage.gpu.memory import check_room, free_memory, new
from tilesage.gpu.play import NO_GAME, Boards, GpuPlayer, itself, make_deal, make_move
from tilesage.gpu.repeated import Repeated
from tilesage.search.expectimax import MOVES, SHARES, among_best, best_of, likeliest, position_key
from tilesage.search.game_2048.endgames import Endgames, leave, make_overrule, turned_action
from tilesage.search.game_2048.practice import Part
from tilesage.search.kinds import NOWHERE
from tilesage.search.last_layer import ALIVE

POINT = float(1 << 30)  # values are whole numbers of so many parts of a point
ZERO, ONE = np.uint64(0), np.uint64(1)
LONGEST_LOOK = 64  # places of the table in a row
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
    through = seen or itself

    @device
    def see(board: np.uint64, aux: np.uint64, way: int) -> Any:
        return through(board, aux)

    if part is None:
        return View(everywhere, see)
    find = part.find

    @device
    def elsewhere(rows: Array, board: np.uint64, aux: np.uint64) -> Any:
        return 0 if find(rows, board, aux) == NOWHERE else NOWHERE

    return View(elsewhere, see)


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
    """Before a step: empty lists, and the next part of the games."""
    if thread_number() != 0:
        return
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
    i = int64(thread_number())
    while i < table.keys.size and counts[SWEPT] != 0:
        table.keys[i] = ZERO
        i += int64(stride())


def make_open_moves(game: Game, played: Game, view: View) -> Any:
    """The kernel that deals where a game has just begun and lays out the moves of every game."""
    slide, symmetric, deal, (way_of, see) = game.rules.slide, game.symmetric, make_deal(played), view

    @launched
    def open_moves(
        rows: Array,
        played_rows: Array,
        at: Boards,
        roots: Roots,
        afterstates: Afterstates,
        counts: Array,
        seed: np.uint64,
    ) -> None:
        game = thread_number()
        while game < at.numbers.size:
            roots.afterstates[game, 0] = RESTING
            ready, way = at.numbers[game] != NO_GAME and int64(game) % counts[PARTS] == counts[TURN], NOWHERE
            if ready and at.boards[game] == np.uint64(0):
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
                        i = reserve(counts, AFTERSTATES, 1, afterstates.boards.size)
                        if i >= 0:
                            roots.afterstates[game, action] = i
                            afterstates.boards[i], afterstates.auxes[i] = (
                                position_key(after, after_aux, symmetric),
                                after_aux,
                            )
                            afterstates.shares[i] = 1.0
            game += stride()

    return open_moves


def make_spread(lesson: Lesson) -> Any:
    """The kernel that lays out what chance may make of the afterstates of a layer; `moves` layers are left."""
    game = lesson.game
    placements, draws, value_of_board = game.rules.placements, game.rules.draws, game.rules.value_of_board
    reads_hint = lesson.evaluator.network.by_hint or (lesson.of_states and game.max_draws > 1)
    counts_placed, most, most_draws = game.score_is_value, game.max_placements, game.max_draws

    @launched
    def spread(
        afterstates: Afterstates, positions: Positions, counts: Array, level: int, moves: int, prune: float
    ) -> None:
        boards, auxes = cuda.local.array(most, np.uint64), cuda.local.array(most, np.uint64)
        chances = cuda.local.array(most, np.float64)
        hints, hint_chances = cuda.local.array(most_draws, np.uint64), cuda.local.array(most_draws, np.float64)
        first, end = counts[AFTERSTATE_ENDS + level], counts[AFTERSTATES]
        if counts[FULL] != 0:
            return
        if thread_number() == 0:
            counts[AFTERSTATE_ENDS + level + 1] = end
        i = first + int64(thread_number())
        while i < end:
            after, aux, share = afterstates.boards[i], afterstates.auxes[i], afterstates.shares[i]
            outcomes = placements(after, aux, boards, auxes, chances)
            last = moves == 1 or share * likeliest(chances, outcomes) < prune
            spelled = reads_hint or not last
            wanted, placed = 0, 0.0
            for k in range(outcomes):
                wanted += draws(boards[k], auxes[k], hints, hint_chances) if spelled else 1
                if counts_placed:
                    gained = value_of_board(boards[k], auxes[k]) - value_of_board(after, aux)
                    placed += chances[k] * float(gained)
            afterstates.values[i] = fixed(placed)
            q = reserve(counts, POSITIONS, wanted, positions.boards.size)
            for k in range(outcomes if q >= 0 else 0):
                drawn = 1
                hints[0], hint_chances[0] = auxes[k], 1.0
                if spelled:
                    drawn = draws(boards[k], auxes[k], hints, hint_chances)
                for h in range(drawn):
                    chance = chances[k] * hint_chances[h]
                    path = share * chance
                    positions.boards[q], positions.auxes[q] = boards[k], hints[h]
                    positions.shares[q] = LEAF if last or path < prune else path
                    positions.chances[q], positions.parents[q] = chance, i
                    q += 1
            i += int64(stride())

    return spread


@device
def enter(table: Table, key: np.uint64, counts: Array) -> Any:
    """The entry of this key, and whether it is new; -1 when there is no more room."""
    entry, last = key & np.uint64(table.keys.size - 1), np.uint64(table.keys.size - 1)
    for _ in range(LONGEST_LOOK):
        found = cuda.atomic.cas(table.keys, entry, ZERO, key)
        if found == ZERO or found == key:
            return int64(entry), found == ZERO
        entry = (entry + ONE) & last
    counts[FULL] = 1
    return int64(-1), False


def make_follow(game: Game) -> Callable[..., Any]:
    """follow(…): where the table knows this afterstate, the same entry for all equals; a new one joins the list."""
    symmetric = game.symmetric

    @device
    def follow(
        afterstates: Afterstates,
        table: Table,
        counts: Array,
        after: np.uint64,
        aux: np.uint64,
        share: float,
        level: int,
    ) -> Any:
        board = position_key(after, aux, symmetric)
        key = mix(board ^ mix(aux ^ mix(np.uint64(share * SHARES) ^ np.uint64(level)))) | ONE
        entry, new = enter(table, key, counts)
        if new:
            i = reserve(counts, AFTERSTATES, 1, afterstates.boards.size)
            if i >= 0:
                table.places[entry] = i
                afterstates.boards[i], afterstates.auxes[i], afterstates.shares[i] = board, aux, share
        return entry

    return follow


def make_answer(lesson: Lesson, width: int) -> Any:
    """The kernel that gives leaves their value, and lays out the moves of other positions."""
    slide, known_value, narrow = lesson.game.rules.slide, make_known_value(lesson), width < MOVES
    follow = make_follow(lesson.game)

    @launched
    def answer(
        weights: Array,
        known: Array,
        rows: Array,
        afterstates: Afterstates,
        positions: Positions,
        table: Table,
        counts: Array,
        level: int,
    ) -> None:
        worths = cuda.local.array(MOVES, np.float64)
        first, end = counts[POSITION_ENDS + level], counts[POSITIONS]
        if counts[FULL] != 0:
            return
        if thread_number() == 0:
            counts[POSITION_ENDS + level + 1] = end
        q = first + int64(thread_number())
        while q < end:
            board, aux, share = positions.boards[q], positions.auxes[q], positions.shares[q]
            best = 0.0
            for action in range(MOVES if narrow or share == LEAF else 0):
                after, after_aux, reward = slide(rows, board, aux, action)
                worths[action] = -math.inf
                if after != board:
                    value = float(known_value(weights, known, after, after_aux))
                    worths[action] = float(reward) + value
                    best = max(best, float(reward) + max(value, 0.0) + ALIVE)
            if share == LEAF:
                positions.values[q] = fixed(best)
            else:
                followed = 0
                for action in range(MOVES):
                    after, after_aux, reward = slide(rows, board, aux, action)
                    if after != board and (not narrow or among_best(worths, action, width)):
                        positions.rewards[q, followed] = reward
                        positions.entries[q, followed] = follow(
                            afterstates, table, counts, after, after_aux, share, level
                        )
                        followed += 1
                for k in range(followed, width):
                    positions.rewards[q, k] = ILLEGAL
            q += int64(stride())

    return answer


@launched
def settle(afterstates: Afterstates, positions: Positions, table: Table, counts: Array, level: int) -> None:
    """The afterstate before a position is worth what is to be expected, the position its best move."""
    q, end = counts[POSITION_ENDS + level] + int64(thread_number()), counts[POSITION_ENDS + level + 1]
    while q < end and counts[FULL] == 0:
        best = positions.values[q]
        if positions.shares[q] != LEAF:
            best = int64(0)
            for k in range(positions.rewards.shape[1]):
                reward = positions.rewards[q, k]
                if reward != ILLEGAL:
                    entry = positions.entries[q, k]
                    expected = afterstates.values[table.places[entry]]
                    best = max(best, fixed(float(reward) + ALIVE) + max(expected, int64(0)))
                    table.keys[entry] = ZERO
        cuda.atomic.add(afterstates.values, positions.parents[q], int64(positions.chances[q] * float(best)))
        q += int64(stride())


def make_go_on(played: Game, solved: bool) -> Any:
    """The kernel that makes the best move of every game that was searched."""
    move = make_move(played)
    overrule = make_overrule() if solved else leave

    @launched
    def go_on(
        rows: Array,
        at: Boards,
        roots: Roots,
        afterstates: Afterstates,
        endgames: Any,
        counts: Array,
        results: Array,
        taken: Array,
    ) -> None:
        values = cuda.local.array(MOVES, np.float64)
        game = thread_number()
        while game < at.numbers.size and counts[FULL] == 0:
            if roots.afterstates[game, 0] != RESTING:
                for action in range(MOVES):
                    as_seen = turned_action(action, roots.ways[game])
                    i = roots.afterstates[game, as_seen]
                    values[action] = math.nan
                    if i != ILLEGAL:
                        expected = max(float(afterstates.values[i]) / POINT, 0.0)
                        values[action] = float(roots.rewards[game, as_seen]) + expected
                overrule(endgames, at.boards[game], values)
                move(rows, at, game, int32(best_of(values)), results, taken)
            game += stride()

    return go_on


class Kernels(NamedTuple):
    """What is compiled for a network and a search."""

    open_moves: Any
    spread: Any
    ask: Any
    look_up: Any
    answer: Any
    go_on: Any


@cache
def kernels_of(lesson: Lesson, width: int, played: Game, view: View, solved: bool) -> Kernels:
    """The kernels of a search, made once for all layers and probabilities."""
    return Kernels(
        make_open_moves(lesson.game, played, view),
        make_spread(lesson),
        make_ask(lesson, width < MOVES),
        make_look_up(lesson),
        make_answer(lesson, width),
        make_go_on(played, solved),
    )


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
        for search in self.searches:
            search.prepare(at.numbers.size)

        def steps() -> None:
            for _ in range(STEPS_A_GRAPH):
                for search in self.searches:
                    search.step(at, results, taken, seed)

        for search in self.searches:
            search.step(at, results, taken, seed)  # compiles
        self.stream.synchronize()
        repeated = Repeated(steps, self.stream)

        def make_moves() -> None:
            repeated()
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
        self.kernels = kernels_of(thinker.lesson, search.width, player.lesson.game, view, endgames is not None)
        nodes = nodes or room_for()
        self.afterstates = Afterstates._make(new(kind, nodes) for kind in "uudj")
        moves = [new("i", nodes, search.width) for _ in range(2)]
        self.positions = Positions._make([*(new(kind, nodes) for kind in "uuddij"), *moves])
        entries = 2 << (nodes - 1).bit_length()
        self.table = Table(new("u", entries), new("i", entries))
        self.known, self.questions = new_known(self.grid), new_questions(nodes)
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
        afterstates, positions, table, counts = self.afterstates, self.positions, self.table, self.counts
        known, questions, kernels, grid = self.known, self.questions, self.kernels, self.grid
        layers = self.search.layers
        turn_over[self.one](counts, positions)
        sweep[grid](counts, table)
        rows, played = self.rows, self.played_rows
        kernels.open_moves[grid](rows, played, at, self.roots, afterstates, counts, np.uint64(seed))
        for level in range(layers - 1):
            kernels.spread[grid](afterstates, positions, counts, level, layers - 1 - level, self.search.prune)
            kernels.ask[grid](rows, positions, known, questions, counts, level)
            kernels.look_up[grid](self.weights, known, questions, counts, level)
            kernels.answer[grid](self.weights, known, rows, afterstates, positions, table, counts, level)
        for level in reversed(range(layers - 1)):
            settle[grid](afterstates, positions, table, counts, level)
        kernels.go_on[grid](played, at, self.roots, afterstates, self.endgames, counts, results, taken)


def room_for() -> int:
    """How many nodes the lists have: they take a quarter of what is free, at most."""
    check_room(4 * FEWEST_NODES * BYTES_A_NODE, "a search", "take a smaller network")
    return int(min(MOST_NODES, free_memory() // (4 * BYTES_A_NODE)))
