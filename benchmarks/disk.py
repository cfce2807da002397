"""What a run folder takes, and how long training waits for a checkpoint: `python benchmarks/disk.py`.

Each row is a run of its own. `met` are the table entries that learning has touched; `of met` is the folder's size
over what learning keeps of just those entries, which is 1 for a file without a byte to say which they are. Training
waits for `wait` seconds, and a thread writes for `write` seconds more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from tilesage.learning import Run, TrainConfig

RULES = ("td", "tc")


def row(rule: str, network: str, seconds: float, threads: int) -> str:
    config = TrainConfig(network=network, rule=rule, seconds=seconds, threads=threads)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        run = Run.begin(config, folder, every=1e9)
        while run.done < 1:
            run.step()
        begin = time.perf_counter()
        run.checkpoint(wait=False)
        waited = time.perf_counter() - begin
        assert run.files is not None
        run.files.finish()
        wrote = time.perf_counter() - begin - waited
        met = int(np.count_nonzero(run.trainer.state()["weights"]))
        size = sum(path.stat().st_size for path in folder.iterdir())
        run.close()
    moves, kept = run.progress.moves, met * config.bytes_an_entry
    return (
        f"| {rule} | {seconds:g} | {moves / 1e6:.1f} | {met / 1e6:.2f} | {size / 1e6:.1f} | {size / kept:.2f} "
        f"| {waited:.2f} | {wrote:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="4x6")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0, 60.0])
    parser.add_argument("--threads", type=int, default=TrainConfig().threads)
    flags = parser.parse_args()
    print(f"{flags.network}, {flags.threads} threads\n")
    print("| rule | seconds | M moves | M entries met | MB | of met | wait, s | write, s |")
    print("|---|---|---|---|---|---|---|---|")
    for seconds in flags.seconds:
        for rule in RULES:
            print(row(rule, flags.network, seconds, flags.threads), flush=True)


if __name__ == "__main__":
    main()
