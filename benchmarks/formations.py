"""How good is a shape of the large tiles? The chance to merge the last of six links, by the chain's cells.

    python benchmarks/formations.py --target 512 012376 210456

A chain is written as the cells of its links, 0 to f, the largest link first: 012376 is the snake that players build.
Every link keeps its place; the small tiles begin as two 2s or a 4, wherever that is best. See docs/findings.md.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from tilesage import games
from tilesage.search.game_2048.solving import KEPT, WHOLE, by_high_half, lay_out, solve_table

BEGIN = 4  # the sum of the first small tiles


def best_chance(chain: tuple[int, ...], target: int) -> float:
    endgames, (layout,), size = lay_out([(chain, target)])
    endgames = endgames._replace(slides=np.zeros(size, np.uint8))
    chances = solve_table(games.get("2048"), endgames, chain, target, layout, os.cpu_count() or 1)
    there = by_high_half(layout, BEGIN)[1]
    return float(chances.positions[BEGIN // 2 % KEPT, :there].max()) / WHOLE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="+", metavar="CHAIN")
    parser.add_argument("--target", type=int, default=256, choices=(64, 128, 256, 512, 1024))
    arguments = parser.parse_args()
    for text in arguments.chains:
        chain = tuple(int(cell, 16) for cell in text)
        if len(chain) != 6 or len(set(chain)) != 6:
            parser.error(f"{text} is no chain of six cells")
        begin = time.perf_counter()
        chance = best_chance(chain, arguments.target.bit_length() - 1)
        print(f"{text}  {chance:.4f}  ({time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
