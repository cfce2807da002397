"""How fast this machine plays: random games and environment steps of one core, beside pgx and jumanji if installed.

    python benchmarks/speed.py [--seconds 1] [--only play python env peers] [--json FILE]

Every figure is per second of processor time, so other programs on the machine disturb it little and a peer that uses
several cores gets no credit for them; the best of three rounds counts. pgx and jumanji take part where installed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from tilesage import games
from tilesage.core.random import below, draw, seed_of
from tilesage.evaluation.evaluate import LocalWorker
from tilesage.games import Game
from tilesage.search.agents import agent

ENVS = 4096
ROUNDS = 3
FOUR = np.uint64(4)
TARGETS = {"random play, 2048": 25e6, "a player in Python, 2048": 40e3, "environment, 2048": 10e6}
PARTS = ["play", "python", "env", "peers"]
IDS = {"2048": "tilesage/2048-v0", "threes": "tilesage/Threes-v0", "threes-phone": "tilesage/ThreesPhone-v0"}


def rate(work: Callable[[], int], seconds: float) -> float:
    """Things done per second of processor time: the best of a few rounds."""
    work()
    best = 0.0
    for _ in range(ROUNDS):
        done, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < seconds / ROUNDS:
            done += work()
        best = max(best, done / spent)
    return best


# --- ours ---------------------------------------------------------------------------------------------------------


def random_player(game: Game) -> Callable[..., Any]:
    """A compiled loop of random games: moves until one is legal, all four illegal ends the game."""
    start, slide, spawn = game.rules.start, game.rules.slide, game.rules.spawn

    @numba.njit(nogil=True)
    def play(rows, moves, rng):  # type: ignore[no-untyped-def]
        board, aux, rng = start(rows, rng)
        finished, tried, left = 0, 0, moves
        while left > 0:
            bits, rng = draw(rng)
            action = np.int64(below(bits, FOUR))
            after, after_aux, _ = slide(rows, board, aux, action)
            if after != board:
                board, aux, _, rng = spawn(after, after_aux, rng)
                tried, left = 0, left - 1
                continue
            tried |= 1 << action
            if tried == 15:
                board, aux, rng = start(rows, rng)
                finished, tried = finished + 1, 0
        return finished, rng

    return play


def bench_play(name: str, seconds: float) -> float:
    game, moves = games.get(name), 200_000
    play, rng = random_player(game), [np.uint64(seed_of(np.uint64(1), np.uint64(0)))]

    def work() -> int:
        _, rng[0] = play(game.rows, moves, np.uint64(rng[0]))
        return moves

    return rate(work, seconds)


def bench_python_player(name: str, seconds: float) -> float:
    """Games of somebody's own player in plain Python that does next to nothing: what the loop around it costs."""
    worker = LocalWorker(agent(lambda state: state.legal[0], name), keep_actions=False)
    return rate(lambda: int(worker.play(1, 0, 20).moves.sum()), seconds)


@numba.njit
def choose(masks, noise, actions):  # type: ignore[no-untyped-def]
    """A random legal action per environment: the n-th legal one."""
    for i in range(len(actions)):
        legal = masks[i, 0] + masks[i, 1] + masks[i, 2] + masks[i, 3]
        n = (noise[i] * legal) >> 8
        actions[i] = 0
        for action in range(4):
            if masks[i, action]:
                if n == 0:
                    actions[i] = action
                    break
                n -= 1


def bench_env(name: str, seconds: float) -> float:
    """Whole steps of the Gymnasium vector environment, new arrays, infos and the choice of the actions included."""
    import gymnasium

    import tilesage.environments  # noqa: F401

    envs = gymnasium.make_vec(IDS[name], num_envs=ENVS, vectorization_mode="vector_entry_point")
    _, infos = envs.reset(seed=1)
    noise = np.random.default_rng(1).integers(0, 256, (64, ENVS))
    actions, masks, count = np.zeros(ENVS, np.int64), [infos["action_mask"]], [0]

    def work() -> int:
        choose(masks[0], noise[count[0] % len(noise)], actions)
        masks[0] = envs.step(actions)[4]["action_mask"]
        count[0] += 1
        return ENVS

    return rate(work, seconds)


# --- peers --------------------------------------------------------------------------------------------------------


def bench_pgx(seconds: float) -> float:
    """pgx's 2048: vmap, jit, auto-reset, random legal actions."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make("2048")

    @jax.jit
    def step(state, key):  # type: ignore[no-untyped-def]
        key, chosen, chance = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(chosen, logits, axis=1)
        return jax.vmap(auto_reset(env.step, env.init))(state, action, jax.random.split(chance, ENVS)), key

    keys = jax.random.split(jax.random.key(0), ENVS)
    return _rate_of_jax(step, jax.jit(jax.vmap(env.init))(keys), jax.random.key(1), seconds)


def bench_jumanji(seconds: float) -> float:
    """jumanji's Game2048: vmap, jit, auto-reset, random legal actions."""
    import jax
    import jax.numpy as jnp
    import jumanji
    from jumanji.wrappers import VmapAutoResetWrapper

    env = VmapAutoResetWrapper(jumanji.make("Game2048-v1"))

    @jax.jit
    def step(state, key):  # type: ignore[no-untyped-def]
        key, chosen = jax.random.split(key)
        logits = jnp.where(state.action_mask, 0.0, -jnp.inf)
        return env.step(state, jax.random.categorical(chosen, logits, axis=1))[0], key

    state, _ = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), ENVS))
    return _rate_of_jax(step, state, jax.random.key(1), seconds)


def _rate_of_jax(step: Callable[..., Any], state: Any, key: Any, seconds: float) -> float:
    import jax

    now = [(state, key)]

    def work() -> int:
        now[0] = step(*now[0])
        jax.block_until_ready(now[0])
        return ENVS

    return rate(work, seconds)


PEERS = {"environment, 2048, pgx": ("pgx", bench_pgx), "environment, 2048, jumanji": ("jumanji", bench_jumanji)}


# --- the table ----------------------------------------------------------------------------------------------------


def measure(seconds: float, only: list[str], console: Console) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in games.names():
        if "play" in only:
            found[f"random play, {name}"] = bench_play(name, seconds)
    for name in games.names():
        if "python" in only:
            found[f"a player in Python, {name}"] = bench_python_player(name, seconds)
    for name in games.names():
        if "env" in only:
            found[f"environment, {name}"] = bench_env(name, seconds)
    for title, (package, bench) in PEERS.items():
        if "peers" in only:
            try:
                found[title] = bench(seconds)
            except ImportError:
                console.print(f"[dim]{package} is not installed: left out[/dim]")
    return found


def table(found: dict[str, float]) -> Table:
    shown = Table(title=f"per second of one core · environments: {ENVS:,} at once", title_justify="left")
    for column in ("what", "M/s", "target", "ours is × as fast"):
        shown.add_column(column, justify="left" if column == "what" else "right")
    ours = found.get("environment, 2048")
    for what, speed in found.items():
        target = TARGETS.get(what)
        times = f"{ours / speed:.1f}" if what in PEERS and ours else ""
        shown.add_row(what, f"{speed / 1e6:.2f}", f"{target / 1e6:g}" if target else "", times)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast this machine plays random games and steps environments.")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time per figure")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", help="also write the figures to this file")
    flags = parser.parse_args()
    console = Console()
    found = measure(flags.seconds, flags.only, console)
    console.print(table(found))
    if flags.json:
        Path(flags.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
