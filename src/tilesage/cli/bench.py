"""`tilesage bench`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from tilesage.cli.flags import JsonFile, Limits, say, write_json
from tilesage.core.processors import processors


@dataclass
class Command:
    """How fast this machine plays and learns: random games, greedy games of the built-in player, training.

    Nothing is asserted: machines differ, and so does what else they do. `make bench-peers` compares with others.

    examples:
      tilesage bench
      tilesage bench --seconds 10 --threads 2 --json bench.json
    """

    # How long each figure is measured.
    seconds: Annotated[float, Limits(0, 3600, above=True)] = 3.0
    # How many threads play and learn in the second column.
    threads: Annotated[int, Limits(1, 1024)] = processors()
    json: JsonFile = None


def run(command: Command) -> int:
    """Measure the speeds and print them."""
    from tilesage import games

    work: dict[str, Callable[[int, float], float]] = {
        **{f"random play, {name}": partial(_playing, "random", name) for name in games.names()},
        "greedy play, built-in 2048 player": partial(_playing, "greedy", games.DEFAULT_GAME),
        "training, 2048, 4x6, TD(0)": partial(_training, "td", 0.0),
        "training, 2048, 4x6, TC(0.5)": partial(_training, "tc", 0.5),
    }
    figures: dict[str, Any] = {}
    for name, measure in work.items():
        one = measure(1, command.seconds)
        many = measure(command.threads, command.seconds) if command.threads > 1 else None
        figures[name] = {"moves_per_second": one, f"on_{command.threads}_threads": many}
        more = f"{many / 1e6:9.2f} M on {command.threads} threads" if many else ""
        say(f"{name:30s}{one / 1e6:9.2f} M moves/s{more}", to_stderr=command.json == "-")
    write_json({"seconds": command.seconds, "threads": command.threads, "figures": figures}, command.json)
    return 0


def _playing(spec: str, game: str, threads: int, seconds: float) -> float:
    """Moves a second, from as many games as fit in the time."""
    from tilesage.cli.players import find_agent
    from tilesage.evaluation.evaluate import evaluate

    agent, games = find_agent(spec, None, game), 8 * threads
    while True:
        result = evaluate(agent, games, workers=threads)
        if not result.complete:  # Ctrl-C
            raise KeyboardInterrupt
        if result.seconds >= seconds / 2:
            return result.statistics.slides / result.seconds
        games *= 4 if result.seconds < seconds / 8 else 2


def _training(rule: str, decay: float, threads: int, seconds: float) -> float:
    """Moves a second of a fresh network that has learnt for as long before."""
    from tilesage.learning.config import TrainConfig
    from tilesage.learning.cpu import CpuTrainer

    trainer = CpuTrainer(TrainConfig(rule=rule, decay=decay, threads=threads))
    trainer.warm_up()
    rate, moves = trainer.config.phase_list[0].rate_at(0), 0
    for _ in range(2):
        begin, moves = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            moves += trainer.advance(200_000, 1 << 40, rate).moves
        speed = moves / (time.perf_counter() - begin)
    trainer.close()
    return speed
