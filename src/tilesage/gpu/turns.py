"""The three ways to learn from a move. Each looks at a game and says what learns from which error, then goes on.

The move is chosen by the value that is learnt:

afterstates   best of r + V(after);        error of the afterstate before = reward since + best - V(before)
states        best of r + E[r' + V(next)]; error of the state before      = reward since + V(now) - V(before)

V(before) is the value seen when its move was chosen: reading it anew would cost a fifth of all reads, and learns less
well (not so in TD(λ), where it is several moves old). What is usual at its age is read anew: both ages are mostly the
same one, which must not run ahead of itself.
When a game ends, its last afterstate (or the final state) moves towards 0 and the slot starts a new game.

    look(weights, rows, slots, g, lane) -> hit, aux, age, error, move    by all lanes; hit is 0 if nothing learns
    go_on(rows, g, slots, stats, move)                                   by the first lane, after all have looked

A move is (after, aux, reward, seen, value, age, error): the afterstate, 0 if the game is over; the same as the tables
see it, and its value; the place of its age; and the error that it shows in the move before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import (
    LEGAL,
    REWARD,
    device,
    exchange,
    float32,
    info_of,
    int32,
    sum_lanes,
    times,
    word_of,
)
from tilesage.gpu.slots import Playing, Slots, Traces

ZERO, NOTHING, WHOLE = np.uint64(0), np.float32(0), np.float32(1)


class Turn(NamedTuple):
    """A way to learn."""

    look: Callable[..., Any]
    go_on: Callable[..., Any]


def best_move(lesson: Lesson) -> Callable[..., Any]:
    """(weights, rows, board, aux, lane) -> total, value, after, aux, reward, seen: the best move; after is 0 if none.

    Lanes 0 to 3 slide one way each, and fold once what a folded network sees.
    """
    slide, see, worth, folds = lesson.game.rules.slide, lesson.see, lesson.worth, lesson.evaluator.fold is not None
    needs_aux = lesson.of_states or lesson.evaluator.network.by_hint

    @device
    def aux_seen(auxes: Any, lane: int) -> Any:
        return word_of(auxes, lane) if needs_aux else ZERO

    @device
    def better(best: Any, value: Any, seen: np.uint64, info: int, which: int) -> Any:
        """The better of two moves, the first one if they are equal."""
        total = value + float32(info & REWARD)
        if (info & LEGAL) != 0 and (best[4] < 0 or total > best[0]):
            return total, value, seen, info & REWARD, int32(which)
        return best

    @device
    def choose(weights: Array, rows: Array, board: np.uint64, aux: np.uint64, lane: int) -> Any:
        after, after_aux, reward = slide(rows, board, aux, lane & 3)
        info = int32(reward) | int32(LEGAL if after != board else 0)
        boards, auxes, infos = exchange(see(after, after_aux)), exchange(after_aux), exchange(info)
        b0, b1, b2, b3 = word_of(boards, 0), word_of(boards, 1), word_of(boards, 2), word_of(boards, 3)
        i0, i1, i2, i3 = info_of(infos, 0), info_of(infos, 1), info_of(infos, 2), info_of(infos, 3)
        w0 = worth(weights, b0, aux_seen(auxes, 0), lane, i0 & LEGAL)
        w1 = worth(weights, b1, aux_seen(auxes, 1), lane, i1 & LEGAL)
        w2 = worth(weights, b2, aux_seen(auxes, 2), lane, i2 & LEGAL)
        w3 = worth(weights, b3, aux_seen(auxes, 3), lane, i3 & LEGAL)
        best = better((NOTHING, NOTHING, ZERO, int32(0), int32(-1)), sum_lanes(w0), b0, i0, 0)
        best = better(best, sum_lanes(w1), b1, i1, 1)
        best = better(best, sum_lanes(w2), b2, i2, 2)
        best = better(best, sum_lanes(w3), b3, i3, 3)
        total, value, seen, reward, which = best
        lane_of_it = max(which, int32(0))
        real, real_aux = seen, word_of(auxes, lane_of_it)
        if folds:
            real = word_of(exchange(after), lane_of_it)
            real = real if which >= 0 else ZERO
        return total, value, real, real_aux, reward, seen

    return choose


def of_afterstates(lesson: Lesson, play: Playing) -> Turn:
    """TD(0) and TC(0) on the values of afterstates."""
    choose, finish, play_on = best_move(lesson), play.finish, play.go_on
    by_age, age_of = lesson.by_age, lesson.age_of

    @device
    def look(weights: Array, rows: Array, slots: Slots, g: np.uint64, lane: int) -> Any:
        before, before_aux, age_before = slots.before[g], slots.before_auxes[g], slots.ages[g]
        gain, known = slots.gains[g], slots.values[g]
        total, value, after, aux, reward, seen = choose(weights, rows, slots.boards[g], slots.auxes[g], lane)
        age, error = ZERO, NOTHING
        if by_age and after != ZERO:
            age = age_of(slots.boards[g], slots.auxes[g])  # a slide keeps it
            total += weights[age]
        if before != ZERO:
            if by_age:
                known += weights[age_before]
            error = (gain + total) - known
        return before, before_aux, age_before, error, (after, aux, reward, seen, value, age, error)

    @device
    def go_on(rows: Array, g: np.uint64, slots: Slots, stats: Array, move: Any) -> None:
        after, aux, reward, seen, value, age, _ = move
        if by_age:
            slots.ages[g] = age
        if after == ZERO:
            finish(rows, g, slots, stats)
        else:
            slots.before[g], slots.before_auxes[g], slots.values[g] = seen, aux, value
            slots.gains[g] = play_on(g, slots, after, aux, reward)

    return Turn(look, go_on)


def with_traces(lesson: Lesson, play: Playing) -> Turn:
    """TD(λ) and TC(λ): an afterstate learns from the errors of the next moves, each one counting less.

    Its value is read anew when it learns. The value of some moves ago would be wrong by all that other games have
    taught it since, and they would teach it the same again and again.
    """
    choose, worth, finish, play_on = best_move(lesson), lesson.worth, play.finish, play.go_on
    by_age, age_of = lesson.by_age, lesson.age_of
    history, (weight_of, pass_on) = lesson.history, passing_on(lesson.history, np.float32(lesson.decay))

    @device
    def look(weights: Array, rows: Array, slots: Slots, g: np.uint64, lane: int) -> Any:
        traces, board, aux, age, target, late = slots.traces, ZERO, ZERO, ZERO, NOTHING, NOTHING
        first, length = int32(traces.firsts[g]), int32(traces.lengths[g])
        total, value, after, after_aux, reward, seen = choose(weights, rows, slots.boards[g], slots.auxes[g], lane)
        new_age = age_of(slots.boards[g], slots.auxes[g]) if by_age else ZERO  # a slide keeps it
        if by_age and after != ZERO:
            value += weights[new_age]
            total += weights[new_age]
        error = (slots.gains[g] + total) - slots.values[g] if slots.before[g] != ZERO else NOTHING
        learnt = length > 0 and (length == history or after == ZERO)
        if learnt:
            board, aux, age = traces.boards[first, g], traces.auxes[first, g], traces.ages[first, g]
            target = traces.targets[first, g] + times(weight_of(length), error)
        known = sum_lanes(worth(weights, board, aux, lane, int32(learnt)))
        if learnt:
            if by_age:
                known += weights[age]
            late = target - known
        return board, aux, age, late, (after, after_aux, reward, seen, value, new_age, error)

    @device
    def go_on(rows: Array, g: np.uint64, slots: Slots, stats: Array, move: Any) -> None:
        after, aux, reward, seen, value, age, error = move
        traces = slots.traces
        first, length = int32(traces.firsts[g]), int32(traces.lengths[g])
        pass_on(traces, g, first, length, error)
        if length > 0 and (length == history or after == ZERO):  # the oldest one has learnt
            first, length = (first + 1) % history, length - 1
        slots.before[g] = seen if after != ZERO else ZERO
        if after != ZERO:
            place = (first + length) % history
            traces.boards[place, g], traces.auxes[place, g] = seen, aux
            traces.targets[place, g], traces.ages[place, g] = value, age
            length += 1
            slots.values[g] = value
            slots.gains[g] = play_on(g, slots, after, aux, reward)
        elif length == 0:
            finish(rows, g, slots, stats)
        traces.firsts[g], traces.lengths[g] = first, length

    return Turn(look, go_on)


def passing_on(history: int, decay: np.float32) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """weight_of(length): what the newest error counts for the oldest of so many afterstates; pass_on(…): to all."""

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


def of_states(lesson: Lesson, play: Playing) -> Turn:
    """TD(0) and TC(0) on the values of states."""
    choose, worth, finish, play_on = best_move(lesson), lesson.tables.worth, play.finish, play.go_on

    @device
    def look(weights: Array, rows: Array, slots: Slots, g: np.uint64, lane: int) -> Any:
        before, before_aux, gain, known = slots.before[g], slots.before_auxes[g], slots.gains[g], slots.values[g]
        value = sum_lanes(worth(weights, slots.boards[g], slots.auxes[g], lane, 1))
        _, _, after, aux, reward, _ = choose(weights, rows, slots.boards[g], slots.auxes[g], lane)
        error = NOTHING
        if before != ZERO:
            error = (gain + (value if after != ZERO else NOTHING)) - known
        return before, before_aux, ZERO, error, (after, aux, reward, ZERO, value, ZERO, error)

    @device
    def go_on(rows: Array, g: np.uint64, slots: Slots, stats: Array, move: Any) -> None:
        after, aux, reward, _, value, _, _ = move
        if after == ZERO and slots.before[g] == slots.boards[g]:  # the final state has moved towards 0 as well
            finish(rows, g, slots, stats)
        else:
            slots.before[g], slots.before_auxes[g] = slots.boards[g], slots.auxes[g]
            slots.values[g], slots.gains[g] = value, NOTHING
            if after != ZERO:
                slots.gains[g] = float32(reward) + play_on(g, slots, after, aux, reward)

    return Turn(look, go_on)
