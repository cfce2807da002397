"""What the guide says of its methods, measured: every training under three seeds, with 1,000 greedy games each.

    python benchmarks/guide.py --out guide.jsonl             one training after another, some forty minutes
    python benchmarks/guide.py --out guide.jsonl --show      the table

One thread, so the figures repeat. Every measurement is a line of --out; a second call goes on where the first one
stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from tilesage import agent, evaluate, load_model
from tilesage.learning import train

TD: dict[str, Any] = {"rule": "td", "rate": "0.1"}
TC: dict[str, Any] = {"rule": "tc"}
TRAININGS: dict[str, dict[str, Any]] = {
    "TD, 10,000 games": TD | {"games": 10_000},
    "TC, 10,000 games": TC | {"games": 10_000},
    "TC, 10,000 games, a stage at 2048": TC | {"games": 10_000, "stages": "2048"},
    "TD, 10,000 games, optimism 40,000": TD | {"games": 10_000, "optimism": 40_000.0},
    "OTD+TC, 10,000 games, optimism 40,000": {
        "phases": "td:0.1:0.9,tc:1:0.1",
        "games": 10_000,
        "optimism": 40_000.0,
    },
    "TD, 5,000 games": TD | {"games": 5000},
    "TD, 5,000 games, backward": TD | {"games": 5000, "direction": "backward"},
    "TD, 5,000 games, rate 0.0025": {"rule": "td", "rate": "0.0025", "games": 5000},
    "TD, 5,000 games, three steps": TD | {"games": 5000, "steps": 3},
    "TC, 5,000 games": TC | {"games": 5000},
    "TC(0.5), 5,000 games": TC | {"games": 5000, "decay": 0.5},
    "TC(0.9), 5,000 games": TC | {"games": 5000, "decay": 0.9},
    "TC(0.5), 5,000 games, rate 3": TC | {"games": 5000, "decay": 0.5, "rate": "3"},
    "TC, 5,000 games, 8x4": TC | {"games": 5000, "network": "8x4"},
    "TD, 2,000 games": TD | {"games": 2000},
    "TD, 2,000 games, states": TD | {"games": 2000, "of": "states"},
    "TD, 10,000 games, states": TD | {"games": 10_000, "of": "states"},
    "TD, 10,000 games, 8x4": TD | {"games": 10_000, "network": "8x4"},
    "TD, 10,000 games, 8x4, states": TD | {"games": 10_000, "network": "8x4", "of": "states"},
    "TC, 20,000 games": TC | {"games": 20_000},
}
SEARCHES = {"TC, 20,000 games": (("expectimax:2", 200), ("expectimax:3", 50), ("expectimax:deep", 50))}
WITHOUT_NETWORK = (("mcts:70", 100), ("mcts:400", 100))


def measured(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The lines so far."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(row["training"], row["agent"], row["seed"]): row for row in map(json.loads, lines)}


def measure(path: Path, seeds: list[int], only: str) -> None:
    """Train and play what is missing."""
    for seed in seeds:
        for name, settings in TRAININGS.items():
            if only not in name:
                continue
            wanted = (("greedy", 1000), *SEARCHES.get(name, ()))
            missing = [one for one in wanted if (name, one[0], seed) not in measured(path)]
            if missing:
                with tempfile.TemporaryDirectory() as folder:
                    run = f"{folder}/run"
                    train("2048", run, recipe="plain", threads=1, seed=seed, **settings)
                    for spec, games in missing:
                        note(path, name, seed, spec, games, run)
        for spec, games in () if only else WITHOUT_NETWORK:
            if ("", spec, seed) not in measured(path):
                note(path, "", seed, spec, games, None)


def note(path: Path, name: str, seed: int, spec: str, games: int, run: str | None) -> None:
    """Play the games, and keep the figures."""
    player = agent(spec, "2048", load_model(run)) if run else agent(spec, "2048")
    found = evaluate(player, games, seed=seed, workers=1)
    figures = found.summary()
    row = {"training": name, "agent": spec, "seed": seed, "games": games, "mean": figures["mean"]}
    row |= {"stderr": figures["stderr"], "moves_per_second": round(found.statistics.slides / found.seconds)}
    row["reach_2048"] = figures["tiles"].get("2048", {}).get("reach", 0.0)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def show(path: Path) -> None:
    """The mean of each over its seeds, and the seeds."""
    together: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for (name, spec, _), row in measured(path).items():
        together[name, spec].append(row)
    print("| training | agent | seeds | mean | 2048 | each |\n|---|---|---|---|---|---|")
    for (name, spec), rows in together.items():
        means = [row["mean"] for row in rows]
        mean = sum(means) / len(means)
        error = math.hypot(*(row["stderr"] for row in rows)) / len(rows)
        reach = sum(row["reach_2048"] for row in rows) / len(rows)
        each = ", ".join(f"{one:,.0f}" for one in means)
        print(f"| {name} | {spec} | {len(rows)} | {mean:,.0f} ± {error:,.0f} | {100 * reach:.0f} % | {each} |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("guide.jsonl"))
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments.add_argument("--only", default="", help="only the trainings whose names have this in them")
    arguments.add_argument("--show", action="store_true")
    chosen = arguments.parse_args()
    show(chosen.out) if chosen.show else measure(chosen.out, chosen.seeds, chosen.only)


if __name__ == "__main__":
    main()
