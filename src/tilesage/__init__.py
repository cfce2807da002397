"""tilesage: a laboratory for 2048-like games.

>>> import tilesage
>>> state = tilesage.game("2048").new(seed=1)
>>> state = state.play("left")
>>> state.moves
1

The names below are the public ones; they are imported when first used, so that `import tilesage` is quick.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .games.lazy import lazily

__version__ = "0.2.0"

__getattr__ = lazily(
    __name__,
    {
        "game": ".games:get",
        "Game": ".games",
        "State": ".games",
        "Afterstate": ".games",
        "InputError": ".games.errors",
        "Model": ".values.files",
        "load_model": ".values.files",
        "save_model": ".values.files",
        "agent": ".search.agents",
        "Agent": ".search.agents",
        "Player": ".search.python_players",
        "AgentError": ".search.python_players",
        "batch_value": ".values.outside",
        "compiled_value": ".values.outside",
        "evaluate": ".arena.evaluate",
        "train": ".learning.runs",
        "Run": ".learning.runs",
    },
)

__all__ = [
    "Afterstate",
    "Agent",
    "AgentError",
    "Game",
    "InputError",
    "Model",
    "Player",
    "Run",
    "State",
    "__version__",
    "agent",
    "batch_value",
    "compiled_value",
    "evaluate",
    "game",
    "load_model",
    "save_model",
    "train",
]

if TYPE_CHECKING:
    from tilesage.arena.evaluate import evaluate as evaluate
    from tilesage.games import Afterstate as Afterstate
    from tilesage.games import Game as Game
    from tilesage.games import State as State
    from tilesage.games import get as game
    from tilesage.games.errors import InputError as InputError
    from tilesage.learning.runs import Run as Run
    from tilesage.learning.runs import train as train
    from tilesage.search.agents import Agent as Agent
    from tilesage.search.agents import agent as agent
    from tilesage.search.python_players import AgentError as AgentError
    from tilesage.search.python_players import Player as Player
    from tilesage.values.files import Model as Model
    from tilesage.values.files import load_model as load_model
    from tilesage.values.files import save_model as save_model
    from tilesage.values.outside import batch_value as batch_value
    from tilesage.values.outside import compiled_value as compiled_value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tilesage`: positions are drawn in this notebook."""
    from .views.notebook import install

    install(shell)


if "IPython" in sys.modules:
    from .views.notebook import install_if_there

    install_if_there(sys.modules)
