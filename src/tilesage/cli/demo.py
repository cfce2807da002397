"""`tilesage demo`: one minute of learning, then a look at the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tilesage.app.plots import Curve, plot_curves
from tilesage.cli.flags import JsonFile, Limits, MaybePath, program, say, write_json
from tilesage.cli.train import new_folder, watch_training
from tilesage.core.processors import processors
from tilesage.learning.config import TrainConfig
from tilesage.learning.recipes import completed
from tilesage.records.statistics import TABLES


@dataclass
class Command:
    """Train a 2048 player for a minute, let it play 1,000 games, and draw its learning curve.

    examples:
      tilesage demo
      tilesage demo --seconds 10 --games 100
    """

    # Training time.
    seconds: float = 60.0
    # Games that are played afterwards, without learning.
    games: Annotated[int, Limits(1)] = 1000
    # Threads for both.
    threads: int = processors()
    # The seed of chance.
    seed: int = 1
    # The run folder; by default a new one in runs/.
    out: MaybePath = None
    json: JsonFile = None


def run(command: Command) -> int:
    """Train, play, and show what was learnt."""
    from tilesage.evaluation.evaluate import evaluate
    from tilesage.learning.folders import promise
    from tilesage.learning.runs import Run
    from tilesage.networks.files import load_model
    from tilesage.search.agents import make_agent

    given = {"seconds": command.seconds, "threads": command.threads, "seed": command.seed}
    config = TrainConfig(**completed(given | {"block": 500}))
    folder = command.out or new_folder(config)
    quiet = command.json == "-"
    say(f"learning 2048 for {command.seconds:g} s on {command.threads} threads, in {folder}", to_stderr=quiet)
    say(promise(config), to_stderr=quiet)
    training = Run.begin(config, folder)
    watch_training(training, "2048 · one minute of learning")
    if training.stopping:
        say(f"stopped; go on: {program()} train --resume {folder}", to_stderr=quiet)
        return 130
    model, progress = load_model(folder), training.progress
    result = evaluate(make_agent("greedy", model.game, model), command.games, command.seed, command.threads)
    if not result.complete:
        say(f"stopped; the run is kept: {program()} evaluate {folder}", to_stderr=quiet)
        return 130
    (picture,) = plot_curves([Curve("2048, learning", training.metrics)], [folder / "curve.png"], "seconds")
    trained = {"games": progress.games, "moves": progress.moves, "seconds": progress.seconds}
    if write_json({"training": trained, "evaluation": result.summary(), "curve": str(picture)}, command.json):
        speed = progress.moves / progress.seconds / 1e6
        say(f"{progress.games:,} games learnt, {speed:.2f} M moves/s; then, playing:")
        say(f"{result.heading}\n{TABLES['ours'](result.statistics)}")
        say(f"\nthe curve: {picture}\nnext, try:")
        ideas = {
            f"watch {folder}": "see it play",
            f"evaluate {folder} --agent best --games 20": "let it think ahead",
            "train 2048 --seconds 600": "learn for ten minutes, by the recipe for them",
            "serve": "the page: play, watch, ask for hints",
        }
        for words, why in ideas.items():
            say(f"  {program()} {words:{max(map(len, ideas))}}   {why}")
    return 0
