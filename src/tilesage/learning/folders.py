"""A run is a folder, and everything in it is safe if the process is killed at any moment.

    run.toml            every setting
    metrics.jsonl       one line a block of games (metrics.py)
    last.safetensors    the last checkpoint: the model, and all that `--resume` needs to go on from there
    best.safetensors    the model of an earlier checkpoint, while it plays better than the last one
    run.lock            held while a process trains here

A checkpoint is one file, written under a temporary name and renamed. Table entries that were never met are not in it.
It is written by a thread of its own: training waits only until what the tables hold by then is copied.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.files import lock
from tilesage.learning import metrics
from tilesage.learning.config import TrainConfig, free_memory
from tilesage.learning.progress import Progress
from tilesage.networks.files import FORMAT, Model, metadata_of
from tilesage.networks.tensors import Sparse, Stored, Tensors, sparse, write_tensors

SETTINGS, LAST, BEST, LOCK = "run.toml", "last.safetensors", "best.safetensors", "run.lock"
FILES = (SETTINGS, metrics.NAME, LAST, BEST)
PROGRESS = "progress"  # in the metadata of a checkpoint: where the run stands
SMALL = 1 << 16  # bytes of an array that is not worth looking at
MOST_THREADS = 8  # that look for what was met


class Taken(InputError):
    """Another process trains in this folder."""


def is_run(folder: Path) -> bool:
    """Does this folder hold a run?"""
    return (folder / SETTINGS).exists()


def checkpoint_of(folder: Path, limit: int = 1 << 62) -> Tensors | None:
    """What the run goes on from, if there is something; no array in it may be larger than `limit` bytes."""
    if not (folder / LAST).exists():
        return None
    found = Tensors.open(folder / LAST, FORMAT, limit)
    return found if PROGRESS in found.metadata else None


def standing(folder: Path) -> Progress:
    """Where the run stands at its last checkpoint."""
    found = checkpoint_of(folder)
    if found is None:
        return Progress()
    with this_run(found.path):
        return Progress.from_json(found.metadata[PROGRESS])


@contextlib.contextmanager
def this_run(checkpoint: Path) -> Iterator[None]:
    """Numbers of a checkpoint that make no sense are one clear line."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = str(error) if isinstance(error, InputError) else "its numbers make no sense"
        raise InputError(
            f"{checkpoint} is damaged, or not from this run: {why}. Move it away to begin this run again from nothing"
        ) from None


def held(folder: Path) -> IO[str]:
    """Hold a folder for this process, until the file is closed."""
    file = (folder / LOCK).open("a+", encoding="utf-8")
    if not lock(file):
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise Taken(f"another process ({owner}) trains in {folder}: wait for it, or take another --out")
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def owner_of(folder: Path) -> int | None:
    """The number of the process that trains in this folder now, on this machine; None when nobody does."""
    try:
        with (folder / LOCK).open("r+", encoding="utf-8") as held_by:
            owner = int(held_by.read())
            if os.name != "nt":  # where 0 is a signal
                os.kill(owner, 0)  # an error, if it has ended: then nobody is kept from taking the lock meanwhile
            return None if lock(held_by) else owner
    except (OSError, ValueError, OverflowError):
        return None


def slim(folder: Path) -> None:
    """Keep of the last checkpoint its model alone; the run cannot go on after that."""
    new = folder / f".{LAST}.slim"  # Windows replaces no file that is mapped
    with held(folder):
        _write_model_of(folder / LAST, new)
        new.replace(folder / LAST)


def _write_model_of(checkpoint: Path, path: Path) -> None:
    """The model of a checkpoint, and no more."""
    opened = Tensors.open(checkpoint, FORMAT)
    name = opened.metadata.get("model", "weights")
    metadata = {key: value for key, value in opened.metadata.items() if key != PROGRESS}
    write_tensors(path, {name: opened.stored(name)}, metadata)


def delete(folder: Path) -> None:
    """Remove a run, unless a process trains in it."""
    held(folder).close()
    shutil.rmtree(folder)


def promise(config: TrainConfig) -> str:
    """What a training will write, in words: of an entry all that is known, and about a byte that says which it is."""
    an_entry = config.bytes_an_entry
    most = config.memory_needed() * (an_entry + 1) / an_entry
    return f"checkpoints of {an_entry + 1} bytes a table entry met, at most {size_in_words(most)}"


def bytes_in(folder: Path) -> int:
    """Of all files: one with two names counts once, one that a training has just replaced not at all."""
    found = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode):
                found[status.st_dev, status.st_ino] = status.st_size
    return sum(found.values())


def size_in_words(size: float) -> str:
    """
    >>> size_in_words(5200), size_in_words(12_345_678), size_in_words(2.5e9)
    ('5 kB', '12 MB', '2.5 GB')
    """
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


class Folder:
    """The folder of a run that is being trained."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        self.lock = held(path)
        self.log: IO[str] | None = None
        self.pool = ThreadPoolExecutor(min(threads, MOST_THREADS) + 1)
        self.writing: Future[None] | None = None

    def begin_metrics(self, games: int) -> None:
        """Go on with the lines of the first so many games, and clear away what a killed process was still writing."""
        for name in FILES:
            for path in self.path.glob(f".{name}.*"):
                path.unlink(missing_ok=True)
        metrics.cut(self.path, games)
        self.log = (self.path / metrics.NAME).open("a", encoding="utf-8")

    def add(self, line: metrics.Line) -> None:
        """One more line of metrics."""
        assert self.log is not None
        metrics.write_lines(self.log, [line])

    @property
    def idle(self) -> bool:
        """Is nothing being written? What went wrong with the last checkpoint is raised."""
        if self.writing is not None and self.writing.done():
            self.finish()
        return self.writing is None

    def finish(self) -> None:
        """Wait until the last checkpoint is on the disk."""
        writing, self.writing = self.writing, None
        if writing is not None:
            writing.result()

    def save(self, model: Model, state: Mapping[str, Array], progress: Progress) -> None:
        """Begin to write a checkpoint; `state` may change once this has returned."""
        self.finish()
        name = "mean" if "mean" in state else "weights"
        is_best = progress.is_best("mean" in state)
        staged = bool(model.network.stages)
        metadata = metadata_of(model) | {"model": name, PROGRESS: progress.to_json(), "unlearnt": str(int(staged))}
        if sum(array.nbytes for array in state.values()) < free_memory():
            stored = self._copied(state)
            self.writing = self.pool.submit(self._write, stored, name, metadata, is_best)
        else:  # no room for a copy: training waits
            self._write(state, name, metadata, is_best)

    def _copied(self, state: Mapping[str, Array]) -> dict[str, Stored]:
        """Everything as it is now, without what is as it was at the beginning."""
        size = state["weights"].size
        large = {name: array for name, array in state.items() if array.nbytes > SMALL}
        tables = {name: array for name, array in large.items() if array.dtype.kind == "f" and array.size % size == 0}
        found: dict[str, Stored] = {name: array.copy() for name, array in state.items() if name not in large}
        if tables:
            found |= sparse(tables, size, self.pool.map)
        for name in large.keys() - tables.keys():
            found |= sparse({name: large[name]}, large[name].size)
        return {name: found[name] for name in state}

    def _write(self, stored: Mapping[str, Stored], name: str, metadata: Mapping[str, str], is_best: bool) -> None:
        last, best = self.path / LAST, self.path / BEST
        _check_sound(last, stored[name], metadata["unlearnt"] == "1")
        if self.log is not None:
            os.fsync(self.log.fileno())  # its lines are not to be behind the checkpoint, even if the power fails
        if not is_best and not best.exists():
            _write_model_of(last, best)
        write_tensors(last, stored, metadata)
        if is_best:
            best.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder when all is written."""
        self.pool.shutdown()
        if self.log is not None:
            with contextlib.suppress(OSError):  # a full disk has been reported already
                self.log.close()
        self.lock.close()


def _check_sound(path: Path, weights: Stored, unlearnt: bool) -> None:
    """Refuse to write a model that has diverged, so that the one before stays. Unlearnt entries of stages are NaN."""
    numbers = weights.values if isinstance(weights, Sparse) else weights
    if np.isinf(numbers).any() or (not unlearnt and np.isnan(numbers.min(initial=0))):
        raise InputError(f"training diverged: {path} would hold weights that are infinite; lower --rate")
