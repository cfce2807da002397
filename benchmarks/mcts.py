"""Monte Carlo tree search: how fast, how strong, and beside expectimax at equal time.

python benchmarks/mcts.py speed                         # UCT iterations a second from a mid-game board, one core
python benchmarks/mcts.py d1 --games 100 20             # 2048 at 400 and at 4,000 iterations a move
python benchmarks/mcts.py equal MODEL --seconds 0.002   # network leaves and expectimax at equal time a move
python benchmarks/mcts.py limits MODEL                  # are time limits kept?
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tilesage import games
from tilesage.evaluation.evaluate import Evaluation, evaluate
from tilesage.networks.files import load_model
from tilesage.search.agents import make_agent
from tilesage.search.uct import ROOT

MID_GAME = "..../.1../1235/9764"  # a well-kept board with a 512, seven empty cells, about 5,500 points
D1 = "D1's report: 1024 100 %, 2048 93 %, mean 10,086.7, 767 moves (400 iterations and 1 s a move, a laptop)"


def speed(rounds: int, iterations: int) -> None:
    """Iterations a second of D1's UCT, in processor time."""
    game = games.get("2048")
    state, agent = game.parse(MID_GAME), make_agent(f"mcts:{iterations}", game)
    memory = agent.new_memory()
    agent.choose(state, memory)
    rates = []
    for _ in range(rounds):
        begin = time.process_time()
        agent.choose(state, memory)
        rates.append(memory.tree.visits[ROOT] / (time.process_time() - begin))
    mean = memory.tree.totals[ROOT] / memory.tree.visits[ROOT]
    print(f"{np.median(rates):,.0f} iterations/s on one core (median of {rounds}), mean score gained {mean:,.0f}")


def row(name: str, result: Evaluation, tiles: tuple[int, ...]) -> str:
    found = result.statistics
    reach = " ".join(f"{tile} {100 * found.reach(tile):5.1f} %" for tile in tiles)
    rate = found.slides / result.seconds
    return (
        f"{name:34} {found.games:4} games  mean {found.mean:9,.0f} ± {found.stderr:7,.0f}  "
        f"{found.slides / found.games:7,.0f} moves  {reach}  {rate:9,.0f} moves/s"
    )


def d1(counts: list[int], workers: int) -> None:
    game = games.get("2048")
    for iterations, count in zip((400, 4000), counts, strict=False):
        result = evaluate(make_agent(f"mcts:{iterations}", game), count, workers=workers)
        print(row(f"mcts:{iterations}", result, (1024, 2048, 4096, 8192)), flush=True)
    print(D1)


def equal(source: str, seconds: float, count: int, workers: int) -> None:
    """Both searches on the same network with the same time for every move."""
    model = load_model(source)
    budget = f"{1000 * seconds:g}ms"
    tiles = (8192, 16384, 32768) if model.game.name == "2048" else (1536, 3072, 6144)
    for spec in (f"expectimax:{budget}", f"mcts:{budget},leaf=value"):
        result = evaluate(make_agent(spec, model.game, model), count, workers=workers)
        print(row(f"{model.game.name} {spec}", result, tiles), flush=True)


def limits(source: str) -> None:
    """How long a move really takes, in wall time on this machine."""
    model = load_model(source)
    state = model.game.parse(MID_GAME) if model.game.name == "2048" else model.game.new(seed=1)
    for spec in ("expectimax:50ms", "expectimax:200ms", "mcts:50ms", "mcts:200ms", "mcts:200ms,leaf=value"):
        agent = make_agent(spec, model.game, model)
        memory = agent.new_memory()
        agent.choose(state, memory)
        times = []
        for _ in range(10):
            begin = time.perf_counter()
            agent.choose(state, memory)
            times.append(1000 * (time.perf_counter() - begin))
        print(f"{spec:24} median {np.median(times):7.1f} ms, longest {max(times):7.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "d1", "equal", "limits"])
    parser.add_argument("model", nargs="?", help="a model file, a run folder, or the name of a built-in model")
    parser.add_argument("--games", type=int, nargs="+", default=[100, 20])
    parser.add_argument("--seconds", type=float, default=0.002, help="a move, for equal")
    parser.add_argument("--iterations", type=int, default=20000, help="for speed")
    parser.add_argument("--rounds", type=int, default=9, help="for speed")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.rounds, options.iterations)
    elif options.what == "d1":
        d1(options.games, options.workers)
    elif options.what == "equal":
        equal(options.model, options.seconds, options.games[0], options.workers)
    else:
        limits(options.model)


if __name__ == "__main__":
    main()
