"""What a position is worth: n-tuple networks and their files."""

from __future__ import annotations

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
