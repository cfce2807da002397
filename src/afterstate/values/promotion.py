"""Tile promotion: what was learnt with one tile is the first guess for the next.

A network that has never seen a tile values every position with it at next to nothing, so a player that trusts it
refuses to make the tile: it builds the whole chain below and then dies beside it. That is the wall at which plain
learning stops. Promotion gives the entries that hold an unseen tile the value of the same entries one tile lower.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..games.compiler import Array
from .layout import Table, layout_of
from .patterns import Network


def promote(weights: Array, network: Network, tile: int) -> int:
    """Fill the untouched (zero) entries that hold `tile`, in place. Returns how many were filled."""
    layout = layout_of(network)
    sets = weights.reshape(network.sets, layout.entries)

    def fill(table: Table) -> int:
        places = table.entries_in_order()
        targets, sources = holders(len(table.pattern), tile)
        targets, sources = places[targets], places[sources]
        filled = 0
        for tables in sets:
            untouched = tables[targets] == 0
            tables[targets[untouched]] = tables[sources[untouched]]
            filled += int(np.count_nonzero(tables[targets[untouched]]))
        return filled

    with ThreadPoolExecutor() as pool:
        return sum(pool.map(fill, layout.tables))


def holders(cells: int, tile: int) -> tuple[Array, Array]:
    """Every entry (Σ tile[k] << 4k) that holds `tile` as its largest, and the entry one tile lower.

    The run of tiles below it comes down too, up to the first that is missing, so that no two become equal: 8 4 1
    of indices becomes 7 4 1, and 8 7 1 becomes 7 6 1.
    """
    index = np.arange(16**cells, dtype=np.uint32)
    largest = np.zeros(index.shape, np.uint8)
    for k in range(cells):
        np.maximum(largest, ((index >> np.uint32(4 * k)) & np.uint32(15)).astype(np.uint8), out=largest)
    targets = index[largest == tile]
    sources, running = targets.copy(), np.ones(targets.shape, bool)
    for level in range(tile, 1, -1):
        holds = np.zeros(targets.shape, bool)
        for k in range(cells):
            holds |= ((targets >> np.uint32(4 * k)) & np.uint32(15)) == level
        running &= holds
        if not running.any():
            break
        for k in range(cells):
            lower = running & (((targets >> np.uint32(4 * k)) & np.uint32(15)) == level)
            sources[lower] -= np.uint32(1 << 4 * k)
    return targets, sources
