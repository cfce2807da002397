"""What a position is worth: n-tuple networks and their files. The names below are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..games.lazy import lazily

if TYPE_CHECKING:
    from .files import Model, load_model, save_model, shipped_names
    from .ntuple import Evaluator, evaluator
    from .outside import OutsideValue, batch_value, compiled_value
    from .patterns import NAMES, Network, drawing, parse_network

__all__ = [
    "Evaluator",
    "Model",
    "NAMES",
    "Network",
    "OutsideValue",
    "batch_value",
    "compiled_value",
    "drawing",
    "evaluator",
    "load_model",
    "parse_network",
    "save_model",
    "shipped_names",
]
__getattr__ = lazily(
    __name__,
    {
        "Evaluator": ".ntuple",
        "Model": ".files",
        "NAMES": ".patterns",
        "OutsideValue": ".outside",
        "batch_value": ".outside",
        "compiled_value": ".outside",
        "Network": ".patterns",
        "drawing": ".patterns",
        "evaluator": ".ntuple",
        "load_model": ".files",
        "parse_network": ".patterns",
        "save_model": ".files",
        "shipped_names": ".files",
    },
)
