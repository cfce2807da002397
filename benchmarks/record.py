"""The record attempt of 2048 in one process: learn, solve endgames, play. A GPU with 128 GB; no network is written.

    python benchmarks/record.py --whole 740 --practice 170 --games 2048
    python benchmarks/record.py --whole 740 --practice 170 --part walls --games 2048

One network learns whole games, a second one the block or the walls (docs/search.md); --practice 0 does without it.
Several agents may follow each other: --agent A --agent B, with the same tables, those of the first. What the flags
mean in seconds, networks and results: docs/results/records.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tilesage import games
from tilesage.gpu.available import require_gpu
from tilesage.learning.config import TrainConfig
from tilesage.learning.progress import Progress
from tilesage.learning.runs import Run
from tilesage.search.game_2048.practice import PARTS
from tilesage.search.players import depth_of, tables_wanted
from tilesage.search.specs import parse_spec

WHOLE = TrainConfig(fold="16384", by_age=True, phases="tc:1:0.35,soften:1:0.2,soften:1:0.15,soften:1>0.05:0.3")
PRACTICE = TrainConfig(decay=0.5, phases="tc:1:0.4,soften:1:0.2,soften:1>0.05:0.4")
AGENT = "expectimax:deep,endgames=1024,wide=1024"
SECONDS_A_LINE = 30.0
SCORE, MOVES, LARGEST = 0, 1, 2


def learn(config: TrainConfig) -> tuple[Any, Any]:
    """The network as the kernels know it, and its weights, which stay on the GPU; all else goes back."""
    from tilesage.gpu.lesson import Lesson

    run, said = Run.begin(config, None), 0.0

    def tell(line: Mapping[str, Any], at: Progress) -> None:
        nonlocal said
        if line and at.seconds > said + SECONDS_A_LINE:
            said = at.seconds
            print(
                f"{config.game} {at.seconds:.0f} s, {at.moves / 1e9:.1f} G moves, mean {line['mean']:,.0f}",
                flush=True,
            )

    run.train(tell)
    trainer: Any = run.trainer
    weights = trainer.learner.averaged_weights(trainer.part)
    return Lesson(trainer.game, trainer.evaluator), weights


def play(player: Any, number: int, seed: int, what: str) -> Any:
    """[games, 3] score, moves, largest tile of every game."""
    player.play(1, seed, watch=lambda results: False)  # compiles
    begin = time.perf_counter()
    results = player.play(number, seed)
    seconds = time.perf_counter() - begin
    scores, largest = results[:, SCORE], results[:, LARGEST]
    reached = ", ".join(f"{2**tile} {(largest >= tile).mean():.1%}" for tile in (14, 15, 16))
    print(
        f"{what}: {scores.mean():,.0f} ± {scores.std() / np.sqrt(number):,.0f} ({number:,} games, {reached}), "
        f"{results[:, MOVES].sum() / seconds:,.0f} moves/s",
        flush=True,
    )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="8x7", help="of both")
    parser.add_argument("--whole", type=float, default=740.0, help="seconds of learning whole games")
    parser.add_argument("--practice", type=float, default=170.0, help="seconds of practising a part")
    parser.add_argument("--part", choices=[part.name for part in PARTS], default="block")
    parser.add_argument("--agent", action="append", help=f"without block=… or walls=…; by default {AGENT}")
    parser.add_argument("--games", type=int, default=2048)
    parser.add_argument("--flight", type=int, default=0)
    parser.add_argument("--seed", type=int, default=12345, help="of the games that are counted")
    parser.add_argument("--out", type=Path, help="a folder for the score, moves and largest tile of every game")
    chosen = parser.parse_args()
    require_gpu()
    from tilesage.gpu.endgames import solve_on_gpu
    from tilesage.gpu.play import GpuPlayer
    from tilesage.gpu.search import GpuSearcher, Practised, Search

    both: dict[str, Any] = {"network": chosen.network, "device": "cuda", "flight": chosen.flight}
    part = next(part for part in PARTS if part.name == chosen.part)
    practised = None
    if chosen.practice:
        config = replace(PRACTICE, game=f"2048-{part.name}", seconds=chosen.practice, **both)
        practised = Practised(part, *learn(config))
    whole = learn(replace(WHOLE, seconds=chosen.whole, **both))
    play(GpuPlayer(*whole), 32 * chosen.games, chosen.seed, "greedy")
    handed = f",{part.name}=learnt" if practised else ""
    specs = [parse_spec(agent + handed) for agent in chosen.agent or [AGENT]]
    game = games.get("2048")
    tables, begin = tables_wanted(specs[0], game), time.perf_counter()
    solved = solve_on_gpu(game, tables) if tables else None
    print(f"{len(tables)} tables solved in {time.perf_counter() - begin:.0f} s", flush=True)
    for spec in specs:
        player = GpuSearcher(whole[0], Search(*depth_of(spec)), whole[1], None, solved, practised)
        results = play(player, chosen.games, chosen.seed, spec.text)
        if chosen.out:
            np.save(chosen.out / f"{spec.text.replace('/', '-')}.npy", results)
        del player  # its memory goes back before the next one takes its own


if __name__ == "__main__":
    main()
