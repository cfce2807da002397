"""What the page lets people do with runs: start one, stop it, let it play, delete it.

Each training is a process of its own (learner.py), which outlives the server: whoever holds the lock of a run folder
is seen and stopped, also if a command started it, or the server before this one. Nothing that is sent becomes a path:
a new name is made of a few characters, and an old one is looked up.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from tilesage import games
from tilesage.app.web.fields import Form, Schema, Values, flag, number, text, whole
from tilesage.app.web.forms import SEEDS
from tilesage.app.web.library import Library
from tilesage.app.web.limits import Refused
from tilesage.app.web.players import check_agent
from tilesage.app.web.settings import Settings
from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.learning import registry
from tilesage.learning.config import TrainConfig, rules_in
from tilesage.learning.folders import delete, is_run, owner_of, promise
from tilesage.learning.recipes import presets
from tilesage.networks.patterns import NAMES, NOTES, parse_network

LONGEST = 24 * 3600  # seconds
SOON, BLOCK = 900, 500  # runs as short as this many seconds have a point of their curve so often, in games
TAIL = 4000  # characters of the learner's last words that are read
PLAIN = TrainConfig()
NETWORK = "[A-Za-z0-9+,]{1,60}"


def _tiles(about: str, otherwise: str) -> Schema:
    return text(about, otherwise, "8192", longest=40, pattern="[0-9, ]*")


RUN: Form = {"name": text("The name of a run.", example="first", longest=255)}
TRAINING: Form = {
    "name": text(
        "a name is made of letters, digits, - and _, such as first-run",
        example="first-run",
        longest=40,
        pattern="[A-Za-z0-9][A-Za-z0-9_-]{0,39}",
    ),
    "game": text("A game.", games.DEFAULT_GAME, among=games.names),
    "network": text(
        f"one of {', '.join(NAMES)}, or patterns such as 012345,456789", PLAIN.network, "4x6", pattern=NETWORK
    ),
    "rule": text("The rule of learning.", PLAIN.rule, among=registry.names),
    "rate": text("A rate, or a schedule such as 0.5>0.01.", PLAIN.rate, "1", pattern="[0-9.,@>e-]*"),
    "phases": text("rule:rate:share, one after another.", PLAIN.phases, longest=200, pattern="[a-z0-9.,:@>-]*"),
    "decay": number("λ of TD(λ) and TC(λ).", PLAIN.decay, 0.5),
    "optimism": number("What every position is worth before anything is learnt.", PLAIN.optimism, high=1e9),
    "stages": _tiles("tiles such as 8192,16384, from which on other tables are learnt", PLAIN.stages),
    "start": text("Where games begin.", PLAIN.start, among=lambda: ["fresh", "ahead"]),
    "fold": _tiles("a tile such as 8192, from which on boards are seen at a smaller scale", PLAIN.fold),
    "by_age": flag("What is usual so far into a game is learnt apart."),
    "by_hint": flag("Threes!: other tables for each hint."),
    "turned": flag("With by_hint: boards are turned so that the slide goes left.", PLAIN.turned),
    "direction": text(
        "forward, or from the end of each game.", PLAIN.direction, among=lambda: ["forward", "backward"]
    ),
    "seconds": whole("How long.", 60, 60, low=1, high=LONGEST),
    "threads": whole("Threads that learn together.", 1, 2, low=1, high=64),
    "seed": whole("The seed of chance.", PLAIN.seed, 1, high=SEEDS - 1),
}
EVALUATION_OF: Form = {
    **RUN,
    "agent": text("Who plays with the run's model.", "greedy", "greedy", longest=40),
    "games": whole("How many games.", 100, 100, low=1, high=100_000),
}


@dataclass
class Job:
    """A learner that was given its task, and the file of its last words."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def last_words(self) -> str:
        """Why it failed, in one line."""
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - TAIL))
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"it ended with status {self.process.returncode}"


class Trainings:
    """All that this server has started; what others have started is seen by their run folders."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings, self.library = settings, library
        self.jobs: dict[tuple[str, str], Job] = {}  # (task, run)
        self.failed: dict[str, str] = {}
        self.stopping: set[str] = set()
        self.spare: Job | None = None  # a learner that waits for its task
        self.lock = threading.Lock()

    def choices(self) -> dict[str, Any]:
        """What the form of the page offers."""
        return {"allowed": self.settings.most_trainings > 0, **offers()}

    def told(self) -> dict[str, Any]:
        """The runs and where they stand. Whoever looks may start one soon: a learner is made ready."""
        with self.lock:
            self._count()
            if self.settings.most_trainings and self.spare is None:
                self.spare = _launched()
        runs, skipped = self.library.described()
        for run in runs:
            run["state"] = self._state(run)
        begun = {run["name"] for run in runs}
        starting = [name for task, name in list(self.jobs) if task == "train" and name not in begun]
        return {"runs": runs, "skipped": skipped, "failed": self.failed, "starting": starting}

    def _state(self, run: dict[str, Any]) -> str:
        name = run["name"]
        if run.pop("learning") or ("train", name) in self.jobs:
            return "stopping" if name in self.stopping else "learning"
        self.stopping.discard(name)
        if ("evaluate", name) in self.jobs:
            return "playing"
        return "done" if run["done"] >= 1 else "stopped"

    def change(self, what: Callable[[Trainings, Values], None], fields: Values) -> Values:
        """Start, evaluate, stop or delete the run that the fields name, where visitors may change anything."""
        if not self.settings.most_trainings:
            raise Refused("this server shows trainings and lets nobody start, stop or delete them")
        with self.lock:
            self._count()
            what(self, fields)
        return {"name": fields["name"]}

    def start(self, fields: Values) -> None:
        """Start the training of the form."""
        name, running = fields["name"], [run for task, run in self.jobs if task == "train"]
        words = self._checked({setting: value for setting, value in fields.items() if setting != "name"})
        if len(running) >= self.settings.most_trainings:
            raise InputError(f"a training is running already ({', '.join(running)}): stop it first")
        if name in running or is_run(self.settings.runs / name):
            raise InputError(f"there is a run called {name} already: choose another name")
        try:
            self.settings.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder of the runs cannot be made: {error.strerror}") from None
        self._give("train", name, self.settings.runs / name, settings=words)

    def _checked(self, settings: Values) -> Values:
        """The settings, if they make a training; no rule is imported for a visitor."""
        unknown = rules_in(settings) - set(registry.names())
        if unknown:
            raise InputError(f"a rule is one of {', '.join(registry.names())}, not {', '.join(unknown)}")
        parse_network(settings["network"])
        settings |= {"block": BLOCK if settings["seconds"] <= SOON else PLAIN.block}
        try:
            TrainConfig(**settings)
        except InputError as mistake:
            raise InputError(str(mistake).replace("--", "")) from None
        return settings

    def evaluate(self, fields: Values) -> None:
        """Let the model of a run play, one run at a time."""
        run, agent = self.library.run(fields["name"]), check_agent(fields["agent"], self.settings.think_seconds)
        if any(task == "evaluate" for task, _ in self.jobs):
            raise InputError("an evaluation is running already: wait for it, or stop it")
        self._give("evaluate", run.name, run.folder, agent=agent, games=fields["games"], threads=processors())

    def stop(self, fields: Values) -> None:
        """Interrupt whatever is at work on a run, wherever it was started: a training saves everything."""
        name = fields["name"]
        at_work = [job.process.pid for (_, run), job in self.jobs.items() if run == name]
        if not at_work and (owner := owner_of(self.library.run(name).folder)):
            at_work.append(owner)
        if not at_work:
            raise InputError(f"nothing is at work on {name}")
        for process in at_work:
            try:
                os.kill(process, signal.SIGINT)
            except ProcessLookupError:
                continue
            except PermissionError:
                raise InputError("another user of this machine started it: only they can stop it") from None
        self.stopping.add(name)

    def delete(self, fields: Values) -> None:
        """Remove a run with all its files, unless something is at work on it; or the trace of one that failed."""
        name = fields["name"]
        if self.failed.pop(name, None) and not (self.settings.runs / name).exists():
            return
        folder = self.library.run(name).folder
        if owner_of(folder) or any(run == name for _, run in self.jobs):
            raise InputError(f"{name} is at work: stop it first")
        try:
            delete(folder)
        except OSError as error:
            raise InputError(f"{name} cannot be deleted: {error.strerror}") from None

    def close(self) -> None:
        """End the learner that was never asked; the others go on, and the log says so."""
        self._count()
        if self.spare:
            with self.spare.process, self.spare.errors:
                self.spare.process.terminate()
            self.spare = None
        for (_, name), job in self.jobs.items():
            print(
                f"tilesage: {name} goes on without the page; kill -INT {job.process.pid} stops it",
                file=sys.stderr,
                flush=True,
            )

    def _give(self, task: str, name: str, folder: Path, **words: Any) -> None:
        """Hand a task to the learner that is ready, or to a new one."""
        if self.spare is None or self.spare.process.poll() is not None:
            self.spare = _launched()
        job, self.spare = self.spare, None
        assert job.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            job.process.stdin.write(json.dumps([task, str(folder), words]) + "\n")
            job.process.stdin.close()
        self.jobs[task, name] = job
        self.failed.pop(name, None)

    def _count(self) -> None:
        """Forget the jobs that have ended, and remember why some failed."""
        for (task, name), job in list(self.jobs.items()):
            if job.process.poll() is None:
                continue
            del self.jobs[task, name]
            if job.process.returncode not in (0, 130, -signal.SIGINT):
                self.failed[name] = job.last_words().replace(str(self.settings.runs), "runs")
            job.errors.close()


@cache
def offers() -> dict[str, Any]:
    """What can be learnt with: networks, rules, the settings that are left out, and the best ones known."""
    return {
        "networks": {name: {"about": NOTES[name], "disk": promise(TrainConfig(network=name))} for name in NAMES},
        "rules": registry.names(),
        "threads": processors(),
        "plain": {name: field["default"] for name, field in TRAINING.items() if "default" in field},
        "presets": [
            {**asdict(row), "disk": promise(TrainConfig(game=game, **row.settings))}
            for game in games.names()
            for row in presets(game)
        ],
    }


def _launched() -> Job:
    errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (closed when the job is forgotten)
    process = subprocess.Popen(
        [sys.executable, "-m", "tilesage.app.web.learner"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        text=True,
        start_new_session=True,  # Ctrl-C of the server is not theirs
    )
    return Job(process, errors)
