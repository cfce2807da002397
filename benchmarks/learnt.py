"""Does what is learnt depend on the number of threads? `python benchmarks/learnt.py FILE.json [--moves 60_000_000]`.

Every way of learning on 1, 2, 4, 8 and 16 threads for the same number of moves, three seeds, then 2,000 greedy games.
The table shows the mean over the seeds and its ratio to one thread; a cell that lies more than 3 % and more than two
errors of the difference below one thread is marked. More threads than cores will do. Every training is kept in the
file as soon as it is done; the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from tilesage.core.processors import processors
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning import Run, TrainConfig
from tilesage.search.agents import make_agent

WAYS: dict[str, dict[str, Any]] = {
    "td": {"rule": "td"},
    "tc": {"rule": "tc"},
    "tc, λ = 0.5": {"rule": "tc", "decay": 0.5},
    "tc, folded, by age": {"rule": "tc", "fold": "4096", "by_age": True},
    "threes, tc": {"game": "threes", "rule": "tc"},
    "td, states": {"rule": "td", "of": "states"},
    "td, backward": {"rule": "td", "direction": "backward"},
    "tc, exact": {"rule": "tc", "exact": True},
}
WORST, ERRORS = 0.97, 2.0


def learnt(way: str, threads: int, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    settings = {"network": given.network, "moves": given.moves, "threads": threads, "seed": seed} | WAYS[way]
    run = Run.begin(TrainConfig(**settings), None)
    run.train()
    agent = make_agent("greedy", run.config.the_game, run.model)
    found = evaluate(agent, given.games, seed, processors()).statistics
    return {"way": way, "threads": threads, "seed": seed, "mean": found.mean, "stderr": found.stderr}


def mean_and_error(lines: list[dict[str, Any]]) -> tuple[float, float]:
    """Over the seeds; with one seed the error is that of its games."""
    means = [line["mean"] for line in lines]
    error = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else lines[0]["stderr"]
    return fmean(means), error


def table(lines: list[dict[str, Any]]) -> list[str]:
    counts = sorted({line["threads"] for line in lines})
    rows = [
        "| | " + " | ".join(f"{n} thread{'s' * (n > 1)}" for n in counts) + " |",
        "|---" * (len(counts) + 1) + "|",
    ]
    for way in dict.fromkeys(line["way"] for line in lines):
        cells, one = [], (math.nan, math.nan)
        for threads in counts:
            found = [line for line in lines if (line["way"], line["threads"]) == (way, threads)]
            if not found:
                cells.append("")
                continue
            mean, error = mean_and_error(found)
            one = (mean, error) if threads == counts[0] else one
            less = mean < WORST * one[0] and one[0] - mean > ERRORS * math.hypot(error, one[1])
            cells.append(f"{mean:,.0f} ± {error:,.0f} ({mean / one[0]:.2f}{', **less**' if less else ''})")
        rows.append(f"| {way} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON, one entry a training")
    parser.add_argument("--network", default="4x6")
    parser.add_argument("--moves", type=int, default=60_000_000)
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    given = parser.parse_args()
    lines = json.loads(given.file.read_text()) if given.file.exists() else []
    have = {(line["way"], line["threads"], line["seed"]) for line in lines}
    for seed in range(1, given.seeds + 1):
        for way in given.ways:
            for threads in map(int, given.threads.split(",")):
                if (way, threads, seed) not in have:
                    lines.append(learnt(way, threads, seed, given))
                    given.file.write_text(json.dumps(lines, indent=1) + "\n")
                    print(json.dumps(lines[-1]), flush=True)
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
