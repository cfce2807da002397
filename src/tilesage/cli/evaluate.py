"""`tilesage evaluate`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from tilesage.cli.flags import MaybePath, MaybeText, MaybeWhole, program, say, write_json
from tilesage.cli.players import find_agent
from tilesage.core.errors import InputError
from tilesage.core.processors import processors
from tilesage.records.statistics import TABLES

if TYPE_CHECKING:
    from tilesage.evaluation.evaluate import Evaluation
    from tilesage.records.record import Record
    from tilesage.search.agents import Agent
    from tilesage.search.python_players import AgentError

MOST_GAMES = 10**12


@dataclass
class Command:
    """Play many games with an agent and print how good it is.

    examples:
      tilesage evaluate --agent random --games 1000
      tilesage evaluate runs/first --agent best --games 100
      tilesage evaluate --agent my_module:my_agent --games 100
      tilesage evaluate runs/first --games 1000 --save records.txt --json result.json
    """

    # A model file, a run folder, or the name of a built-in model.
    model: Annotated[str | None, tyro.conf.Positional] = None
    # The name of a game (tilesage games lists them); by default the game of the model.
    game: MaybeText = None
    # Parameters of its rules, such as four_rate=0.2; --four-rate 0.2 says the same.
    parameters: str = ""
    # Who plays: greedy, best, expectimax:3, mcts:400, …, or my_module:my_agent; tilesage agents lists them.
    agent: str = "greedy"
    # How many games.
    games: int = 1000
    # The seed: the same games for the same seed, whatever the number of workers.
    seed: int = 1
    # End a game as soon as it has this tile, such as 2048; by default games go on until no move is left.
    until: MaybeWhole = None
    # How many threads play (processes where the player is plain Python); by default one a processor.
    workers: MaybeWhole = None
    # Where: on this machine, or on a Ray cluster (pip install '.[scale]').
    on: Literal["local", "ray"] = "local"
    # The cluster: HOST:PORT, ray://HOST:PORT or auto; by default one is started on this machine.
    ray_address: MaybeText = None
    # cuda: thousands of games at once on an NVIDIA GPU, for greedy, expectimax:3, expectimax:deep.
    device: Literal["cpu", "cuda"] = "cpu"
    # Write every game to this file (- for standard output), a line each, for the referee and for replay.
    save: MaybePath = None
    # How the table looks.
    style: Literal["ours", "course", "demo"] = "ours"
    # No progress display.
    quiet: bool = False
    # Write the figures as JSON to this file (- for standard output).
    json: MaybeText = None


def run(command: Command) -> int:
    """Play the games, show the figures, write what was asked for."""
    from tilesage.records.record import saved

    if command.games > MOST_GAMES or (command.workers is not None and command.workers < 1):
        raise InputError(f"--games is a whole number up to {MOST_GAMES:,}, and --workers one from 1 on")
    if str(command.save) == command.json == "-":
        raise InputError("--save - and --json - would be mixed: give one of them a file")
    agent = find_agent(command.agent, command.model, command.game, command.parameters)
    with saved(command.save) if command.save else contextlib.nullcontext() as file:
        result, failure = _played(agent, command, file.keep if file else None)
    report(result, command)
    if wrong := failure or (file.failure if file else None):
        raise wrong
    return 0 if result.complete else 130


def _played(
    agent: Agent, command: Command, keep: Callable[[Record], None] | None
) -> tuple[Evaluation, AgentError | None]:
    """All games; or those that somebody's own player finished, and what then went wrong with it."""
    from tilesage.search.python_players import AgentError

    try:
        return _play(agent, command, keep), None
    except AgentError as failure:
        if failure.evaluation is None:
            raise
        return failure.evaluation, failure


def _play(agent: Agent, command: Command, keep: Callable[[Record], None] | None) -> Evaluation:
    from tilesage.evaluation.evaluate import evaluate

    if command.device == "cuda":
        from tilesage.evaluation.on_gpu import evaluate_on_gpu

        if keep or command.on == "ray" or command.until:
            raise InputError("--save, --until and --on ray go with --device cpu")
        return _watched(agent, command, evaluate_on_gpu)
    if command.on == "ray":
        if command.until:
            raise InputError("--until goes with games on this machine: leave out --on ray")
        from tilesage.cluster.evaluate import evaluate_on_ray

        on_ray = partial(evaluate_on_ray, address=command.ray_address)
        return _watched(agent, command, partial(on_ray, workers=command.workers, keep=keep))
    if command.ray_address:
        raise InputError("--ray-address goes with --on ray")
    workers = command.workers or processors()
    return _watched(agent, command, partial(evaluate, workers=workers, keep=keep, until=command.until))


def _watched(agent: Agent, command: Command, play: Callable[..., Evaluation]) -> Evaluation:
    """Play with the figures on the screen."""
    from tilesage.app.progress import EvaluationView

    goal = agent.game.tiles[agent.game.goal]
    with EvaluationView(command.games, goal, command.quiet or command.json == "-") as view:
        return play(agent, command.games, command.seed, progress=view.update)


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
