"""What Ray costs: `python benchmarks/scale.py evaluate` and `python benchmarks/scale.py train`.

Ratios count, not seconds: threads of one process and workers on Ray take turns in one run. The processor time of the
driver a task, and the bytes a merge, hardly depend on how busy the machine is; docs/scale.md computes from them.
"""

from __future__ import annotations

import argparse
import time

from tilesage import games
from tilesage.cluster.connection import cluster
from tilesage.cluster.evaluate import OnRay
from tilesage.cluster.training import RayTrainer
from tilesage.evaluation.evaluate import evaluate
from tilesage.learning.config import TrainConfig
from tilesage.search.agents import make_agent

NO_LIMIT = 1 << 60


def evaluation(workers: list[int], agent: str, number: int) -> None:
    player = make_agent(agent, games.get("2048"))
    evaluate(player, 2)
    with cluster(None, max(workers)) as ray:
        OnRay(ray, player, 8 * max(workers), 1, None, None, None).run()
        for count in workers:
            here = evaluate(player, number, 1, count)
            job = OnRay(ray, player, number, 1, count, None, None)
            begin = time.process_time()
            there = job.run()
            cost = 1000 * (time.process_time() - begin) / job.tasks
            assert there.statistics == here.statistics
            speeds = [result.statistics.slides / result.seconds for result in (here, there)]
            print(
                f"{count} threads {speeds[0]:,.0f} moves/s, {count} workers on Ray {speeds[1]:,.0f} "
                f"({speeds[1] / speeds[0]:.2f}); {job.tasks} tasks, {cost:.1f} ms of the driver each",
                flush=True,
            )


def training(nodes: list[int], network: str, seconds: float, merge_seconds: float) -> None:
    config = TrainConfig(network=network, rule="tc", seconds=seconds, threads=1)
    for count in nodes:
        size = config.memory_needed()
        with cluster(None, count, size) as ray:
            trainer = RayTrainer(ray, config, count, merge_seconds)
            moves = 0
            while trainer.traffic.seconds < seconds - 0.1:
                moves += trainer.advance(NO_LIMIT, NO_LIMIT, 1.0).moves
            figures, rounds = trainer.traffic, trainer.traffic.rounds
            trainer.close()
        each = 1 / (rounds * count * 1e6)
        print(
            f"{count} nodes, {network}: {moves / figures.seconds / 1e6:.2f} M moves/s, {rounds} rounds; a node and "
            f"round: {moves * each:.2f} M moves, up {figures.up * each:.1f} MB, down {figures.down * each:.1f} MB; "
            f"averaging {figures.merging / rounds:.2f} s a round",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["evaluate", "train"])
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--agent", default="rollouts:10")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--network", default="8x4")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--merge-seconds", type=float, default=5)
    given = parser.parse_args()
    if given.what == "evaluate":
        evaluation(given.counts, given.agent, given.games)
    else:
        training(given.counts, given.network, given.seconds, given.merge_seconds)


if __name__ == "__main__":
    main()
