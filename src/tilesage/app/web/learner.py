"""A process that learns, or plays games to be counted, for the page: `python -m tilesage.app.web.learner`.

It is started before anybody asks for it, so that all that takes time to load is there when its task comes: one line
of JSON on standard input. It outlives the server; Ctrl-C (SIGINT) ends it with everything saved.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilesage.app.web.library import EVALUATION
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning import cpu  # noqa: F401 (what a training needs is loaded before anybody asks for it)
from tilesage.learning.config import TrainConfig
from tilesage.learning.runs import Run, stopping_cleanly


def train(folder: Path, settings: dict[str, Any]) -> None:
    """Learn to the end of the run, or to Ctrl-C. What is refused leaves no folder behind."""
    run = Run.begin(TrainConfig(**settings), folder)
    with stopping_cleanly(run):
        run.train()


def play(folder: Path, agent: str, games: int, threads: int) -> None:
    """Let the run's model play, and leave the figures in its folder."""
    found = evaluate(agent, games, workers=threads, model=folder)
    if not found.complete:
        return
    shares = found.statistics.tile_shares
    told = found.summary() | {"reach": {tile: share["reach"] for tile, share in shares.items()}}
    with written(folder / EVALUATION, text=True) as file:
        json.dump(told, file)


TASKS: dict[str, Callable[..., None]] = {"train": train, "evaluate": play}


def main() -> int:
    """Wait for the task, and do it; an error is one line."""
    try:
        TrainConfig()  # loads what every training needs
        what, folder, words = json.loads(sys.stdin.readline() or '["", "", {}]')
        if what:
            TASKS[what](Path(folder), **words)
    except InputError as mistake:
        print(mistake, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
