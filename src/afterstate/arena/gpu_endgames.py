"""Endgames (search/endgames.py) solved on the GPU, and read there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.compiler import Array
from afterstate.learning.gpu.learner import fill
from afterstate.learning.gpu.machine import SIMULATED, cuda, int64, launched, stride, thread_number
from afterstate.search.endgames import (
    KEPT,
    Chances,
    Endgames,
    Layout,
    Table,
    by_high_half,
    gigabytes,
    lay_out,
    make_rules,
    new_chances,
    rows_with_walls,
    say,
    sums_of,
)

TOGETHER = 4 if SIMULATED else 32  # threads that share a high half
GRID = (1, TOGETHER) if SIMULATED else (4224, 128)


@cache
def solving_kernels(walls: int, four_rate: float) -> tuple[Any, Any]:
    """The kernels that solve all afterstates with one sum, then all positions."""
    expect_in, choose_in = make_rules(walls, four_rate)

    @launched
    def expect(endgames: Endgames, chances: Chances, layout: Layout, total: int) -> None:
        me, highs = int64(thread_number()), int64(layout.high_sums.size)
        part = me // TOGETHER
        while part < layout.numbers.size * highs:
            expect_in(endgames, chances, layout, int64(total), part // highs, part % highs, me % TOGETHER, TOGETHER)
            part += int64(stride()) // TOGETHER

    @launched
    def choose(endgames: Endgames, chances: Chances, rows: Array, layout: Layout, total: int) -> None:
        me, highs = int64(thread_number()), int64(layout.high_sums.size)
        part = me // TOGETHER
        while part < layout.numbers.size * highs:
            choose_in(
                endgames, chances, rows, layout, int64(total), part // highs, part % highs, me % TOGETHER, TOGETHER
            )
            part += int64(stride()) // TOGETHER

    return expect, choose


def solve_on_gpu(game: Game, tables: Sequence[Table]) -> Endgames:
    """The tables, in the GPU's memory."""
    known, layouts, size = lay_out(tables)
    if not SIMULATED and size > cuda.current_context().get_memory_info().free:
        raise Mistake(f"these endgames need {gigabytes(size)} of the GPU's memory: take a smaller target")
    say(size)
    endgames = Endgames(cuda.device_array(size, np.uint8), *(cuda.to_device(array) for array in known[1:]))
    fill[GRID](endgames.slides, np.uint8(0))
    rows = cuda.to_device(np.array(rows_with_walls()))
    for table, layout in zip(tables, layouts):
        expect, choose = solving_kernels(table.walls, game.parameters["four_rate"])
        room = new_chances(known, layout, cuda.device_array)
        there, chances = (
            Layout(*(cuda.to_device(array) for array in layout)),
            room._replace(places=cuda.to_device(room.places)),
        )
        for total in sums_of(layout):
            chances.offsets[total // 2 % KEPT].copy_to_device(by_high_half(layout, total)[0])
            expect[GRID](endgames, chances, there, total)
            choose[GRID](endgames, chances, rows, there, total)
    cuda.synchronize()
    return endgames
