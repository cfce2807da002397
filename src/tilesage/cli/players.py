"""Who plays: the agent that the flags --agent, --model and --game describe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilesage.games import Game
    from tilesage.search.agents import Agent


def find_game(name: str | None, parameters: str = "") -> Game:
    """The game of the flags --game and --parameters."""
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

    if is_from_outside(spec):
        make_importable(os.getcwd())
    rules = find_game(game, parameters) if game or parameters else None
    if model is None:
        return agent(spec, rules)
    known = load_model(model, game)
    chosen = {**known.game.parameters, **games.parse_parameters(parameters)}
    return agent(spec, games.get(known.game.name, **chosen) if parameters else known.game, known)


def make_importable(folder: str) -> None:
    """Modules in this folder can be imported, as with `python -m`."""
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
