"""`tilesage watch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from tilesage import games
from tilesage.cli.flags import MaybeNumber, MaybeText
from tilesage.cli.players import find_agent
from tilesage.core.errors import InputError


@dataclass
class Command:
    """See a player play in the terminal, one move a second; a line a move when the output is no terminal.

    keys: space pauses, n plays one move, + and - change the speed, q leaves

    examples:
      tilesage watch
      tilesage watch --game threes --agent expectimax:2 --delay 0.2
      tilesage watch --agent random --delay 0 --seed 7 > moves.txt
    """

    # A model file, a run folder, or the name of a built-in model.
    model: Annotated[str | None, tyro.conf.Positional] = None
    # The name of a game (tilesage games lists them); by default the game of the model.
    game: MaybeText = None
    # Parameters of its rules, such as four_rate=0.2; --four-rate 0.2 says the same.
    parameters: str = ""
    # Who plays: best, greedy, expectimax:3, mcts:400, …, or my_module:my_agent.
    agent: str = "best"
    # The seed of the game.
    seed: int = 1
    # Start from this position instead: sixteen tile numbers, or the compact form.
    position: MaybeText = None
    # Seconds between moves, 0 for as fast as it goes; by default 1, and 0 when the output is no terminal.
    delay: MaybeNumber = None
    # The colours.
    theme: Literal["dark", "light"] = "dark"


def run(command: Command) -> int:
    """Let the agent play."""
    from tilesage.app.live import watch

    if command.delay is not None and not 0 <= command.delay <= 3600:
        raise InputError(f"--delay is a number of seconds from 0 to 3600, not {command.delay:g}")
    games.get(command.game or games.DEFAULT_GAME)  # a wrong name is told before a missing model
    agent = find_agent(command.agent, command.model, command.game, command.parameters)
    start = agent.game.parse(command.position) if command.position else agent.game.new(command.seed)
    watch(start, agent, command.delay, command.theme)
    return 0
