"""What more threads buy: `python benchmarks/cores.py [PATH/TO/2048] [--threads 1,2,4,8,16] [--json FILE]`.

TD(0) on afterstates, network 4x6, rate 0.1, as quickly as it goes on so many threads; beside it TDL2048+, if its
program is given, in turn with ours. The ceiling is the same loop on the network just learnt under a rule that writes
nothing: greedy play on as many threads. Both sides learn for the same number of moves (as many as the peer makes in
--thousands of games), then play greedily. The table shows medians over the rounds; FILE keeps every round, and a
second call goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

from tilesage.core.compiler import Array, compiled
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning import TrainConfig, UpdateRule
from tilesage.learning.cpu import CpuTrainer
from tilesage.networks.files import Model
from tilesage.search.agents import make_agent

NO_LIMIT = 1 << 60
RATE = 0.1
COLUMNS = ("ours", "theirs", "ceiling", "our_mean", "their_mean")


@compiled
def write_nothing(weights: Array, memory: Array, entries: Array, error: float, rate: float) -> None:
    pass


STILL = UpdateRule("nothing is learnt", write_nothing, name="still")


def their_round(peer: str, thousands: int, threads: int, seed: int, games: int) -> dict[str, float]:
    """TDL2048+ prints time and speed of every 1,000 games of a thread; their product is the moves."""
    words = ["-n", "4x6patt", "-a", str(RATE), "-t", str(thousands), "-e", f"1x{games}", "-p", str(threads)]
    text = subprocess.run([peer, *words, "-s", str(seed)], capture_output=True, text=True, check=True).stdout
    learning, _, playing = text.partition("evaluate:")
    seconds, moves = [0.0] * threads, 0.0
    for ms, ops, thread in re.findall(r"^\d+/\d+ (\d+)ms ([\d.]+)ops(?: \[(\d+)\])?", learning, re.MULTILINE):
        seconds[int(thread or 0)] += float(ms) / 1000
        moves += float(ms) / 1000 * float(ops)
    mean = float(re.findall(r"total:\s+avg=(\d+)", playing)[-1])
    return {"moves": moves, "theirs": moves / max(seconds), "their_mean": mean}


def our_round(moves: int, threads: int, seed: int, games: int) -> dict[str, float]:
    config = TrainConfig(network="4x6", rule="td", rate=str(RATE), moves=moves, threads=threads, seed=seed)
    trainer = CpuTrainer(config)

    def speed(wanted: int) -> float:
        done, seconds = 0, 0.0
        while done < wanted:
            tally = trainer.advance(min(wanted - done, trainer.stride), NO_LIMIT, RATE)
            done, seconds = done + tally.moves, seconds + tally.seconds
        return done / seconds

    ours = speed(moves)
    model = Model(trainer.game, trainer.network, trainer.weights())
    trainer.begin_phase(STILL)
    ceiling = speed(moves // 2)
    trainer.close()
    mean = evaluate(make_agent("greedy", model.game, model), games, seed, threads).statistics.mean
    return {"ours": ours, "ceiling": ceiling, "our_mean": mean}


def table(rounds: list[dict[str, Any]]) -> list[str]:
    """Threads × (speeds in M moves/s, means, ratios), medians over the rounds."""
    lines = [
        "| threads | ours, M moves/s | TDL2048+ | ratio | ceiling | of the ceiling | our mean | their mean |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for threads in sorted({line["threads"] for line in rounds}):
        lot = [line for line in rounds if line["threads"] == threads]
        found = {name: median(line[name] for line in lot) for name in COLUMNS if name in lot[0]}
        ratio = f"{median(line['ours'] / line['theirs'] for line in lot):.2f}" if "theirs" in found else ""
        share = median(line["ours"] / line["ceiling"] for line in lot)
        theirs, their_mean = (found.get(name) for name in ("theirs", "their_mean"))
        words = [
            str(threads),
            f"{found['ours'] / 1e6:.2f}",
            f"{theirs / 1e6:.2f}" if theirs else "",
            ratio,
            f"{found['ceiling'] / 1e6:.2f}",
            f"{share:.2f}",
            f"{found['our_mean']:,.0f}",
            f"{their_mean:,.0f}" if their_mean else "",
        ]
        lines.append(f"| {' | '.join(words)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", nargs="?", help="the program of TDL2048+")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--thousands", type=int, default=16, help="thousands of games that the peer learns from")
    parser.add_argument("--moves", type=int, default=20_000_000, help="moves that we learn from, without a peer")
    parser.add_argument("--games", type=int, default=1000, help="greedy games that give a mean")
    parser.add_argument("--json", type=Path, help="keeps every round")
    given = parser.parse_args()
    rounds = json.loads(given.json.read_text()) if given.json and given.json.exists() else []
    have = {(line["round"], line["threads"]) for line in rounds}
    for number in range(1, given.rounds + 1):
        for threads in map(int, given.threads.split(",")):
            if (number, threads) in have:
                continue
            line: dict[str, Any] = {"round": number, "threads": threads, "moves": given.moves}
            if given.peer:
                line |= their_round(given.peer, max(given.thousands, threads), threads, number, given.games)
            line |= our_round(int(line["moves"]), threads, number, given.games)
            print(json.dumps(line), flush=True)
            rounds.append(line)
            if given.json:
                given.json.write_text(json.dumps(rounds, indent=1) + "\n")
    print("\n".join(table(rounds)))


if __name__ == "__main__":
    main()
