"""Endgames (search/endgames.py) solved on the GPU, and read there: a thousand million positions in half a second."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from afterstate.games import Game, Mistake
from afterstate.games.compiler import Array
from afterstate.learning.gpu.machine import SIMULATED, cuda, int64, launched, stride, thread_number
from afterstate.search.endgames import Endgames, Layout, gigabytes, lay_out, limit_of, make_rules

TOGETHER = 4 if SIMULATED else 32  # threads that share a high half
GRID = (1, TOGETHER) if SIMULATED else (4224, 128)


@cache
def fill_kernel(links: int, four_rate: float) -> Any:
    """The kernel that solves all positions with one sum."""
    fill_in = make_rules(links, four_rate).fill_in

    @launched
    def fill(endgames: Endgames, rows: Array, layout: Layout, total: int) -> None:
        me = int64(thread_number())
        high = me // TOGETHER
        while high < layout.high_sums.size:
            fill_in(endgames, rows, layout, int64(total), high, me % TOGETHER, TOGETHER)
            high += int64(stride()) // TOGETHER

    return fill


def solve_on_gpu(game: Game, tables: Sequence[tuple[int, int]]) -> Endgames:
    """The tables of (links, target), in the GPU's memory."""
    known, layouts = lay_out(tables)
    positions = int(known.offsets[-1])
    if not SIMULATED and 2 * positions > cuda.current_context().get_memory_info().free:
        raise Mistake(f"these endgames need {gigabytes(positions)} of the GPU's memory: take a smaller target")
    chances = cuda.device_array(positions, np.uint16)
    endgames = Endgames(chances, *(cuda.to_device(array) for array in known[1:]))
    rows = cuda.to_device(np.array(game.rows))
    for (links, target), layout in zip(tables, layouts):
        fill = fill_kernel(links, game.parameters["four_rate"])
        there = Layout(*(cuda.to_device(array) for array in layout))
        for total in range(limit_of(target), -1, -2):
            fill[GRID](endgames, rows, there, total)
    cuda.synchronize()
    return endgames
