"""Batch learning in plain Python: what the GPU does, spelled out, for checking it on small networks.

In every step all games in flight make one move against frozen weights. A weight that was hit c times with errors that
add up to Σδ then moves by (Σδ / c) / m · (1 − (1 − α)^c), where m is the number of entries read for a position: what
c equal updates, one after the other, come to, and never more than one full step (the normalisation of SIRT in
tomography). For temporal coherence α is the rate times |E| / A of that weight, E grows by Σδ and A by |Σδ|. What is
usual at an age moves in the same way at its own rate, and never more than a tenth of the way.

All arithmetic is float32 in the order of the GPU's lanes, so the weights agree bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.random import seed_of
from tilesage.games import Game
from tilesage.learning.rules import AGE_RATE, AGE_SHARE
from tilesage.networks.ntuple import Evaluator
from tilesage.networks.vector_words import symmetric_words

F = np.float32
NOTHING = np.float32(0)
LANES = 8
SIXTEENTHS = 16


@dataclass
class BatchGame:
    """One game in flight. `before` is the position whose value is learnt next: an afterstate, or a state."""

    board: np.uint64
    aux: np.uint64
    rng: np.uint64
    score: int
    moves: int = 0
    before: tuple[np.uint64, np.uint64] | None = None
    value: np.float32 = NOTHING
    gain: np.float32 = NOTHING
    trace: list[Waiting] = field(default_factory=list)


@dataclass
class Waiting:
    """TD(λ): an afterstate that waits for the errors of the next moves, and what it is to learn so far."""

    position: tuple[np.uint64, np.uint64]
    target: np.float32


@dataclass
class BatchLearner:
    """Batch TD or temporal coherence on the values of afterstates or of states."""

    game: Game
    evaluator: Evaluator
    weights: Array  # [entries of all stages] float32
    games: int
    seed: int = 1
    rate: float = 0.1
    coherence: bool = False
    of_states: bool = False
    history: int = 1  # how many errors an afterstate waits for
    decay: float = 0.0  # λ
    errors: Array = field(init=False)  # E
    absolutes: Array = field(init=False)  # A
    slots: list[BatchGame] = field(init=False)
    finished: list[int] = field(init=False, default_factory=list)
    idle: int = field(init=False, default=0)  # moves that were not made, because a game was over
    worst: np.float32 = field(init=False, default=NOTHING)  # the largest error
    hit_ages: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.errors, self.absolutes = np.zeros_like(self.weights), np.zeros_like(self.weights)
        self.slots = [self._new_game(_rng(self.seed, i)) for i in range(self.games)]

    def _new_game(self, rng: np.uint64) -> BatchGame:
        board, aux, rng = (np.uint64(x) for x in self.game.rules.start(self.game.rows, rng))
        score = int(self.game.rules.value_of_board(board, aux)) if self.game.score_is_value else 0
        return BatchGame(board, aux, rng, score)

    def places(self, board: np.uint64, aux: np.uint64) -> list[list[int]]:
        """The entries of a position, as eight lanes read them: a list for each lane."""
        e, symmetries = self.evaluator, self.evaluator.network.symmetries
        offset = int(e.offset(board, aux))
        words = symmetric_words(e.seen(board, aux), symmetries)
        lanes: list[list[int]] = [[] for _ in range(LANES)]
        for pattern, table in enumerate(e.layout.tables):
            for k, word in enumerate(words):
                lanes[k + symmetries * (pattern % (LANES // symmetries))].append(offset + int(table.entry(word)))
        return lanes

    def read(self, place: int) -> np.float32:
        """An entry; one that was never learnt (NaN) stands for that of the stage before."""
        value = F(self.weights[place])
        size = self.evaluator.tables_size >> len(self.evaluator.network.stages)
        while np.isnan(value):
            place -= size << ((place // size).bit_length() - 1)
            value = F(self.weights[place])
        return value

    def parts(self, board: np.uint64, aux: np.uint64) -> list[np.float32]:
        """What each lane adds to the value of a position."""
        sums = []
        for places in self.places(board, aux):
            total = F(0)
            for place in places:
                total = total + self.read(place)
            sums.append(F(total))
        return sums

    def value(self, board: np.uint64, aux: np.uint64) -> np.float32:
        return _tree(self.parts(board, aux))

    def expectation(self, after: np.uint64, aux: np.uint64) -> np.float32:
        """E[r' + V(next state)] after an afterstate; the first lane adds r', what the new tile is worth."""
        most = self.game.max_placements
        boards, auxes, chances = np.zeros(most, np.uint64), np.zeros(most, np.uint64), np.zeros(most, np.float32)
        sums = [F(0)] * LANES
        for i in range(self.game.rules.placements(after, aux, boards, auxes, chances)):
            parts = self.parts(boards[i], auxes[i])
            if self.game.score_is_value:
                worth = self.game.rules.value_of_board
                parts[0] = F(parts[0] + F(worth(boards[i], auxes[i]) - worth(after, aux)))
            sums = [F(total + F(part * chances[i])) for total, part in zip(sums, parts)]
        return _tree(sums)

    def best_move(self, slot: BatchGame) -> tuple[np.float32, np.float32, tuple[np.uint64, np.uint64] | None, int]:
        """r + value of the best move, its value, its afterstate (None if no move is legal) and its reward."""
        best: tuple[np.float32, np.float32, tuple[np.uint64, np.uint64] | None, int] = (F(0), F(0), None, 0)
        for action in range(4):
            after, after_aux, reward = self.game.rules.slide(self.game.rows, slot.board, slot.aux, action)
            if after == slot.board:
                continue
            position = np.uint64(after), np.uint64(after_aux)
            value = (self.expectation if self.of_states else self.value)(*position)
            total = F(value + F(reward))
            if best[2] is None or total > best[0]:
                best = total, value, position, int(reward)
        self.idle += best[2] is None
        return best

    def step(self) -> None:
        """All games make one move; then the weights move."""
        hits: dict[int, list[int]] = {}
        self.hit_ages = {}
        turn = self._turn_with_traces if self.history > 1 else self._turn_of_afterstates
        turn = self._turn_of_states if self.of_states else turn
        for i, slot in enumerate(self.slots):
            self.slots[i] = turn(slot, hits)
        promoted = {place: self.read(place) for place in hits}
        for place, (count, total) in hits.items():
            self.weights[place] = promoted[place]
            self._settle(place, count, F(total) * F(1 / SIXTEENTHS))
        for place, (count, total) in self.hit_ages.items() if self.rate else ():
            step = _mean_step(F(total) * F(1 / SIXTEENTHS), F(AGE_RATE / AGE_SHARE), count)
            self.weights[place] += F(step * AGE_SHARE)

    def _collect(self, slot: BatchGame, target: np.float32, hits: dict[int, list[int]]) -> None:
        if slot.before is None:
            return
        known = F(slot.value + self.usual(*slot.before))
        self._learn(slot.before, F(F(slot.gain + target) - known), hits)

    def _learn(self, position: tuple[np.uint64, np.uint64], error: np.float32, hits: dict[int, list[int]]) -> None:
        self.worst = max(self.worst, abs(error))
        sixteenths = math.floor(error * F(SIXTEENTHS) + F(0.5))
        for places in self.places(*position):
            for place in places:
                _hit(hits, place, sixteenths)
        if self.evaluator.age is not None:
            _hit(self.hit_ages, int(self.evaluator.age(*position)), sixteenths)

    def usual(self, board: np.uint64, aux: np.uint64) -> np.float32:
        """What is usual at this age; 0 in networks that do not know."""
        return NOTHING if self.evaluator.age is None else F(self.weights[int(self.evaluator.age(board, aux))])

    def _turn_of_afterstates(self, slot: BatchGame, hits: dict[int, list[int]]) -> BatchGame:
        total, value, after, reward = self.best_move(slot)
        if after is not None:
            total = F(total + self.usual(slot.board, slot.aux))
        self._collect(slot, total, hits)
        if after is None:
            return self._finished(slot)
        placed = self._go_on(slot, after, reward)
        slot.before, slot.value, slot.gain = after, value, F(placed)
        return slot

    def _turn_with_traces(self, slot: BatchGame, hits: dict[int, list[int]]) -> BatchGame:
        total, value, after, reward = self.best_move(slot)
        if after is not None:
            usual = self.usual(slot.board, slot.aux)
            value, total = F(value + usual), F(total + usual)
        if slot.before is not None:
            error, weight = F(F(slot.gain + total) - slot.value), F(1)
            for waiting in reversed(slot.trace):
                waiting.target = F(waiting.target + F(weight * error))
                weight = F(weight * F(self.decay))
        if slot.trace and (len(slot.trace) == self.history or after is None):
            oldest = slot.trace.pop(0)
            known = F(self.value(*oldest.position) + self.usual(*oldest.position))
            self._learn(oldest.position, F(oldest.target - known), hits)
        slot.before = after
        if after is None:  # one afterstate after another learns, then the next game begins
            return slot if slot.trace else self._finished(slot)
        slot.gain, slot.value = F(self._go_on(slot, after, reward)), value
        slot.trace.append(Waiting(after, value))
        return slot

    def _turn_of_states(self, slot: BatchGame, hits: dict[int, list[int]]) -> BatchGame:
        state = slot.board, slot.aux
        value = self.value(*state)
        _, _, after, reward = self.best_move(slot)
        self._collect(slot, F(0) if after is None else value, hits)
        if after is None and slot.before is not None and slot.before[0] == slot.board:
            return self._finished(slot)
        slot.before, slot.value, slot.gain = state, value, F(0)
        if after is not None:
            slot.gain = F(F(reward) + F(self._go_on(slot, after, reward)))
        return slot

    def _go_on(self, slot: BatchGame, after: tuple[np.uint64, np.uint64], reward: int) -> int:
        board, aux, placed, rng = self.game.rules.spawn(*after, slot.rng)
        slot.board, slot.aux, slot.rng = np.uint64(board), np.uint64(aux), np.uint64(rng)
        slot.score += reward + int(placed)
        slot.moves += 1
        return int(placed)

    def _finished(self, slot: BatchGame) -> BatchGame:
        self.finished.append(slot.score)
        return self._new_game(slot.rng)

    def _settle(self, place: int, count: int, total: np.float32) -> None:
        rate = F(self.rate)
        if self.coherence:
            error, absolute = self.errors[place], self.absolutes[place]
            rate = F(rate * (F(abs(error) / absolute) if absolute > 0 else F(1)))
            self.errors[place] = error + total
            self.absolutes[place] = absolute + abs(total)
        self.weights[place] += F(_mean_step(total, rate, count) * F(1 / self.evaluator.reads))


def _hit(hits: dict[int, list[int]], place: int, sixteenths: int) -> None:
    record = hits.setdefault(place, [0, 0])
    record[0] += 1
    record[1] += sixteenths


def _mean_step(total: np.float32, rate: np.float32, count: int) -> np.float32:
    """The mean error times the batch rate."""
    step = F(total * batch_rate(rate, count))
    return step if count == 1 else F(step / F(count))


def batch_rate(rate: np.float32, hits: int) -> np.float32:
    """1 − (1 − rate)^hits, by squaring, in float32."""
    if hits == 1:
        return rate
    kept, factor = F(1), F(F(1) - rate)
    while hits:
        if hits & 1:
            kept = F(kept * factor)
        factor = F(factor * factor)
        hits >>= 1
    return F(F(1) - kept)


def _tree(q: Sequence[np.float32]) -> np.float32:
    """The sum of eight numbers, pair by pair."""
    return F(F(F(q[0] + q[1]) + F(q[2] + q[3])) + F(F(q[4] + q[5]) + F(q[6] + q[7])))


def _rng(seed: int, stream: int) -> np.uint64:
    return np.uint64(seed_of(np.uint64(seed), np.uint64(stream)))
