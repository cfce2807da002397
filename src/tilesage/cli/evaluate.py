"""`tilesage evaluate`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from tilesage.cli.flags import JsonFile, Limits, MaybePath, MaybeWhole, RayAddress, program, say, write_json
from tilesage.cli.players import WhoPlays
from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.records.statistics import TABLES

if TYPE_CHECKING:
    from tilesage.evaluation.evaluate import Evaluation
    from tilesage.records.record import Record
    from tilesage.search.agents import Agent


@dataclass
class Command(WhoPlays):
    """Play many games with an agent and print how good it is.

    examples:
      tilesage evaluate --agent random --games 1000
      tilesage evaluate runs/first --agent best --games 100
      tilesage evaluate --agent my_module:my_agent --games 100
      tilesage evaluate runs/first --games 1000 --save records.txt --json result.json
    """

    # Who plays: greedy, best, expectimax:3, mcts:400, …, or my_module:my_agent; tilesage agents lists them.
    agent: str = "greedy"
    # How many games.
    games: Annotated[int, Limits(1, 10**12)] = 1000
    # The seed: the same games for the same seed, whatever the number of workers.
    seed: int = 1
    # End a game as soon as it has this tile, such as 2048; by default games go on until no move is left.
    until: MaybeWhole = None
    # How many threads play (processes where the player is plain Python); by default one a processor.
    workers: Annotated[MaybeWhole, Limits(1)] = None
    # Where: on this machine, or on a Ray cluster (pip install '.[scale]').
    on: Literal["local", "ray"] = "local"
    ray_address: RayAddress = None
    # cuda: thousands of games at once on an NVIDIA GPU, for greedy, expectimax:3, expectimax:deep.
    device: Literal["cpu", "cuda"] = "cpu"
    # Write every game to this file (- for standard output), a line each, for the referee and for replay.
    save: MaybePath = None
    # How the table looks.
    style: Literal["ours", "course", "demo"] = "ours"
    # No progress display.
    quiet: bool = False
    json: JsonFile = None


def run(command: Command) -> int:
    """Play the games, show the figures, write what was asked for; those of games before a player failed, too."""
    from tilesage.records.record import saved
    from tilesage.search.python_players import AgentError

    if str(command.save) == command.json == "-":
        raise InputError("--save - and --json - would be mixed: give one of them a file")
    agent, failure = command.find_agent(), None
    with saved(command.save) if command.save else contextlib.nullcontext() as file:
        try:
            result = play(agent, command, file.keep if file else None)
        except AgentError as error:
            if error.evaluation is None:
                raise
            result, failure = error.evaluation, error
        report(result, command)  # before a full disk has its say
    if wrong := failure or (file.failure if file else None):
        raise wrong
    return 0 if result.complete else 130


def play(agent: Agent, command: Command, keep: Callable[[Record], None] | None) -> Evaluation:
    """Play the games here, on a cluster or on a GPU, with the figures on the screen."""
    from tilesage.app.progress import EvaluationView
    from tilesage.evaluation.evaluate import evaluate

    on_ray, on_gpu = command.on == "ray", command.device == "cuda"
    if on_gpu and (keep or on_ray or command.until):
        raise InputError("--save, --until and --on ray go with --device cpu")
    if on_ray and command.until:
        raise InputError("--until goes with games on this machine: leave out --on ray")
    if command.ray_address and not on_ray:
        raise InputError("--ray-address goes with --on ray")
    work: Callable[..., Evaluation]
    if on_gpu:
        from tilesage.evaluation.on_gpu import evaluate_on_gpu as work
    elif on_ray:
        from tilesage.cluster.evaluate import evaluate_on_ray

        work = partial(evaluate_on_ray, address=command.ray_address, workers=command.workers, keep=keep)
    else:
        work = partial(evaluate, workers=command.workers or processors(), keep=keep, until=command.until)
    goal = agent.game.tiles[agent.game.goal]
    with EvaluationView(command.games, goal, command.quiet or command.json == "-") as view:
        return work(agent, command.games, command.seed, progress=view.update)


def report(result: Evaluation, command: Command) -> None:
    """Print the table, or write the JSON."""
    if command.json == "-":
        write_json(result.summary(), command.json)
        return
    statistics, aside = result.statistics, str(command.save) == "-"
    statistics.placements, statistics.ms = result.placements, max(1, round(1000 * result.seconds))
    statistics.timed_apart = False  # one compiled loop slides and places
    say(f"{result.heading}\n{TABLES[command.style](statistics)}", to_stderr=aside)
    if command.style == "ours":
        speed = statistics.slides / result.seconds
        ended = f", games ended at {result.until}" if result.until else ""
        say(f"  {speed:,.0f} moves/s on {result.workers} {result.worker_kind}{ended}", to_stderr=aside)
    if command.save and not aside:
        game = result.agent.game.name
        own = f" --game {game}" if ":" in game else ""  # a file imports nobody's module
        say(f"records in {command.save}: {program()} referee {command.save}{own}")
    write_json(result.summary(), command.json)
