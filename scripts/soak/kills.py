"""A training killed again and again: `python scripts/soak/kills.py --kills 50`.

SIGKILL at random moments of starting, learning and saving, several runs one after another. After every kill each file
of the folder must open and agree with the others, and the run must go on; a run that was killed and resumed to its
end must have the weights, to the bit, of one that never was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from crash_support import (  # noqa: E402
    beginning,
    check_folder,
    finish,
    kill_and_resume,
    resuming,
    strangers,
    training,
    weights_of,
)


def to_the_end(folder: Path, words: list[str], games: int) -> bytes:
    status, _, err = finish(training(*words))
    assert (status, err) == (0, ""), err
    assert check_folder(folder).games == games
    assert strangers(folder) == [], strangers(folder)
    return weights_of(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--games", type=int, default=20_000, help="games of a run")
    parser.add_argument("--network", default="8x4", help="larger tables take longer to save")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    random, begin, kills, runs = Random(flags.seed), time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as place:
        calm = Path(place) / "calm"
        expected = to_the_end(calm, beginning(calm, flags.games, flags.network), flags.games)
        while kills < flags.kills:
            runs += 1
            folder = Path(place) / f"run{runs}"
            safe = kill_and_resume(folder, flags.kills - kills, random, flags.games, flags.network)
            kills += len(safe)
            words = (
                resuming(folder) if (folder / "run.toml").exists() else beginning(folder, flags.games, flags.network)
            )
            same = to_the_end(folder, words, flags.games) == expected
            print(f"run {runs}: {len(safe)} kills, games safe after each: {safe}; same weights: {same}", flush=True)
            if not same:
                return 1
    print(f"{kills} kills in {runs} runs, no file lost or broken, {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
