"""A flood of broken inputs: `python scripts/soak/flood.py --inputs 100000`.

Every input goes through the code that a user's file or text goes through, under watch (tests/hostile). The work is
cut into portions that run in processes of their own with limited address space, so that a crash or a runaway
allocation is a finding like any other. A portion is a function of its seed, and every finding is kept as a file.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
PORTION = 2500
ADDRESS_SPACE = 12 << 30


def portion(name: str, seed: int, inputs: int) -> None:
    """One process: break and try, then print what was broken as JSON."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile.targets import all_targets
    from hostile.watch import held

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    findings: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        target = next(target for target in all_targets(Path(folder)) if target.name == name)
        for data in target.good:  # compile and warm up, outside the watch
            target.attempt(data)
        random = Random(seed)
        for number in range(inputs):
            data = target.broken_input(random)
            wrong = held(lambda data=data: target.attempt(data), len(data))
            if wrong:
                findings[wrong] += 1
                if findings[wrong] == 1:
                    kept = Path(tempfile.gettempdir()) / f"finding-{name.replace(' ', '-')}-{seed}-{number}"
                    kept.write_bytes(data)
                    print(f"  {kept}: {wrong}", file=sys.stderr, flush=True)
    print(json.dumps(findings))


def shares() -> dict[str, int]:
    """The targets, and how much of the flood each gets."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile.targets import all_targets

    with tempfile.TemporaryDirectory() as folder:
        return {target.name: target.share for target in all_targets(Path(folder))}


def run_portion(name: str, seed: int, inputs: int) -> dict[str, int]:
    words = [sys.executable, __file__, "--target", name, "--seed", str(seed), "--inputs", str(inputs)]
    environment = {**os.environ, "TILESAGE_QUIET": "1"}
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        return {f"the process died with status {done.returncode} (seed {seed})": 1}
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="broken inputs in all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--target", help="one process of the flood: try this target only")
    parser.add_argument("--only", help="flood only targets whose name contains this")
    flags = parser.parse_args()
    if flags.target:
        portion(flags.target, flags.seed, flags.inputs)
        return 0
    targets = {name: share for name, share in shares().items() if not flags.only or flags.only in name}
    total = broken = 0
    print(f"{'target':<28}{'inputs':>10}{'broken':>8}{'seconds':>9}")
    for name, weight in targets.items():
        share = -(-flags.inputs * weight // sum(targets.values()))
        begin, found = time.monotonic(), collections.Counter[str]()
        for first in range(0, share, PORTION):
            size = min(PORTION, share - first)
            found.update(run_portion(name, flags.seed + first // PORTION, size))
        total, broken = total + share, broken + found.total()
        print(f"{name:<28}{share:>10,}{found.total():>8,}{time.monotonic() - begin:>9.0f}", flush=True)
        for what, times in found.most_common():
            print(f"    {times:>6} × {what}", flush=True)
    print(f"{'all':<28}{total:>10,}{broken:>8,}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
