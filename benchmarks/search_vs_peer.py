"""Expectimax beside TDL2048+ on the same weights: moves a second and mean score, alternating in one run.

    python benchmarks/search_vs_peer.py PATH/TO/2048                   # the peer trains a 4x6 network first (minutes)
    python benchmarks/search_vs_peer.py PATH/TO/2048 --weights tc.w    # weights that the peer saved

The peer runs with its transposition table on (`-c`). Both play on one thread. Rounds alternate, and the ratio of each
round is printed, because a shared machine is never equally fast twice. Times are processor seconds: those of the peer
without what it needs to load its weights.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import subprocess
import time
from pathlib import Path
from statistics import median, stdev

import numpy as np

from tilesage import games
from tilesage.evaluation.evaluate import evaluate
from tilesage.networks.files import Model
from tilesage.networks.layout import layout_of
from tilesage.networks.patterns import parse_network
from tilesage.search.agents import make_agent

NETWORK = "4x6"


def train_peer(peer: str, path: Path, thousands: int) -> None:
    """Let the peer train a network by temporal coherence and save it."""
    print(f"the peer trains {thousands},000 games …", flush=True)
    command = [peer, "-n", "4x6patt", "-a", "1.0", "-t", f"{thousands}x1000", "-e", "1x1", "-o", str(path), "-s", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read_peer(path: Path) -> Model:
    """The 4x6 network of a file of the peer: per table a name, then lists of numbers, the values first."""
    network = parse_network(NETWORK)
    layout = layout_of(network)
    weights = np.zeros(layout.entries, np.float32)
    with path.open("rb") as file:

        def number(size: int) -> int:
            return int.from_bytes(file.read(size), "little")

        file.read(1)
        if number(4) != len(layout.tables):
            raise SystemExit(f"{path} does not hold the {len(layout.tables)} tables of {NETWORK}")
        for table in layout.tables:
            file.read(1)
            name, length = number(4), number(2)
            if f"{name:0{length}x}" != "".join(f"{cell:x}" for cell in table.pattern):
                raise SystemExit(f"{path} holds {name:x}, which is no pattern of {NETWORK} in its order")
            file.read(2)
            first = True
            while size := number(2):
                count = number(8)
                if first:
                    weights[table.entries_in_order()] = np.fromfile(file, np.float32, count)
                else:
                    file.seek(size * count, os.SEEK_CUR)
                first = False
    return Model(games.get("2048"), network, weights)


def run_peer(peer: str, weights: Path, layers: int, count: int, seed: int, cache: str) -> tuple[float, float, float]:
    """(processor seconds, moves a second by its own clock, mean) of the peer's games."""
    command = [peer, "-n", "4x6patt", "-a", "0", "-t", "0", "-i", str(weights), "-s", str(seed)]
    command += ["-e", f"1x{count}", "-u", str(count)]
    if layers > 1:
        command += ["-d", f"{layers}p", "-c", cache]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    rate, mean = re.search(r"summary \d+ms ([\d.]+)ops", text), re.search(r"total:\s+avg=(\d+)", text)
    milliseconds = re.search(r"summary (\d+)ms", text)
    if not (rate and mean and milliseconds):
        raise SystemExit(f"cannot read what the peer said:\n{text}")
    moves = float(rate[1]) * float(milliseconds[1]) / 1000
    return spent, moves, float(mean[1])


def run_ours(model: Model, layers: int, count: int, seed: int) -> tuple[float, float, float]:
    agent = make_agent(f"expectimax:{layers}", model.game, model)
    evaluate(agent, 1, seed=seed + 10**6)
    begin = time.process_time()
    result = evaluate(agent, count, seed=seed)
    return time.process_time() - begin, result.statistics.slides, result.statistics.mean


def compare(peer: str, weights: Path, model: Model, layers: int, count: int, rounds: int, cache: str) -> None:
    load = min(run_peer(peer, weights, 1, 1, 1, cache)[0] for _ in range(2))  # one greedy game takes milliseconds
    ratios, theirs, ours = [], [], []
    for round_number in range(1, rounds + 1):
        spent, moves, mean = run_peer(peer, weights, layers, count, round_number, cache)
        rate = moves / max(spent - load, 1e-3)
        own_spent, own_moves, own_mean = run_ours(model, layers, count, round_number)
        own_rate = own_moves / own_spent
        ratios.append(own_rate / rate)
        theirs.append(mean)
        ours.append(own_mean)
        print(
            f"{layers} layers, round {round_number}: peer {rate:10,.0f} moves/s, mean {mean:9,.0f} | "
            f"tilesage {own_rate:10,.0f} moves/s, mean {own_mean:9,.0f} | ratio {ratios[-1]:.2f}",
            flush=True,
        )
    error = [stdev(x) / math.sqrt(rounds) if rounds > 1 else math.nan for x in (theirs, ours)]
    print(
        f"{layers} layers: ratio {median(ratios):.2f} (median of {rounds}); means over {rounds * count} games "
        f"{np.mean(theirs):,.0f} ± {error[0]:,.0f} and {np.mean(ours):,.0f} ± {error[1]:,.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", help="the peer's program")
    parser.add_argument("--weights", type=Path, help="a network that the peer saved (-o)")
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--games", type=int, nargs="+", default=[20, 4], help="games a round, for each of --layers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--train", type=int, default=100, help="thousands of games that the peer trains")
    parser.add_argument("--cache", default="256M", help="the peer's transposition table")
    options = parser.parse_args()
    weights = options.weights or Path("peer.w")
    if not weights.exists():
        train_peer(options.peer, weights, options.train)
    model = read_peer(weights)
    for layers, count in zip(options.layers, options.games, strict=True):
        compare(options.peer, weights, model, layers, count, options.rounds, options.cache)


if __name__ == "__main__":
    main()
