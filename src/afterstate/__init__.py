"""afterstate: a laboratory for 2048-like games.

>>> import afterstate
>>> state = afterstate.game("2048").new(seed=1)
>>> state = state.play("left")
>>> state.moves
1

The names below are the public ones; they are imported when first used, so that `import afterstate` is quick.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_NAMES = {
    "game": ("afterstate.games", "get"),
    "Game": ("afterstate.games", "Game"),
    "State": ("afterstate.games", "State"),
    "Afterstate": ("afterstate.games", "Afterstate"),
    "Mistake": ("afterstate.games.errors", "Mistake"),
    "Model": ("afterstate.values.files", "Model"),
    "open_model": ("afterstate.values.files", "open_model"),
    "save_model": ("afterstate.values.files", "save_model"),
    "make_agent": ("afterstate.search.agents", "make_agent"),
    "evaluate": ("afterstate.arena.evaluate", "evaluate"),
}

__all__ = [
    "Afterstate",
    "Game",
    "Mistake",
    "Model",
    "State",
    "__version__",
    "evaluate",
    "game",
    "make_agent",
    "open_model",
    "save_model",
]

if TYPE_CHECKING:
    from afterstate.arena.evaluate import evaluate as evaluate
    from afterstate.games import Afterstate as Afterstate
    from afterstate.games import Game as Game
    from afterstate.games import State as State
    from afterstate.games import get as game
    from afterstate.games.errors import Mistake as Mistake
    from afterstate.search.agents import make_agent as make_agent
    from afterstate.values.files import Model as Model
    from afterstate.values.files import open_model as open_model
    from afterstate.values.files import save_model as save_model


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'afterstate' has no attribute {name!r}")
    module, attribute = _NAMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext afterstate`: positions are drawn in this notebook."""
    from .views.notebook import install

    install(shell)


if "IPython" in sys.modules:
    from .views.notebook import install_if_there

    install_if_there(sys.modules)
