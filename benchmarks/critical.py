"""How often does a player come from some large tiles to the one they are to make? Many players, the same chance.

    python benchmarks/critical.py "16384 8192 4096 0 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0" --tile 32768 --games 300 \\
        --agents expectimax:deep expectimax:deep,walls=2048-walls

Two small tiles are added to the board, and the player goes on until it has the tile or cannot move. Where strong
games end, a few hundred such games tell players apart for which whole games would have to be played for hours. At the
end of a line is where the other games ended: how many for each 512 of the sum of tiles.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tilesage import games
from tilesage.core.compiler import compiled
from tilesage.core.random import seed_of
from tilesage.networks.files import load_model
from tilesage.search.agents import Agent, make_agent

WIDTH = 512  # of the sums that are counted together
REACHED, MOVES, SUM = 0, 1, 2


def make_play(agent: Agent) -> Callable[..., Any]:
    """`play(memory, rows, board, rng, goal, values)`: was the tile reached, in how many moves, the sum of tiles."""
    rules, decide = agent.game.rules, agent.decide
    deal, slide, spawn, largest, total = rules.deal, rules.slide, rules.spawn, rules.largest, rules.sum_of_tiles

    @compiled(title="games from here")
    def play(memory: Any, rows: Any, board: np.uint64, rng: np.uint64, goal: int, values: Any) -> Any:
        board, aux, rng = deal(board, np.uint64(0), rng)
        board, aux, rng = deal(board, aux, rng)
        moves, action = 0, 0
        while largest(board, aux) < goal and action >= 0:
            action, rng = decide(memory, board, aux, 0, rng, values)
            if action >= 0:
                after, after_aux, _ = slide(rows, board, aux, action)
                board, aux, _, rng = spawn(after, after_aux, rng)
                moves += 1
        return largest(board, aux) >= goal, moves, np.int64(total(board, aux))

    return play


def played(agent: Agent, board: np.uint64, goal: int, number: int, seed: int, workers: int) -> Any:
    """[games, 3] what `play` says of each."""
    play = make_play(agent)
    rngs = [np.uint64(seed_of(np.uint64(seed), np.uint64(i))) for i in range(number)]

    def some(worker: int) -> list[Any]:
        memory = agent.new_memory()
        return [play(memory, agent.game.rows, board, rng, goal, np.zeros(4)) for rng in rngs[worker::workers]]

    with ThreadPoolExecutor(workers) as pool:
        return np.array([game for games in pool.map(some, range(workers)) for game in games])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("board", help="sixteen numbers, row by row; everything but large tiles is best left out")
    parser.add_argument("--tile", type=int, default=32768)
    parser.add_argument("--model", help="the player of whole games, by default the built-in one")
    parser.add_argument("--agents", nargs="+", default=["expectimax:deep"])
    parser.add_argument("--games", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    game = games.get("2048")
    if chosen.tile not in game.tiles[1:]:
        parser.error(f"{chosen.tile} is no tile of 2048")
    try:
        board, model = game.parse(chosen.board).board, load_model(chosen.model)
        agents = [make_agent(spec, game, model) for spec in chosen.agents]
    except games.InputError as mistake:
        parser.error(str(mistake))
    for agent in agents:
        played(agent, board, 1, 1, chosen.seed, 1)  # compiles, solves
        begin = time.perf_counter()
        results = played(agent, board, game.tiles.index(chosen.tile), chosen.games, chosen.seed, chosen.workers)
        seconds = time.perf_counter() - begin
        share = results[:, REACHED].mean()
        error = np.sqrt(share * (1 - share) / chosen.games)
        ends, counts = np.unique(results[results[:, REACHED] == 0, SUM] // WIDTH * WIDTH, return_counts=True)
        print(
            f"{agent.spec}: {chosen.tile} in {share:.1%} ± {error:.1%} of {chosen.games} games, "
            f"{results[:, MOVES].sum() / seconds:,.0f} moves/s; "
            + ", ".join(f"{end} {count}" for end, count in zip(ends, counts)),
            flush=True,
        )


if __name__ == "__main__":
    main()
