"""What several copies of one network learn together, counted in moves a copy: `python benchmarks/merging.py`.

All copies live in this process and take turns, so the figures do not depend on how many processors there are: it is
the learning of `train --on ray --nodes N` (rounds, their delay, how changes become one) without the network between.
Beside each N stands one learner alone with as many moves as all N together: what ideal scaling would give.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

from tilesage.evaluation.evaluate import evaluate
from tilesage.learning.config import TrainConfig
from tilesage.learning.copies import Changes, Composition, Copy, apply_changes
from tilesage.learning.cpu import CpuTrainer
from tilesage.networks.files import Model
from tilesage.search.agents import make_agent

NO_LIMIT = 1 << 60


def strength(config: TrainConfig, weights: Any, games: int) -> tuple[float, float]:
    model = Model(config.the_game, config.the_network, weights, config.of)
    statistics = evaluate(make_agent("greedy", model.game, model), games, seed=1, workers=2).statistics
    return statistics.mean, statistics.stderr


def learn(config: TrainConfig, copies: int, rounds: int, moves: int, games: int) -> list[dict[str, Any]]:
    """Rounds of `moves` moves a copy; the strength of the common copy after each doubling of rounds."""
    trainers = [CpuTrainer(replace(config, seed=config.seed + 1000 * k)) for k in range(copies)]
    by_sums, rate = config.rule == "tc", float(trainers[0].rule.rate)
    for trainer in trainers if not by_sums else ():
        trainer.count_visits()
    team = [Copy(trainer.state()["weights"], trainer.memory, by_sums) for trainer in trainers]
    weights, memory = team[0].weights.copy(), team[0].memory.copy()
    together, common = Composition(len(weights), by_sums), dict[int, Changes]()
    for number in range(rounds):
        sent = []
        for copy, trainer in zip(team, trainers):
            if number - 2 in common:
                copy.absorb(number - 2, common[number - 2])
            made = trainer.advance(moves, NO_LIMIT, rate).moves
            sent.append(copy.collect(number, float(made * trainer.network.reads)))
        common[number] = together.of(sent, rate, memory)
        common.pop(number - 2, None)
        apply_changes(weights, memory, common[number], by_sums)
        if (number + 1) & number == 0:
            mean, error = strength(config, weights, games)
            line = {
                "copies": copies,
                "moves_a_copy": (number + 1) * moves,
                "mean": round(mean),
                "stderr": round(error),
                "up_bytes_a_copy": sum(changes.bytes for changes in sent) // copies,
                "down_bytes": common[number].bytes,
            }
            print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="4x6")
    parser.add_argument("--rule", choices=["td", "tc"], default="tc")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--moves", type=int, default=2_500_000, help="moves a copy in a round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--games", type=int, default=300)
    given = parser.parse_args()
    config = TrainConfig(network=given.network, rule=given.rule, games=1, threads=1)
    for copies in given.copies:
        rounds = given.rounds * (max(given.copies) if copies == 1 else 1)
        learn(config, copies, rounds, given.moves, given.games)


if __name__ == "__main__":
    main()
