"""Does memory stay flat? `python scripts/soak/flat_memory.py train --minutes 60`, or `serve`, or `watch`.

Starts a training, or the server with visitors who come and go, or with visitors who start one watched game after
another at full speed (`watch --games 20000`), samples the resident memory of the process, and compares the middle of
the first quarter (after a warm-up) with that of the last one. `--curve FILE.csv` keeps the samples.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
WARM_UP = 0.15  # of the samples
GROWTH, ROOM = 1.05, 16.0  # allowed: 5 %, or this many megabytes
SAMPLE_SECONDS = 1.0
VISIT_SECONDS, WATCHERS, PLAYERS = 15.0, 8, 3


def resident(process: subprocess.Popen[str]) -> float | None:
    """Megabytes; None when the process has ended."""
    try:
        text = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")]
    return int(found[0]) / 1024 if found else None


class Sampler(threading.Thread):
    """Takes the memory of a process once a second."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.process, self.samples = process, list[float]()

    def run(self) -> None:
        while (size := resident(self.process)) is not None:
            self.samples.append(size)
            time.sleep(SAMPLE_SECONDS)


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tilesage", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def train(folder: Path, seconds: float, network: str) -> list[float]:
    out = str(folder / "run")
    process = start(
        *f"train 2048 --recipe plain --network {network} --seconds {seconds} --checkpoint 20".split(), "--out", out
    )
    sampler = Sampler(process)
    sampler.start()
    process.communicate()
    sampler.join()
    if process.returncode:
        raise SystemExit(f"the training ended with status {process.returncode}")
    return sampler.samples


def serve(folder: Path, seconds: float) -> list[float]:
    (folder / "runs").mkdir()
    process = start("serve", "--port", "0", "--runs", str(folder / "runs"))
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("tilesage is at http://"):
        raise SystemExit(f"the server does not start: {line}")
    sampler = Sampler(process)
    sampler.start()
    asyncio.run(visits(line.split()[3].replace("http", "ws").rstrip("/") + "/ws", seconds))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return sampler.samples


async def visits(address: str, seconds: float) -> None:
    """Visitors in waves: each watches or plays for a while and leaves."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from web_load import player, watcher

    options = SimpleNamespace(agent="random", model="", speed=20.0, seconds=VISIT_SECONDS)
    end, wave = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        begin, late, times = asyncio.Event(), list[float](), list[float]()
        watching = [watcher(address, WATCHERS * wave + i, options, begin, late) for i in range(WATCHERS)]
        playing = [player(address, PLAYERS * wave + i, options, begin, times) for i in range(PLAYERS)]
        crowd = asyncio.gather(*watching, *playing)
        await asyncio.sleep(1)
        begin.set()
        await crowd
        wave += 1
    print(f"{wave} waves of {WATCHERS} watchers and {PLAYERS} players")


PLAYERS_WATCHED = ("random", "greedy", "expectimax:1", "rollouts:1", "mcts:1")  # times the games: more than are kept


def watch(folder: Path, games_wanted: int, visitors: int) -> list[float]:
    """The memory after every fiftieth part of the games."""
    process = start("serve", "--port", "0", "--runs", str(folder / "runs"))
    assert process.stdout is not None
    address = process.stdout.readline().split()[3].replace("http", "ws") + "/ws"
    samples: list[float] = []
    asyncio.run(all_watched(address, games_wanted, visitors, lambda: samples.append(resident(process) or 0.0)))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return samples


async def all_watched(address: str, wanted: int, visitors: int, sample: Callable[[], None]) -> None:
    """Visitors who each watch the next game to its end, by the next player, at full speed."""
    import websockets

    from tilesage import games
    from tilesage.networks.files import built_in_names
    from tilesage.search.agents import needs_model

    known = [(spec, name) for spec in PLAYERS_WATCHED for name in games.names()]
    casts = [(spec, name) for spec, name in known if name in built_in_names() or not needs_model(spec)]
    begun, done, clock = itertools.count(), itertools.count(1), time.monotonic()

    async def visitor() -> None:
        while (number := next(begun)) < wanted:
            async with websockets.connect(address) as line:  # a new visit for every game, as a reload is
                spec, name = casts[number % len(casts)]
                fields = {"game": name, "agent": spec, "seed": number, "speed": 0, "paused": False}
                await line.send(json.dumps({"id": 1, "do": "watch.start", **fields}))
                while not (frame := json.loads(await line.recv())).get("games"):
                    if "error" in frame:
                        raise SystemExit(f"{spec} at {name}: {frame['error']}")
                    await line.send(json.dumps({"do": "watch.seen", "frame": frame.get("frame", 0)}))
            finished = next(done)
            if finished % max(1, wanted // 50) == 0:
                sample()
                print(f"{finished:,} games, {time.monotonic() - clock:,.0f} s", flush=True)

    await asyncio.gather(*(visitor() for _ in range(visitors)))


def verdict(samples: list[float]) -> int:
    kept = samples[int(WARM_UP * len(samples)) :]
    if len(kept) < 8:
        raise SystemExit(f"only {len(kept)} samples: let it run longer")
    quarter = len(kept) // 4
    first, last = median(kept[:quarter]), median(kept[-quarter:])
    flat = last <= max(GROWTH * first, first + ROOM)
    print(
        f"{len(samples)} samples: {first:,.1f} MB in the first quarter, {last:,.1f} MB in the last, peak "
        f"{max(kept):,.1f} MB: {'flat' if flat else 'GROWING'}"
    )
    return 0 if flat else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["train", "serve", "watch"])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--network", default="8x4", help="of the training")
    parser.add_argument("--games", type=int, default=20_000, help="that are watched")
    parser.add_argument("--visitors", type=int, default=4, help="who watch at once")
    parser.add_argument("--curve", type=Path, help="keep the samples: seconds or games, and megabytes")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        seconds, folder = 60 * flags.minutes, Path(place)
        if flags.what == "watch":
            samples, step = watch(folder, flags.games, flags.visitors), flags.games // 50
        else:
            samples = train(folder, seconds, flags.network) if flags.what == "train" else serve(folder, seconds)
            step = SAMPLE_SECONDS
        if flags.curve:
            lines = [f"{step * number:g},{size:.1f}\n" for number, size in enumerate(samples, 1)]
            flags.curve.write_text("".join(lines), encoding="utf-8")
        return verdict(samples)


if __name__ == "__main__":
    sys.exit(main())
