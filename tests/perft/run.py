"""Count the positions of the perft files with the engine: `python tests/perft/run.py [game ...] [--deeper N]`.

Prints, for every game, whether all counts agree and how many positions a second the engine went through.
`--deeper 1` counts one depth more than the files know, for the speed only.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from perft.positions import GAMES, read_file
from tilesage import games
from tilesage.core.compiler import compiled
from tilesage.games import Game

AT_ONCE = 1 << 14  # positions expanded in one call


def expander(game: Game) -> Callable[..., Any]:
    """Compiled for a game: all successors of some positions, appended to two arrays; returns how many."""
    slide, placements, draws = game.rules.slide, game.rules.placements, game.rules.draws
    max_placements, max_draws = game.max_placements, game.max_draws

    @compiled(title=f"perft of {game.name}")
    def expand(rows: Any, boards: Any, auxes: Any, next_boards: Any, next_auxes: Any) -> int:
        placed, landed = np.empty(max_placements, np.uint64), np.empty(max_placements, np.uint64)
        drawn, shares = np.empty(max_draws, np.uint64), np.empty(max(max_placements, max_draws), np.float64)
        n = 0
        for i in range(len(boards)):
            for action in range(4):
                after, after_aux, _ = slide(rows, boards[i], auxes[i], action)
                if after == boards[i]:
                    continue
                for j in range(placements(after, after_aux, placed, landed, shares)):
                    for k in range(draws(placed[j], landed[j], drawn, shares)):
                        next_boards[n] = placed[j]
                        next_auxes[n] = drawn[k]
                        n += 1
        return n

    return expand


class Perft:
    """Counts sequences of moves and chance outcomes of one game."""

    def __init__(self, name: str) -> None:
        self.game = games.get(name)
        self.expand = expander(self.game)
        self.successors = 4 * self.game.max_placements * self.game.max_draws

    def count(self, text: str, depth: int) -> int:
        state = self.game.parse(text)
        return self._count(np.array([state.board]), np.array([state.aux]), depth)

    def _count(self, boards: Any, auxes: Any, depth: int) -> int:
        if depth == 0:
            return len(boards)
        total = 0
        for i in range(0, len(boards), AT_ONCE):
            some = boards[i : i + AT_ONCE]
            room = len(some) * self.successors
            following = np.empty(room, np.uint64), np.empty(room, np.uint64)
            n = self.expand(self.game.rows, some, auxes[i : i + AT_ONCE], *following)
            total += self._count(following[0][:n], following[1][:n], depth - 1) if depth > 1 else n
        return total


def run(name: str, deeper: int = 0) -> tuple[list[str], int, float]:
    """Verify a game's file: what disagrees, how many positions were counted, and the seconds it took."""
    perft = Perft(name)
    positions = read_file(name)
    perft.count(positions[0][0], 1)  # compile before the clock starts
    wrong, counted = [], 0
    start = time.perf_counter()
    for text, counts in positions:
        for depth, expected in counts.items():
            found = perft.count(text, depth)
            counted += found
            if found != expected:
                wrong.append(f"{text}: {found} at depth {depth}, should be {expected}")
        for depth in range(max(counts) + 1, max(counts) + deeper + 1):
            counted += perft.count(text, depth)
    return wrong, counted, time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("games", nargs="*", default=GAMES)
    parser.add_argument("--deeper", type=int, default=0)
    options = parser.parse_args()
    failures = 0
    for name in options.games:
        wrong, counted, seconds = run(name, options.deeper)
        print("\n".join([f"{name}: WRONG {line}" for line in wrong] or [f"{name}: all counts agree"]))
        print(f"{name}: {counted:,} positions, {counted / seconds:,.0f} positions/s")
        failures += bool(wrong)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
