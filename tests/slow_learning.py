"""Learning in plain Python, written from the formulas: the slow twin of the compiled loops, for every game.

One difference to a textbook: two games take turns, as in the loops, so that both can be compared weight by weight.
Of moves that are equally good but for rounding, the twin takes the one that the loop has taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilesage.core.random import seed_of
from tilesage.games import Game
from tilesage.learning import TrainConfig, UpdateRule
from tilesage.networks.ntuple import Evaluator
from tilesage.networks.patterns import Network

Single = np.float32
Position = tuple[np.uint64, np.uint64]
Entry = tuple[int, ...]  # stages, hint, pattern, tiles

ZERO = Single(0)
AGE_RATE = Single(0.005)
SMALLEST_HOLE = 6
SUMS_PER_AGE = {"2048": 64, "fibonacci": 32, "threes": 16, "threes-phone": 16}
SOFT = Single(0.05)
ROUNDING = 1e-4


class Table:
    """Weights by what an entry sees, with the sums of temporal coherence."""

    def __init__(self, game: Game, network: Network, optimism: float = 0.0) -> None:
        self.game, self.network, self.fresh = game, network, Single(optimism / network.reads)
        self.weights: dict[Entry, Single] = {}
        self.sums: dict[Entry, list[Single]] = {}
        self.visits: dict[Entry, int] = {}
        self.usual: dict[int, Single] = {}  # by age
        self.usual_sums: dict[int, list[Single]] = {}
        symmetries = (0,) if network.once else (0, 2) if network.turned else range(8)
        self.views = [
            (number, turned(pattern, k)) for number, pattern in enumerate(network.patterns) for k in symmetries
        ]

    def entries(self, position: Position) -> list[Entry]:
        """One a pattern and symmetry, in the order in which the loops add them up."""
        board, aux = (int(word) for word in position)
        cells = [board >> 4 * i & 15 for i in range(16)]
        stages = self.network.stages
        present = [tile in cells for tile in stages[:-1]] + [max(cells) >= tile for tile in stages[-1:]]
        if self.network.fold:
            cells = fold(cells, self.network.fold)
        stage = sum(1 << k for k, there in enumerate(present) if there)
        hint = min(aux & (3 if self.game.name == "threes" else 15), 4) - 1 if self.network.by_hint else 0
        if self.network.turned:
            cells = to_the_left(cells, aux >> 8 & 3)
        return [(stage, hint, number, *[cells[cell] for cell in view]) for number, view in self.views]

    def read(self, entry: Entry) -> Single:
        """An entry that was never learnt stands for that of the stage before: without its highest bit."""
        while entry not in self.weights and entry[0]:
            entry = (entry[0] - (1 << (entry[0].bit_length() - 1)), *entry[1:])
        return self.weights.get(entry, self.fresh)

    def value(self, position: Position) -> Single:
        """Two sums of single precision side by side: rounding decides ties, so it has to be the same."""
        weights = [self.read(entry) for entry in self.entries(position)]
        half = len(weights) // 2
        return sum(weights[:half], ZERO) + sum(weights[half:], ZERO)

    def age(self, position: Position) -> int:
        board = int(position[0])
        return sum(self.game.tiles[board >> 4 * i & 15] for i in range(16)) // SUMS_PER_AGE[self.game.name]

    def usual_at(self, position: Position) -> Single:
        return self.usual.get(self.age(position), ZERO) if self.network.by_age else ZERO

    def learn(self, position: Position, error: Single, rate: float, coherent: bool) -> None:
        entries = self.entries(position)
        promoted = [self.read(entry) for entry in entries]
        self.weights.update(zip(entries, promoted))
        error = Single(error)
        step = error * Single(rate / self.network.reads)
        for entry in entries:
            share = Single(1)
            if coherent:
                total, path = self.sums.setdefault(entry, [ZERO, ZERO])
                share = abs(total) / path if path else Single(1)
                self.sums[entry] = [total + error, path + abs(error)]
            self.weights[entry] += step * share
            self.visits[entry] = self.visits.get(entry, 0) + 1

    def learn_age(self, position: Position, error: Single, coherent: bool) -> None:
        age = self.age(position)
        self.usual[age] = self.usual.get(age, ZERO) + AGE_RATE * error
        if coherent:
            total, path = self.usual_sums.get(age, [ZERO, ZERO])
            self.usual_sums[age] = [total + error, path + abs(error)]

    # --- the same as the arrays of a trainer ---------------------------------------------------------------------

    def places(self, e: Evaluator, found: dict[Entry, Any]) -> Iterator[tuple[int, Any]]:
        """Where each entry lies, and what is known about it."""
        orders = [table.entries_in_order() for table in e.layout.tables]
        hints = 4 if self.network.by_hint else 1
        for (stage, hint, number, *tiles), known in found.items():
            index = sum(tile << 4 * k for k, tile in enumerate(tiles))
            yield int(orders[number][index]) + (stage * hints + hint) * e.entries, known

    def as_weights(self, e: Evaluator) -> np.ndarray:
        """[size]: the weights; NaN for entries of later stages that were never learnt."""
        weights = np.full(e.size, self.fresh, np.float32)
        weights[e.tables_size :] = 0
        weights[e.tables_size >> len(self.network.stages) : e.tables_size] = np.nan
        for place, weight in self.places(e, self.weights):
            weights[place] = weight
        for age, weight in self.usual.items():
            weights[e.tables_size + age] = weight
        return weights

    def as_coherence(self, e: Evaluator) -> np.ndarray:
        """[2 · size]: the sums of errors and of their sizes."""
        memory = np.zeros((e.size, 2), np.float32)
        for place, sums in self.places(e, self.sums):
            memory[place] = sums
        for age, sums in self.usual_sums.items():
            memory[e.tables_size + age] = sums
        return memory.ravel()

    def as_visits(self, e: Evaluator) -> np.ndarray:
        """[size]: how often each entry was adjusted."""
        visits = np.zeros(e.size, np.float32)
        for place, count in self.places(e, self.visits):
            visits[place] = count
        return visits


def fold(cells: list[int], limit: int) -> list[int]:
    """All tiles above the largest hole one smaller, until the largest is below the limit."""
    while max(cells) >= limit:
        holes = [tile for tile in range(SMALLEST_HOLE, max(cells)) if tile not in cells]
        if not holes:
            break
        cells = [tile - 1 if tile > max(holes) else tile for tile in cells]
    return cells


def to_the_left(cells: list[int], action: int) -> list[int]:
    """The board as it would be if the slide (up, right, down, left) had gone to the left."""
    rows = [cells[4 * r : 4 * r + 4] for r in range(4)]
    if action in (0, 2):
        rows = [list(column) for column in zip(*rows)]
    if action in (1, 2):
        rows = [row[::-1] for row in rows]
    return [tile for row in rows for tile in row]


def turned(pattern: tuple[int, ...], k: int) -> tuple[int, ...]:
    """The cells that the pattern covers on a board that was mirrored (1), flipped (2) and transposed (4)."""
    if k & 4:
        pattern = tuple(4 * (cell % 4) + cell // 4 for cell in pattern)
    if k & 2:
        pattern = tuple(cell ^ 12 for cell in pattern)
    if k & 1:
        pattern = tuple(cell ^ 3 for cell in pattern)
    return pattern


class SlowGame:
    """One of the two games that take turns."""

    def __init__(self, game: Game, rng: np.uint64) -> None:
        self.game, self.rng, self.ended = game, rng, 0
        self.begin()

    def begin(self) -> None:
        board, aux, rng = self.game.rules.start(self.game.rows, self.rng)
        self.position, self.rng = (np.uint64(board), np.uint64(aux)), np.uint64(rng)
        self.path: list[Position] = []  # the positions that values are of
        self.rewards: list[Single] = []  # on the way to each of them
        self.errors: list[Single] = []
        self.gain = ZERO  # since the last of them
        self.score = self.points(board) if self.game.score_is_value else 0

    def look(self, table: Table, of_states: bool) -> bool:
        """What each legal move is worth: its reward, and the value of what it leads to. Are there any?"""
        self.moves: list[tuple[Single, Position, int]] = []
        for action in range(4):
            after, aux, reward = self.game.rules.slide(self.game.rows, *self.position, action)
            if after != self.position[0]:
                position = np.uint64(after), np.uint64(aux)
                worth = self.expected(table, position) if of_states else table.value(position)
                self.moves.append((worth + Single(reward), position, int(reward)))
        self.best = max((worth for worth, _, _ in self.moves), default=ZERO)
        return bool(self.moves)

    def expected(self, table: Table, position: Position) -> Single:
        """E[reward of chance + value of the state] after a slide."""
        boards, auxes = (np.zeros(self.game.max_placements, np.uint64) for _ in range(2))
        shares, total = np.zeros(self.game.max_placements), 0.0
        for i in range(self.game.rules.placements(*position, boards, auxes, shares)):
            placed = self.points(boards[i]) - self.points(position[0]) if self.game.score_is_value else 0
            total += float(shares[i]) * (placed + float(table.value((boards[i], auxes[i]))))
        return Single(total)

    def points(self, board: np.uint64) -> int:
        return int(self.game.rules.value_of_board(board, np.uint64(0)))

    def follow(self, then: Position) -> tuple[Position, int, int]:
        """Make the best move. Returns the position after it, its reward, and the points of the tile that landed."""
        near = ROUNDING * max(1.0, abs(float(self.best)))
        for worth, after, reward in self.moves:
            if worth >= self.best - near:
                board, aux, placed, rng = self.game.rules.spawn(*after, self.rng)
                if (int(board), int(aux)) == (int(then[0]), int(then[1])):
                    self.position, self.rng = (np.uint64(board), np.uint64(aux)), np.uint64(rng)
                    self.score += reward + int(placed)
                    return after, reward, int(placed)
        raise AssertionError("the loop has made another move than the best one")

    def end(self) -> None:
        self.ended += 1
        self.begin()


class SlowLearner:
    """What one thread of a trainer does, turn by turn."""

    def __init__(self, config: TrainConfig, streams: Sequence[int] = (0, 1)) -> None:
        self.config, self.game = config, config.the_game
        self.table = Table(self.game, config.the_network, config.optimism)
        self.coherent, self.history = config.phase_list[0].rule.name == "tc", config.history
        self.decay = 1.0 if config.steps else config.decay
        self.slots = [SlowGame(self.game, seed_of(np.uint64(config.seed), np.uint64(k))) for k in streams]

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        for entry, sums in self.table.sums.items():
            self.table.sums[entry] = [SOFT * total for total in sums] if soften else [ZERO, ZERO]
        self.coherent = rule.name == "tc"

    def turn(self, then: Sequence[Position], rate: float) -> int:
        """One turn of both games; `then` is where the loop's games are afterwards. Returns the moves made."""
        kinds = {
            ("forward", "afterstates"): self._forward,
            ("forward", "states"): self._forward_states,
            ("backward", "afterstates"): self._backward,
            ("backward", "states"): self._backward,
        }
        play = kinds[self.config.direction, self.config.of]
        return sum(play(slot, position, rate) for slot, position in zip(self.slots, then))

    def _delayed(self, slot: SlowGame, q: int) -> Single:
        """What position q of the path learns from the errors so far."""
        return sum((Single(self.decay**i) * error for i, error in enumerate(slot.errors[q:])), ZERO)

    def _forward(self, slot: SlowGame, then: Position, rate: float) -> int:
        """Delayed TD(λ) on afterstates: V moves toward the points of chance + r + V(next), at the end without V."""
        table = self.table
        goes_on, t = slot.look(table, False), len(slot.path)
        if t:
            reached = slot.gain + (slot.best + table.usual_at(slot.position) if goes_on else ZERO)
            error = reached - (table.value(slot.path[-1]) + table.usual_at(slot.path[-1]))
            slot.errors.append(error)
            if table.network.by_age:
                table.learn_age(slot.path[-1], error, self.coherent)
            ripe = t - self.history
            for q in range(max(ripe, 0), ripe + 1 if goes_on else t):
                table.learn(slot.path[q], self._delayed(slot, q), rate, self.coherent)
        if not goes_on:
            slot.end()
            return 0
        after, _, placed = slot.follow(then)
        slot.path.append(after)
        slot.gain = Single(placed)
        return 1

    def _forward_states(self, slot: SlowGame, then: Position, rate: float) -> int:
        """Delayed TD(λ) on states: V moves toward the points until the next state + its V, that of the last to 0."""
        table, t = self.table, len(slot.path)
        if t:
            slot.errors.append(slot.gain + table.value(slot.position) - table.value(slot.path[-1]))
            if t >= self.history:
                q = t - self.history
                table.learn(slot.path[q], self._delayed(slot, q), rate, self.coherent)
        slot.path.append(slot.position)
        if not slot.look(table, True):
            slot.errors.append(-table.value(slot.position))
            for q in range(max(t + 1 - self.history, 0), t + 1):
                table.learn(slot.path[q], self._delayed(slot, q), rate, self.coherent)
            slot.end()
            return 0
        _, reward, placed = slot.follow(then)
        slot.gain = Single(reward + placed)
        return 1

    def _backward(self, slot: SlowGame, then: Position, rate: float) -> int:
        """TD(λ) from the end of every game, on afterstates or states."""
        table, of_states = self.table, self.config.of == "states"
        if of_states:
            slot.path.append(slot.position)
            slot.rewards.append(slot.gain)
        if slot.look(table, of_states):
            after, reward, placed = slot.follow(then)
            if not of_states:
                slot.path.append(after)
                slot.rewards.append(slot.gain + Single(reward))
            slot.gain = Single(reward + placed) if of_states else Single(placed)
            return 1
        if of_states and not self.config.learn_end:  # V of the last state counts as 0, and is not learnt
            slot.path.pop()
            slot.rewards.pop()
        target = ZERO if of_states and self.config.learn_end else slot.gain
        keep = Single(self.decay)
        for position, reward in zip(reversed(slot.path), reversed(slot.rewards)):
            table.learn(position, target - table.value(position), rate, self.coherent)
            target = reward + keep * target + Single(1 - self.decay) * table.value(position)
        slot.end()
        return 0
