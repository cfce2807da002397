"""How often does the referee call honest files unfair? At most as often as it promises, however small they are.

    python scripts/fair_files.py threes --files 100000

Plays random games, puts 1, 2, 3, … games into a file, lets the referee test the chance of each file, and counts the
files whose smallest p-value times the number of tests is below a significance. Each count must not be above what the
significance promises by more than luck (four standard errors); the exit status says so.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from math import sqrt
from multiprocessing import get_context

from tilesage.core.processors import processors
from tilesage.evaluation.evaluate import evaluate
from tilesage.records.fairness import examined
from tilesage.records.notation import Line
from tilesage.records.record import format_record
from tilesage.records.referee import judge_lines, referee_of

LEVELS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0001, 1e-6)
SIZES = (1, 2, 3, 5, 10)  # games of a file, by turns
PORTION = 200  # files of a task


def smallest(game: str, first: int, files: int) -> list[tuple[int, float]]:
    """Of each file: how many games it holds, and its smallest p-value times the number of tests."""
    sizes, lines, found = [SIZES[i % len(SIZES)] for i in range(files)], list[str](), []
    evaluate("random", sum(sizes), first, game=game, keep=lambda record: lines.append(format_record(record)))
    rest, questions = iter(lines), referee_of(game, {}).questions
    for size in sizes:
        tally = judge_lines([Line(1, line) for line in islice(rest, size)], game)
        assert not tally.reason
        tests = examined(questions, tally.chance)
        found.append((size, min(test.p for test in tests) * len(tests)))
    return found


def portions(game: str, files: int, workers: int) -> Iterator[tuple[int, float]]:
    seeds = range(1, 1 + -(-files // PORTION))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for found in pool.map(partial(smallest, game), seeds, [PORTION] * len(seeds)):
            yield from found


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=processors())
    options = parser.parse_args()
    files, unfair = Counter[int](), Counter[tuple[int, float]]()
    for size, value in portions(options.game, options.files, options.workers):
        files[size] += 1
        unfair.update((size, level) for level in LEVELS if value < level)
    print("| significance | " + " | ".join(f"{size} games" for size in SIZES) + " | all | promised |")
    print("|---" * (len(SIZES) + 3) + "|")
    broken = False
    for level in LEVELS:
        counts = [unfair[size, level] for size in SIZES]
        promised = files.total() * level
        broken |= sum(counts) > promised + 4 * sqrt(promised)
        print(f"| {level:g} | " + " | ".join(f"{n:,}" for n in counts) + f" | {sum(counts):,} | {promised:,.1f} |")
    print(f"{files.total():,} honest files of {options.game}: " + ("a promise is broken" if broken else "all kept"))
    return int(broken)


if __name__ == "__main__":
    raise SystemExit(main())
