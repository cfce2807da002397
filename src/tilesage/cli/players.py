"""Who plays: the agent that the flags --agent, --model and --game describe."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from tilesage.cli.flags import GameName, MaybeText, Parameters
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.games import Game
    from tilesage.search.agents import Agent


@dataclass
class WhoPlays:
    """The flags of the commands in which a player plays."""

    # A model file, a run folder, or the name of a built-in model; --model says the same.
    model: Annotated[str | None, Positional, arg(metavar="[MODEL]", help_behavior_hint="")] = None
    # MODEL as a flag.
    model_flag: Annotated[MaybeText, arg(name="model")] = None
    game: GameName = None
    parameters: Parameters = ""
    # Who plays: best, greedy, expectimax:3, mcts:400, …, or my_module:my_agent; tilesage agents lists them.
    agent: str = "best"

    def find_game(self) -> Game:
        """The game of the flags --game and --parameters."""
        return find_game(self.game, self.parameters)

    def find_agent(self) -> Agent:
        """The agent of these flags."""
        if self.model and self.model_flag:
            raise InputError(f"two models: {self.model} and --model {self.model_flag}; write one")
        return find_agent(self.agent, self.model or self.model_flag, self.game, self.parameters)


def find_game(name: str | None, parameters: str = "") -> Game:
    """The game of this name, the default one without, with these parameters."""
    from tilesage import games

    return games.get(name or games.DEFAULT_GAME, **games.parse_parameters(parameters))


def find_agent(spec: str, model: str | None, game: str | None, parameters: str = "") -> Agent:
    """The model says which game, unless only the game is given; a player in the current folder is found there.

    A model also says the parameters of its game; those that are given here stand instead.
    """
    from tilesage import games
    from tilesage.networks.files import load_model
    from tilesage.search.agents import agent
    from tilesage.search.specs import is_from_outside

    if is_from_outside(spec) and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules here can be imported, as with `python -m`
    rules = find_game(game, parameters) if game or parameters else None
    if model is None:
        return agent(spec, rules)
    known = load_model(model, game)
    chosen = {**known.game.parameters, **games.parse_parameters(parameters)}
    return agent(spec, games.get(known.game.name, **chosen) if parameters else known.game, known)
