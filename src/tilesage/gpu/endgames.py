"""Endgames (search/game_2048/endgames.py) solved on the GPU by the rules of solving.py beside it, and read there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.games import Game
from tilesage.gpu.machine import SIMULATED, cuda, int64, launched, stride, thread_number
from tilesage.gpu.memory import check_room, fill
from tilesage.search.game_2048.endgames import Chain, Endgames, kind_of
from tilesage.search.game_2048.solving import (
    KEPT,
    Chances,
    Layout,
    by_high_half,
    lay_out,
    make_rules,
    new_chances,
    say,
    sums_of,
)

TOGETHER = 4 if SIMULATED else 32  # threads that share a high half
GRID = (1, TOGETHER) if SIMULATED else (4224, 128)


@cache
def solving_kernels(chain: Chain, four_rate: float) -> tuple[Any, Any]:
    """The kernels that solve all afterstates with one sum, then all positions."""
    expect_in, choose_in = make_rules(chain, four_rate)

    @launched
    def expect(chances: Chances, ranks: Array, layout: Layout, total: int) -> None:
        group, one = thread_number() // TOGETHER, thread_number() % TOGETHER
        for high in range(group, layout.high_sums.size, stride() // TOGETHER):
            expect_in(chances, ranks, layout, int64(total), high, one, TOGETHER)

    @launched
    def choose(endgames: Endgames, chances: Chances, rows: Array, layout: Layout, total: int) -> None:
        group, one = thread_number() // TOGETHER, thread_number() % TOGETHER
        for high in range(group, layout.high_sums.size, stride() // TOGETHER):
            choose_in(endgames, chances, rows, layout, int64(total), high, one, TOGETHER)

    return expect, choose


def solve_on_gpu(game: Game, tables: Sequence[tuple[Chain, int]]) -> Endgames:
    """The tables of (chain, target), in the GPU's memory."""
    known, layouts, size = lay_out(tables)
    rooms = [new_chances(layout, promised) for layout in layouts]
    most = max(sum(array.nbytes for array in (*layout, *room)) for layout, room in zip(layouts, rooms))
    check_room(size + sum(array.nbytes for array in known[1:]) + most, "solving these endgames", "smaller targets do")
    say(size)
    endgames = Endgames(cuda.device_array(size, np.uint8), *(cuda.to_device(array) for array in known[1:]))
    fill(endgames.slides, np.uint8(0))
    for table, layout, room in zip(tables, layouts, rooms):
        solve_table(game, endgames, int(known.places[kind_of(table[0]), table[1], 0]), table, layout, room)
    cuda.synchronize()
    return endgames


def promised(shape: Any, kind: Any) -> Array:
    """An array that takes no memory, to be asked how much it would take."""
    return np.broadcast_to(kind(), shape)


def solve_table(
    game: Game, endgames: Endgames, first: int, table: tuple[Chain, int], layout: Layout, room: Chances
) -> None:
    """One table, whose ranks begin at `first`. Its lists go back before those of the next one are taken."""
    expect, choose = solving_kernels(table[0], game.parameters["four_rate"])
    ranks, rows = endgames.ranks[first:], cuda.to_device(np.array(game.rows))
    there = Layout(*(cuda.to_device(array) for array in layout))
    chances = Chances(*(cuda.device_array(array.shape, array.dtype) for array in room))
    for total in sums_of(layout):
        chances.offsets[total // 2 % KEPT].copy_to_device(by_high_half(layout, total)[0])
        expect[GRID](chances, ranks, there, total)
        choose[GRID](endgames, chances, rows, there, total)
    cuda.synchronize()
