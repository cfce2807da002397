"""Does memory stay flat? `python scripts/soak/flat_memory.py train --minutes 60`, or `serve`.

Starts a training or the server with visitors who come and go, samples the resident memory of the process, and
compares the middle of the first quarter (after a warm-up) with that of the last one.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import threading
import time
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


def verdict(samples: list[float]) -> int:
    kept = samples[int(WARM_UP * len(samples)) :]
    if len(kept) < 8:
        raise SystemExit(f"only {len(kept)} samples: let it run longer")
    quarter = len(kept) // 4
    first, last = median(kept[:quarter]), median(kept[-quarter:])
    hours = (len(kept) - quarter) * SAMPLE_SECONDS / 3600
    flat = last <= max(GROWTH * first, first + ROOM)
    print(
        f"{len(samples)} samples: {first:,.1f} MB in the first quarter, {last:,.1f} MB in the last, peak "
        f"{max(kept):,.1f} MB, {(last - first) / hours:+,.1f} MB an hour: {'flat' if flat else 'GROWING'}"
    )
    return 0 if flat else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["train", "serve"])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--network", default="8x4", help="of the training")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        seconds = 60 * flags.minutes
        folder = Path(place)
        return verdict(train(folder, seconds, flags.network) if flags.what == "train" else serve(folder, seconds))


if __name__ == "__main__":
    sys.exit(main())
