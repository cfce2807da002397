"""An experiment as a list of commands: each runs once, its figures are kept with where they come from.

A step is a command of this program. When it has succeeded, its figures, command, commit, machine and time are kept
in the file of its row, `ROW-SEED.json`, small enough to be committed; a later run skips it. A training that was
interrupted leaves its run folder, and is resumed. So an experiment can be stopped at any moment, done in parts, and
on several machines; pages are drawn from these files alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilesage.core.errors import InputError
from tilesage.core.files import written

INTERRUPTED = 130
HOW = ("--threads", "--workers")


KEPT = (
    *("games", "mean", "stderr", "max", "moves", "seconds", "workers", "moves_per_second", "until"),  # of a test
    *("ok", "fault", "ops", "expected_ops", "fast_enough", "points"),  # of the referee
)
CURVE = 100  # points of a learning curve that are kept


@dataclass(frozen=True)
class Step:
    """One command of an experiment. `{run}` in its words stands for the folder of the experiment."""

    row: str  # and seed: whose figures they are
    kind: str  # learn, test, test2, …, judge
    words: tuple[str, ...]  # without `tilesage`, without --json
    made: str = ""  # the file or folder it makes, below the folder of the experiment

    @property
    def name(self) -> str:
        """How the command line calls it."""
        return f"{self.row}.{self.kind}"

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


def read_row(path: Path) -> dict[str, Done]:
    """The finished steps of a row, by kind."""
    if not path.exists():
        return {}
    try:
        return {kind: Done(**found) for kind, found in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise InputError(f"{path} does not hold the figures of a row: remove it, and its steps run again") from None


@dataclass
class Experiment:
    """The folders of an experiment, and how to run what is missing."""

    folder: Path  # networks and records
    data: Path  # figures
    run_command: Callable[[Sequence[str]], int]
    say: Callable[[str], None]
    commit: str = ""
    slimming: bool = False
    done: dict[str, Done] = field(default_factory=dict)

    def look(self, steps: Sequence[Step]) -> None:
        """Take up what was done of these steps, on whatever machine, if it was the same command."""
        self.done = {}
        for row in dict.fromkeys(step.row for step in steps):
            found = read_row(self.data / f"{row}.json")
            for step in steps:
                done = found.get(step.kind) if step.row == row else None
                if done and _essence(done.command) == _essence(self.command(step)):
                    self.done[step.name] = done

    def command(self, step: Step) -> str:
        """The command as the page shows it: the same wherever the folder is."""
        return shlex.join(("tilesage", *step.in_folder(Path("runs") / self.folder.name)))

    def perform(self, steps: Sequence[Step], wanted: Sequence[str] = ()) -> None:
        """Run the missing steps, in order; with `wanted`, only those whose name begins with one of these words."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data.mkdir(parents=True, exist_ok=True)
        self.look(steps)
        for step in steps:
            if step.name not in self.done and is_wanted(step.name, wanted):
                self._prepare(step, steps)
                self._perform(step)
                if self.slimming and not any(s.row == step.row and s.name not in self.done for s in steps):
                    self.slim(step.row)

    def _prepare(self, step: Step, steps: Sequence[Step]) -> None:
        """What an earlier step made, and this one reads, may be gone with its weights: then that one runs again."""
        for earlier in steps[: steps.index(step)]:
            place = f"{{run}}/{earlier.made}"
            needed = any(word == place or word.startswith(f"{place}/") for word in step.words)
            if needed and earlier.made and not self._whole(self.folder / earlier.made):
                self._prepare(earlier, steps)
                self._perform(earlier)

    def _whole(self, made: Path) -> bool:
        return (made / "last.safetensors").exists() if made.suffix != ".txt" else made.exists()

    def _perform(self, step: Step) -> None:
        self.say(f"— {step.name}: {self.command(step)}")
        temporary = self.folder / f".{step.name}.json"
        words = [*step.in_folder(self.folder), "--json", str(temporary)]
        made = self.folder / step.made
        if step.trains and made.exists() and not list(made.glob("*.safetensors")):
            shutil.rmtree(made)  # slimmed
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
        figures = kept(json.loads(temporary.read_text(encoding="utf-8")))
        if step.trains:
            figures["curve"] = curve_of(made)
        done = Done(
            self.command(step),
            figures,
            round(time.perf_counter() - begin, 1),
            self.commit or commit_here(),
            machine_here("cuda" if "cuda" in step.words else "cpu"),
            datetime.now(UTC).strftime("%Y-%m-%d"),
        )
        temporary.unlink()
        place = self.data / f"{step.row}.json"
        found = {kind: one.__dict__ for kind, one in (read_row(place) | {step.kind: done}).items()}
        with written(place, text=True) as file:
            file.write(json.dumps(found, indent=1) + "\n")
        self.done[step.name] = done

    def slim(self, row: str) -> None:
        """Keep of a run its settings and its curve."""
        for path in (self.folder / row).glob("*.safetensors"):
            path.unlink()


def kept(figures: Mapping[str, Any]) -> dict[str, Any]:
    """What pages need of the figures of a command; of tiles the share of games that ended with them."""
    found = {name: figures[name] for name in KEPT if figures.get(name) is not None}
    found |= {"ends": {tile: share["end"] for tile, share in figures.get("tiles", {}).items() if share["end"]}}
    if "fairness" in figures:
        found["fairness"] = [test["p"] for test in figures["fairness"]]
    return found


def curve_of(folder: Path) -> list[dict[str, Any]]:
    """A run's learning curve: so many lines of its metrics, each the mean over the blocks since the one before."""
    from tilesage.learning.metrics import read_metrics

    lines = read_metrics(folder)
    found, width = [], max(1, -(-len(lines) // CURVE))
    for place in range(0, len(lines), width):
        part = lines[place : place + width]
        tiles = sorted({tile for line in part for tile in line["reach"]}, key=int)
        reach = {tile: sum(line["reach"].get(tile, 0) for line in part) / len(part) for tile in tiles}
        mean = sum(line["mean"] for line in part) / len(part)
        reach = {tile: round(share, 4) for tile, share in reach.items()}
        best = max(line["max"] for line in part)
        found.append({"games": part[-1]["games"], "mean": round(mean), "max": best, "reach": reach})
    return found


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
