"""`tilesage play`."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilesage.cli.flags import MaybeText, MaybeWhole, say
from tilesage.cli.players import WhoPlays
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.search.agents import Agent


@dataclass
class Command(WhoPlays):
    """Play in the terminal, with undo and advice of --agent; the game goes on after 2048.

    keys: arrows, WASD or HJKL (Shift-h for left) move, u takes back, h asks the agent, r starts anew, q leaves;
    without a terminal, words on standard input: up right down left undo hint restart quit

    examples:
      tilesage play
      tilesage play --game threes --agent expectimax:2
      tilesage play --position "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"
    """

    # The seed of the game; another one every time by default.
    seed: MaybeWhole = None
    # Start from this position: sixteen tile numbers, or the compact form.
    position: MaybeText = None
    # The colours.
    theme: Literal["dark", "light"] = "dark"


def run(command: Command) -> int:
    """Let the user play."""
    from tilesage.app.live import Adviser, Session, play

    game, agent = command.find_game(), adviser(command)
    game = agent.game if agent else game
    seeds = itertools.count(int(time.time()) if command.seed is None else command.seed)
    start = game.parse(command.position) if command.position else game.new(next(seeds))
    state = play(Session(start, lambda: game.new(next(seeds)), Adviser(agent) if agent else None), command.theme)
    say(f"score {state.score:,}, largest tile {state.largest:,}, {state.moves:,} moves")
    return 0


def adviser(command: Command) -> Agent | None:
    """Who is asked; a person can play without advice where no model is at hand and none was asked for."""
    try:
        return command.find_agent()
    except InputError:
        if command.agent != WhoPlays.agent or command.model or command.model_flag:
            raise
        return None
