"""Sweeps on a Ray cluster: a trial is a task, as many at a time as there are processors.

Everything that lasts is in the run folders, which every node must see at the same place: on one machine any folder
is, on several it takes a disk they share. A task that died with its node goes on from its last checkpoint.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from tilesage.cluster.connection import build, check_build, cluster, explain
from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.evaluation.sweep import Sweep, Trial

RETRIES = 3  # how often a trial is taken up again because its process or node died


def train_trial(trial: Trial, wanted: str) -> None:
    """On a node: begin this trial or go on with it, to its end."""
    check_build(wanted)
    if not (trial.folder.parent / "sweep.toml").exists():
        raise InputError(
            f"node {socket.gethostname()} does not see {trial.folder.parent}: --out must be on a disk "
            "that all nodes share"
        )
    trial.finish()


def sweep_on_ray(
    sweep: Sweep, address: str | None = None, workers: int | None = None, note: Callable[[str], None] = print
) -> None:
    """All trials that wait. `note` hears of each one that ends; Ctrl-C leaves the rest for another day."""
    if not sweep.waiting():
        return
    needed = max(trial.config.threads for trial in sweep.trials)
    with cluster(address, max(needed, workers or processors())) as ray:
        have = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
        if have < needed:
            raise InputError(
                f"a trial wants {needed} threads, no node has more than {have:.0f}: lower threads in [train]"
            )
        try:
            _train_all(ray, sweep, needed, note)
        except KeyboardInterrupt:
            pass
        except ray.exceptions.RayError as error:
            raise explain(error) from None


def _train_all(ray: Any, sweep: Sweep, threads: int, note: Callable[[str], None]) -> None:
    gpus = int(sweep.trials[0].config.device == "cuda")
    task = ray.remote(num_cpus=threads, num_gpus=gpus, max_retries=RETRIES)(train_trial)
    under_way = {task.remote(trial, build()): trial for trial in sweep.waiting()}
    while under_way:
        (ended,), _ = ray.wait(list(under_way))
        trial = under_way.pop(ended)
        try:
            ray.get(ended)
        except ray.exceptions.RayError as error:
            reason = explain(error)
            if isinstance(error, ray.exceptions.RayTaskError):  # no failure of the trial: the cluster is not in order
                raise reason from None
            trial.fail(str(reason))
        note(trial.told)
