"""Trainings that are killed, and what must be true of their folders afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

from tilesage.learning.config import TrainConfig
from tilesage.learning.folders import FILES, standing
from tilesage.learning.metrics import read_metrics
from tilesage.learning.progress import Progress
from tilesage.networks.files import load_model

INTERVAL = 0.2  # seconds between checkpoints
ENVIRONMENT = {**os.environ, "TILESAGE_QUIET": "1"}


def training(*words: str, quiet: bool = True) -> subprocess.Popen[str]:
    """`tilesage train …` in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tilesage",
        "train",
        "--recipe",
        "plain",
        *(["--quiet"] if quiet else []),
        *words,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """How it ends: status, output, errors."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def beginning(folder: Path, games: int, network: str = "012") -> list[str]:
    """The words of a training on one thread, which is the same to the bit however often it is interrupted."""
    words = ["2048", "--network", network, "--games", str(games), "--block", "20", "--threads", "1"]
    return [*words, "--out", str(folder), "--checkpoint", str(INTERVAL)]


def resuming(folder: Path) -> list[str]:
    return ["--resume", str(folder), "--checkpoint", str(INTERVAL)]


def wait_for_training(process: subprocess.Popen[str], folder: Path) -> None:
    """Until it has learnt something: its metrics change."""
    metrics = folder / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns if metrics.exists() else 0
    while process.poll() is None:
        if metrics.exists() and metrics.stat().st_size and metrics.stat().st_mtime_ns != before:
            return
        time.sleep(0.005)


def kill_at_random(process: subprocess.Popen[str], folder: Path, random: Random) -> bool:
    """SIGKILL at a random moment, of the start or, most often, of the training; False when it was quicker."""
    if random.random() < 0.8:
        wait_for_training(process, folder)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(random.uniform(0, 1.0))
        process.communicate()
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def check_folder(folder: Path) -> Progress:
    """Everything in the folder is whole: it opens, reads, and says what the others say."""
    if not (folder / "run.toml").exists():  # killed before the run began
        assert not (folder / "last.safetensors").exists()
        return Progress()
    TrainConfig.read(folder / "run.toml")
    for name in ("last", "best"):
        if (folder / f"{name}.safetensors").exists():
            assert np.isfinite(load_model(folder / f"{name}.safetensors").weights).all()
    progress = standing(folder)
    if (folder / "best.safetensors").exists():
        assert (folder / "last.safetensors").exists()
    lines = read_metrics(folder) if (folder / "metrics.jsonl").exists() else []
    assert [line["games"] for line in lines] == sorted({line["games"] for line in lines})
    closed = progress.games - progress.block.games
    if closed:  # what was counted is in the checkpoint, and so are the games of the open block
        (moves,) = (line["moves"] for line in lines if line["games"] == closed)
        assert moves == progress.moves - progress.block.moves
    return progress


def strangers(folder: Path) -> list[str]:
    """Files that a finished run does not have."""
    return sorted(path.name for path in folder.iterdir() if path.name not in (*FILES, "run.lock"))


def weights_of(folder: Path) -> bytes:
    return load_model(folder / "last.safetensors").weights.tobytes()


def kill_and_resume(folder: Path, kills: int, random: Random, games: int, network: str = "012") -> list[int]:
    """Kill a training again and again, checking its folder each time; the games that were safe after each kill."""
    safe = [0]
    while len(safe) <= kills:
        begun = (folder / "run.toml").exists()
        process = training(*(resuming(folder) if begun else beginning(folder, games, network)))
        if not kill_at_random(process, folder, random):
            assert process.returncode == 0, "the training ended by itself, and not well"
            break
        safe.append(check_folder(folder).games)
        assert safe[-1] >= safe[-2], "a checkpoint went back in time"
    return safe[1:]


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[bool]:
    """A disk of its own at `folder`, where this user may mount one; False where not."""
    folder.mkdir()
    size = f"size={kilobytes}k"
    mounted = os.name == "posix" and os.geteuid() == 0
    if mounted:
        words = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
        mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
