"""One step of batch learning: every game in flight makes one move against frozen weights, then the weights move.

Two kernels a step. `choose` picks each game's move, collects the error of the position before it and goes on to the
next position; `apply` settles the weights that were hit. Both give eight lanes to a game. The move is chosen by the
value that is learnt:

afterstates   best of r + V(after);        error of the afterstate before = reward since + best - V(before)
states        best of r + E[r' + V(next)]; error of the state before      = reward since + V(now) - V(before)

V(before) is the value seen when its move was chosen: reading it anew would cost a fifth of all reads, and learns less
well (not so in TD(λ), where it is several moves old). What is usual at its age is read anew: both ages are mostly the
same one, which must not run ahead of itself.
When a game ends, its last afterstate (or the final state) moves towards 0 and the slot starts a new game.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games import Game
from tilesage.gpu.machine import (
    LANE_BITS,
    LANE_MASK,
    LEGAL,
    REWARD,
    aux_of,
    board_of,
    cuda,
    device,
    exchange,
    float32,
    info_of,
    int32,
    launched,
    meet,
    sum_lanes,
    sum_lanes_4,
    thread_number,
    times,
    uint64,
)
from tilesage.gpu.starts import RATE, RUNNING, make_begin
from tilesage.gpu.tables import (
    Tables,
    hit_of,
    make_collect,
    make_collect_age,
    make_read,
    make_settle,
    make_settle_age,
    tables_of,
)
from tilesage.learning.rules import AGE_SHARE
from tilesage.networks.ntuple import Evaluator

ZERO, ONE = np.uint64(0), np.uint64(1)
NOTHING, WHOLE = np.float32(0), np.float32(1)
GAMES, SCORE, BEST, REPLAYS, IDLE, TILES = range(6)  # places in `stats`; then a count a tile
STATS = 48


class Traces(NamedTuple):
    """TD(λ): afterstates that wait for the errors of the next moves, a ring for each game."""

    boards: Any  # [history, games] uint64, as the tables see them
    auxes: Any  # [history, games] uint64
    targets: Any  # [history, games] float32, the value when it was chosen and the errors since
    ages: Any  # [history, games] uint64
    firsts: Any  # [games] int32, where the oldest one is
    lengths: Any  # [games] int32


class Slots(NamedTuple):
    """The games in flight, one slot each. `before` is the position whose value is learnt next."""

    boards: Any  # [games] uint64
    auxes: Any  # [games] uint64
    rngs: Any  # [games] uint64
    before: Any  # [games] uint64, 0 when a game has just begun; an afterstate as the tables see it
    before_auxes: Any  # [games] uint64
    values: Any  # [games] float32, what the tables say of `before`
    gains: Any  # [games] float32, reward since `before`
    scores: Any  # [games] int32
    given: Any  # [games] int32, tiles of the stages that the game began with
    hit: Any  # [games] uint64, the position collected in this step
    hit_auxes: Any  # [games] uint64
    ages: Any  # [games] uint64, the place of the age of `before` (networks by age)
    hit_ages: Any  # [games] uint64, that place if this game owns it in this step, else 0
    worst: Any  # [games] float32, the largest error since somebody looked
    owned: Any  # [games × 8] uint8 or int32, the weights that each lane owns in this step
    traces: Traces


@dataclass(frozen=True)
class Lesson:
    """What is burnt into the kernels of a step."""

    game: Game
    evaluator: Evaluator
    of_states: bool = False  # values of states instead of afterstates
    coherence: bool = False  # temporal coherence instead of TD
    ahead: bool = False  # every second game begins with tiles of the stages
    history: int = 1  # how many errors an afterstate waits for
    decay: float = 0.0  # λ, what each of them counts less than the one before

    @property
    def view(self) -> Callable[..., Any] | None:
        """(board, aux) -> board: how a folded network sees a position."""
        return self.evaluator.fold

    @property
    def tables(self) -> Tables:
        return tables_of(self.evaluator)

    @property
    def by_age(self) -> bool:
        return self.evaluator.age is not None

    @property
    def age_of(self) -> Callable[..., Any]:
        """(board, aux) -> the place of its age, in networks by age."""
        return self.evaluator.age or self.evaluator.offset

    @property
    def words(self) -> int:
        """64-bit words in a weight's record."""
        return 2 if self.coherence else 1

    @property
    def needs_aux(self) -> bool:
        """Does the worth of a move depend on more than the board after it?"""
        return self.of_states or self.tables.by_aux


@compiled
def as_it_is(board: np.uint64, aux: np.uint64) -> np.uint64:
    return board


def make_worth(lesson: Lesson) -> Callable[..., Any]:
    """worth(weights, board, aux, lane, wanted): this lane's part of the value of a position as the tables see it."""
    tables = lesson.tables
    read, board_of_lane, offset_of = make_read(tables), tables.board_of, tables.offset_of

    @device
    def worth(weights: Array, board: np.uint64, aux: np.uint64, lane: int, wanted: int) -> Any:
        return read(weights, offset_of(board, aux), board_of_lane(board, aux, lane), lane, wanted)

    return worth


def make_expectation(lesson: Lesson) -> Callable[..., Any]:
    """This lane's part of E[r' + V(next state)] after an afterstate, over every tile that may appear.

    r' is what that tile is worth. It is the first lane's.
    """
    game, worth = lesson.game, make_worth(lesson)
    placements, value_of_board = game.rules.placements, game.rules.value_of_board
    most, score_is_value = game.max_placements, game.score_is_value

    @device
    def expectation(weights: Array, after: np.uint64, aux: np.uint64, lane: int, wanted: int) -> Any:
        boards = cuda.local.array(most, np.uint64)
        auxes = cuda.local.array(most, np.uint64)
        chances = cuda.local.array(most, np.float32)
        total = NOTHING
        if wanted:
            for i in range(placements(after, aux, boards, auxes, chances)):
                value = worth(weights, boards[i], auxes[i], lane, 1)
                if score_is_value and lane == 0:
                    value += float32(value_of_board(boards[i], auxes[i]) - value_of_board(after, aux))
                total += times(value, chances[i])
        return total

    return expectation


def make_best(lesson: Lesson, worth: Callable[..., Any], view: Callable[..., Any] | None) -> Callable[..., Any]:
    """best_move(weights, rows, board, aux, lane): the best move, and its afterstate as the tables see it.

    -> total, value, after, after_aux, reward, seen; after is 0 if no move is legal. A folded network
    folds every afterstate once, in the lane that slid it; `worth` reads what is seen.
    """
    slide, see = lesson.game.rules.slide, view or as_it_is
    folds, needs_aux = view is not None, lesson.needs_aux

    @device
    def aux_seen(held: Any, lane: int) -> Any:
        return aux_of(held, lane) if needs_aux else ZERO

    @device
    def better(info: int, value: Any, total: Any, which: int) -> Any:
        """Is this move legal and better than the best so far?"""
        return (info & LEGAL) != 0 and (which < 0 or value + float32(info & REWARD) > total)

    @device
    def best_move(weights: Array, rows: Array, board: np.uint64, aux: np.uint64, lane: int) -> Any:
        after, after_aux, reward = slide(rows, board, aux, lane & 3)
        info = int32(reward) | int32(LEGAL if after != board else 0)
        held = exchange(see(after, after_aux), after_aux, info)
        b0, b1, b2, b3 = board_of(held, 0), board_of(held, 1), board_of(held, 2), board_of(held, 3)
        i0, i1, i2, i3 = info_of(held, 0), info_of(held, 1), info_of(held, 2), info_of(held, 3)
        v0, v1, v2, v3 = sum_lanes_4(
            worth(weights, b0, aux_seen(held, 0), lane, i0 & LEGAL),
            worth(weights, b1, aux_seen(held, 1), lane, i1 & LEGAL),
            worth(weights, b2, aux_seen(held, 2), lane, i2 & LEGAL),
            worth(weights, b3, aux_seen(held, 3), lane, i3 & LEGAL),
        )
        total, value, chosen, info, which = NOTHING, NOTHING, ZERO, int32(0), int32(-1)
        if better(i0, v0, total, which):
            total, value, chosen, info, which = v0 + float32(i0 & REWARD), v0, b0, i0, int32(0)
        if better(i1, v1, total, which):
            total, value, chosen, info, which = v1 + float32(i1 & REWARD), v1, b1, i1, int32(1)
        if better(i2, v2, total, which):
            total, value, chosen, info, which = v2 + float32(i2 & REWARD), v2, b2, i2, int32(2)
        if better(i3, v3, total, which):
            total, value, chosen, info, which = v3 + float32(i3 & REWARD), v3, b3, i3, int32(3)
        lane_of_it = max(which, int32(0))
        real, real_aux = chosen, aux_of(held, lane_of_it)
        if folds:
            real = board_of(exchange(after, after_aux, info), lane_of_it)
            real = real if which >= 0 else ZERO
        return total, value, real, real_aux, info & REWARD, chosen

    return best_move


def make_finish(lesson: Lesson) -> Callable[..., Any]:
    """finish(...): count the finished game and fill the slot again. Only games from the beginning tell how well."""
    largest, begin = lesson.game.rules.largest, make_begin(lesson)

    @device
    def finish(rows: Array, g: np.uint64, slots: Slots, stats: Array) -> None:
        if slots.given[g] != 0:
            cuda.atomic.add(stats, REPLAYS, ONE)
        else:
            score = uint64(slots.scores[g])
            cuda.atomic.add(stats, GAMES, ONE)
            cuda.atomic.add(stats, SCORE, score)
            cuda.atomic.max(stats, BEST, score)
            cuda.atomic.add(stats, TILES + largest(slots.boards[g], slots.auxes[g]), ONE)
        slots.before[g] = ZERO
        begin(rows, g, slots, slots.rngs[g])

    return finish


def make_go_on(lesson: Lesson) -> Callable[..., Any]:
    """go_on(g, slots, after, after_aux, reward): play the move; returns the value of the placed tile."""
    spawn = lesson.game.rules.spawn

    @device
    def go_on(g: np.uint64, slots: Slots, after: np.uint64, after_aux: np.uint64, reward: int) -> Any:
        slots.boards[g], slots.auxes[g], placed, slots.rngs[g] = spawn(after, after_aux, slots.rngs[g])
        slots.scores[g] += reward + placed
        return float32(placed)

    return go_on


def make_learn(lesson: Lesson) -> Callable[..., Any]:
    """learn(weights, records, board, aux, lane, error): collect an error; the bits of the weights owned."""
    tables = lesson.tables
    collect, board_of_lane, offset_of = make_collect(tables, lesson.words), tables.board_of, tables.offset_of

    @device
    def learn(weights: Array, records: Array, board: np.uint64, aux: np.uint64, lane: int, error: Any) -> Any:
        turned = board_of_lane(board, aux, lane)
        return collect(weights, records, offset_of(board, aux), turned, lane, hit_of(error))

    return learn


def make_choose_afterstates(lesson: Lesson) -> Any:
    """The kernel that chooses by the values of afterstates, and collects their errors."""
    best_move, learn = make_best(lesson, make_worth(lesson), lesson.view), make_learn(lesson)
    finish, go_on = make_finish(lesson), make_go_on(lesson)
    by_age, age_of, collect_age = lesson.by_age, lesson.age_of, make_collect_age(lesson.words)

    @launched
    def choose(weights: Array, records: Array, rows: Array, slots: Slots, stats: Array, settings: Array) -> None:
        thread = thread_number()
        g, lane = thread >> LANE_BITS, int32(thread & LANE_MASK)
        if settings[RUNNING] == NOTHING:
            return
        before, before_aux = slots.before[g], slots.before_auxes[g]
        gain, value_before = slots.gains[g], slots.values[g]
        total, value, after, after_aux, reward, seen = best_move(weights, rows, slots.boards[g], slots.auxes[g], lane)
        owned, age, age_before, hit_age, error = int32(0), ZERO, slots.ages[g], ZERO, NOTHING
        if by_age and after != ZERO:
            age = age_of(slots.boards[g], slots.auxes[g])  # a slide keeps it
            total += weights[age]
        if before != ZERO:
            if by_age:
                value_before += weights[age_before]
            error = (gain + total) - value_before
            if by_age and lane == 0:
                hit_age = collect_age(records, age_before, error)
            owned = learn(weights, records, before, before_aux, lane, error)
        slots.owned[thread] = owned
        meet()
        if lane == 0:
            slots.hit[g], slots.hit_auxes[g] = before, before_aux
            slots.worst[g] = max(slots.worst[g], abs(error))
            if by_age:
                slots.ages[g], slots.hit_ages[g] = age, hit_age
            if after == ZERO:
                cuda.atomic.add(stats, IDLE, ONE)
                finish(rows, g, slots, stats)
            else:
                slots.before[g], slots.before_auxes[g], slots.values[g] = seen, after_aux, value
                slots.gains[g] = go_on(g, slots, after, after_aux, reward)

    return choose


def make_passing_on(lesson: Lesson) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """weight_of(length): what the newest error counts for the oldest of so many afterstates; pass_on(…): to all."""
    history, decay = lesson.history, np.float32(lesson.decay)

    @device
    def weight_of(length: int) -> Any:
        weight = WHOLE
        for _ in range(1, length):
            weight = times(weight, decay)
        return weight

    @device
    def pass_on(traces: Traces, g: np.uint64, first: int, length: int, error: Any) -> None:
        """The newest first."""
        weight = WHOLE
        for k in range(1, length + 1):
            traces.targets[(first + length - k) % history, g] += times(weight, error)
            weight = times(weight, decay)

    return weight_of, pass_on


def make_choose_traces(lesson: Lesson) -> Any:
    """The kernel of TD(λ): an afterstate learns from the errors of the next moves, each one counting less.

    Its value is read anew when it learns. The value of some moves ago would be wrong by all that other games have
    taught it since, and they would teach it the same again and again.
    """
    worth = make_worth(lesson)
    best_move, learn = make_best(lesson, worth, lesson.view), make_learn(lesson)
    finish, go_on = make_finish(lesson), make_go_on(lesson)
    by_age, age_of, collect_age = lesson.by_age, lesson.age_of, make_collect_age(lesson.words)
    history, (weight_of, pass_on) = lesson.history, make_passing_on(lesson)

    @launched
    def choose(weights: Array, records: Array, rows: Array, slots: Slots, stats: Array, settings: Array) -> None:
        thread = thread_number()
        g, lane = thread >> LANE_BITS, int32(thread & LANE_MASK)
        if settings[RUNNING] == NOTHING:
            return
        traces = slots.traces
        first, length = int32(traces.firsts[g]), int32(traces.lengths[g])
        total, value, after, after_aux, reward, seen = best_move(weights, rows, slots.boards[g], slots.auxes[g], lane)
        age = age_of(slots.boards[g], slots.auxes[g]) if by_age else ZERO  # a slide keeps it
        if by_age and after != ZERO:
            value += weights[age]
            total += weights[age]
        error = (slots.gains[g] + total) - slots.values[g] if slots.before[g] != ZERO else NOTHING
        learnt = length > 0 and (length == history or after == ZERO)
        board, aux, old_age, target = ZERO, ZERO, ZERO, NOTHING
        if learnt:
            board, aux = traces.boards[first, g], traces.auxes[first, g]
            target = traces.targets[first, g] + times(weight_of(length), error)
            old_age = traces.ages[first, g]
        known = sum_lanes(worth(weights, board, aux, lane, int32(learnt)))
        owned, hit_age, late = int32(0), ZERO, NOTHING
        if learnt:
            if by_age:
                known += weights[old_age]
            late = target - known
            if by_age and lane == 0:
                hit_age = collect_age(records, old_age, late)
            owned = learn(weights, records, board, aux, lane, late)
        slots.owned[thread] = owned
        meet()
        if lane == 0:
            slots.hit[g], slots.hit_auxes[g] = board, aux
            slots.worst[g] = max(slots.worst[g], abs(late))
            if by_age:
                slots.hit_ages[g] = hit_age
            pass_on(traces, g, first, length, error)
            if learnt:
                first, length = (first + 1) % history, length - 1
            if after == ZERO:
                cuda.atomic.add(stats, IDLE, ONE)
                slots.before[g] = ZERO
                if length == 0:
                    finish(rows, g, slots, stats)
            else:
                place = (first + length) % history
                traces.boards[place, g], traces.auxes[place, g] = seen, after_aux
                traces.targets[place, g], traces.ages[place, g] = value, age
                length += 1
                slots.before[g], slots.values[g] = seen, value
                slots.gains[g] = go_on(g, slots, after, after_aux, reward)
            traces.firsts[g], traces.lengths[g] = first, length

    return choose


def make_choose_states(lesson: Lesson) -> Any:
    """The kernel that chooses by the expected value of the next state, and collects the errors of states."""
    best_move, learn = make_best(lesson, make_expectation(lesson), None), make_learn(lesson)
    worth, finish, go_on = make_worth(lesson), make_finish(lesson), make_go_on(lesson)

    @launched
    def choose(weights: Array, records: Array, rows: Array, slots: Slots, stats: Array, settings: Array) -> None:
        thread = thread_number()
        g, lane = thread >> LANE_BITS, int32(thread & LANE_MASK)
        if settings[RUNNING] == NOTHING:
            return
        board, aux = slots.boards[g], slots.auxes[g]
        before, before_aux = slots.before[g], slots.before_auxes[g]
        gain, value_before = slots.gains[g], slots.values[g]
        value = sum_lanes(worth(weights, board, aux, lane, 1))
        _, _, after, after_aux, reward, _ = best_move(weights, rows, board, aux, lane)
        ended = after == ZERO
        owned, error = int32(0), NOTHING
        if before != ZERO:
            error = (gain + (NOTHING if ended else value)) - value_before
            owned = learn(weights, records, before, before_aux, lane, error)
        slots.owned[thread] = owned
        meet()
        if lane == 0:
            slots.hit[g], slots.hit_auxes[g] = before, before_aux
            slots.worst[g] = max(slots.worst[g], abs(error))
            if ended:
                cuda.atomic.add(stats, IDLE, ONE)
            if ended and before == board:  # the final state has moved towards 0 as well
                finish(rows, g, slots, stats)
            else:
                slots.before[g], slots.before_auxes[g], slots.values[g], slots.gains[g] = board, aux, value, NOTHING
                if not ended:
                    slots.gains[g] = float32(reward) + go_on(g, slots, after, after_aux, reward)

    return choose


def make_apply(lesson: Lesson) -> Any:
    """The kernel that settles the weights hit in this step, each by the lane that owns it."""
    tables = lesson.tables
    settle, board_of_lane, offset_of = make_settle(tables, lesson.words), tables.board_of, tables.offset_of
    by_age, settle_age = lesson.by_age, make_settle_age(lesson.words)

    @launched
    def apply(weights: Array, records: Array, slots: Slots, settings: Array) -> None:
        thread = thread_number()
        owned = int32(slots.owned[thread])
        if by_age and thread & LANE_MASK == ZERO and settings[RUNNING] != NOTHING:
            age = slots.hit_ages[thread >> LANE_BITS]
            if age != ZERO:
                settle_age(weights, records, age, AGE_SHARE if settings[RATE] > NOTHING else NOTHING)
        if owned != 0 and settings[RUNNING] != NOTHING:
            g = thread >> LANE_BITS
            board, aux = slots.hit[g], slots.hit_auxes[g]
            turned = board_of_lane(board, aux, int32(thread & LANE_MASK))
            settle(weights, records, offset_of(board, aux), turned, owned, settings[RATE])

    return apply
