"""How fast the GPU learns and plays, and whether a seed gives the same weights twice.

    python benchmarks/gpu.py [--seconds 3] [--networks 4x6,8x6] [--games 16384,32768,65536] [--quick]

The digest of the weights after 200 steps of 8,192 games is the same on every GPU. Every figure is taken after a
warm-up of the same length, so that games of all ages are in flight.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from tilesage import games
from tilesage.gpu.available import gpu_name, require_gpu
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network
from tilesage.search.players import DEEP_LAYERS, DEEP_PRUNE, DEEP_WIDTH

CHUNK = 128


def lesson_of(game: str, network: str, by_hint: bool = False, stages: tuple[int, ...] = (), **options: Any) -> Any:
    from tilesage.gpu.lesson import Lesson

    rules = games.get(game)
    return Lesson(rules, evaluator(rules, parse_network(network, stages, by_hint)), **options)


def speed(learner: Any, seconds: float) -> float:
    """Moves a second."""
    learner.run(CHUNK)
    begin, moves = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        moves += learner.run(CHUNK)
    return moves / (time.perf_counter() - begin)


def fingerprint(lesson: Any, rate: float) -> int:
    """A number that two equal sets of weights share."""
    from tilesage.gpu.learner import Learner

    learner = Learner(lesson, 8192, seed=7)
    learner.set_rate(rate)
    learner.run(200)
    return int(learner.host_weights().view(np.uint32).astype(np.uint64).sum())


def train_speeds(game: str, network: str, flights: list[int], seconds: float, **options: Any) -> Any:
    from tilesage.gpu.learner import Learner

    lesson = lesson_of(game, network, **options)
    rate = 1.0 if lesson.coherence else 0.1
    digests = {fingerprint(lesson, rate) for _ in range(2)}
    label = f"{game} {network} {'TC' if lesson.coherence else 'TD'}" + " states" * lesson.of_states
    learner = None
    for flight in flights:
        learner = None  # its memory goes back before the next one takes its own
        learner = Learner(lesson, flight, seed=1)
        learner.set_rate(rate)
        speed(learner, seconds)
        found = learner.take_stats()
        now = speed(learner, seconds)
        mean = found["score"] / max(1, found["games"])
        print(
            f"{label:24s} {flight:6d} games in flight {now / 1e6:8.1f} M moves/s   mean so far {mean:8.0f}   "
            f"{'digest' if len(digests) == 1 else 'WEIGHTS DIFFER'} {' '.join(map(str, digests))}",
            flush=True,
        )
    return learner


def play_speed(learner: Any, number: int, layers: int = 1, width: int = 4, prune: float = 0.0) -> None:
    from tilesage.gpu.play import GpuPlayer
    from tilesage.gpu.search import GpuSearcher, Search

    player = GpuPlayer(learner.lesson, learner.weights)
    if layers > 1:
        player = GpuSearcher(learner.lesson, Search(layers, width, prune), learner.weights)
    player.play(64, seed=1, watch=lambda results: False)
    begin = time.perf_counter()
    results = player.play(number, seed=1)
    seconds = time.perf_counter() - begin
    scores, moves = results[:, 0], results[:, 1]
    error = scores.std() / len(scores) ** 0.5
    print(
        f"{learner.lesson.game.name} {layers} layers, width {width}, prune {prune}: {number} games, "
        f"{moves.sum() / seconds / 1e6:.1f} M moves/s, mean {scores.mean():.0f} ± {error:.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--networks", default="4x6,8x6")
    parser.add_argument("--games", default="16384,32768,65536")
    parser.add_argument("--quick", action="store_true", help="only learning and greedy play of 2048")
    arguments = parser.parse_args()
    require_gpu()
    print(f"on {gpu_name()}")
    flights = [int(n) for n in arguments.games.split(",")]
    for network in arguments.networks.split(","):
        train_speeds("2048", network, flights, arguments.seconds)
        learner = train_speeds("2048", network, flights, arguments.seconds, coherence=True)
        play_speed(learner, 65536)
        if not arguments.quick:
            play_speed(learner, 2048, 2)
            play_speed(learner, 1024, DEEP_LAYERS, DEEP_WIDTH, DEEP_PRUNE)
        del learner
    if arguments.quick:
        return
    train_speeds("2048", "4x6", [32768], arguments.seconds, of_states=True)
    learner = train_speeds("threes", "4x6", [32768], arguments.seconds, coherence=True)
    play_speed(learner, 65536)


if __name__ == "__main__":
    main()
