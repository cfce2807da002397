"""An experiment as a list of commands: each runs once, its figures are kept with where they come from.

A step is a command of this program. When it has succeeded, `NAME.json` in the folder of the experiment holds its
figures, the command, the commit, the machine and the time; a later run skips it. A training that was interrupted
leaves its run folder, and is resumed. So an experiment can be stopped at any moment, done in parts, and on several
machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilesage.core.errors import InputError

INTERRUPTED = 130
HOW = ("--threads", "--workers")


@dataclass(frozen=True)
class Step:
    """One command of an experiment. `{run}` in its words stands for the folder of the experiment."""

    name: str  # what its figures are called
    words: tuple[str, ...]  # without `tilesage`, without --json
    made: str = ""  # the file or folder it makes, below the folder of the experiment
    slims: str = ""  # the run whose weights nothing needs after this step; its curve stays

    @property
    def trains(self) -> bool:
        """Is it a training?"""
        return self.words[0] == "train"

    def in_folder(self, folder: Path) -> tuple[str, ...]:
        """The words of the command, for this run folder."""
        return tuple(word.replace("{run}", str(folder)) for word in self.words)


@dataclass(frozen=True)
class Done:
    """A step that has been run."""

    command: str
    figures: dict[str, Any]
    seconds: float
    commit: str
    machine: str
    date: str

    @property
    def whole_time(self) -> float:
        """Seconds it took; of a resumed training those before the interruption count too."""
        return max(self.seconds, float(self.figures.get("seconds") or 0.0))

    @classmethod
    def read(cls, path: Path) -> Done:
        """The figures of a finished step, as it left them in its file."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise InputError(
                f"{path} does not hold the figures of a step: remove it, and the step is run again"
            ) from None


@dataclass
class Experiment:
    """The folder of an experiment, and how to run what is missing in it."""

    folder: Path
    run_command: Callable[[Sequence[str]], int]
    say: Callable[[str], None]
    commit: str = ""
    device: str = "cpu"
    slimming: bool = False
    done: dict[str, Done] = field(default_factory=dict)

    def place(self, step: Step) -> Path:
        """The file for the figures of a step."""
        return self.folder / f"{step.name}.json"

    def look(self, steps: Sequence[Step]) -> None:
        """Take up what was done of these steps, on whatever machine, if it was the same command."""
        self.done = {}
        for step in steps:
            if self.place(step).exists():
                found = Done.read(self.place(step))
                if _essence(found.command) == _essence(self.command(step)):
                    self.done[step.name] = found

    def command(self, step: Step) -> str:
        """The command as the page shows it: the same wherever the folder is."""
        return shlex.join(("tilesage", *step.in_folder(Path("runs") / self.folder.name)))

    def perform(self, steps: Sequence[Step], wanted: Sequence[str] = ()) -> None:
        """Run the missing steps, in order; with `wanted`, only those whose name begins with one of these words."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.look(steps)
        for step in steps:
            if step.name in self.done or not is_wanted(step.name, wanted):
                continue
            self.say(f"— {step.name}: {self.command(step)}")
            self._perform(step)
        self.look(steps)

    def _perform(self, step: Step) -> None:
        temporary = self.folder / f".{step.name}.json"
        words = [*step.in_folder(self.folder), "--json", str(temporary)]
        made = self.folder / step.made
        if step.trains and made.exists():
            words = ["train", "--resume", str(made), "--json", str(temporary)]
        elif step.made and made.is_file():
            made.unlink()
        begin = time.perf_counter()
        status = self.run_command(words)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status != 0:
            raise InputError(f"the step {step.name} ended with status {status}: {self.command(step)}")
        done = Done(
            self.command(step),
            json.loads(temporary.read_text(encoding="utf-8")),
            time.perf_counter() - begin,
            self.commit or commit_here(),
            machine_here(self.device if step.trains else "cpu"),
            datetime.now(UTC).strftime("%Y-%m-%d"),
        )
        temporary.write_text(json.dumps(done.__dict__, indent=1), encoding="utf-8")
        temporary.replace(self.place(step))
        self.done[step.name] = done
        if step.slims and self.slimming:
            self.slim(step.slims)

    def slim(self, run: str) -> None:
        """Keep of a run its settings and its curve."""
        for path in (self.folder / run).glob("*.safetensors"):
            path.unlink()


def _essence(command: str) -> list[str]:
    """A command without what only says how much of the machine it takes."""
    words = shlex.split(command)
    skipped = {place + k for place, word in enumerate(words) if word in HOW for k in (0, 1)}
    return [word for place, word in enumerate(words) if place not in skipped]


def is_wanted(name: str, wanted: Sequence[str]) -> bool:
    """Does one of the wanted words begin the name of this step? Without any, all are wanted."""
    return not wanted or any(name.startswith(word) for word in wanted)


def commit_here() -> str:
    """The commit of the source, with a + when something has changed since; unknown without git."""
    here = Path(__file__).parent
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        head = _output("git", "-C", str(here), "rev-parse", "--short=10", "HEAD")
        changed = _output("git", "-C", str(here), "status", "--porcelain", "--untracked-files=no", "--", ".")
        return head + ("+" if changed else "")
    return "unknown"


def _output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


def machine_here(device: str) -> str:
    """The processor and how much of it there is, in words; with `cuda` the graphics card too."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    words = f"{model}, {os.cpu_count()} cores"
    if device == "cuda":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            words += f", {_output('nvidia-smi', '--query-gpu=name', '--format=csv,noheader').splitlines()[0]}"
    return words
