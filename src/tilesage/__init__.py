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

from tilesage.core.devices import TRAINERS
from tilesage.core.lazy import lazily

__version__ = "0.2.0"

TRAINERS |= {"cpu": "tilesage.learning.batch:make_cpu_trainer", "cuda": "tilesage.gpu:make_gpu_trainer"}

__getattr__ = lazily(
    __name__,
    {
        "game": ".games:get",
        "Game": ".games",
        "State": ".games",
        "Afterstate": ".games",
        "InputError": ".core.errors",
        "Model": ".networks.files",
        "load_model": ".networks.files",
        "save_model": ".networks.files",
        "agent": ".search.agents",
        "Agent": ".search.agents",
        "Player": ".search.python_players",
        "AgentError": ".search.python_players",
        "batch_value": ".networks.outside",
        "compiled_value": ".networks.outside",
        "evaluate": ".evaluation.evaluate",
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
    from tilesage.core.errors import InputError as InputError
    from tilesage.evaluation.evaluate import evaluate as evaluate
    from tilesage.games import Afterstate as Afterstate
    from tilesage.games import Game as Game
    from tilesage.games import State as State
    from tilesage.games import get as game
    from tilesage.learning.runs import Run as Run
    from tilesage.learning.runs import train as train
    from tilesage.networks.files import Model as Model
    from tilesage.networks.files import load_model as load_model
    from tilesage.networks.files import save_model as save_model
    from tilesage.networks.outside import batch_value as batch_value
    from tilesage.networks.outside import compiled_value as compiled_value
    from tilesage.search.agents import Agent as Agent
    from tilesage.search.agents import agent as agent
    from tilesage.search.python_players import AgentError as AgentError
    from tilesage.search.python_players import Player as Player


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tilesage`: positions are drawn in this notebook."""
    from tilesage.drawing.notebook import install

    install(shell)


if "IPython" in sys.modules:
    from tilesage.drawing.notebook import install_if_there

    install_if_there(sys.modules)
