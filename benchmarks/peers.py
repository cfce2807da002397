"""This project beside its peers, in one table: `python benchmarks/peers.py PATH/TO/2048 [--append]`.

The peer is TDL2048+ (build it from its own sources); pgx and jumanji take part where they are installed. Everything
runs in rounds that alternate between the two sides, and each round gives one ratio, because a shared machine is never
equally fast twice: the table shows the median of the ratios and the range of all of them. Rates are per second of
processor time and thread. Both sides train the same 4x6 network by TD(0) from nothing, and play with equal weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numba
from search_vs_peer import read_peer, run_ours, run_peer, train_peer
from speed import PEERS, bench_env

from tilesage.evaluation.evaluate import evaluate
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.networks.files import Model
from tilesage.search.agents import make_agent

PERFORMANCE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
SECTION = "## Beside the peers"
CACHE = "256M"
Rate = Callable[[int], float]  # the number of the round -> things a second


@dataclass(frozen=True)
class Contest:
    """One line of the table."""

    what: str
    peer: str
    ours: Rate
    theirs: Rate
    unit: str = "M moves/s"
    scale: float = 1e6


# --- training -----------------------------------------------------------------------------------------


def processor_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peer_training(peer: str, thousands: int, threads: int, seed: int) -> tuple[float, float]:
    """(moves, processor seconds) of a training of the peer."""
    words = [peer, "-n", "4x6patt", "-a", "0.1", "-t", f"{thousands}x1000", "-e", "1x1", "-s", str(seed)]
    before = processor_seconds_of_children()
    text = subprocess.run(
        [*words, "-p", str(threads)] if threads > 1 else words, check=True, capture_output=True, text=True
    ).stdout
    spent = processor_seconds_of_children() - before
    blocks = re.findall(r"^\d+/\d+ (\d+)ms ([\d.]+)ops", text.partition("evaluate:")[0], re.MULTILINE)
    return sum(float(ms) * float(ops) / 1000 for ms, ops in blocks), spent


def training_contest(peer: str, thousands: int, threads: int) -> Contest:
    def theirs(number: int) -> float:
        moves, spent = peer_training(peer, thousands, threads, number)
        few, load = peer_training(peer, 1, threads, number)  # its tables are made and its first games played
        return threads * (moves - few) / max(spent - load, 1e-3)

    def ours(number: int) -> float:
        trainer = CpuTrainer(TrainConfig(network="4x6", rule="td", rate="0.1", threads=threads, games=1, seed=number))
        games = moves = 0
        begin = time.process_time()
        while games < 1000 * thousands:
            if games < 1000:  # as above: the first thousand are not counted
                begin, moves = time.process_time(), 0
            tally = trainer.advance(trainer.stride, 1000, 0.1)
            games, moves = games + tally.games, moves + tally.moves
        spent = time.process_time() - begin
        trainer.close()
        return threads * moves / spent

    return Contest(f"training, {threads} thread{'s' if threads > 1 else ''}", "TDL2048+", ours, theirs)


# --- playing -----------------------------------------------------------------------------------------


def greedy_contest(peer: str, weights: Path, model: Model, games: int) -> Contest:
    agent = make_agent("greedy", model.game, model)

    def theirs(number: int) -> float:
        load = run_peer(peer, weights, 1, 1, number, CACHE)[0]
        spent, moves, _ = run_peer(peer, weights, 1, games, number, CACHE)
        return moves / max(spent - load, 1e-3)

    def ours(number: int) -> float:
        evaluate(agent, 1, seed=number)
        begin = time.process_time()
        moves = evaluate(agent, games, seed=number).statistics.slides
        return moves / (time.process_time() - begin)

    return Contest("greedy play", "TDL2048+", ours, theirs)


def search_contest(peer: str, weights: Path, model: Model, layers: int, games: int) -> Contest:
    def theirs(number: int) -> float:
        load = run_peer(peer, weights, 1, 1, number, CACHE)[0]
        spent, moves, _ = run_peer(peer, weights, layers, games, number, CACHE)
        return moves / max(spent - load, 1e-3)

    def ours(number: int) -> float:
        spent, moves, _ = run_ours(model, layers, games, number)
        return moves / spent

    return Contest(f"{layers}-ply search", "TDL2048+", ours, theirs, "k moves/s", 1e3)


def environment_contests(seconds: float) -> list[Contest]:
    """Steps of vectorised environments, beside whichever peer is installed."""
    found = []
    for package, bench in PEERS.values():
        if importlib.util.find_spec(package):
            ours, theirs = (lambda _: bench_env("2048", seconds)), (lambda _, bench=bench: bench(seconds))
            found.append(Contest("environment steps", package, ours, theirs, "M steps/s"))
    return found


# --- the table -----------------------------------------------------------------------------------------


def machine() -> str:
    """What it was measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"model name\s*: (.*)", info.read_text())
        cpu = names[0] if names else cpu
    return (
        f"{cpu}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {platform.system()}, "
        f"Python {platform.python_version()}, Numba {numba.__version__}"
    )


def row(contest: Contest, rounds: int) -> str:
    ours, theirs = [], []
    for number in range(1, rounds + 1):
        theirs.append(contest.theirs(number))
        ours.append(contest.ours(number))
    ratios = [a / b for a, b in zip(ours, theirs)]
    own, other = median(ours) / contest.scale, median(theirs) / contest.scale
    return (
        f"| {contest.what} | {own:.2f} {contest.unit} | {contest.peer} {other:.2f} | **{median(ratios):.2f}** | "
        f"{min(ratios):.2f} – {max(ratios):.2f} |"
    )


def contests(options: argparse.Namespace) -> list[Contest]:
    found: list[Contest] = []
    if options.peer:
        found += [training_contest(options.peer, options.train, threads) for threads in (1, 2)]
        weights = options.weights or Path("peer.w")
        if not weights.exists():
            train_peer(options.peer, weights, options.train)
        model = read_peer(weights)
        found.append(greedy_contest(options.peer, weights, model, options.games))
        found += [
            search_contest(options.peer, weights, model, layers, max(1, options.games // share))
            for layers, share in ((2, 20), (3, 200))
        ]
    return found + environment_contests(options.seconds)


def append(lines: list[str]) -> None:
    """Add the table to the page about performance, under its own heading."""
    text = PERFORMANCE.read_text(encoding="utf-8") if PERFORMANCE.exists() else "# Performance\n"
    if SECTION not in text:
        text += f"\n{SECTION}\n"
    PERFORMANCE.write_text(text.rstrip() + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", help="the program of TDL2048+")
    parser.add_argument("--weights", type=Path, help="a 4x6 network that it saved; by default it trains one first")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--train", type=int, default=20, help="thousands of games a training")
    parser.add_argument("--games", type=int, default=400, help="greedy games a round; searches play fewer")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time of an environment's round")
    parser.add_argument("--append", action="store_true", help=f"add the table to {PERFORMANCE.name}")
    options = parser.parse_args()
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}. Rounds that alternate: {options.rounds}.",
        "",
        "| what | tilesage | peer | ratio (median) | all rounds |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for contest in contests(options):
        lines.append(row(contest, options.rounds))
        print(lines[-1], flush=True)
    if options.append:
        append(lines)


if __name__ == "__main__":
    main()
