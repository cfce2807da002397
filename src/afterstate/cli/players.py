"""Who plays: the agent that the flags --agent, --model and --game describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterstate.games import Game
    from afterstate.search.agents import Agent


def find_game(name: str | None, parameters: str = "") -> Game:
    """The game of the flags --game and --parameters."""
    from afterstate import games

    return games.get(name or games.DEFAULT_GAME, **games.parse_parameters(parameters))


def find_agent(spec: str, model: str | None, game: str | None, parameters: str = "") -> Agent:
    """The model says which game, unless only the game is given; players that ask no network need no model."""
    from afterstate import games
    from afterstate.search.agents import make_agent, needs_model
    from afterstate.values.files import open_model

    if game:
        games.get(game)  # a game in a file of one's own is found before a model of it
    if model is None and not needs_model(spec):
        return make_agent(spec, find_game(game, parameters))
    found = open_model(model, game)
    if parameters:
        chosen = {**found.game.parameters, **games.parse_parameters(parameters)}
        found = replace(found, game=games.get(found.game.name, **chosen))
    return make_agent(spec, found.game, found)
