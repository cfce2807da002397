"""The batch rule of the GPU with traces, on one CPU core: is it stable, and does it pay?

    python benchmarks/batch_traces.py --decay 0.5 --moves 100000000 --by-age
    python benchmarks/batch_traces.py --decay 0.5 --value then        # measured against the value when it was chosen

Temporal coherence from zero; every line is the mean score of the games that ended since the one before.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numba import njit

from tilesage import game
from tilesage.learning.rules import AGE_RATE, AGE_SHARE
from tilesage.learning.steps import steps_for
from tilesage.learning.traces import history_of
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network

LINES = 12
GAMES, POINTS = 0, 1  # of the tally


def make_step(options: argparse.Namespace) -> tuple[Any, Any]:
    """A step of all games in flight, compiled, and the network."""
    rules = game("2048")
    network = parse_network(options.network, fold=options.fold.bit_length() - 1, by_age=options.by_age)
    found = evaluator(rules, network)
    value, age_of, reads = found.value, found.age or found.offset, found.reads
    slide, spawn, start = rules.rules.slide, rules.rules.spawn, rules.rules.start
    locate, history = steps_for(rules, found).find_entries, history_of(options.decay)
    decay, value_now, by_age = options.decay, options.value == "now", options.by_age
    age_rate, age_share = float(AGE_RATE / AGE_SHARE), float(AGE_SHARE)

    @njit(error_model="numpy")
    def collect(sums: Any, hits: Any, touched: Any, place: Any, error: float) -> None:
        if hits[place] == 0:
            touched[1 + touched[0]] = place
            touched[0] += 1
        hits[place] += 1
        sums[place] += error

    @njit(error_model="numpy")
    def learn(weights: Any, room: Any, board: Any, aux: Any, value_then: float, error: float) -> None:
        sums, hits, touched, ages, entries = room
        if value_now:
            error += value_then - value(weights, board, aux)
        locate(weights, board, aux, entries)
        for i in range(reads):
            collect(sums, hits, touched, entries[i], error)
        if by_age:
            collect(sums, hits, ages, age_of(board, aux), error)

    @njit(error_model="numpy")
    def settle(weights: Any, memory: Any, room: Any) -> None:
        sums, hits, touched, ages, _ = room
        for i in range(1, touched[0] + 1):
            place = touched[i]
            count, total = hits[place], sums[place]
            rate = abs(memory[0, place]) / memory[1, place] if memory[1, place] > 0 else 1.0
            weights[place] += total / count / reads * (1.0 - (1.0 - rate) ** count)
            memory[0, place] += total
            memory[1, place] += abs(total)
            hits[place], sums[place] = 0, 0.0
        for i in range(1, ages[0] + 1):
            place = ages[i]
            count = hits[place]
            weights[place] += sums[place] / count * (1.0 - (1.0 - age_rate) ** count) * age_share
            hits[place], sums[place] = 0, 0.0
        touched[0] = ages[0] = 0

    @njit(error_model="numpy")
    def late_error(errors: Any, first: int, length: int) -> float:
        total, weight = 0.0, 1.0
        for i in range(first, length):
            total += weight * errors[i]
            weight *= decay
        return total

    @njit(error_model="numpy")
    def step(weights: Any, memory: Any, room: Any, flight: Any, traces: Any, tally: Any, rows: Any) -> None:
        boards, auxes, rngs, scores = flight
        waiting, waiting_auxes, values, errors, lengths = traces
        for g in range(boards.size):
            best, chosen, length = -np.inf, -1, lengths[g]
            for action in range(4):
                after, after_aux, reward = slide(rows, boards[g], auxes[g], action)
                if after != boards[g]:
                    worth = reward + value(weights, after, after_aux)
                    if worth > best:
                        best, chosen = worth, action
            if length > 0:
                errors[g, length - 1] = (best if chosen >= 0 else 0.0) - values[g, length - 1]
            ready = length if chosen < 0 else 1 if length == history else 0
            for i in range(ready):
                late = late_error(errors[g], i, length)
                learn(weights, room, waiting[g, i], waiting_auxes[g, i], values[g, i], late)
            for i in range(ready, length):
                waiting[g, i - ready], waiting_auxes[g, i - ready] = waiting[g, i], waiting_auxes[g, i]
                values[g, i - ready], errors[g, i - ready] = values[g, i], errors[g, i]
            lengths[g] = length - ready
            if chosen < 0:
                tally[GAMES] += 1
                tally[POINTS] += scores[g]
                boards[g], auxes[g], rngs[g] = start(rows, rngs[g])
                scores[g] = 0
                continue
            after, after_aux, reward = slide(rows, boards[g], auxes[g], chosen)
            i = lengths[g]
            waiting[g, i], waiting_auxes[g, i], values[g, i] = after, after_aux, best - reward
            lengths[g] += 1
            scores[g] += reward
            boards[g], auxes[g], _, rngs[g] = spawn(after, after_aux, rngs[g])
        settle(weights, memory, room)

    return step, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="4x6")
    parser.add_argument("--fold", type=int, default=4096)
    parser.add_argument("--by-age", action="store_true")
    parser.add_argument("--decay", type=float, default=0.0)
    parser.add_argument("--value", choices=["now", "then"], default="now")
    parser.add_argument("--flight", type=int, default=4096)
    parser.add_argument("--moves", type=int, default=30_000_000)
    options = parser.parse_args()
    step, found = make_step(options)
    rules, games, history = game("2048"), options.flight, history_of(options.decay)
    starts = [rules.rules.start(rules.rows, np.uint64(1_000_003 * i + 7)) for i in range(games)]
    flight = (*(np.array(words, np.uint64) for words in zip(*starts)), np.zeros(games, np.int64))
    traces = (
        *(np.zeros((games, history), kind) for kind in (np.uint64, np.uint64, np.float64, np.float64)),
        np.zeros(games, np.int64),
    )
    weights, memory = np.zeros(found.size, np.float32), np.zeros((2, found.size), np.float32)
    most = games * found.reads * history + 1
    room = (
        np.zeros(found.size, np.float32),
        np.zeros(found.size, np.int32),
        np.zeros(most, np.int64),
        np.zeros(games * history + 1, np.int64),
        np.zeros(found.reads, np.uint32),
    )
    tally, steps, begin = np.zeros(2), max(1, options.moves // games), time.perf_counter()
    for number in range(1, steps + 1):
        step(weights, memory, room, flight, traces, tally, rules.rows)
        if number % max(1, steps // LINES) == 0:
            mean = tally[POINTS] / max(1, tally[GAMES])
            print(
                f"{number * games / 1e6:6.0f} M moves {time.perf_counter() - begin:5.0f} s   "
                f"mean of {tally[GAMES]:5.0f} games {mean:9,.0f}   largest weight {np.abs(weights).max():.3g}",
                flush=True,
            )
            tally[:] = 0


if __name__ == "__main__":
    main()
