"""`tilesage watch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilesage.cli.flags import Delay, MaybeText
from tilesage.cli.players import WhoPlays


@dataclass
class Command(WhoPlays):
    """See a player play in the terminal, one move a second; a line a move when the output is no terminal.

    keys: space pauses, n plays one move, + and - change the speed, q leaves

    examples:
      tilesage watch
      tilesage watch --game threes --agent expectimax:2 --delay 0.2
      tilesage watch --agent random --delay 0 --seed 7 > moves.txt
    """

    # The seed of the game.
    seed: int = 1
    # Start from this position instead: sixteen tile numbers, or the compact form.
    position: MaybeText = None
    # Seconds between moves, 0 for as fast as it goes; by default 1, and 0 when the output is no terminal.
    delay: Delay = None
    # The colours.
    theme: Literal["dark", "light"] = "dark"


def run(command: Command) -> int:
    """Let the agent play."""
    from tilesage.app.live import watch

    command.find_game()  # a wrong name is told before a missing model
    agent = command.find_agent()
    start = agent.game.parse(command.position) if command.position else agent.game.new(command.seed)
    watch(start, agent, command.delay, command.theme)
    return 0
