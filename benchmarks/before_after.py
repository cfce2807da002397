"""Did a change cost speed? Another checkout and this one in turn, each measurement a command of its own.

    git worktree add ../before COMMIT
    python benchmarks/before_after.py ../before --rounds 3

prints a table: moves a second before and after, the median of the ratios, and their range. A machine that does
something else at the same time shows in the range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SEARCHES = {"expectimax:2": 30, "expectimax:3": 2}  # games, which are the same on both sides
STEPS = """
import json, time, numpy, gymnasium, tilesage.environments
many = gymnasium.make_vec("tilesage/2048-v0", num_envs=4096)
many.reset(seed=1)
moves, steps, begin = numpy.random.default_rng(1).integers(0, 4, (64, 4096)), 0, time.perf_counter()
many.step(moves[0])
begin = time.perf_counter()
while time.perf_counter() - begin < 3:
    many.step(moves[steps % 64]); steps += 1
print(json.dumps(4096 * steps / (time.perf_counter() - begin)))
"""


def command(checkout: Path, *words: str) -> Any:
    """The JSON that Python prints with the package of this checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "TILESAGE_QUIET": "1"}
    line = [sys.executable, *words]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, cwd=checkout)
    if done.returncode:
        sys.exit(f"{checkout}: {' '.join(words)[:80]}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def speeds(checkout: Path, seconds: float, threads: int) -> dict[str, float]:
    """Moves or steps a second of everything."""
    length = ("--seconds", str(seconds), "--threads", str(threads), "--json", "-")
    found: dict[str, float] = {}
    for name, figures in command(checkout, "-m", "tilesage", "bench", *length)["figures"].items():
        found[f"{name}, one thread"] = figures["moves_per_second"]
        if threads > 1:
            found[f"{name}, {threads} threads"] = figures[f"on_{threads}_threads"]
    for agent, games in SEARCHES.items():
        words = ("evaluate", "--agent", agent, "--games", str(games), "--workers", "1", "--quiet", "--json", "-")
        found[f"{agent}, one worker"] = command(checkout, "-m", "tilesage", *words)["moves_per_second"]
    found["4,096 environments"] = command(checkout, "-c", STEPS)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("before", type=Path, help="another checkout of this repository")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=4.0, help="of each figure of `tilesage bench`")
    arguments.add_argument("--threads", type=int, default=2)
    chosen = arguments.parse_args()
    sides = (chosen.before.resolve(), HERE)
    for side in sides:
        speeds(side, 0.1, chosen.threads)  # compiled once, before anything is timed
    rounds = [tuple(speeds(side, chosen.seconds, chosen.threads) for side in sides) for _ in range(chosen.rounds)]
    print("| moves or steps a second | before | after | ratio, median | range |\n|---|---|---|---|---|")
    for name in rounds[0][0]:
        if all(name in side for both in rounds for side in both):
            before, after = (statistics.median(both[k][name] for both in rounds) for k in (0, 1))
            ratios = sorted(both[1][name] / both[0][name] for both in rounds)
            middle, reach = statistics.median(ratios), f"{ratios[0]:.2f} – {ratios[-1]:.2f}"
            print(f"| {name} | {before:,.0f} | {after:,.0f} | {middle:.2f} | {reach} |")


if __name__ == "__main__":
    main()
