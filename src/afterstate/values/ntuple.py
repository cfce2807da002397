"""N-tuple networks: the value of a position is the sum of one table entry a pattern and symmetry.

`evaluator(game, network)` makes the compiled functions; the constants of the network are burnt in. Weights are one
flat `float32` array, one set of tables after another (stages, hints), each laid out as layout.py says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..games import PRACTICE
from ..games.board import ONE, S8, ZERO, holds, tiles_above, turn
from ..games.compiler import Array, rule_for
from ..games.errors import Mistake
from ..games.game import Game
from . import layout as planes
from .ages import make_age
from .folding import FOLDED, make_fold
from .lanes import sum_of_one
from .layout import Layout, Table, layout_of
from .patterns import HINTS, Network

BONUS = np.uint64(HINTS)  # the last set of tables: any bonus tile
DIRECTION = np.uint64(3)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """What one network needs on one game. The scalar functions also compile inside CUDA kernels."""

    network: Network
    layout: Layout
    entries: int  # of one set of tables
    tables_size: int  # of all sets of tables
    size: int  # of the weights: all tables, and the one of ages
    reads: int  # entries that make up a value
    value: Callable[..., Any]  # (weights, board, aux) -> float32, on the CPU
    turned: Callable[..., Any]  # (board, aux) -> the board as the tables see it
    offset: Callable[..., Any]  # (board, aux) -> first entry of its set of tables
    spread: Callable[..., Any]  # board -> word; then mirror, flip, transpose on words
    mirror: Callable[..., Any]
    flip: Callable[..., Any]
    transpose: Callable[..., Any]
    tables: tuple[Callable[..., Any], ...]  # word -> entry, one a pattern
    value_by_words: Callable[..., Any]  # like value, without vectors: for CUDA
    fold: Callable[..., Any] | None = None  # (board, aux) -> board, aux, scale, where the network folds
    age: Callable[..., Any] | None = None  # (board, aux) -> the place of its age, in networks by age

    def __repr__(self) -> str:
        return f"Evaluator({self.network!r}: {self.reads} of {self.size:,} weights make a value)"

    def new_weights(self, value: float = 0.0) -> Array:
        """[size] fresh weights under which every position is worth `value`."""
        weights = np.zeros(self.size, np.float32)
        if value:
            weights[: self.tables_size] = value / self.reads
        return weights


@cache
def evaluator(game: Game, network: Network) -> Evaluator:
    """The compiled functions of a network on a game."""
    if network.by_hint and (game.name == "2048" or game.name in PRACTICE):
        raise Mistake("2048 shows no hint: tables by hint are for threes and threes-phone")
    if network.fold and game.name in PRACTICE:
        raise Mistake(f"{game.name} has one scale only: leave out --fold")
    if network.fold and network.stages and network.stages[-1] != network.fold:
        raise Mistake("a folded network has its last stage where it folds: give --stages and --fold the same tile")
    for stage in network.stages:
        if not 0 < stage < min(16, len(game.tiles)):
            raise Mistake(f"a stage needs a tile from {game.tiles[1]} to {game.tiles[min(15, len(game.tiles) - 1)]}")
    layout = layout_of(network)
    total = sum_of_one(layout, network.symmetries)
    turned, offset = _turned(network), _offset(game, network, layout.entries)

    @rule_for("value", game.name, network.key)
    def value(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        return total(weights, turned(board, aux), offset(board, aux))  # type: ignore[no-any-return]

    fold = make_fold(game, network.fold, network.fold_scale) if network.fold else None
    if fold is not None:
        value = _folded(value, fold, game.name, network.key)
    tables = tuple(_entry(table) for table in layout.tables)
    by_words = _value_by_words(game.name, network, tables, turned, offset)
    if fold is not None:
        by_words = _folded(by_words, fold, game.name, network.key)
    size = layout.entries * network.sets
    age = make_age(game, size) if network.by_age else None
    if age is not None:
        value = _by_age(value, age, "value", game.name, network.key)
        by_words = _by_age(by_words, age, "value by words", game.name, network.key)
    return Evaluator(
        network=network,
        layout=layout,
        entries=layout.entries,
        tables_size=size,
        size=size + network.ages,
        reads=network.reads,
        value=value,
        turned=turned,
        offset=offset,
        spread=_word_rule("spread"),
        mirror=_word_rule("mirror"),
        flip=_word_rule("flip"),
        transpose=_word_rule("transpose"),
        tables=tables,
        value_by_words=by_words,
        fold=fold,
        age=age,
    )


def _folded(plain: Callable[..., Any], fold: Callable[..., Any], *key: object) -> Callable[..., Any]:
    """The value of a position by that of the folded one."""

    @rule_for("folded", plain.__name__, *key)
    def folded(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        board, aux, scale = fold(board, aux)
        return scale * plain(weights, board, aux)  # type: ignore[no-any-return]

    return folded


def _by_age(plain: Callable[..., Any], age: Callable[..., Any], *key: object) -> Callable[..., Any]:
    """What the tables say and what is usual, together."""

    @rule_for("by age", *key)
    def by_age(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        return weights[age(board, aux)] + plain(weights, board, aux)  # type: ignore[no-any-return]

    return by_age


def _turned(network: Network) -> Callable[..., Any]:
    @rule_for("turned", network.turned)
    def turned(board: np.uint64, aux: np.uint64) -> np.uint64:
        """The board, in a turned network so that the slide went left."""
        return turn(board, np.int64((aux >> S8) & DIRECTION)) if turns else board

    turns = network.turned
    return turned


def _offset(game: Game, network: Network, entries: int) -> Callable[..., Any]:
    """The first entry of the set of tables for a position: by stage, then by hint.

    Stage bit k says that tile k is there; for the largest listed tile, that one at least as large is, or was before
    the board was folded.
    """
    lower = tuple(np.uint64(stage) for stage in network.stages[:-1]) or (ZERO,)
    listed = len(network.stages[:-1])
    below = np.uint64(network.stages[-1] - 1) if network.stages else ZERO
    top, some, folds = np.uint64(1 << listed), bool(network.stages), bool(network.fold)
    by_hint, size = network.by_hint, np.uint64(entries)
    hint_bits = np.uint64(3 if game.name == "threes" else 15)

    @rule_for("offset", game.name, network.key)
    def offset(board: np.uint64, aux: np.uint64) -> np.uint64:
        chosen = ZERO
        if some:
            if tiles_above(board, below) != ZERO or (folds and aux & FOLDED != ZERO):
                chosen |= top
            for k in range(listed):
                if holds(board, lower[k]):
                    chosen |= ONE << np.uint64(k)
        if by_hint:
            chosen = chosen * BONUS + min(aux & hint_bits, BONUS) - ONE
        return chosen * size

    return offset


@cache
def _word_rule(name: str) -> Callable[..., Any]:
    """A function of layout.py as a compiled rule; its loops over constants unroll."""
    swaps = {"spread": planes.SPREAD, "mirror": planes.MIRROR, "flip": planes.FLIP, "transpose": planes.TRANSPOSE}[
        name
    ]
    steps = tuple((np.uint64(mask), np.uint64(distance)) for mask, distance in swaps)
    if name in ("spread", "transpose"):

        @rule_for("word", name)
        def exchange(word: np.uint64) -> np.uint64:
            for k in range(len(steps)):
                swap = (word ^ (word >> steps[k][1])) & steps[k][0]
                word = word ^ swap ^ (swap << steps[k][1])
            return word

        return exchange

    @rule_for("word", name)
    def reverse(word: np.uint64) -> np.uint64:
        for k in range(len(steps)):
            word = ((word & steps[k][0]) << steps[k][1]) | ((word >> steps[k][1]) & steps[k][0])
        return word

    return reverse


def _entry(table: Table) -> Callable[..., Any]:
    """The entry of one table, from a spread board."""
    right = tuple((np.uint64(d), np.uint64(m)) for d, m in table.moves if d >= 0)
    left = tuple((np.uint64(-d), np.uint64(m)) for d, m in table.moves if d < 0) or ((ZERO, ZERO),)
    right = right or ((ZERO, ZERO),)
    offset = np.uint64(table.offset)

    @rule_for("entry", table)
    def entry(word: np.uint64) -> np.uint64:
        index = offset
        for k in range(len(right)):
            index += (word >> right[k][0]) & right[k][1]
        for k in range(len(left)):
            index += (word << left[k][0]) & left[k][1]
        return index

    return entry


def _value_by_words(game_name: str, network: Network, tables: Any, turned: Any, offset: Any) -> Callable[..., Any]:
    """The value by scalar code alone. One table is one function, chained, so that each compiles once."""
    spread, symmetries = _word_rule("spread"), network.symmetries
    read = _chain(network.key, tables)
    mirrored, flipped, transposed = _word_rule("mirror"), _word_rule("flip"), _word_rule("transpose")

    @rule_for("value by words", game_name, network.key)
    def value_by_words(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        word, first = spread(turned(board, aux)), offset(board, aux)
        total = np.float32(0)
        for k in range(symmetries):
            total += read(weights, word, first)
            if symmetries == 2 or k & 1:
                word = flipped(word) if symmetries == 2 else transposed(word)
            else:
                word = mirrored(word)
        return total

    return value_by_words


def _chain(key: str, tables: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    """`read(weights, word, first)`: the sum over all tables, for one symmetry."""
    entry, rest = tables[0], tables[1:]
    if not rest:

        @rule_for("read", key)
        def last(weights: Array, word: np.uint64, first: np.uint64) -> np.float32:
            return weights[first + entry(word)]  # type: ignore[no-any-return]

        return last
    others = _chain(key, rest)

    @rule_for("read", key, len(rest))
    def read(weights: Array, word: np.uint64, first: np.uint64) -> np.float32:
        return weights[first + entry(word)] + others(weights, word, first)  # type: ignore[no-any-return]

    return read
