"""How long a newcomer waits: each command in a process of its own, once with an empty cache, then with a warm one.

    python benchmarks/first_answer.py                       # all of it: some two minutes
    python benchmarks/first_answer.py hint watch --rounds 3 --json first_answer.json

Wall time is what people wait for, processor time what is comparable on a busy machine; both are the least of the
rounds. `watch`, `page` and `train` end when what they are asked for is there: the first move, the first hint of the
page, the first moves learnt. Compiled code goes to a fresh folder; the built-in models are read from disk each time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

BOARD = "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"
MAKE_VEC = """
import gymnasium, tilesage.environments
env = gymnasium.make_vec("tilesage/2048-v0", num_envs=64)
env.reset(seed=1)
env.step(env.action_space.sample())
"""
TILESAGE = ("-m", "tilesage")
# What is run, and the line of output after which it has answered; without one it runs to its end.
TASKS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "import": (("-c", "import tilesage"), None),
    "hint": ((*TILESAGE, "hint", BOARD), None),
    "hint --agent greedy": ((*TILESAGE, "hint", "--agent", "greedy", BOARD), None),
    "watch": ((*TILESAGE, "watch", "--delay", "0"), "move|up|right|down|left"),
    "page": ((*TILESAGE, "serve", "--port", "0", "--runs", "{folder}/runs"), "http://\\S+"),
    "train": ((*TILESAGE, "train", "2048", "--moves", "1000", "--threads", "1", "--out", "{folder}/run"), None),
    "evaluate": ((*TILESAGE, "evaluate", "2048", "--agent", "expectimax:deep", "--games", "1", "--seed", "1"), None),
    "make_vec": (("-c", MAKE_VEC), None),
}


def processor_seconds(process: int) -> float:
    """Of a process that runs and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def ask_page(address: str) -> None:
    """A hint, as the page asks for it."""
    body = json.dumps({"board": BOARD, "agent": "best", "game": "2048"}).encode()
    request = urllib.request.Request(
        f"{address.rstrip('/')}/api/hint", body, {"Content-Type": "application/json"}, method="POST"
    )
    urllib.request.urlopen(request, timeout=300).read()


@contextlib.contextmanager
def running(words: tuple[str, ...], cache: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TILESAGE_CACHE": str(cache), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def answer(task: str, cache: Path) -> tuple[float, float, float]:
    """(wall seconds, processor seconds, wall seconds until the first line of output)."""
    words, until = TASKS[task]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        with running(tuple(word.replace("{folder}", folder) for word in words), cache) as process:
            first, found, lines = 0.0, None, []
            assert process.stdout is not None
            for line in process.stdout:
                first = first or time.perf_counter() - begin
                lines.append(line)
                if until and not line.startswith("compiling") and (found := re.search(until, line)):
                    break
            if until and not found:
                raise SystemExit(f"{task}: no answer\n{''.join(lines)}")
            if task == "page" and found:
                ask_page(found[0])
            if until:
                return time.perf_counter() - begin, processor_seconds(process.pid), first
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{task}: exit status {process.returncode}\n{''.join(lines)}")
            return time.perf_counter() - begin, used.ru_utime + used.ru_stime, first


def measure(task: str, rounds: int) -> dict[str, float]:
    """The least of all rounds, cold and warm."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "warm"):
                for name, seconds in zip(("wall", "processor", "silence"), answer(task, Path(cache)), strict=True):
                    found[f"{state} {name}"] = min(found.get(f"{state} {name}", seconds), round(seconds, 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"some of: {', '.join(TASKS)}")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    print("| what | cold, wall s | cold, processor s | first word after, s | warm, wall s | warm, processor s |")
    print("|---|---|---|---|---|---|")
    for task in options.tasks or TASKS:
        one = found[task] = measure(task, options.rounds)
        columns = ("cold wall", "cold processor", "cold silence", "warm wall", "warm processor")
        print(f"| {task} | {' | '.join(f'{one[column]:.2f}' for column in columns)} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
