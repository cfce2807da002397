"""How long after Start does a curve have its first point? `python benchmarks/first_point.py --rounds 5`.

Starts the server, looks at the runs as the Learn tab does, starts a training by the best recipe for a minute, and
waits for the first line of its metrics. The first round compiles what no process before it has; the others are what a
person sees.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

READY = 6.0  # seconds in which somebody looks before they start, and a learner gets ready
ENOUGH = 120.0


def ask(address: str, path: str, sent: dict[str, Any] | None = None) -> dict[str, Any]:
    """The server's answer; an empty one where there is none yet."""
    body = None if sent is None else json.dumps(sent).encode()
    try:
        with urlopen(Request(f"{address}{path}", body)) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except HTTPError:
        return {}


def one_round(address: str, number: int) -> float:
    ask(address, "/api/runs")
    time.sleep(READY)
    name, offers = f"round-{number}", ask(address, "/api/games")["training"]
    recipe = next(row["settings"] for row in offers["presets"] if row["game"] == "2048")
    begin = time.perf_counter()
    if not ask(address, "/api/trainings", {"name": name, "seconds": 60, "threads": offers["threads"], **recipe}):
        raise SystemExit("the server starts no training: is one running already?")
    while not ask(address, f"/api/runs/{name}").get("points") and time.perf_counter() - begin < ENOUGH:
        time.sleep(0.02)
    took = time.perf_counter() - begin
    ask(address, f"/api/runs/{name}/stop", {})
    while any(run["state"] != "stopped" for run in ask(address, "/api/runs")["runs"]):
        time.sleep(0.2)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tilesage", "serve", "--port", "0", "--runs", str(Path(folder) / "runs")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[3]
            try:
                times = [one_round(address, number) for number in range(1, flags.rounds + 1)]
            finally:
                server.send_signal(signal.SIGINT)
    print("seconds from Start to the first point:", ", ".join(f"{seconds:.2f}" for seconds in times))


if __name__ == "__main__":
    main()
