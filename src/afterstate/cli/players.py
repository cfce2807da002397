"""Who plays: the agent that the flags --agent, --model and --game describe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterstate.search.agents import Agent


def find_agent(spec: str, model: str | None, game: str | None) -> Agent:
    """The model says which game, unless only the game is given; a player in the current folder is found there."""
    from afterstate.search.agents import agent
    from afterstate.search.specs import is_from_outside

    if is_from_outside(spec):
        make_importable(os.getcwd())
    return agent(spec, game, model)


def make_importable(folder: str) -> None:
    """Modules in this folder can be imported, as with `python -m`."""
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
