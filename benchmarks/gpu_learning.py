"""Learning against wall time on a GPU: train as `tilesage train --device cuda` does, and measure on the way.

    python benchmarks/gpu_learning.py 2048 --network 8x6 --seconds 75 --phases tc:1:0.6,soften:1:0.4 \\
        --marks 15 30 45 75 --agents greedy greedy,downgrade=16384 expectimax:2 --json curve.json

At each mark (seconds of training) fresh greedy games are played with the weights as a model would hold them, on the
GPU; every game counts. Measuring does not count as training time. At the end come the other agents, on the GPU where
it can, else on all cores.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import evaluate
from tilesage.evaluation.on_gpu import evaluate_on_gpu
from tilesage.learning.config import TrainConfig
from tilesage.learning.progress import Progress
from tilesage.learning.runs import Run
from tilesage.networks.files import Model, save_model
from tilesage.search.agents import make_agent


@dataclass
class Command:
    """Train on the GPU and measure on the way."""

    game: Annotated[str, tyro.conf.Positional] = "2048"
    """2048, threes or threes-phone."""
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    marks: list[float] = field(default_factory=list)
    """Seconds of training at which greedy games are played."""
    games_at_marks: int = 16384
    """How many."""
    agents: list[str] = field(default_factory=lambda: ["greedy"])
    """Who plays at the end."""
    games_at_end: list[int] = field(default_factory=lambda: [65536])
    """How many games each; the last number holds for all that follow."""
    save: Path | None = None
    """Write the model to this file."""
    packed: bool = False
    """Save half as precisely, and only what was learnt."""
    json: Path | None = None
    """Write all figures to this file."""


def say(begin: float, text: str) -> None:
    print(f"[{time.perf_counter() - begin:6.1f}] {text}", flush=True)


def figures(result: Any) -> dict[str, Any]:
    summary = result.summary()
    reach = {tile: share["reach"] for tile, share in summary["tiles"].items() if int(tile) >= 1024}
    keys = ("agent", "games", "mean", "stderr", "max", "moves_per_second")
    return {key: summary.get(key) for key in keys} | {"reach": reach}


def play(model: Model, spec: str, games: int) -> dict[str, Any]:
    """On the GPU where it plays this agent, else on all cores."""
    agent = make_agent(spec, model.game, model)
    try:
        return figures(evaluate_on_gpu(agent, games, seed=12345))
    except InputError:
        return figures(evaluate(agent, games, 12345, os.cpu_count() or 1))


def train(command: Command, config: TrainConfig, begin: float) -> tuple[Model, list[dict[str, Any]]]:
    """The trained model and the curve."""
    marks, curve, last = sorted(command.marks), [], dict[str, Any]()
    run = Run.begin(config, None)
    say(begin, "ready")

    def listen(line: Mapping[str, Any], at: Progress) -> None:
        last.update(line)
        if marks and at.seconds >= marks[0]:
            marks.pop(0)
            found = play(run.model, "greedy", command.games_at_marks)
            found |= {"seconds": at.seconds, "moves": at.moves, "training mean": last.get("mean")}
            curve.append(found)
            speed = at.moves / at.seconds / 1e6
            say(begin, f"{at.seconds:6.1f} s, {at.moves / 1e9:.2f} G moves, {speed:.0f} M moves/s: {found}")

    run.train(listen)
    say(begin, f"trained {run.progress.seconds:.1f} s, {run.progress.games} games, last block {last}")
    return run.model, curve


def main() -> None:
    command = tyro.cli(Command, description=__doc__)
    config = TrainConfig(**vars(command.config) | {"game": command.game, "device": "cuda"})
    begin, ends = time.perf_counter(), []
    model, curve = train(command, config, begin)
    if command.save:
        save_model(model, command.save, command.packed)
        say(begin, f"saved {command.save}, {command.save.stat().st_size / 1e6:.1f} MB")
    for i, spec in enumerate(command.agents):
        ends.append(play(model, spec, command.games_at_end[min(i, len(command.games_at_end) - 1)]))
        say(begin, f"{ends[-1]}")
        if command.json:  # whole after every agent: the last one may be cut off
            command.json.write_text(json.dumps({"settings": vars(config), "curve": curve, "end": ends}, indent=1))


if __name__ == "__main__":
    main()
