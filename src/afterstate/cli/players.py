"""Who plays: the agent that the flags --agent, --model and --game describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterstate.search.agents import Agent


def find_agent(spec: str, model: str | None, game: str | None) -> Agent:
    """The model says which game, unless only the game is given; players that ask no network need no model."""
    from afterstate import games
    from afterstate.search.agents import make_agent, needs_model
    from afterstate.values.files import load_model

    if model is None and not needs_model(spec):
        return make_agent(spec, games.get(game or "2048"))
    found = load_model(model, game)
    return make_agent(spec, found.game, found)
