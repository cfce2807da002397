"""Make the built-in models: train, keep what matters, measure, write a file of at most 6 MB.

    python scripts/make_models.py 2048             ten minutes of training on two cores
    python scripts/make_models.py 2048-walls       twelve minutes on one, and at most 1.5 MB
    python scripts/make_models.py threes           ten minutes on two
    python scripts/make_models.py threes-phone     twenty minutes on one, beside other work

The run folder stays in --runs, so a second call packs again without training. With --again the built-in model is
measured once more, and nothing else about it changes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from tilesage.core.compiler import Array
from tilesage.evaluation.evaluate import evaluate
from tilesage.games import PRACTICE_GAMES
from tilesage.learning.config import TrainConfig
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.runs import Run
from tilesage.networks.files import Model, load_model, save_model, write_training
from tilesage.search.agents import make_agent

RECIPES = {
    "2048": TrainConfig(game="2048", network="4x6+squares", fold="8192", decay=0.5, threads=2, seconds=600),
    "2048-walls": TrainConfig(
        game="2048-walls",
        network="4x6+squares",
        decay=0.5,
        phases="tc:1:0.5,soften:1:0.2,soften:1>0.05:0.3",
        threads=1,
        moves=2_000_000_000,
    ),
    "threes": TrainConfig(game="threes", network="4x6+squares", threads=2, seconds=600),
    "threes-phone": TrainConfig(
        game="threes-phone",
        network="small+01234,45678,01245,45689",
        stages="3072",
        start="ahead",
        by_hint=True,
        turned=False,
        decay=0.5,
        phases="tc:1:0.5,soften:1:0.2,soften:1>0.05:0.3",
        threads=1,
        moves=500_000_000,
    ),
}
PLAYED = 200_000_000  # moves that show which weights matter
LIMIT, LIMIT_OF_PRACTICE = 5_900_000, 1_500_000  # bytes


def visits_of(model: Model, recipe: TrainConfig, moves: int) -> Array:
    """[weights] how often each is met while the network plays as it learnt, and learns nothing."""
    config = replace(recipe, rule="td", decay=0.0, phases="", moves=moves, seconds=0.0, threads=1)
    trainer = CpuTrainer(config)
    trainer.count_visits()
    np.copyto(trainer.state()["weights"], model.weights)
    trainer.advance(moves, moves, 0.0)
    trainer.close()
    return np.asarray(trainer.memory)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("game", choices=RECIPES)
    arguments.add_argument("--seconds", type=float, help="another training time than the recipe's")
    arguments.add_argument("--network", help="another network than the recipe's")
    arguments.add_argument("--fold", help="another fold than the recipe's")
    arguments.add_argument("--runs", type=Path, default=Path("runs"))
    arguments.add_argument("--out", type=Path, help="the file; by default where the built-in models lie")
    arguments.add_argument("--games", type=int, default=1000, help="games of the greedy measurement")
    arguments.add_argument("--search", type=int, default=0, help="games of the measurement with search")
    arguments.add_argument("--deep", type=int, default=0, help="games of the measurement with expectimax:deep")
    arguments.add_argument("--again", action="store_true", help="only measure, and add what is found to the file")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--train-only", action="store_true", help="train, and pack in a second call")
    chosen = arguments.parse_args()
    changes = {key: value for key in ("network", "fold", "seconds") if (value := getattr(chosen, key)) is not None}
    config = replace(RECIPES[chosen.game], **changes)
    out = chosen.out or Path(__file__).parent.parent / "src" / "tilesage" / "models" / f"{chosen.game}.safetensors"
    numbers = (chosen.games, chosen.search, chosen.deep)
    if chosen.again:
        model = load_model(out)
        strength = model.training.get("strength", {}) | measure(model, numbers, chosen.workers)
        write_training(out, {**model.training, "strength": strength})
        return
    folder = chosen.runs / f"model-{chosen.game}"
    if not (folder / "last.safetensors").exists():
        run = Run.begin(config, folder, every=10_000)
        run.train()
        run.close()
    if chosen.train_only:
        return
    model = load_model(folder / "last.safetensors")
    out.parent.mkdir(parents=True, exist_ok=True)
    limit = LIMIT_OF_PRACTICE if chosen.game in PRACTICE_GAMES else LIMIT
    importance = visits_of(model, config, PLAYED)
    save_model(model, out, packed=True, limit=limit, importance=importance)
    measured = measure(load_model(out), numbers, chosen.workers)
    training = {
        "made_by": f"scripts/make_models.py {chosen.game}",
        "seed": config.seed,
        "device": config.device,
        "seconds": round(model.training["seconds"]),
        "games": model.training["games"],
        "strength": measured,
    }
    save_model(replace(model, training=training), out, packed=True, limit=limit, importance=importance)
    print(f"{out}: {out.stat().st_size:,} bytes")


def measure(model: Model, numbers: tuple[int, int, int], workers: int) -> dict[str, dict[str, int]]:
    """Means of the packed model: greedy, with a few layers, and deep, so many games each."""
    found = {}
    layers = "expectimax:3" if model.game.name == "2048" else "expectimax:2"
    for spec, number in zip(("greedy", layers, "expectimax:deep"), numbers):
        if number:
            statistics = evaluate(make_agent(spec, model.game, model), number, workers=workers).statistics
            found[spec] = {"mean": round(statistics.mean), "stderr": round(statistics.stderr), "games": number}
            print(spec, found[spec], flush=True)
    return found


if __name__ == "__main__":
    main()
