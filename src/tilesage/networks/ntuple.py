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

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.games.board import ONE, S8, ZERO, holds, tiles_above, turn
from tilesage.games.game import Game
from tilesage.networks.ages import make_age
from tilesage.networks.folding import make_fold
from tilesage.networks.layout import Layout, layout_of
from tilesage.networks.patterns import HINTS, Network
from tilesage.networks.vector_words import sum_of_one

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
    turned: Callable[..., Any]  # (board, aux) -> the board, in a turned network so that the slide went left
    seen: Callable[..., Any]  # (board, aux) -> the board as the tables see it: folded and turned
    offset: Callable[..., Any]  # (board, aux) -> first entry of its set of tables
    fold: Callable[..., Any] | None = None  # (board, aux) -> board, where the network folds
    age: Callable[..., Any] | None = None  # (board, aux) -> the place of its age, in networks by age

    def __repr__(self) -> str:
        return f"Evaluator({self.network!r}: {self.reads} of {self.size:,} weights make a value)"


@cache
def evaluator(game: Game, network: Network) -> Evaluator:
    """The compiled functions of a network on a game."""
    if network.by_hint and game.hint is None:
        raise InputError(f"{game.name} shows no hint: tables by hint are for games that do, such as threes")
    if network.fold and not game.scales:
        raise InputError(f"{game.name} has one scale only: leave out --fold")
    if network.fold and network.stages:
        raise InputError("a folded network sees no large tiles that stages could tell apart: give --fold or --stages")
    for stage in network.stages:
        if not 0 < stage < min(16, len(game.tiles)):
            raise InputError(
                f"a stage needs a tile from {game.tiles[1]} to {game.tiles[min(15, len(game.tiles) - 1)]}"
            )
    layout = layout_of(network)
    total = sum_of_one(layout, network.symmetries)
    turned, offset = _turned(network), _offset(game, network, layout.entries)
    fold = make_fold(game, network.fold) if network.fold else None
    seen = turned if fold is None else _folded(fold, turned)

    @compiled
    def value(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        return total(weights, seen(board, aux), offset(board, aux))  # type: ignore[no-any-return]

    size = layout.entries * network.sets
    age = make_age(game, size) if network.by_age else None
    if age is not None:
        value = _by_age(value, age)
    return Evaluator(
        network=network,
        layout=layout,
        entries=layout.entries,
        tables_size=size,
        size=size + network.ages,
        reads=network.reads,
        value=value,
        turned=turned,
        seen=seen,
        offset=offset,
        fold=fold,
        age=age,
    )


def _folded(fold: Callable[..., Any], turned: Callable[..., Any]) -> Callable[..., Any]:
    @compiled
    def folded(board: np.uint64, aux: np.uint64) -> np.uint64:
        """The board brought down, then turned."""
        return turned(fold(board, aux), aux)  # type: ignore[no-any-return]

    return folded


def _by_age(plain: Callable[..., Any], age: Callable[..., Any]) -> Callable[..., Any]:
    """What the tables say and what is usual, together."""

    @compiled
    def by_age(weights: Array, board: np.uint64, aux: np.uint64) -> np.float32:
        return weights[age(board, aux)] + plain(weights, board, aux)  # type: ignore[no-any-return]

    return by_age


def _turned(network: Network) -> Callable[..., Any]:
    @compiled
    def turned(board: np.uint64, aux: np.uint64) -> np.uint64:
        """The board, in a turned network so that the slide went left."""
        return turn(board, np.int64((aux >> S8) & DIRECTION)) if turns else board

    turns = network.turned
    return turned


def _offset(game: Game, network: Network, entries: int) -> Callable[..., Any]:
    """The first entry of the set of tables for a position: by stage, then by hint.

    Stage bit k says that tile k is there; for the largest listed tile, that one at least as large is.
    """
    lower = tuple(np.uint64(stage) for stage in network.stages[:-1]) or (ZERO,)
    listed = len(network.stages[:-1])
    below = np.uint64(network.stages[-1] - 1) if network.stages else ZERO
    top, some = np.uint64(1 << listed), bool(network.stages)
    by_hint, size = network.by_hint, np.uint64(entries)
    hint_bits = np.uint64((1 << game.hint.bits) - 1 if game.hint else 0)

    @compiled
    def offset(board: np.uint64, aux: np.uint64) -> np.uint64:
        chosen = ZERO
        if some:
            if tiles_above(board, below) != ZERO:
                chosen |= top
            for k in range(listed):
                if holds(board, lower[k]):
                    chosen |= ONE << np.uint64(k)
        if by_hint:
            chosen = chosen * BONUS + min(aux & hint_bits, BONUS) - ONE
        return chosen * size

    return offset


def promote_all(weights: Array, network: Network, entries: int) -> None:
    """Give every entry that was never learnt the value of the stage before, so that readers need no rule."""
    size = entries * (HINTS if network.by_hint else 1)
    stages = weights[: len(weights) - network.ages].reshape(-1, size)
    for stage in range(1, len(stages)):
        before = stages[stage - (1 << (stage.bit_length() - 1))]
        np.copyto(stages[stage], before, where=np.isnan(stages[stage]))
