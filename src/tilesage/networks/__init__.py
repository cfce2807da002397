"""What a position is worth: n-tuple networks, their tables in memory, their files, and those of other programs.

In come patterns, weights and boards; out come values, entries and model files. `Evaluator` is a network compiled for
a game, `ValueFunction` what searches read, whether it is a network or a function of the user. The names below are
imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilesage.core.lazy import lazily

if TYPE_CHECKING:
    from tilesage.networks.files import Model, built_in_names, load_model, save_model
    from tilesage.networks.ntuple import Evaluator, evaluator
    from tilesage.networks.outside import OutsideValue, batch_value, compiled_value
    from tilesage.networks.patterns import NAMES, Network, drawing, parse_network

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
    "built_in_names",
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
        "built_in_names": ".files",
    },
)
