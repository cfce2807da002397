"""`afterstate downgrade`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from afterstate.games.errors import Mistake

from .flags import say, write_json

if TYPE_CHECKING:
    from afterstate.arena.tuning import Trial


@dataclass
class Command:
    """Find out at which tile a model of 2048 should begin to downgrade, and keep that in the model.

    Games without downgrading show the wall, the first tile that few games reach. Then the tile below it is tried as
    the threshold. A setting that is surely better is written into the model, and every player uses it from then on.

    examples:
      afterstate downgrade runs/first --games 2000
      afterstate downgrade runs/first --dry --json -
    """

    model: Annotated[str | None, tyro.conf.Positional] = None
    """A model file, a run folder, or the name of a model in the box."""
    agent: str = "greedy"
    """Who plays: greedy, expectimax:2, …"""
    games: int = 1000
    """How many games each setting plays."""
    seed: int = 1
    """The seed of the games."""
    workers: int = os.cpu_count() or 1
    """How many threads play."""
    dry: bool = False
    """Only tell, do not write into the model."""
    json: str | None = None
    """Write the figures as JSON to this file (- for standard output)."""


def run(command: Command) -> int:
    from afterstate.arena.tuning import keep_downgrade, tune_downgrade
    from afterstate.values.files import SHIPPED, load_model

    model, quiet = load_model(command.model), command.json == "-"
    if model.path is not None and model.path.is_relative_to(SHIPPED) and not command.dry:
        raise Mistake("a model in the box stays as it is: add --dry, or give a model of your own")
    trials = tune_downgrade(
        model,
        command.games,
        command.seed,
        command.workers,
        command.agent,
        report=lambda trial: say(line(trial), to_stderr=quiet),
    )
    kept = None if command.dry else keep_downgrade(model, trials)
    say(f"kept in {kept}" if kept else "nothing written", to_stderr=quiet)
    if command.json:
        found = [trial.__dict__ for trial in trials]
        write_json(
            {"model": model.name, "games": command.games, "trials": found, "kept": kept is not None}, command.json
        )
    return 0


def line(trial: Trial) -> str:
    name = "no downgrading" if trial.threshold is None else f"from {trial.threshold}, hole ≥ {trial.hole}"
    return f"{name:28}{trial.mean:12,.0f} ± {trial.error:,.0f}"
