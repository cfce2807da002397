"""Where the games in flight begin: afresh, from positions met before, or ahead.

restart    a slot goes back to a bookmark in its own last game
carousel   a slot starts from a pool of positions that all games have met, sorted by how far the game had come
ahead      a slot starts with tiles of the stages on its board (learning/ahead.py)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from afterstate.games.chance import below, draw
from afterstate.games.compiler import Array
from afterstate.learning.ahead import make_ahead

from .machine import cuda, device, float32, int32, uint64

if TYPE_CHECKING:
    from .steps import Lesson, Slots

ZERO, MILLION = np.uint64(0), np.uint64(1_000_000)
# Places in `settings`: the learning rate, the share of finished games that go on from a position met before, and
# whether anything moves at all.
RATE, RESTART, RUNNING = range(3)
SETTINGS = 3
FIRST_BOOKMARK, SPREAD = 512, np.uint64(511)  # moves, spread up to 1023
LEVELS, DEPTH, MOVES_A_LEVEL = 64, 1024, 512  # of the pool


class Bookmarks(NamedTuple):
    """Restart: positions saved on the way, the last one and the one before it, where this slot may start again."""

    boards: Any  # [games, 2] uint64
    auxes: Any  # [games, 2] uint64
    scores: Any  # [games, 2] int32
    moves: Any  # [games, 2] int32
    due: Any  # [games] int32, moves at which the next one is saved
    resumed: Any  # [games] int32, not 0 while the slot plays on from a bookmark, or began ahead


class Pool(NamedTuple):
    """Carousel: positions met by all games, by how far the game had come, where any slot may start."""

    boards: Any  # [levels, depth] uint64
    auxes: Any  # [levels, depth] uint64
    scores: Any  # [levels, depth] int32
    moves: Any  # [levels, depth] int32
    counts: Any  # [levels] int32, how many there are
    places: Any  # [levels] int32, where the next one goes
    levels: Any  # [1] int32, how many levels have been reached
    resumed: Any  # [games] int32, 1 while the slot plays on from the pool


Marks = Bookmarks | Pool


def zeros(kind: str, *shape: int) -> Any:
    """An array on the GPU, its kind by a letter."""
    return cuda.to_device(np.zeros(shape, {"u": np.uint64, "f": np.float32, "i": np.int32}[kind]))


def new_marks(start: str, games: int) -> Marks:
    """Nothing met yet."""
    if start == "carousel":
        counts = (zeros("i", size) for size in (LEVELS, LEVELS, 1, games))
        return Pool(*(zeros(kind, LEVELS, DEPTH) for kind in "uuii"), *counts)
    slots, resumed = games if start == "restart" else 1, 1 if start == "fresh" else games
    return Bookmarks(*(zeros(kind, slots, 2) for kind in "uuii"), *(zeros("i", size) for size in (slots, resumed)))


@device
def replayed(settings: Array, bits: np.uint64) -> Any:
    """Shall a slot go on from a position met before?"""
    return float32(below(bits, MILLION)) < settings[RESTART] * float32(MILLION)


def make_begin(lesson: Lesson) -> Callable[..., Any]:
    """begin(rows, g, slots, marks, settings, rng): fill a slot with a new game, or with a position met before."""
    found = {"fresh": make_fresh, "restart": make_go_back, "carousel": make_ride, "ahead": make_head_start}
    return found[lesson.start](lesson)


def make_seat(lesson: Lesson) -> Callable[..., Any]:
    """seat(g, slots, board, aux, rng): put a new game into a slot."""
    value_of_board, score_is_value = lesson.game.rules.value_of_board, lesson.game.score_is_value

    @device
    def seat(g: np.uint64, slots: Slots, board: np.uint64, aux: np.uint64, rng: np.uint64) -> None:
        slots.boards[g], slots.auxes[g], slots.rngs[g] = board, aux, rng
        slots.scores[g] = value_of_board(board, aux) if score_is_value else 0
        slots.moves[g] = 0

    return seat


def make_fresh(lesson: Lesson) -> Callable[..., Any]:
    """Always a new game."""
    start, seat = lesson.game.rules.start, make_seat(lesson)

    @device
    def fresh(rows: Array, g: np.uint64, slots: Slots, marks: Marks, settings: Array, rng: np.uint64) -> None:
        board, aux, rng = start(rows, rng)
        seat(g, slots, board, aux, rng)

    return fresh


def make_head_start(lesson: Lesson) -> Callable[..., Any]:
    """Ahead: a new game, perhaps with tiles of the stages."""
    ahead, seat = make_ahead(lesson.game, lesson.evaluator.network.stages), make_seat(lesson)

    @device
    def begin(rows: Array, g: np.uint64, slots: Slots, marks: Bookmarks, settings: Array, rng: np.uint64) -> None:
        board, aux, rng, marks.resumed[g] = ahead(rows, rng)
        seat(g, slots, board, aux, rng)

    return begin


def make_go_back(lesson: Lesson) -> Callable[..., Any]:
    """Restart: a new game, or the older bookmark of this slot."""
    fresh = make_fresh(lesson)

    @device
    def begin(rows: Array, g: np.uint64, slots: Slots, marks: Bookmarks, settings: Array, rng: np.uint64) -> None:
        bits, rng = draw(rng)
        if marks.boards[g, 0] != ZERO and replayed(settings, bits):
            slots.boards[g], slots.auxes[g] = marks.boards[g, 0], marks.auxes[g, 0]
            slots.scores[g], slots.moves[g] = marks.scores[g, 0], marks.moves[g, 0]
            slots.rngs[g] = rng
            marks.boards[g, 1], marks.auxes[g, 1] = marks.boards[g, 0], marks.auxes[g, 0]
            marks.scores[g, 1], marks.moves[g, 1] = marks.scores[g, 0], marks.moves[g, 0]
            marks.due[g] = marks.moves[g, 0] + marks.moves[g, 0] // 4
            marks.resumed[g] = 1
        else:
            fresh(rows, g, slots, marks, settings, rng)
            marks.boards[g, 0], marks.boards[g, 1] = ZERO, ZERO
            marks.due[g] = FIRST_BOOKMARK + int32(bits & SPREAD)
            marks.resumed[g] = 0

    return begin


def make_ride(lesson: Lesson) -> Callable[..., Any]:
    """Carousel: a new game, or a position of the pool.

    Every level that was reached is as likely as any other, however few games came so far.
    """
    fresh = make_fresh(lesson)

    @device
    def begin(rows: Array, g: np.uint64, slots: Slots, pool: Pool, settings: Array, rng: np.uint64) -> None:
        bits, rng = draw(rng)
        pool.resumed[g] = 0
        if pool.levels[0] > 0 and replayed(settings, bits):
            bits, rng = draw(rng)
            level = below(bits, uint64(pool.levels[0]))
            bits, rng = draw(rng)
            if pool.counts[level] > 0:
                i = below(bits, uint64(pool.counts[level]))
                slots.boards[g], slots.auxes[g] = pool.boards[level, i], pool.auxes[level, i]
                slots.scores[g], slots.moves[g] = pool.scores[level, i], pool.moves[level, i]
                slots.rngs[g] = rng
                pool.resumed[g] = 1
        if pool.resumed[g] == 0:
            fresh(rows, g, slots, pool, settings, rng)

    return begin


def make_bookmark(lesson: Lesson) -> Callable[..., Any]:
    """bookmark(g, slots, marks): save the position of this slot when it is due.

    That is a quarter later than the last one every time, so the older of two lies at 64 to 80 % of the game.
    """

    @device
    def never(g: np.uint64, slots: Slots, marks: Marks) -> None:
        return

    @device
    def bookmark(g: np.uint64, slots: Slots, marks: Bookmarks) -> None:
        if slots.moves[g] >= marks.due[g]:
            marks.boards[g, 0], marks.auxes[g, 0] = marks.boards[g, 1], marks.auxes[g, 1]
            marks.scores[g, 0], marks.moves[g, 0] = marks.scores[g, 1], marks.moves[g, 1]
            marks.boards[g, 1], marks.auxes[g, 1] = slots.boards[g], slots.auxes[g]
            marks.scores[g, 1], marks.moves[g, 1] = slots.scores[g], slots.moves[g]
            marks.due[g] = slots.moves[g] + slots.moves[g] // 4

    return bookmark if lesson.start == "restart" else never


def restock(pool: Pool, slots: Slots) -> None:
    """Take the positions of all games into the pool, each at its level; the oldest there give way."""
    found = [array.copy_to_host() for array in (slots.boards, slots.auxes, slots.scores, slots.moves)]
    kept = [array.copy_to_host() for array in pool[:4]]
    counts, places = pool.counts.copy_to_host(), pool.places.copy_to_host()
    levels = np.minimum(found[3] // MOVES_A_LEVEL, LEVELS - 1)
    order = np.argsort(levels, kind="stable")
    ends = np.searchsorted(levels[order], np.arange(LEVELS + 1))
    for level in np.flatnonzero(np.diff(ends)):
        new = order[ends[level] : ends[level + 1]][-DEPTH:]
        into = (places[level] + np.arange(len(new))) % DEPTH
        for there, here in zip(kept, found, strict=True):
            there[level, into] = here[new]
        places[level] = (places[level] + len(new)) % DEPTH
        counts[level] = min(DEPTH, counts[level] + len(new))
    reached = np.array([1 + np.flatnonzero(counts).max(initial=-1)], np.int32)
    for array, new in zip(pool[:7], (*kept, counts, places, reached), strict=True):
        array.copy_to_device(new)
