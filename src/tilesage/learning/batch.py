"""The batch rule: many games make one move each against weights that stand still, then every weight moves once.

A weight that was hit c times by errors that add up to Σδ moves by (Σδ / c) / m · (1 − (1 − α)^c): what c equal
updates, one after the other, come to, and never more than one full step. α is the rate, under TC times |E| / A of
that weight; then E grows by Σδ and A by |Σδ|.

Every thread plays its share of the games, and owns its share of the weights. It hands each hit to the owner of the
weight; the owner adds hits up as whole numbers, so that their order does not matter, and nobody else writes there. So
the same seed gives the same weights bit for bit on any number of threads, and on a GPU (gpu/steps.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilesage.core.compiler import Array, Number, compiled
from tilesage.core.meeting import meet, new_meeting
from tilesage.games.game import Game
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.rules import AGE_RATE, AGE_SHARE, UpdateRule
from tilesage.learning.steps import Shared, ValueOf, ValueOfMove, greedy_choice, steps_for
from tilesage.learning.thread_state import CANDIDATES, NO_GAME, ThreadState, apart, new_thread_state
from tilesage.learning.trainer import Tally
from tilesage.learning.weights import Read, reader
from tilesage.networks.ntuple import Evaluator, evaluator
from tilesage.networks.patterns import Network
from tilesage.networks.vector_words import prefetch

GAMES_IN_FLIGHT = 1024
STEPS = 64  # between two looks at the number of finished games
AHEAD = 2  # games whose entries are on their way from memory
LANES = 8  # partial sums of a value, in the order of the GPU

ZERO, ONE, SIXTEEN, SIXTEENTH, HALF = (np.float32(x) for x in (0, 1, 16, 1 / 16, 0.5))
HIT, HITS_SHIFT, HALF_A_HIT = np.uint64(1 << 44), np.uint64(44), np.uint64(1 << 43)  # on the GPU, too
HIGH_HALF, LOW_WORD, NO_HITS, NO_AGE = np.uint64(32), np.uint64(0xFFFF_FFFF), np.uint64(0), np.uint64(0)
SCATTER, LINE_BITS = np.uint32(0x9E37_79B1), np.uint32(4)  # 2^32 / golden ratio; 16 entries share a line


class Team(NamedTuple):
    """What T threads exchange in a step."""

    met: Array  # see core/meeting.py
    hits: Array  # [T, T, room] uint64, from thread to owner: entry, and its error in sixteenths in the low half
    counts: Array  # [T, T or more] int64, how many
    entries: Array  # [T, places] uint32, a hash table for each owner: the entries that were hit
    sums: Array  # [T, places] uint64, hits in the upper 20 bits, the sum of their errors in the lower 44
    used: Array  # [T, room of all] uint32, the places in use


def new_team(threads: int, games: int, reads: int) -> Team:
    room, every = reads * -(-games // threads), reads * games
    places = 1 << (2 * every - 1).bit_length()
    return Team(
        met=new_meeting(threads),
        hits=np.zeros((threads, threads, room), np.uint64),
        counts=np.zeros((threads, max(threads, LANES)), np.int64),
        entries=np.zeros((threads, places), np.uint32),
        sums=np.zeros((threads, places), np.uint64),
        used=np.zeros((threads, every + 1), np.uint32),
    )


class BatchTrain(Protocol):
    """So many steps of all games; thread `me` of the team plays its share of them."""

    def __call__(self, shared: Shared, thread: ThreadState, team: Team, me: int, steps: int) -> None: ...


def values_by_lanes(found: Evaluator, read: Read) -> tuple[ValueOfMove, ValueOf]:
    """The value of a move and of a list of entries, summed in the order of the GPU: eight lanes, then as a tree."""
    symmetries, tables = found.network.symmetries, len(found.layout.tables)
    sharers = LANES // symmetries

    @compiled(inline=True)
    def lane(weights: Array, index: Array, boards: int, k: int, number: int) -> np.float32:
        total = ZERO
        for table in range(number // symmetries, tables, sharers):
            total += read(weights, index[boards * (table * symmetries + number % symmetries) + k])
        return total

    @compiled(inline=True)
    def tree(weights: Array, index: Array, boards: int, k: int) -> np.float32:
        first = (lane(weights, index, boards, k, 0) + lane(weights, index, boards, k, 1)) + (
            lane(weights, index, boards, k, 2) + lane(weights, index, boards, k, 3)
        )
        return first + (
            (lane(weights, index, boards, k, 4) + lane(weights, index, boards, k, 5))
            + (lane(weights, index, boards, k, 6) + lane(weights, index, boards, k, 7))
        )

    @compiled
    def value_of_move(weights: Array, thread: ThreadState, g: int, k: int) -> np.float32:
        return tree(weights, thread.entries[g], CANDIDATES, k)

    @compiled
    def value_of(weights: Array, entries: Array) -> np.float32:
        return tree(weights, entries, 1, 0)

    return value_of_move, value_of


@compiled(inline=True)
def hand_over(team: Team, me: int, entries: Array, error: np.float32) -> None:
    """Give every entry's owner this error."""
    sixteenths = np.uint64(np.int64(math.floor(error * SIXTEEN + HALF))) & LOW_WORD
    threads, counts, hits = np.uint64(len(team.hits)), team.counts[me], team.hits[me]
    for i in range(len(entries)):
        owner = np.int64((np.uint64(np.uint32((entries[i] >> LINE_BITS) * SCATTER)) * threads) >> HIGH_HALF)
        hits[owner, counts[owner]] = (np.uint64(entries[i]) << HIGH_HALF) | sixteenths
        counts[owner] += 1


def turn_of_afterstates(game: Game, network: Network, history: int, ahead: bool) -> Callable[..., None]:
    """One move of game g: the afterstate that has waited long enough learns from the errors since.

    With history 1 its value is the one with which its move was chosen. With more, it is read anew: all that other
    games have taught it since would be taught again and again.
    """
    found = evaluator(game, network)
    steps, (read, promote) = steps_for(game, found, ahead), reader(network, found.entries)
    value_of_move, value_of = values_by_lanes(found, read)
    choose_move, copy_entries, play_move = greedy_choice(value_of_move), steps.copy_entries_of_move, steps.play_move
    begin_episode, end_episode = steps.begin_episode, steps.end_episode
    age, by_age, reads, late = found.age or found.offset, network.by_age, found.reads, history > 1

    @compiled(inline=True)
    def turn(shared: Shared, thread: ThreadState, team: Team, me: int, g: int) -> None:
        rows, weights, _, _, decay = shared
        n, t, oldest = thread.legal[g], thread.length[g], thread.oldest[g]
        ring, targets = thread.ring[g], thread.errors[g]
        best, total, value = choose_move(weights, thread, g)
        now = age(thread.board[g], thread.aux[g]) if by_age else NO_AGE
        if by_age and n:
            total += weights[now]
            value += weights[now] if late else ZERO
        known = thread.value[g]
        if by_age and not late:
            known += weights[ring[0, reads]]
        error = (np.float32(thread.gain[g]) + total) - known
        if late:
            weight = ONE
            for q in range(t - 1, oldest - 1, -1):
                targets[q % history] += weight * error
                weight *= decay
        if oldest < t and (t - oldest == history or not n):
            entries = ring[oldest % history]
            if late:
                known = value_of(weights, entries)
                if by_age:
                    known += weights[entries[reads]]
                error = targets[oldest % history] - known
            promote(weights, entries)
            hand_over(team, me, entries, error)
            thread.worst[0] = max(thread.worst[0], abs(error))
            oldest += 1
        if n:
            chosen = ring[t % history]
            copy_entries(thread, g, best, chosen)
            if by_age:
                chosen[reads] = now
            targets[t % history] = thread.value[g] = value
            thread.gain[g] = play_move(thread, g, best)
        else:
            thread.gain[g], thread.value[g] = 0, ZERO  # no more errors, while the last afterstates learn
            if oldest == t:
                end_episode(thread, g)
                begin_episode(rows, thread, g)
                oldest = 0
        thread.oldest[g], thread.legal[g] = oldest, 0  # a checkpoint keeps no moves of the position before

    return turn


@compiled
def batch_rate(rate: np.float32, hits: Number) -> np.float32:
    """1 − (1 − rate)^hits, by squaring: the same products on every device."""
    if hits == 1:
        return rate
    kept, factor = ONE, ONE - rate
    while hits:
        if hits & 1:
            kept = kept * factor
        factor = factor * factor
        hits >>= 1
    return ONE - kept


@compiled
def mean_step(total: np.float32, rate: np.float32, hits: Number) -> np.float32:
    """The mean error times the batch rate."""
    step = total * batch_rate(rate, hits)
    return step if hits == 1 else step / np.float32(hits)


@compiled
def add_up(weights: Array, memory: Array, remembered: np.uint64, team: Team, me: int) -> Number:
    """Add up the hits of the weights that thread `me` owns. Returns how many weights that are."""
    entries, sums, used, count, hits = team.entries[me], team.sums[me], team.used[me], np.int64(0), 0
    for source in range(len(team.hits)):
        hits += team.counts[source, me]
    bits = 6
    while 1 << bits < 2 * hits:
        bits += 1
    shift, last = np.uint32(32 - bits), np.int64((1 << bits) - 1)
    for source in range(len(team.hits)):
        for j in range(team.counts[source, me]):
            hit = team.hits[source, me, j]
            entry = np.uint32(hit >> HIGH_HALF)
            place = np.int64(np.uint32(entry * SCATTER) >> shift)
            while entries[place] != entry and sums[place] != NO_HITS:
                place = (place + 1) & last
            before = sums[place]
            entries[place], used[count] = entry, place
            sums[place] = before + HIT + np.uint64(np.int64(np.int32(np.uint32(hit & LOW_WORD))))
            count += np.int64(before == NO_HITS)
            prefetch(weights, np.uint64(entry))
            if remembered:
                prefetch(memory, np.uint64(entry) * remembered)
    return count


def settle_rule(found: Evaluator, rule: UpdateRule) -> Callable[..., None]:
    """settle(shared, team, me, count): move the weights that were hit."""
    coherent, share, by_age = rule.gpu == "tc", np.float32(1 / found.reads), found.network.by_age
    ages, age_rate = np.uint32(found.tables_size), np.float32(AGE_RATE / AGE_SHARE)

    @compiled
    def settle(shared: Shared, team: Team, me: int, count: int) -> None:
        _, weights, memory, rate, _ = shared
        for j in range(count):
            place = team.used[me, j]
            i, record = np.int64(team.entries[me, place]), team.sums[me, place]
            team.sums[me, place] = NO_HITS
            hits = (record + HALF_A_HIT) >> HITS_SHIFT
            total, times = np.float32(np.int64(record - (hits << HITS_SHIFT))) * SIXTEENTH, np.int64(hits)
            if by_age and i >= ages:
                weights[i] += mean_step(total, age_rate, times) * (AGE_SHARE if rate > ZERO else ZERO)
                continue
            own_rate = rate
            if coherent:
                error, path = memory[2 * i], memory[2 * i + 1]
                if path > ZERO:
                    own_rate = rate * (abs(error) / path)
                memory[2 * i], memory[2 * i + 1] = error + total, path + abs(total)
            weights[i] += mean_step(total, own_rate, times) * share

    return settle


def batch_loop(game: Game, network: Network, rule: UpdateRule, history: int, ahead: bool) -> BatchTrain:
    """The loop of one thread on values of afterstates."""
    turn, settle = turn_of_afterstates(game, network, history, ahead), settle_rule(evaluator(game, network), rule)
    remembered, steps_here = np.uint64(len(rule.memory)), steps_for(game, evaluator(game, network), ahead)
    find_moves, begin_episode = steps_here.find_moves, steps_here.begin_episode

    @compiled(title=f"the {network.name} batch trainer for {game.name}")
    def train(shared: Shared, thread: ThreadState, team: Team, me: int, steps: int) -> None:
        rows, weights, memory, _, _ = shared
        games, threads = len(thread.board), len(team.hits)
        first, last = games * me // threads, games * (me + 1) // threads
        for g in range(first, last):
            if thread.length[g] == NO_GAME:
                begin_episode(rows, thread, g)
        for _ in range(steps):
            team.counts[me] = 0
            for g in range(first, min(first + AHEAD, last)):
                find_moves(rows, weights, thread, g)
            for g in range(first, last):
                turn(shared, thread, team, me, g)
                if g + AHEAD < last:
                    find_moves(rows, weights, thread, g + AHEAD)
            meet(team.met, me)
            settle(shared, team, me, add_up(weights, memory, remembered, team, me))
            meet(team.met, me)

    return train


class BatchTrainer(CpuTrainer):
    """See `Trainer`. The same weights on any number of threads: all of them share one state of all games."""

    def new_threads(self) -> list[ThreadState]:
        config, ages = self.config, int(self.network.by_age)
        self.flight = config.flight or GAMES_IN_FLIGHT
        games = new_thread_state(
            self.game, self.network, config.history, config.seed, 0, slots=self.flight, with_age=bool(ages)
        )
        self.team = new_team(config.threads, self.flight, self.network.reads + ages)
        own = ("tally", "tiles", "worst")
        return [games] + [
            games._replace(**{name: apart(getattr(games, name)) for name in own}) for _ in range(1, config.threads)
        ]

    @property
    def stored(self) -> list[ThreadState]:
        return self.threads[:1]

    @property
    def stride(self) -> int:
        return self.config.stretch(STEPS * self.flight)

    def make_loop(self, rule: UpdateRule) -> Any:
        config = self.config
        return batch_loop(self.game, self.network, rule, config.history, config.start == "ahead")

    def warm_up(self) -> None:
        self._steps(0, 0.0)

    def _steps(self, steps: int, rate: float) -> None:
        shared = Shared(self.game.rows, self._weights, self.memory, np.float32(rate), np.float32(self.config.trace))
        numbers = range(len(self.threads))
        list(self.pool.map(lambda me: self.loop(shared, self.threads[me], self.team, me, steps), numbers))

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        """A step of all games counts as so many moves, as on the GPU; some games end in it instead."""
        begin, total, wanted = time.perf_counter(), Tally(), max(1, -(-moves // self.flight))
        while wanted > 0 and total.games < games:
            steps = min(wanted, STEPS)
            self._steps(steps, rate)
            found = self._collect(self.threads)
            found.moves = steps * self.flight
            total.add(found)
            wanted -= steps
        return self.finished(total, begin)


def make_cpu_trainer(config: TrainConfig) -> CpuTrainer:
    """The trainer of these settings: by the batch rule if they are to be exact, else threads that race."""
    return (BatchTrainer if config.exact else CpuTrainer)(config)
