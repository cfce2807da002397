"""Method by method beside TDL2048+: what do both programs learn from as many games?

    python benchmarks/methods_vs_peer.py path/to/2048                       # 10,000 games: an hour on one core
    python benchmarks/methods_vs_peer.py path/to/2048 --methods "TC(0)" --thousands 2

Both learn on one thread, without a mean of weights, and then play 1,000 games greedily, for each of two seeds. The
table has the means of both seeds, and how far apart they are: a ratio is worth no more than that.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from statistics import mean
from typing import Any

from tilesage.evaluation.evaluate import evaluate
from tilesage.learning import Run, TrainConfig

SEEDS, GREEDY_GAMES = (1, 2), 1000
# method -> our settings, and the peer's words
METHODS: dict[str, tuple[dict[str, Any], str]] = {
    "TD(0)": ({"rule": "td", "rate": "0.1"}, "-a 0.1"),
    "TD(0), backward": ({"rule": "td", "rate": "0.1", "direction": "backward"}, "-a 0.1 -tt backward"),
    "TD(0.5)": ({"rule": "td", "rate": "0.1", "decay": 0.5}, "-a 0.1 -l 0.5"),
    "3-step TD": ({"rule": "td", "rate": "0.1", "steps": 3}, "-a 0.1 -N 3"),
    "TC(0)": ({"rule": "tc", "rate": "1"}, "-a 1.0"),
    "TC(0.5)": ({"rule": "tc", "rate": "1", "decay": 0.5}, "-a 1.0 -l 0.5"),
    "TC(0), 8x6": ({"rule": "tc", "rate": "1", "network": "8x6"}, "-a 1.0 -n 8x6patt"),
}


def ours(settings: dict[str, Any], thousands: int, seed: int) -> float:
    """The mean score of a network that this program trained."""
    config = TrainConfig(
        **{"network": "4x6", **settings}, games=1000 * thousands, seed=seed, threads=1, average=False
    )
    run = Run.begin(config, None)
    run.train()
    return evaluate("greedy", GREEDY_GAMES, seed, model=run.model).statistics.mean


def theirs(peer: str, words: str, thousands: int, seed: int) -> float:
    """The same of TDL2048+, as it prints it after its evaluation."""
    flags = ["-n", "4x6patt", *words.split(), "-t", str(thousands), "-e", str(GREEDY_GAMES // 1000), "-s", str(seed)]
    output = subprocess.run([peer, *flags], capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"total:\s+avg=(\d+)", output)[-1])


def main() -> None:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", help="the TDL2048+ program")
    parser.add_argument("--thousands", type=int, default=10, help="thousands of training games")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=[*METHODS], help="some of them")
    options = parser.parse_args()
    print(f"{options.thousands},000 training games, then {GREEDY_GAMES:,} greedy ones; the means of seeds 1 and 2\n")
    print("| method | tilesage | seeds apart | TDL2048+ | seeds apart | ratio |\n|---|---|---|---|---|---|")
    for name in options.methods:
        settings, words = METHODS[name]
        mine = [ours(settings, options.thousands, seed) for seed in SEEDS]
        other = [theirs(options.peer, words, options.thousands, seed) for seed in SEEDS]
        columns = (f"{mean(found):,.0f} | {max(found) - min(found):,.0f}" for found in (mine, other))
        print(f"| {name} | {' | '.join(columns)} | {mean(mine) / mean(other):.3f} |", flush=True)


if __name__ == "__main__":
    main()
