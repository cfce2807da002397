"""A training run: it begins or goes on, calls its trainer for a moment at a time, counts, and saves.

What lies on the disk is in folders.py, the lines of metrics in metrics.py, where a run stands in progress.py. A
resumed run goes on from its last checkpoint: metrics written after it are cut off and made again, and with one thread
the weights become those of a run never interrupted.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.interrupts import postponed
from tilesage.learning.config import TrainConfig, settings_of
from tilesage.learning.folders import BEST as BEST_MODEL
from tilesage.learning.folders import LAST, LOCK, SETTINGS, Folder, checkpoint_of, is_run, standing, this_run
from tilesage.learning.metrics import line_of, read_metrics
from tilesage.learning.progress import Progress
from tilesage.learning.recipes import BEST, completed
from tilesage.learning.trainer import Tally, Trainer, make_trainer
from tilesage.networks.files import Model, load_model

if TYPE_CHECKING:
    from tilesage.games import Game

EVERY = 60.0  # seconds between checkpoints
MOST_ELSE = 1 << 26  # bytes of an array that is no table
AVERAGED_FROM, LOOKS = 0.85, 8  # the mean of the weights is taken over the rest of the run, so many times

Listener = Callable[[Mapping[str, Any], Progress], None]
Maker = Callable[[TrainConfig], Trainer]


class Run:
    """A training run in its folder (or, for tests and notebooks, in none)."""

    def __init__(self, config: TrainConfig, folder: Path | None, every: float = EVERY) -> None:
        self.config, self.folder, self.every = config, folder, every
        self.progress = Progress()
        self.stopping = False
        self.files: Folder | None = None  # while this process trains in its folder
        self.lines: list[dict[str, Any]] = []  # of metrics, where no folder keeps them
        self.closed = False
        self._result: Model | None = None
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
        run, new = cls(config, folder, every), list[Path]()
        if folder is not None:
            if is_run(folder):
                raise InputError(
                    f"{folder} already holds a run: --resume {folder} goes on with it, or take another --out"
                )
            new = [path for path in (folder, *folder.parents) if not path.exists()]
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot make {folder}: {error.strerror}") from None
        with run._closed_on_failure(new):
            files = run._hold()
            run.trainer = make(config)  # what it refuses leaves nothing behind
            if files:
                config.write(files.path / SETTINGS)
                files.begin_metrics(0)
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
        if not is_run(folder):
            raise InputError(f"{folder} is not a run: {SETTINGS} is missing")
        config = TrainConfig.read(folder / SETTINGS).with_budget(games, moves, seconds)
        run = cls(config, folder, every)
        with run._closed_on_failure():
            files = run._hold()
            assert files is not None
            run._stand_where_it_was()
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
            run._restore()
            run.config.write(folder / SETTINGS)  # what is refused above leaves the run as it was
            if _looks(run.done) == 0:
                run.trainer.average(afresh=True)  # the mean was that of another end
            if not run.progress.behind:  # killed before the model that it replaced was gone
                (folder / BEST_MODEL).unlink(missing_ok=True)
            files.begin_metrics(run.progress.games - run.progress.block.games)
        return run

    @contextlib.contextmanager
    def _closed_on_failure(self, new: Sequence[Path] = ()) -> Iterator[None]:
        """A run that cannot begin lets go of its folder, and removes the `new` ones if nothing is in them."""
        try:
            yield
        except BaseException:
            self.close()
            if self.files and not is_run(self.files.path):
                (self.files.path / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for path in new:
                    path.rmdir()
            raise

    def _hold(self) -> Folder | None:
        """The files of the folder, if there is one and no other process trains in it."""
        if self.folder is not None:
            self.files = Folder(self.folder, self.config.threads)
        return self.files

    def _stand_where_it_was(self) -> None:
        """Read where the checkpoint stands in this run, unless that cannot be true."""
        assert self.folder is not None
        path = self.folder / LAST
        if path.exists() and checkpoint_of(self.folder) is None:
            raise InputError(
                f"{path} is a model without what a run goes on from: begin another run with --out, or move the file "
                "away to begin this one again from nothing"
            )
        self.progress = standing(self.folder)
        with this_run(path):
            if self.progress.phases not in ("", self.config.phases):  # killed after it got others: it is before them
                self.progress.phase = 0
            if self.progress.phase >= len(self.config.phase_list):
                raise InputError("it is in a phase that this run does not have")

    def _restore(self) -> None:
        """Give the trainer what the checkpoint holds."""
        assert self.folder is not None
        saved = checkpoint_of(self.folder, self.config.memory_needed() + MOST_ELSE)
        if saved is not None:
            with this_run(saved.path):
                self.trainer.restore(saved)
            phase = self.config.phase_list[self.progress.phase]
            if phase.rule.name != self.trainer.rule.name:  # a checkpoint of the very beginning, under another
                self.trainer.begin_phase(phase.rule)

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
                if self.files and self.files.idle and time.monotonic() - saved > self.every:
                    self.checkpoint(wait=False)
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
            self.trainer.average(afresh=True)  # a mean is of one phase
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
        """Moves and games until something has to be looked at: a block or a phase ends, or the run."""
        c, p = self.config, self.progress
        end = ([phase.end for phase in c.phase_list[:-1]] + [1.0])[p.phase]
        moves, games = self.trainer.stride, c.block_size - p.block.games
        if c.moves:
            moves = min(moves, math.ceil(end * c.moves) - p.moves)
        if c.games:
            games = min(games, math.ceil(end * c.games) - p.games)
        return max(1, moves), max(1, games)

    def _line(self) -> dict[str, Any]:
        """Close the block: one line of metrics."""
        p = self.progress
        line = line_of(p, self.config.the_game, self.config.phase_list[p.phase].rate_at(self.done))
        p.block = Tally()
        if self.files:
            self.files.add(line)
        else:
            self.lines.append(line)
        return line

    # --- saving ----------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The network as it is now; after training the model that the folder means, if there is one."""
        if not self.closed:
            return self._model_now()
        if self._result is None:
            kept = self.folder is not None and (self.folder / LAST).exists()
            self._result = load_model(self.folder, self.config.the_game) if kept else self._model_now()
        return self._result

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The figures of every block of games so far: games, moves, seconds, mean, max, reach, …"""
        return self.lines if self.folder is None else read_metrics(self.folder)

    def _model_now(self) -> Model:
        return self._model_of(self.trainer.weights())

    def _model_of(self, weights: Array) -> Model:
        p = self.progress
        training = {
            "games": p.games,
            "moves": p.moves,
            "seconds": round(p.seconds, 1),
            "mean": round(p.recent.mean if p.recent.games else p.mean, 1),
        }
        settings = {name: value for name, value in vars(self.config).items() if value not in ("", 0, 0.0, False)}
        game, network = self.config.the_game, self.config.the_network
        return Model(game, network, weights, self.config.of, training | {"settings": settings})

    def checkpoint(self, wait: bool = True) -> None:
        """Save the run as it is now; without waiting, training may go on while the file is written."""
        if self.files:
            self.progress.phases = self.config.phases
            state = self.trainer.state()
            self.files.save(self._model_of(state["weights"]), state, self.progress)
            if wait:
                self.files.finish()

    def close(self) -> None:
        """Let go of the folder and of the trainer's threads."""
        self.closed = True
        if self.files:
            self.files.close()
        closing = getattr(getattr(self, "trainer", None), "close", None)
        if closing:
            closing()


def _looks(done: float) -> int:
    """How many times a run that is so far done has taken its weights into their mean."""
    return 1 + int((done - AVERAGED_FROM) / (1 - AVERAGED_FROM) * LOOKS) if done >= AVERAGED_FROM else 0


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
