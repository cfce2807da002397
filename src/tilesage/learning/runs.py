"""A run is a folder, and everything in it is safe if the process is killed at any moment.

    run.toml                 every setting
    metrics.jsonl            one line a block of games: games, moves, seconds, mean, max, reach, rate, moves/s
    last.safetensors         the model at the last checkpoint
    best.safetensors         the model at the checkpoint before which games went best
    checkpoint.safetensors   all that `--resume` needs: weights, what the rule remembers, games, counters
    run.lock                 held while a process trains here

Files are written under a temporary name and renamed. A resumed run goes on from its last checkpoint: metrics written
after it are cut off and made again, and with one thread the weights become those of a run never interrupted.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from tilesage.core.errors import InputError
from tilesage.core.files import lock, written
from tilesage.core.interrupts import postponed
from tilesage.learning.config import TrainConfig, settings_of
from tilesage.learning.recipes import BEST, completed
from tilesage.learning.trainer import Tally, Trainer, make_trainer
from tilesage.networks.files import (
    Model,
    check_finite,
    load_model,
    map_tensor,
    read_header,
    save_model,
    write_tensors,
)

if TYPE_CHECKING:
    from tilesage.games import Game

CHECKPOINT = "tilesage-checkpoint"
FILES = ("run.toml", "metrics.jsonl", "last.safetensors", "best.safetensors", "checkpoint.safetensors")
EVERY = 60.0  # seconds between checkpoints
NO_LIMIT = 1 << 60
AVERAGED_FROM, LOOKS = 0.85, 8  # the mean of the weights is taken over the rest of the run, so many times
LONGEST_LINE = 10_000  # characters of a line of metrics


@dataclass
class Progress:
    """Where a run stands; what a checkpoint keeps besides the trainer."""

    games: int = 0
    moves: int = 0
    seconds: float = 0.0
    phase: int = 0
    phases: str = ""  # of which it is one
    lines: int = 0  # of metrics
    best: float = -1.0  # mean score of the games before the best checkpoint
    block: Tally = field(default_factory=Tally)  # games since the last line
    recent: Tally = field(default_factory=Tally)  # games since the last checkpoint

    def to_json(self) -> str:
        found = dict(vars(self))
        for name in ("block", "recent"):
            tally = vars(found[name])
            found[name] = tally | {"tiles": tally["tiles"].tolist()}
        return json.dumps(found)

    @classmethod
    def from_json(cls, text: str) -> Progress:
        found = json.loads(text)
        for name in ("block", "recent"):
            found[name] = Tally(**found[name] | {"tiles": np.array(found[name]["tiles"], np.int64)})
        progress = cls(**found)
        for part in (progress, progress.block, progress.recent):
            for name, default in vars(type(part)()).items():
                value = getattr(part, name)
                whole = type(value) is int and value >= 0
                if type(default) is int and not whole:
                    raise InputError(f"{name} is {value!r}")
                if type(default) is float and not (whole or (type(value) is float and math.isfinite(value))):
                    raise InputError(f"{name} is {value!r}")
                if type(default) is str and type(value) is not str:
                    raise InputError(f"{name} is {value!r}")
                if isinstance(default, np.ndarray) and value.shape != default.shape:
                    raise InputError(f"{name} has the shape {value.shape}")
        return progress


Listener = Callable[[Mapping[str, Any], Progress], None]
Maker = Callable[[TrainConfig], Trainer]


class Run:
    """A training run in its folder (or, for tests and notebooks, in none)."""

    def __init__(self, config: TrainConfig, folder: Path | None, every: float = EVERY) -> None:
        self.config, self.folder, self.every = config, folder, every
        self.progress = Progress()
        self.stopping = False
        self.log: IO[str] | None = None  # metrics.jsonl
        self.lines: list[dict[str, Any]] = []  # of metrics, where no folder keeps them
        self.closed = False
        self._result: Model | None = None
        self.lock: IO[str] | None = None
        self.trainer: Trainer

    def __repr__(self) -> str:
        p, name = self.progress, "" if self.folder is None else f"{str(self.folder)!r}: "
        share = "done" if self.done >= 1 else f"{100 * self.done:.0f} % done"
        return f"Run({name}{self.config.game}, {self.config.network}, {p.games:,} games, {share})"

    def __fspath__(self) -> str:
        if self.folder is None:
            raise InputError("this run has no folder, it was begun without `out`: take its .model")
        return str(self.folder)

    # --- beginning -------------------------------------------------------------------------------------------

    @classmethod
    def begin(cls, config: TrainConfig, folder: Path | None, every: float = EVERY, make: Maker = make_trainer) -> Run:
        """A new run; its folder must not hold another one."""
        if not config.limited:
            raise InputError("how long? give --seconds, --games or --moves")
        run = cls(config, folder, every)
        if folder is not None and (folder / "run.toml").exists():
            raise InputError(
                f"{folder} already holds a run: --resume {folder} goes on with it, or take another --out"
            )
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None
            run._take_lock()
        with run._closed_on_failure():
            run.trainer = make(config)  # what it refuses leaves no run behind
            if folder is not None:
                config.write(folder / "run.toml")
                run.log = (folder / "metrics.jsonl").open("w", encoding="utf-8")
        return run

    @classmethod
    def resume(
        cls,
        folder: os.PathLike[str] | str,
        games: int = 0,
        moves: int = 0,
        seconds: float = 0.0,
        every: float = EVERY,
        make: Maker = make_trainer,
        phases: str = "",
    ) -> Run:
        """A run as its last checkpoint left it, with its own end or a new one, and new phases if given.

        `train()` then goes on with it.
        """
        folder = Path(folder)
        if not (folder / "run.toml").exists():
            raise InputError(f"{folder} is not a run: run.toml is missing")
        config = TrainConfig.read(folder / "run.toml").with_budget(games, moves, seconds)
        run = cls(config, folder, every)
        run._take_lock()
        with run._closed_on_failure():
            path = folder / "checkpoint.safetensors"
            saved = read_header(path, CHECKPOINT) if path.exists() else None
            if saved:
                run._read_progress(path, saved[1])
            elif (folder / "last.safetensors").exists():
                raise InputError(
                    f"{folder} has a model but no checkpoint.safetensors, from which it would go on: begin another "
                    "run with --out, or move last.safetensors away to begin this one again from nothing"
                )
            if run.done >= 1 and (games or moves or seconds):
                p = run.progress
                raise InputError(
                    f"{folder} is past that end, with {p.games:,} games, {p.moves:,} moves, {p.seconds:,.0f} s: "
                    "give more --games, --moves or --seconds"
                )
            if phases:
                run.config = config.with_phases(phases, run.done, config.phase_list[run.progress.phase])
                run.progress.phase = 0
            run.trainer = make(run.config)
            if saved:
                header, _, start = saved
                with this_run(path):
                    run.trainer.restore({name: map_tensor(path, tensor, start) for name, tensor in header.items()})
                phase = run.config.phase_list[run.progress.phase]
                if phase.rule.name != run.trainer.rule.name:  # a checkpoint of the very beginning, under another
                    run.trainer.begin_phase(phase.rule)
            run.config.write(folder / "run.toml")  # what is refused above leaves the run as it was
            if _looks(run.done) == 0:
                run.trainer.average(afresh=True)  # the mean was that of another end
            run._sweep()
            run._cut_metrics()
        return run

    @contextlib.contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """A run that cannot begin lets go of its folder."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _read_progress(self, path: Path, metadata: Mapping[str, str]) -> None:
        """Where the checkpoint stands in this run, unless it cannot be true."""
        with this_run(path):
            self.progress = Progress.from_json(metadata["progress"])
            if self.progress.phases not in ("", self.config.phases):  # killed after it got others: it is before them
                self.progress.phase = 0
            if self.progress.phase >= len(self.config.phase_list):
                raise InputError("it is in a phase that this run does not have")

    def _sweep(self) -> None:
        """Remove what a killed process was still writing."""
        assert self.folder is not None
        for name in FILES:
            for path in self.folder.glob(f".{name}.*"):
                path.unlink(missing_ok=True)

    def _take_lock(self) -> None:
        """One process a folder. The system lets go of the lock when the process dies, however it dies."""
        assert self.folder is not None
        self.lock = (self.folder / "run.lock").open("a+", encoding="utf-8")
        if not lock(self.lock):
            self.lock.seek(0)
            owner = self.lock.read().strip() or "unknown"
            self.lock.close()
            raise InputError(f"another process ({owner}) trains in {self.folder}: wait for it, or take another --out")
        self.lock.truncate(0)
        self.lock.write(str(os.getpid()))
        self.lock.flush()

    def _cut_metrics(self) -> None:
        """Forget the lines that were written after the checkpoint."""
        assert self.folder is not None
        path = self.folder / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        with written(path) as file:
            file.write(b"".join(lines[: self.progress.lines]))
        self.log = path.open("a", encoding="utf-8")

    # --- the loop --------------------------------------------------------------------------------------------

    @property
    def done(self) -> float:
        """The share of the run that is done, by the budget that is nearest to its end."""
        c, p = self.config, self.progress
        shares = [
            have / want for have, want in ((p.games, c.games), (p.moves, c.moves), (p.seconds, c.seconds)) if want
        ]
        return min(1.0, max(shares)) if shares else 0.0

    def train(self, listener: Listener | None = None) -> Progress:
        """Train to the end of the budget, or until `stopping`; always ends with everything saved."""
        with postponed(self.stop):  # threads are at work on what is saved next
            self._train(listener)
        return self.progress

    def stop(self) -> None:
        """End the training after what is being learnt now."""
        self.stopping = True

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Train, and hand out the metrics of every block of games as it ends. Whoever leaves the loop ends the run.

        >>> run = begin_training("2048", network="tiny", games=40, block=20, threads=1)
        >>> [line["games"] for line in run.blocks()]
        [20, 40]
        """
        with contextlib.closing(self._steps()) as steps:
            ended = object()
            while True:
                with postponed(self.stop):
                    line = next(steps, ended)
                if line is ended:
                    return
                if line:
                    yield cast("dict[str, Any]", line)

    def _train(self, listener: Listener | None) -> None:
        with contextlib.closing(self._steps()) as steps:
            for line in steps:
                if listener:
                    listener(line or {}, self.progress)

    def _steps(self) -> Generator[dict[str, Any] | None]:
        """Learn to the end of the run, moment by moment; always ends with everything saved."""
        saved = time.monotonic()
        try:
            while self.done < 1 and not self.stopping:
                yield self.step()
                if self.folder is not None and time.monotonic() - saved > self.every:
                    self.checkpoint()
                    saved = time.monotonic()
        except InputError:  # learning has diverged, or the disk is full: what was saved before stays as it is
            raise
        except BaseException:
            self.checkpoint()
            raise
        else:
            self.checkpoint()
        finally:
            self.close()

    def step(self) -> dict[str, Any] | None:
        """Learn for a moment; the line of metrics if that completes a block, or the run."""
        self._stretch()
        block = self.progress.block
        return self._line() if block.games >= (1 if self.done >= 1 else self.config.block_size) else None

    def _stretch(self) -> None:
        """Learn for a moment at one rate, at most to the end of the block."""
        phases = self.config.phase_list
        while self.progress.phase + 1 < len(phases) and self.done >= phases[self.progress.phase].end:
            self.progress.phase += 1
            phase = phases[self.progress.phase]
            self.trainer.begin_phase(phase.rule, phase.softened)
        before = self.done
        moves, games = self._left()
        rate = phases[self.progress.phase].rate_at(self.done)
        tally = self.trainer.advance(moves, games, rate)
        p = self.progress
        p.games, p.moves, p.seconds = p.games + tally.games, p.moves + tally.moves, p.seconds + tally.seconds
        p.block.add(tally)
        p.recent.add(tally)
        if self.config.average and _looks(self.done) > _looks(before):
            begin = time.perf_counter()
            self.trainer.average()
            p.seconds += time.perf_counter() - begin

    def _left(self) -> tuple[int, int]:
        """Moves and games until something has to be looked at."""
        c, p = self.config, self.progress
        moves = self.trainer.stride * c.threads
        if c.moves:
            moves = min(moves, c.moves - p.moves)
        games = c.block_size - p.block.games
        if c.games:
            games = min(games, c.games - p.games)
        return max(1, moves), max(1, games)

    def _line(self) -> dict[str, Any]:
        """Close the block: one line of metrics."""
        p, game = self.progress, self.config.the_game
        block, p.block = p.block, Tally()
        reached = {str(game.tiles[i]): round(block.reach(i), 5) for i in range(game.goal - 1, len(game.tiles))}
        line = {
            "games": p.games,
            "moves": p.moves,
            "seconds": round(p.seconds, 3),
            "mean": round(block.mean, 2),
            "max": block.best,
            "reach": {tile: share for tile, share in reached.items() if share},
            "rate": self.config.phase_list[p.phase].rate_at(self.done),
            "moves_per_second": round(block.moves / block.seconds) if block.seconds else 0,
            "largest_error": round(block.worst, 1),
        }
        if block.replays:
            line["replays"] = block.replays
        if self.log:
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
        else:
            self.lines.append(line)
        p.lines += 1
        return line

    # --- saving ----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The network as it is now; after training that of the folder, `last.safetensors`, if there is one."""
        if not self.closed:
            return self._model_now()
        if self._result is None:
            last = self.folder / "last.safetensors" if self.folder is not None else None
            kept = last is not None and last.exists()
            self._result = load_model(last, self.config.the_game) if kept else self._model_now()
        return self._result

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The figures of every block of games so far: games, moves, seconds, mean, max, reach, …"""
        return self.lines if self.folder is None else read_metrics(self.folder)

    def _model_now(self) -> Model:
        p = self.progress
        training = {
            "games": p.games,
            "moves": p.moves,
            "seconds": round(p.seconds, 1),
            "mean": round(p.recent.mean, 1),
        }
        settings = {name: value for name, value in vars(self.config).items() if value not in ("", 0, 0.0, False)}
        game, network = self.config.the_game, self.config.the_network
        return Model(game, network, self.trainer.weights(), self.config.of, training | {"settings": settings})

    def checkpoint(self) -> None:
        """Write last, best if it is, and the checkpoint itself.

        The first time, the checkpoint comes first: a folder with a model but no checkpoint has lost it.
        """
        if self.folder is None:
            return
        p, model = self.progress, self._model_now()
        last, best = self.folder / "last.safetensors", self.folder / "best.safetensors"
        first, better = not last.exists(), not best.exists()
        if p.recent.games and (p.recent.mean >= p.best or better):
            p.best, better = p.recent.mean, True
        p.recent = Tally()
        if first:
            check_finite(last, model.weights)  # as `save_model` does, before anything is written
            self._write_checkpoint()
        save_model(model, last)
        if better:
            _link(last, best)
        if not first:
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        assert self.folder is not None
        self.progress.phases = self.config.phases
        metadata = {"format": CHECKPOINT, "progress": self.progress.to_json()}
        write_tensors(self.folder / "checkpoint.safetensors", self.trainer.state(), metadata)

    def close(self) -> None:
        self.closed = True
        if self.log:
            with contextlib.suppress(OSError):  # a full disk has been reported already
                self.log.close()
        if self.lock:
            self.lock.close()
        closing = getattr(getattr(self, "trainer", None), "close", None)
        if closing:
            closing()


def _looks(done: float) -> int:
    """How many times a run that is so far done has taken its weights into their mean."""
    return 1 + int((done - AVERAGED_FROM) / (1 - AVERAGED_FROM) * LOOKS) if done >= AVERAGED_FROM else 0


@contextlib.contextmanager
def this_run(checkpoint: Path) -> Iterator[None]:
    """Numbers of a checkpoint that make no sense are one clear line."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        why = str(error) if isinstance(error, InputError) else "its numbers make no sense"
        raise InputError(
            f"{checkpoint} is damaged, or not from this run: {why}. last.safetensors still is a model; move both "
            "away to begin this run again from nothing"
        ) from None


def _link(source: Path, target: Path) -> None:
    """Make `target` the same file as `source`; a copy where the file system has no links."""
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    temporary.replace(target)


def owner_of(folder: Path) -> int | None:
    """The number of the process that trains in this folder now, on this machine; None when nobody does."""
    try:
        with (folder / "run.lock").open("r+", encoding="utf-8") as held:
            owner = int(held.read())
            if os.name != "nt":  # where 0 is a signal
                os.kill(owner, 0)  # an error, if it has ended: then nobody is kept from taking the lock meanwhile
            return None if lock(held) else owner
    except (OSError, ValueError, OverflowError):
        return None


@contextlib.contextmanager
def stopping_cleanly(run: Run) -> Iterator[None]:
    """Ctrl-C and a polite kill end the run with everything saved; from then on, more of them change nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before = {number: signal.signal(number, lambda *_: run.stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if not run.stopping:
            for number, handler in before.items():
                signal.signal(number, handler)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics; a last line that was cut by a kill is left out."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        raise InputError(f"{folder} is not a run: metrics.jsonl is missing")
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            found.append(_checked_line(json.loads(line)))
        except (ValueError, KeyError, TypeError, RecursionError):
            if len(line) > LONGEST_LINE or line.endswith(b"}"):
                raise InputError(f"{path}: line {number} is no line of metrics") from None
            break
    return found


def _checked_line(line: dict[str, Any]) -> dict[str, Any]:
    """The line, if it has the figures that every reader relies on."""
    for name in ("games", "moves", "seconds", "mean", "max", "moves_per_second"):
        if type(line[name]) not in (int, float) or not 0 <= line[name] < NO_LIMIT:
            raise ValueError(name)
    if not all(type(share) in (int, float) and 0 <= share <= 1 for share in line["reach"].values()):
        raise ValueError("reach")
    return line


def train(
    game: str | Game | TrainConfig = TrainConfig.game,
    out: Path | str | None = None,
    on_block: Callable[[dict[str, Any]], None] | None = None,
    checkpoint: float = EVERY,
    recipe: str = BEST,
    **settings: Any,
) -> Run:
    """Learn to play a game, as `tilesage train` does: the same settings, and the same weights under a seed.

    `settings` are those of `TrainConfig`, which are the flags of the command; say how long by `seconds`, `games` or
    `moves`. The best recipe known for the game and this budget says the rest, or the defaults of `TrainConfig` where
    `recipe` is "plain"; a `TrainConfig` in the place of the game is taken as it stands. `out` is the run folder,
    saved to every `checkpoint` seconds; without it nothing is written, and the run is gone with the object.
    `on_block` is handed the metrics of every block of games. Ctrl-C ends a training with everything saved.

    >>> run = train("2048", network="tiny", rate=0.5, games=40, block=20, threads=1)
    >>> run
    Run(2048, tiny, 40 games, done)
    >>> [line["games"] for line in run.metrics], run.model
    ([20, 40], Model('unnamed': 2048, tiny, values of afterstates))
    """
    run = begin_training(game, out, checkpoint, recipe, **settings)
    run.train(lambda line, progress: on_block(dict(line)) if on_block and line else None)
    return run


def begin_training(
    game: str | Game | TrainConfig = TrainConfig.game,
    out: Path | str | None = None,
    checkpoint: float = EVERY,
    recipe: str = BEST,
    **settings: Any,
) -> Run:
    """A run that has not begun to learn: `run.blocks()` trains it block by block. For the settings see `train`."""
    folder = None if out is None else Path(out)
    if isinstance(game, TrainConfig):
        return Run.begin(replace(game, **settings_of(settings)), folder, checkpoint)
    if not isinstance(game, str):
        settings["parameters"] = ",".join(f"{name}={value!r}" for name, value in game.parameters.items())
        game = game.name
    given = settings_of({"game": game} | settings)
    return Run.begin(TrainConfig(**completed(given, recipe)), folder, checkpoint)
