"""Where each entry of a network lies in memory: the one layout of CPU, GPU and files.

Training is bound by cache misses, so the layout decides its speed. Three ideas, each measured (docs/performance.md):

- **Planes.** The board is first spread so that the low two bits of every cell come first (`spread`). Indices made of
  such planes keep the entries of small tiles, which change at every move, close together.
- **Pairs.** Two patterns that share all cells but one (up to symmetry) share their cache lines: a line of 16 entries
  holds 8 of the one and 8 of the other, told apart by the odd cell. 4x6 then touches a third fewer lines.
- An index is a handful of `(word >> distance) & mask` joined together: all bits that move by the same distance move
  at once. They are the `moves` of a table.

`WORD` below: bit 2c + b of a spread board is bit b of cell c, and bit 32 + 2c + b is bit 2 + b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from tilesage.networks.patterns import Network, Pattern

VERSION = 1  # of the layout; files name it
LINE = 8  # entries of each pattern of a pair in one cache line
SHAREABLE = 4  # shorter patterns fit into the cache anyway
MOST_FITS = 20  # possible pairs looked at: trying all choices doubles with each

# (address bits exchanged) spreading a board: [c3 c2 c1 c0 h l] -> [h c3 c2 c1 c0 l], four swaps of bit planes
SPREAD = (
    (0x0000_0000_CCCC_CCCC, 30),
    (0x0000_CCCC_0000_CCCC, 14),
    (0x00CC_00CC_00CC_00CC, 6),
    (0x0C0C_0C0C_0C0C_0C0C, 2),
)
MIRROR = ((0x3333_3333_3333_3333, 2), (0x0F0F_0F0F_0F0F_0F0F, 4))
FLIP = ((0x00FF_00FF_00FF_00FF, 8), (0x0000_FFFF_0000_FFFF, 16))
TRANSPOSE = ((0x00CC_00CC_00CC_00CC, 6), (0x0000_F0F0_0000_F0F0, 12))


WAYS = {1: (0,), 2: (0, 2), 8: range(8)}  # bit 0 mirrors, bit 1 flips, bit 2 transposes


def spread(board: Any) -> Any:
    """The two planes of a board. Works on anything with + & | ^ << >>: numbers, arrays, vectors of the compiler."""
    return _exchange(board, SPREAD)


def mirror(word: Any) -> Any:
    """Left and right of a spread board exchanged."""
    return _reverse(word, MIRROR)


def flip(word: Any) -> Any:
    """Top and bottom of a spread board exchanged."""
    return _reverse(word, FLIP)


def transpose(word: Any) -> Any:
    """Rows and columns of a spread board exchanged."""
    return _exchange(word, TRANSPOSE)


def _exchange(word: Any, swaps: tuple[tuple[int, int], ...]) -> Any:
    """Exchange groups of bits `distance` apart (delta swap, The Art of Computer Programming, 7.1.3)."""
    for mask, distance in swaps:
        swap = (word ^ (word >> np.uint64(distance))) & np.uint64(mask)
        word = word ^ swap ^ (swap << np.uint64(distance))
    return word


def _reverse(word: Any, swaps: tuple[tuple[int, int], ...]) -> Any:
    """Exchange neighbouring groups of bits, whose lower half `mask` names."""
    for mask, distance in swaps:
        mask64, far = np.uint64(mask), np.uint64(distance)
        word = ((word & mask64) << far) | ((word >> far) & mask64)
    return word


@dataclass(frozen=True)
class Table:
    """How one pattern finds its entry."""

    pattern: Pattern  # as the user wrote it
    cells: Pattern  # the same shape, perhaps turned so that it can share lines
    offset: int  # of its first entry
    bits: tuple[int, ...]  # of the index, from the lowest: which bit 4k + b, k-th cell of the pattern; -1: always 0

    @property
    def moves(self) -> tuple[tuple[int, int], ...]:
        """(distance, mask) pairs: index = Σ (word >> distance) & mask, a negative distance shifts left."""
        found: dict[int, int] = {}
        for to, bit in enumerate(self.bits):
            if bit >= 0:
                cell, plane = self.cells[bit // 4], bit % 4
                source = 2 * cell + plane % 2 + 32 * (plane // 2)
                found[source - to] = found.get(source - to, 0) | 1 << to
        return tuple(sorted(found.items(), key=lambda move: -move[1].bit_count()))

    def entry(self, word: Any) -> Any:
        """The entry of a spread board."""
        index: Any = None
        for distance, mask in self.moves:
            far = np.uint64(abs(distance))
            part = ((word >> far) if distance > 0 else (word << far)) & np.uint64(mask)
            index = part if index is None else index | part
        return index + np.uint64(self.offset) if self.offset else index

    def entries_in_order(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """[16^cells] where the entry of Σ tile[k] << 4k lies: the order of other programs' files."""
        return self.places(np.arange(16 ** len(self.pattern), dtype=np.uint64))

    def places(self, plain: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Where the entries of these numbers Σ tile[k] << 4k lie."""
        index = np.full(plain.shape, self.offset, np.uint64)
        for to, bit in enumerate(self.bits):
            if bit >= 0:
                index += ((plain >> np.uint64(bit)) & np.uint64(1)) << np.uint64(to)
        return index


@dataclass(frozen=True)
class Layout:
    """All tables of a network, one after the other."""

    tables: tuple[Table, ...]
    entries: int  # of one set of tables


def images(pattern: Pattern, symmetries: int = 8) -> Iterator[Pattern]:
    """The pattern in all ways in which it is read, itself first; of two ways, the other is top for bottom."""
    for k in WAYS[symmetries]:
        cells = pattern
        if k & 1:
            cells = tuple(4 * (cell // 4) + 3 - cell % 4 for cell in cells)
        if k & 2:
            cells = tuple(cell ^ 12 for cell in cells)
        if k & 4:
            cells = tuple(4 * (cell % 4) + cell // 4 for cell in cells)
        yield cells


@cache
def layout_of(network: Network) -> Layout:
    """The layout of a network: pairs first come, first served, then every pattern that stayed alone."""
    partner = _partners(network)
    tables: dict[int, Table] = {}
    offset = 0
    for i, pattern in enumerate(network.patterns):
        if i in tables:
            continue
        if i in partner:
            j, turned = partner[i]
            tables[i] = Table(pattern, pattern, offset, _paired(pattern, turned))
            tables[j] = Table(network.patterns[j], turned, offset + LINE, _paired(turned, pattern))
            offset += 2 * 16 ** len(pattern)
        else:
            tables[i] = Table(pattern, pattern, offset, _alone(len(pattern)))
            offset += max(16 ** len(pattern), 16)
    return Layout(tuple(tables[i] for i in range(len(network.patterns))), offset)


def is_small(table: Table) -> bool:
    """Does it fit into a near cache?"""
    return len(table.cells) <= SHAREABLE


def _partners(network: Network) -> dict[int, tuple[int, Pattern]]:
    """For the first of each pair: its partner, and the partner's cells turned to fit. As many pairs as possible."""
    fits: dict[tuple[int, int], Pattern] = {}
    for i, j in combinations(range(len(network.patterns)), 2):
        a, b = network.patterns[i], network.patterns[j]
        if len(a) == len(b) and len(a) > SHAREABLE:
            for cells in images(b) if network.symmetries == 8 else [b]:
                if len(set(a) & set(cells)) == len(a) - 1:
                    fits.setdefault((i, j), cells)
    return {i: (j, fits[i, j]) for i, j in _most_pairs(tuple(fits)[:MOST_FITS])}


def _most_pairs(fits: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The largest choice of pairs in which nobody is taken twice."""
    if not fits:
        return ()
    (i, j), rest = fits[0], fits[1:]
    without = _most_pairs(rest)
    taking = ((i, j), *_most_pairs(tuple(pair for pair in rest if i not in pair and j not in pair)))
    return taking if len(taking) >= len(without) else without


def _planes(positions: list[int]) -> list[int]:
    """Index bits of these cells: their low two bits, then their high two."""
    return [4 * k + 2 * high + b for high in (0, 1) for k in positions for b in (0, 1)]


def _alone(cells: int) -> tuple[int, ...]:
    return tuple(_planes(list(range(cells))))


def _paired(cells: Pattern, other: Pattern) -> tuple[int, ...]:
    """Three bits of the odd cell, which of the two patterns, the shared cells, and the odd cell's highest bit.

    The shared cells are taken in the order of the board, so that both patterns agree on the line.
    """
    odd = next(k for k, cell in enumerate(cells) if cell not in other)
    shared = sorted((k for k in range(len(cells)) if k != odd), key=lambda k: cells[k])
    return (4 * odd, 4 * odd + 1, 4 * odd + 2, -1, *_planes(shared), 4 * odd + 3)
