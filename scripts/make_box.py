"""Make the models in the box: train, keep what matters, measure, write a file of at most 6 MB.

    python scripts/make_box.py 2048             a minute of training on a CUDA device
    python scripts/make_box.py threes           the same
    python scripts/make_box.py threes-phone     the same

The run folder stays in --runs, so a second call packs again without training.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from afterstate.arena.evaluate import evaluate
from afterstate.games.compiler import Array
from afterstate.learning.config import TrainConfig
from afterstate.learning.runs import Run
from afterstate.search.agents import make_agent
from afterstate.values.files import Model, map_tensor, open_model, read_header, save_model

PHASES = "tc:1:0.5,soften:1:0.2,soften:1>0.05:0.3"
BASE = TrainConfig(network="4x6", phases=PHASES, device="cuda", moves=25_000_000_000)
RECIPES = {
    "2048": replace(BASE, game="2048", fold="16384", moves=30_000_000_000),
    "threes": replace(BASE, game="threes"),
    "threes-phone": replace(BASE, game="threes-phone"),
}
LIMIT = 5_900_000  # bytes


def coherence_of(folder: Path, size: int) -> Array:
    """[size] how much each weight was moved in all (the A of temporal coherence): how often it was used."""
    path = folder / "checkpoint.safetensors"
    header, _, start = read_header(path, "afterstate-checkpoint")
    memory = map_tensor(path, header["memory"], start).reshape(-1)
    return np.asarray(memory[1 : 2 * size : 2])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("game", choices=RECIPES)
    arguments.add_argument("--moves", type=int, help="another length of training than the recipe's")
    arguments.add_argument("--network", help="another network than the recipe's")
    arguments.add_argument("--fold", help="another fold than the recipe's")
    arguments.add_argument("--runs", type=Path, default=Path("runs"))
    arguments.add_argument("--out", type=Path, help="the file; by default where models in the box lie")
    arguments.add_argument("--games", type=int, default=1000, help="games of the greedy measurement")
    arguments.add_argument("--search", type=int, default=0, help="games of the measurement with search")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--train-only", action="store_true", help="train, and pack in a second call")
    chosen = arguments.parse_args()
    changes = {key: value for key in ("network", "fold", "moves") if (value := getattr(chosen, key)) is not None}
    config = replace(RECIPES[chosen.game], **changes)
    folder = chosen.runs / f"box-{chosen.game}"
    if not (folder / "last.safetensors").exists():
        run = Run.begin(config, folder, every=10_000)
        run.train()
        run.close()
    if chosen.train_only:
        return
    model = open_model(folder / "last.safetensors")
    out = chosen.out or Path(__file__).parent.parent / "src" / "afterstate" / "models" / f"{chosen.game}.safetensors"
    out.parent.mkdir(parents=True, exist_ok=True)
    importance = coherence_of(folder, model.weights.size)
    save_model(model, out, packed=True, limit=LIMIT, importance=importance)
    measured = measure(open_model(out), chosen.games, chosen.search, chosen.workers)
    training = {
        "made_by": f"scripts/make_box.py {chosen.game}",
        "seed": config.seed,
        "device": config.device,
        "moves": config.moves,
        "strength": measured,
    }
    save_model(replace(model, training=training), out, packed=True, limit=LIMIT, importance=importance)
    print(f"{out}: {out.stat().st_size:,} bytes")


def measure(model: Model, games: int, search: int, workers: int) -> dict[str, dict[str, int]]:
    """Means of the packed model: greedy, and with search."""
    found = {}
    deep = "expectimax:3" if model.game.name == "2048" else "expectimax:2"
    for spec, number in (("greedy", games), (deep, search)):
        if number:
            statistics = evaluate(make_agent(spec, model.game, model), number, workers=workers).statistics
            found[spec] = {"mean": round(statistics.mean), "stderr": round(statistics.stderr), "games": number}
            print(spec, found[spec], flush=True)
    return found


if __name__ == "__main__":
    main()
