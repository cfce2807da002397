"""What does a search lose on the best move? Many players against one that looks much further, at positions of games.

    python benchmarks/regret.py 2048 --positions 2000
    python benchmarks/regret.py runs/mine --agents greedy expectimax:2 expectimax:3 expectimax:deep

The regret of a player at a position is how many points the move of the far-looking player is better than its own, by
the values of the far-looking player. That is a sharper measure than whole games: a mean over some thousand positions
tells searches apart that differ by a few points a move, where games would have to be played for days.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from tilesage.networks.files import load_model
from tilesage.search.agents import Agent, make_agent
from tilesage.search.kinds import NO_MOVE

NARROW = "expectimax:12,width=1,prune="
RARE = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
AGENTS = ["greedy", "expectimax:2", "expectimax:3", *(f"{NARROW}{p}" for p in RARE)]


def sampled(player: Agent, number: int, least: int, chance: float, seed: int) -> list[Any]:
    """Positions of the player's games, from a largest tile on, with at least two legal moves."""
    rules, memory, wanted = player.game, player.new_memory(), np.random.default_rng(seed)
    found: list[Any] = []
    while len(found) < number:
        state = rules.new(int(wanted.integers(1 << 62)))
        while (action := player.choose(state, memory)) != NO_MOVE:
            if wanted.random() < chance and state.largest >= least and len(state.legal) > 1:
                found.append(state)
            state = state.play(action)
    return found[:number]


def values_of(player: Agent, states: list[Any]) -> tuple[Any, float]:
    """[positions, moves] what the player expects, nan where a move is illegal; and seconds a position."""
    memory = player.new_memory()
    player.values(states[0], memory)  # compiles
    begin = time.perf_counter()
    found = np.array([player.values(state, memory) for state in states], float)
    return found, (time.perf_counter() - begin) / len(states)


def main() -> None:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--agents", nargs="+", default=AGENTS)
    parser.add_argument("--truth", default=f"{NARROW}0.00003,table=20")
    parser.add_argument("--by", default="expectimax:8,width=1,prune=0.03", help="who plays the games")
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--from-tile", type=int, default=8192)
    parser.add_argument("--chance", type=float, default=0.004, help="of a position to be taken")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    model = load_model(options.model)
    players = [make_agent(spec, model.game, model) for spec in (options.by, options.truth, *options.agents)]
    states = sampled(players[0], options.positions, options.from_tile, options.chance, options.seed)
    truth, _ = values_of(players[1], states)
    best, rows = np.nanmax(truth, 1), np.arange(len(states))
    print(f"{len(states)} positions; the best move by {options.truth}")
    print(f"{'player':<40}{'regret':>16}{'other move':>12}{'ms':>9}")
    for player in players[2:]:
        found, seconds = values_of(player, states)
        lost = best - truth[rows, np.nanargmax(found, 1)]
        error = lost.std() / len(lost) ** 0.5
        regret = f"{lost.mean():.1f} ± {error:.1f}"
        print(f"{player.spec:<40}{regret:>16}{(lost > 0).mean():>12.1%}{1000 * seconds:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
