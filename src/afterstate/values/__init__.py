"""What a position is worth: n-tuple networks and their files. The names below are imported when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .files import Model, open_model, save_model, shipped_names
    from .ntuple import Evaluator, evaluator
    from .patterns import NAMES, Network, drawing, parse_network

__all__ = [
    "Evaluator",
    "Model",
    "NAMES",
    "Network",
    "drawing",
    "evaluator",
    "open_model",
    "parse_network",
    "save_model",
    "shipped_names",
]
_HOMES = {
    "Evaluator": ".ntuple",
    "Model": ".files",
    "NAMES": ".patterns",
    "Network": ".patterns",
    "drawing": ".patterns",
    "evaluator": ".ntuple",
    "open_model": ".files",
    "parse_network": ".patterns",
    "save_model": ".files",
    "shipped_names": ".files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __package__), name)
