"""Trainings started from the page: each is the command `tilesage train` in a process of its own.

The page chooses from a form; nothing it sends becomes a path or a word of the command without being checked here.
Stopping is Ctrl-C, on which the trainer saves everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from dataclasses import dataclass
from typing import Any

from tilesage import games
from tilesage.app.web.fields import Fields
from tilesage.app.web.library import Library
from tilesage.app.web.settings import Settings
from tilesage.core.errors import InputError
from tilesage.learning import registry
from tilesage.networks.patterns import NAMES, NOTES, parse_network

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
NETWORK = re.compile(r"[A-Za-z0-9+,]{1,60}")
LONGEST = 24 * 3600
STOP_SECONDS = 20.0
TAIL = 4000  # characters of the trainer's last words that are kept


@dataclass
class Training:
    """A running process and its last words."""

    name: str
    process: asyncio.subprocess.Process
    words: str = ""
    stopping: bool = False


class Trainings:
    """Those started from this page; others are seen by their run folders only."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings, self.library = settings, library
        self.running: dict[str, Training] = {}
        self.failed: dict[str, str] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.starting = asyncio.Lock()  # a process takes a while to start, in which two would find the place free

    def choices(self) -> dict[str, Any]:
        """What the form of the page offers."""
        return {"allowed": self.settings.trainings > 0, "networks": NOTES, "rules": registry.names()}

    async def start(self, fields: Fields) -> dict[str, Any]:
        """Start the training of the form."""
        if self.settings.trainings <= 0:
            raise InputError("this server does not start trainings")
        name, words = self._command(fields)
        async with self.starting:
            self._check_place(name)
            training = self.running[name] = Training(name, await self._launch(name, words))
            self.failed.pop(name, None)
            task = asyncio.create_task(self._follow(training))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return {"name": name}

    def _check_place(self, name: str) -> None:
        if len(self.running) >= self.settings.trainings:
            busy = ", ".join(self.running)
            raise InputError(f"a training is running already ({busy}): stop it first")
        if name in self.running or self.library.has_run(name):  # one that has just begun has no folder yet
            raise InputError(f"there is a run called {name} already: choose another name")

    async def _launch(self, name: str, words: list[str]) -> asyncio.subprocess.Process:
        self.settings.runs.mkdir(parents=True, exist_ok=True)
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tilesage", "train", *words, "--out", str(self.settings.runs / name)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C of the server is passed on by `close`, once
        )

    def _command(self, fields: Fields) -> tuple[str, list[str]]:
        name = fields.text("name", 40)
        if not NAME.fullmatch(name):
            raise InputError("a name is made of letters, digits, - and _, such as first-run")
        network = fields.text("network", 60, "4x6")
        if not NETWORK.fullmatch(network):
            raise InputError(f"network must be one of {', '.join(NAMES)}, or patterns such as 012345,456789")
        parse_network(network)
        words = [fields.choice("game", games.names(), games.DEFAULT_GAME), "--recipe", "plain", "--network", network]
        words += ["--rule", fields.choice("rule", registry.names(), registry.DEFAULT)]
        for flag, low, high, otherwise in (("seconds", 1, LONGEST, 60), ("threads", 1, 64, 1), ("seed", 0, 2**53, 1)):
            words += [f"--{flag}", str(fields.whole(flag, low, high, otherwise))]
        words += ["--decay", f"{fields.number('decay', 0, 1, 0.5):g}"]
        return name, words

    async def _follow(self, training: Training) -> None:
        assert training.process.stderr is not None
        while chunk := await training.process.stderr.read(4096):
            training.words = (training.words + chunk.decode("utf-8", "replace"))[-TAIL:]
        code = await training.process.wait()
        del self.running[training.name]  # its own: a name that runs is not given twice
        if code not in (0, 130, -signal.SIGINT) and not training.stopping:
            self.failed[training.name] = self._last_words(training.words) or f"the training ended with status {code}"

    def _last_words(self, words: str) -> str:
        """The trainer's message without the places on this machine."""
        lines = [line for line in words.replace("\r", "\n").splitlines() if line.strip()]
        last = lines[-1].strip()[:300] if lines else ""
        return last.replace(str(self.settings.runs), "runs").removeprefix("tilesage: ")

    async def stop(self, fields: Fields) -> dict[str, Any]:
        """Interrupt a training; it saves everything."""
        training = self.running.get(fields.text("name", 40))
        if training is None:
            raise InputError("no training of this name was started from this page, or it has ended")
        self._interrupt(training)
        return {"name": training.name}

    def _interrupt(self, training: Training) -> None:
        training.stopping = True
        with contextlib.suppress(ProcessLookupError):
            training.process.send_signal(signal.SIGINT)

    async def close(self) -> None:
        """Interrupt all trainings, and end those that take too long."""
        async with self.starting:  # one that is being started is interrupted too
            for training in list(self.running.values()):
                self._interrupt(training)
        if self.tasks:
            _, late = await asyncio.wait(self.tasks, timeout=STOP_SECONDS)
            for training in list(self.running.values()) if late else []:
                with contextlib.suppress(ProcessLookupError):
                    training.process.kill()
