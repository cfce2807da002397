"""Sweeps on a Ray cluster: Ray Tune places the trials, restarts those whose node died, and stops hopeless ones.

Ray Tune only ever sees lines of metrics. Everything that lasts is in the run folders, which every node must see at
the same place: on one machine any folder is, on several it takes a disk they share.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from afterstate.games import Mistake
from afterstate.games.interrupts import left_as_it_was

from .cluster import build, check_build, cluster, explain
from .sweep import STOPPED, Early, Sweep, Trial

PERCENT = "percent"  # how much of its run a trial has done: the time of the scheduler
FAILURES = 3  # how often a trial is resumed after its process or node died


class Job:
    """On a node: one trial, a block of games at a time."""

    def __init__(self, trial: Trial, wanted: str) -> None:
        check_build(wanted)
        if not (trial.folder.parent / "sweep.toml").exists():
            raise Mistake(
                f"node {socket.gethostname()} does not see {trial.folder.parent}: --out must be on a disk "
                "that all nodes share"
            )
        self.trial, self.saved = trial, time.monotonic()
        self.over = trial.stopped or trial.standing().done >= 1
        self.run = None if self.over else trial.open()
        self.past = trial.lines  # of earlier days: the scheduler hears them again, so that it judges as before

    def step(self) -> dict[str, Any]:
        """The next line of metrics."""
        if self.past:
            return self._told(self.past.pop(0), bool(self.past) or not self.over)
        if self.run is None:
            return self._told({}, False)
        line = None
        while line is None and self.run.done < 1:
            line = self.run.step()
            if time.monotonic() - self.saved > self.run.every:
                self.run.checkpoint()
                self.saved = time.monotonic()
        if self.run.done >= 1:
            self.close()
        return self._told(line or {}, self.run is not None)

    def _told(self, line: dict[str, Any], goes_on: bool) -> dict[str, Any]:
        c = self.trial.config
        pairs = (
            (line.get("games", 0), c.games),
            (line.get("moves", 0), c.moves),
            (line.get("seconds", 0), c.seconds),
        )
        share = max((have / want for have, want in pairs if want), default=0.0)
        return {"mean": line.get("mean", 0.0), PERCENT: min(100.0, 100 * share), "done": not goes_on}

    def close(self) -> None:
        """Save and let go of the folder."""
        if self.run is not None:
            self.run.checkpoint()
            self.run.close()
            self.run = None


def sweep_on_ray(
    sweep: Sweep, address: str | None = None, workers: int | None = None, note: Callable[[str], None] = print
) -> None:
    """All trials, as many at a time as there are processors for. `note` hears of each one that ends."""
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the old output is the one that can be silent
    if not sweep.waiting():
        return
    needed = max(trial.config.threads for trial in sweep.trials)
    with cluster(address, max(needed, workers or os.cpu_count() or 1)) as ray:
        have = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
        if have < needed:
            raise Mistake(
                f"a trial wants {needed} threads, no node has more than {have:.0f}: lower threads in [train]"
            )
        try:
            _fit(sweep, needed, note)
        except ray.exceptions.RayError as error:
            raise explain(error) from None


def _fit(sweep: Sweep, threads: int, note: Callable[[str], None]) -> None:
    tune: Any = importlib.import_module("ray.tune")
    trials = sweep.trials if sweep.early else sweep.waiting()  # who judges must know them all
    resources = {"cpu": threads, "gpu": int(trials[0].config.device == "cuda")}
    tuner = tune.Tuner(
        tune.with_resources(_trainable(tune), resources),
        param_space={"trial": tune.grid_search(trials), "build": build()},
        tune_config=tune.TuneConfig(
            metric="mean",
            mode="max",
            scheduler=_scheduler(sweep.early),
            trial_dirname_creator=lambda trial: str(trial.trial_id),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(sweep.folder / ".tune"),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            failure_config=tune.FailureConfig(max_failures=FAILURES),
            callbacks=[_callback(tune, note)],
            verbose=0,
        ),
    )
    with left_as_it_was():  # Tune answers Ctrl-C, and does not stop doing so
        results = tuner.fit()
    for error in results.errors:
        raise Mistake(f"a trial failed: {str(error).strip().splitlines()[-1][:300]}")


def _scheduler(early: Early | None) -> Any:
    schedulers: Any = importlib.import_module("ray.tune.schedulers")
    if early is None:
        return schedulers.FIFOScheduler()
    grace = max(1, round(100 * early.grace))
    return schedulers.ASHAScheduler(time_attr=PERCENT, max_t=101, grace_period=grace, reduction_factor=early.keep)


def _trainable(tune: Any) -> type:
    class Training(tune.Trainable):  # type: ignore[misc]
        def setup(self, config: dict[str, Any]) -> None:
            self.job = Job(config["trial"], config["build"])

        def step(self) -> dict[str, Any]:
            return self.job.step()

        def save_checkpoint(self, folder: str) -> None:
            """Nothing: the run folder is the checkpoint."""

        def load_checkpoint(self, found: Any) -> None:
            """Nothing: `setup` has gone on with the run."""

        def cleanup(self) -> None:
            with contextlib.suppress(AttributeError):  # setup has failed
                self.job.close()

    return Training


def _callback(tune: Any, note: Callable[[str], None]) -> Any:
    class Marker(tune.Callback):  # type: ignore[misc]
        def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            """A trial that ended before its time was stopped: it will not be taken up again."""
            mine, last = trial.config["trial"], trial.last_result
            early = mine.standing().done < 1
            if early and mine.folder.exists():
                (mine.folder / STOPPED).touch()
            how = f"stopped at {last.get(PERCENT, 0):.0f} %" if early else "finished"
            note(f"{mine.name}: {how}, mean {last.get('mean', 0):,.0f}")

    return Marker()
