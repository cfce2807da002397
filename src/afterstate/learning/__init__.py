"""How values get better: temporal-difference learning on CPU and GPU, and the folders of its runs.

The names below are imported when first used: the settings of a run are known without the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import TrainConfig
    from .runs import Run, read_metrics, train
    from .trainer import Tally, Trainer, make_trainer

__all__ = ["Run", "Tally", "TrainConfig", "Trainer", "make_trainer", "read_metrics", "train"]
_HOMES = {
    "Run": ".runs",
    "Tally": ".trainer",
    "TrainConfig": ".config",
    "Trainer": ".trainer",
    "make_trainer": ".trainer",
    "read_metrics": ".runs",
    "train": ".runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name], __package__), name)
