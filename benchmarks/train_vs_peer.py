"""Training beside TDL2048+, both programs in turn on the same machine.

    python benchmarks/train_vs_peer.py path/to/2048                 speed and learning per game
    python benchmarks/train_vs_peer.py path/to/2048 --strength 60   strength after a minute of training

Speed: TD(0) on afterstates, 4×6 tuples, rate 0.1, forward, on one thread and on two; moves a second by the clock and
by processor time. On a machine that does other work as well only the latter mean something.
Learning: mean score of the last 1,000 of the games played. Strength: temporal coherence, then 1,000 greedy games.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import time
from dataclasses import dataclass

from tilesage.cli.demo import RECIPE
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning import Run, TrainConfig
from tilesage.search.agents import make_agent

FIGURES = ("wall", "cpu", "mean")


@dataclass
class Speed:
    """One run of one program."""

    wall: float  # moves a second
    cpu: float  # moves a second of processor time, all threads together
    mean: float  # of the last 1,000 games


def peer_speed(path: str, thousands: int, threads: int) -> Speed:
    """TDL2048+ prints time and speed of every 1,000 games; their product is the moves."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [path, "-n", "4x6patt", "-t", str(thousands), "-e", "0", "-p", str(threads)]
    begin = time.perf_counter()
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    moves = sum(float(ms) * float(ops) / 1000 for ms, ops in re.findall(r"(\d+)ms ([\d.]+)ops", output))
    means = [float(mean) for mean in re.findall(r"local:\s+avg=(\d+)", output)]
    return Speed(moves / wall, moves / (after.ru_utime - before.ru_utime), statistics.mean(means[-threads:]))


def our_speed(thousands: int, threads: int) -> Speed:
    config = TrainConfig(network="4x6", rule="td", rate="0.1", games=1000 * thousands, threads=threads)
    run = Run.begin(config, None)
    means: list[float] = []
    begin, cpu = time.perf_counter(), time.process_time()
    progress = run.train(lambda line, _: means.append(line["mean"]) if line else None)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return Speed(progress.moves / wall, progress.moves / cpu, means[-1])


def compare_speed(path: str, thousands: int, rounds: int) -> None:
    for threads in (1, 2):
        ours, peers = [], []
        for _ in range(rounds):
            peers.append(peer_speed(path, thousands, threads))
            ours.append(our_speed(thousands, threads))
        label = f"{threads} thread{'s' * (threads > 1)}"
        for name, runs in (("TDL2048+", peers), ("tilesage", ours)):
            wall, cpu, mean = (statistics.median(getattr(run, what) for run in runs) for what in FIGURES)
            speed = f"{wall / 1e6:5.2f} M moves/s  {cpu / 1e6:5.2f} M per processor second"
            print(f"{label}  {name:10s}  {speed}  mean of the last 1,000 of {1000 * thousands:,} games: {mean:,.0f}")
        ratios = [[getattr(a, what) / getattr(b, what) for a, b in zip(ours, peers)] for what in FIGURES]
        wall, cpu, mean = (statistics.median(ratio) for ratio in ratios)
        print(f"{label}  ratio: {wall:.2f} by the clock, {cpu:.2f} by processor time, mean {mean:.3f}", flush=True)


def compare_strength(path: str, seconds: float, threads: int) -> None:
    """The peer has no time limit: it gets as many games as fit, found by doubling."""
    config = TrainConfig(**RECIPE, seconds=seconds, threads=threads)
    run = Run.begin(config, None)
    progress = run.train()
    model = run.model
    result = evaluate(make_agent("greedy", model.game, model), 1000, 1, threads)
    ours = result.statistics.mean
    print(f"tilesage, as the demo learns, {seconds:g} s, {progress.games:,} games: mean {ours:,.0f}", flush=True)
    thousands, taken, mean = 8, 0.0, 0.0
    while taken < 0.9 * seconds:
        begin = time.perf_counter()
        words = [path, "-n", "4x6patt", "-a", "1.0", "-t", str(thousands), "-e", "1", "-p", str(threads)]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        taken = time.perf_counter() - begin
        mean = float(re.findall(r"total:\s+avg=(\d+)", output)[-1])
        print(f"TDL2048+ 4x6patt TC, {taken:.0f} s, {thousands},000 games: mean {mean:,.0f}", flush=True)
        thousands = max(thousands + 1, round(thousands * min(4.0, (seconds / taken) ** 0.8)))
    print(f"ratio {ours / mean:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Training beside TDL2048+.")
    parser.add_argument("peer", help="the TDL2048+ program")
    parser.add_argument("--thousands", type=int, default=10, help="thousands of games of each speed run")
    parser.add_argument("--rounds", type=int, default=3, help="how often both take turns")
    parser.add_argument(
        "--strength", type=float, default=0, help="seconds of training; compares strength instead of speed"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the strength comparison")
    options = parser.parse_args()
    if options.strength:
        compare_strength(options.peer, options.strength, options.threads)
    else:
        compare_speed(options.peer, options.thousands, options.rounds)


if __name__ == "__main__":
    main()
