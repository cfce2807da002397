"""Learning in plain Python, written from the formulas: the slow twin of the compiled loops.

One difference to a textbook: two games take turns, as in the loops, so that both can be compared weight by weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from afterstate.games import Game
from afterstate.games.chance import seed_of
from afterstate.values.patterns import Network

Single = np.float32
ZERO = Single(0)


@dataclass
class Table:
    """Weights by (pattern, tiles), with the sums of temporal coherence."""

    network: Network
    weights: dict[tuple[int, ...], Single] = field(default_factory=dict)
    sums: dict[tuple[int, ...], list[Single]] = field(default_factory=dict)
    usual: dict[int, Single] = field(default_factory=dict)  # by age

    def entries(self, board: int) -> list[tuple[int, ...]]:
        """One a pattern and symmetry, in the order in which the loops add them up."""
        cells = [int(board) >> 4 * i & 15 for i in range(16)]
        return [
            (number, *(cells[seen] for seen in turned(pattern, k)))
            for number, pattern in enumerate(self.network.patterns)
            for k in range(8)
        ]

    def value(self, board: int) -> Single:
        """Two sums of single precision side by side: rounding decides ties, so it has to be the same."""
        weights = [self.weights.get(entry, ZERO) for entry in self.entries(board)]
        half = len(weights) // 2
        return sum(weights[:half], ZERO) + sum(weights[half:], ZERO)

    def whole_value(self, board: int) -> Single:
        """In networks by age: with what is usual at this age."""
        return self.usual.get(age_of(board), ZERO) + self.value(board)

    def learn(self, board: int, error: Single, rate: float, coherent: bool) -> None:
        step = Single(error) * Single(rate / self.network.reads)
        for entry in self.entries(board):
            share = Single(1)
            if coherent:
                total, path = self.sums.setdefault(entry, [ZERO, ZERO])
                share = abs(total) / path if path else Single(1)
                self.sums[entry] = [total + Single(error), path + abs(Single(error))]
            self.weights[entry] = self.weights.get(entry, ZERO) + step * share


def age_of(board: int) -> int:
    """How many times 64 the sum of the tiles is (2048)."""
    return sum(2 ** (board >> 4 * i & 15) for i in range(16) if board >> 4 * i & 15) // 64


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
        self.game, self.rng = game, rng
        self.begin()

    def begin(self) -> None:
        self.board, self.aux, self.rng = (np.uint64(x) for x in self.game.rules.start(self.game.rows, self.rng))
        self.path: list[int] = []  # the positions that values are of
        self.rewards: list[Single] = []  # on the way to each of them
        self.errors: list[Single] = []
        self.gain = ZERO

    def slides(self) -> list[tuple[np.uint64, np.uint64, int]]:
        found = []
        for action in range(4):
            after, aux, reward = self.game.rules.slide(self.game.rows, self.board, self.aux, action)
            if after != self.board:
                found.append((np.uint64(after), np.uint64(aux), int(reward)))
        return found

    def expected(self, table: Table, after: np.uint64, aux: np.uint64) -> Single:
        boards, auxes = (np.zeros(self.game.max_placements, np.uint64) for _ in range(2))
        shares = np.zeros(self.game.max_placements)
        n = self.game.rules.placements(after, aux, boards, auxes, shares)
        return Single(sum(float(shares[i]) * float(table.value(int(boards[i]))) for i in range(n)))

    def move(self, table: Table, of_states: bool) -> Single | None:
        """Choose and move. Returns reward + value of the choice; None if the game is over."""
        best: tuple[Single, Any] | None = None
        for after, aux, reward in self.slides():
            worth = self.expected(table, after, aux) if of_states else table.value(int(after))
            value = worth + Single(reward)
            if best is None or value > best[0]:
                best = (value, (after, aux, reward))
        if best is None:
            return None
        self.chosen = best[1]
        return best[0]

    def spawn(self) -> int:
        after, aux, reward = self.chosen
        board, new_aux, placed, rng = self.game.rules.spawn(after, aux, self.rng)
        self.board, self.aux, self.rng = np.uint64(board), np.uint64(new_aux), np.uint64(rng)
        return reward + int(placed)


def forward(
    game: Game,
    table: Table,
    seed: int,
    turns: int,
    rate: float,
    coherent: bool,
    decay: float,
    history: int,
    age_rate: float = 0,
) -> None:
    """Delayed TD(λ) on afterstates for so many turns of both games; networks by age have a rate for it."""
    slots = [SlowGame(game, seed_of(np.uint64(seed), np.uint64(slot))) for slot in range(2)]
    for _ in range(turns):
        for slot in slots:
            value = slot.move(table, False)
            if slot.path:
                reached = ZERO if value is None else value + table.usual.get(age_of(int(slot.board)), ZERO)
                age = age_of(slot.path[-1])
                usual = table.usual.get(age, ZERO)
                slot.errors.append(reached - (table.value(slot.path[-1]) + usual))
                table.usual[age] = usual + Single(age_rate) * slot.errors[-1]
                ripe = len(slot.path) - history
                due = range(max(ripe, 0), ripe + 1) if value is not None else range(max(ripe, 0), len(slot.path))
                for q in due:
                    error = sum((Single(decay**i) * e for i, e in enumerate(slot.errors[q:])), ZERO)
                    table.learn(slot.path[q], error, rate, coherent)
            if value is None:
                slot.begin()
            else:
                slot.path.append(int(slot.chosen[0]))
                slot.spawn()


def backward(
    game: Game, table: Table, seed: int, turns: int, rate: float, coherent: bool, decay: float, of_states: bool
) -> None:
    """TD(λ) from the end of every game, on afterstates or states."""
    slots = [SlowGame(game, seed_of(np.uint64(seed), np.uint64(slot))) for slot in range(2)]
    for _ in range(turns):
        for slot in slots:
            if of_states:
                slot.path.append(int(slot.board))
                slot.rewards.append(slot.gain)
            if slot.move(table, of_states) is None:
                target = ZERO
                for board, reward in zip(reversed(slot.path), reversed(slot.rewards)):
                    table.learn(board, target - table.value(board), rate, coherent)
                    target = reward + Single(decay) * target + Single(1 - decay) * table.value(board)
                slot.begin()
                continue
            if not of_states:
                slot.path.append(int(slot.chosen[0]))
                slot.rewards.append(Single(slot.chosen[2]))
            slot.gain = Single(slot.spawn())


def forward_states(game: Game, table: Table, seed: int, turns: int, rate: float, coherent: bool) -> None:
    """TD(0) on states: V(s) moves toward r + V(next), that of the last one toward 0."""
    slots = [SlowGame(game, seed_of(np.uint64(seed), np.uint64(slot))) for slot in range(2)]
    for _ in range(turns):
        for slot in slots:
            if slot.path:
                error = slot.gain + table.value(int(slot.board)) - table.value(slot.path[-1])
                table.learn(slot.path[-1], error, rate, coherent)
            slot.path.append(int(slot.board))
            if slot.move(table, True) is None:
                table.learn(slot.path[-1], -table.value(slot.path[-1]), rate, coherent)
                slot.begin()
            else:
                slot.gain = Single(slot.spawn())
