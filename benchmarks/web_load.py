"""How long does a move take when a hundred people watch? Starts the server, fills it, and measures.

    python benchmarks/web_load.py --watchers 100 --players 5 --seconds 15 --agent expectimax:2

Every watcher is a WebSocket on which an agent plays `--speed` moves a second (0: as fast as it goes). Meanwhile some
players move, as people do, and each move is timed from the key to the answer. A watcher's latency is how late its
move comes, against the pace it asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import websockets


async def ask(line: Any, what: str, **fields: Any) -> dict[str, Any]:
    await line.send(json.dumps({"id": 1, "do": what, **fields}))
    while True:
        answer: dict[str, Any] = json.loads(await line.recv())
        if answer.get("id") == 1:
            if "error" in answer:
                raise SystemExit(f"{what}: {answer['error']}")
            return answer


def moves_of(frame: dict[str, Any]) -> int:
    return int(frame["line"].partition(" moves=")[2].partition(" ")[0])


async def watcher(
    address: str, number: int, options: argparse.Namespace, start: asyncio.Event, late: list[float]
) -> int:
    """Watch one game, acknowledge every frame, note how late each move was."""
    frames = 0
    async with websockets.connect(address) as line:
        fields = {"game": "2048", "agent": options.agent, "model": options.model, "seed": number}
        await ask(line, "watch.start", **fields, speed=options.speed, paused=True)
        await start.wait()
        await asyncio.sleep(random.random())  # people do not begin in step
        await ask(line, "watch.control", speed=options.speed, paused=False)
        end, last, moves = time.perf_counter() + options.seconds, 0.0, 0
        while time.perf_counter() < end:
            frame = json.loads(await line.recv())
            if frame.get("push") != "watch":
                raise SystemExit(f"watcher {number}: {frame}")
            now = time.perf_counter()
            if last and options.speed and moves_of(frame) > moves:  # not across the pause between two games
                late.append(max(0.0, now - last - (moves_of(frame) - moves) / options.speed))
            last, moves, frames = now, moves_of(frame), frames + 1
            await line.send(json.dumps({"do": "watch.seen", "frame": frame["frame"]}))
    return frames


async def player(
    address: str, number: int, options: argparse.Namespace, start: asyncio.Event, took: list[float]
) -> None:
    """Play random legal moves, about eight a second, and time each."""
    async with websockets.connect(address) as line:
        position = (await ask(line, "game.open", game="2048", seed=number))["positions"][0]
        await start.wait()
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end:
            if not position["legal"]:
                position = (await ask(line, "game.open", game="2048"))["positions"][0]
            began = time.perf_counter()
            action = random.choice(position["legal"])
            position = await ask(line, "game.step", game="2048", line=position["line"], action=action)
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.05 + 0.15 * random.random())


def figures(times: list[float]) -> dict[str, float]:
    ordered = sorted(1000 * t for t in times)
    share = {name: ordered[int(q * (len(ordered) - 1))] for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return {
        "moves": len(ordered),
        **{name: round(value, 2) for name, value in share.items()},
        "max": round(ordered[-1], 2),
    }


async def measure(address: str, options: argparse.Namespace) -> dict[str, Any]:
    late: list[float] = []
    took: list[float] = []
    start = asyncio.Event()
    watchers = [asyncio.create_task(watcher(address, i, options, start, late)) for i in range(options.watchers)]
    players = [asyncio.create_task(player(address, i, options, start, took)) for i in range(options.players)]
    await asyncio.sleep(options.settle)
    start.set()
    frames = sum(await asyncio.gather(*watchers))
    await asyncio.gather(*players)
    found: dict[str, Any] = {"watchers": options.watchers, "agent": options.agent, "speed": options.speed}
    found["frames_per_second"] = round(frames / options.seconds)
    found["player_move_ms"] = figures(took)
    if late:
        found["watcher_late_ms"] = figures(late)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--players", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--settle", type=float, default=5.0, help="seconds to connect everybody")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="moves a second of each watcher, 0 for as fast as it goes"
    )
    parser.add_argument("--agent", default="expectimax:2")
    parser.add_argument("--model", default="")
    parser.add_argument("--models", help="a folder with model files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tilesage", "serve", "--port", "0", "--runs", str(Path(folder) / "runs")]
        words += ["--models", options.models] if options.models else []
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[3].replace("http", "ws") + "/ws"
            try:
                print(json.dumps(asyncio.run(measure(address, options)), indent=2))
            finally:
                server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
