"""Endgames (search/game_2048/endgames.py) solved on the GPU by the rules of solving.py beside it, and read there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.gpu.learner import fill
from tilesage.gpu.machine import SIMULATED, cuda, int64, launched, stride, thread_number
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
from tilesage.search.game_2048.table_cache import gigabytes

TOGETHER = 4 if SIMULATED else 32  # threads that share a high half
GRID = (1, TOGETHER) if SIMULATED else (4224, 128)


@cache
def solving_kernels(chain: Chain, four_rate: float) -> tuple[Any, Any]:
    """The kernels that solve all afterstates with one sum, then all positions."""
    expect_in, choose_in = make_rules(chain, four_rate)

    @launched
    def expect(chances: Chances, ranks: Array, layout: Layout, total: int) -> None:
        me = int64(thread_number())
        high = me // TOGETHER
        while high < layout.high_sums.size:
            expect_in(chances, ranks, layout, int64(total), high, me % TOGETHER, TOGETHER)
            high += int64(stride()) // TOGETHER

    @launched
    def choose(endgames: Endgames, chances: Chances, rows: Array, layout: Layout, total: int) -> None:
        me = int64(thread_number())
        high = me // TOGETHER
        while high < layout.high_sums.size:
            choose_in(endgames, chances, rows, layout, int64(total), high, me % TOGETHER, TOGETHER)
            high += int64(stride()) // TOGETHER

    return expect, choose


def solve_on_gpu(game: Game, tables: Sequence[tuple[Chain, int]]) -> Endgames:
    """The tables of (chain, target), in the GPU's memory."""
    known, layouts, size = lay_out(tables)
    if not SIMULATED and size > cuda.current_context().get_memory_info().free:
        raise InputError(f"these endgames need {gigabytes(size)} of the GPU's memory: take a smaller target")
    say(size)
    endgames = Endgames(cuda.device_array(size, np.uint8), *(cuda.to_device(array) for array in known[1:]))
    fill[GRID](endgames.slides, np.uint8(0))
    rows = cuda.to_device(np.array(game.rows))
    for (chain, target), layout in zip(tables, layouts):
        expect, choose = solving_kernels(chain, game.parameters["four_rate"])
        ranks = endgames.ranks[int(known.places[kind_of(chain), target, 0]) :]
        there, chances = Layout(*(cuda.to_device(array) for array in layout)), new_chances(layout, cuda.device_array)
        for total in sums_of(layout):
            chances.offsets[total // 2 % KEPT].copy_to_device(by_high_half(layout, total)[0])
            expect[GRID](chances, ranks, there, total)
            choose[GRID](endgames, chances, rows, there, total)
    cuda.synchronize()
    return endgames
