"""How good is a shape of the large tiles? The chance to make one more tile like the smallest of them.

    python benchmarks/formations.py --target 512 012376 123765
    python benchmarks/formations.py --target 256 --together 123765 124568 124569
    python benchmarks/formations.py --target 256 --together all

A shape is written as the cells of six (or five) large tiles, 0 to f: 012376 is the snake that players build, 123765
the block. They stay in their places, or, with --together, move between the shapes that are given; `all` are those
that players know. The small tiles begin as two 2s or a 4, wherever that is best. See docs/findings.md.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from afterstate import games
from afterstate.search.endgames import FEWEST, KEPT, MOST, SHAPES, WHOLE, Table, by_high_half, lay_out, solve_table

BEGIN = 4  # the sum of the first small tiles


def best_chances(table: Table) -> list[float]:
    """One for each shape."""
    endgames, (layout,), size = lay_out([table])
    endgames = endgames._replace(slides=np.zeros(size, np.uint8))
    chances = solve_table(games.get("2048"), endgames, table, layout, os.cpu_count() or 1)
    there = by_high_half(layout, BEGIN)[1]
    return [float(some) / WHOLE for some in chances.positions[BEGIN // 2 % KEPT, :, :there].max(axis=1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="+", metavar="SHAPE")
    parser.add_argument("--target", type=int, default=256, choices=(64, 128, 256, 512, 1024))
    parser.add_argument("--together", action="store_true", help="large tiles may move from shape to shape")
    arguments = parser.parse_args()
    names = [*dict.fromkeys(arguments.shapes)]
    if names == ["all"]:
        names = ["".join(f"{cell:x}" for cell in shape) for shape in SHAPES]
    for text in names:
        if not FEWEST <= len(text) <= MOST or len(set(text)) != len(text) or not set(text) <= set("0123456789abcdef"):
            parser.error(f"{text} is no shape of five or six cells")
    shapes = tuple(tuple(int(cell, 16) for cell in text) for text in names)
    for some in [shapes] if arguments.together else [(shape,) for shape in shapes]:
        begin = time.perf_counter()
        found = best_chances(Table(arguments.target.bit_length() - 1, some))
        for shape, chance in zip(some, found):
            print("".join(f"{cell:x}" for cell in shape), f" {chance:.4f}", flush=True)
        print(f"({time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
