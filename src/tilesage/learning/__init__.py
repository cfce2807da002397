"""How values get better: temporal-difference learning on CPU and GPU, and the folders of its runs.

The names below are imported when first used: the settings of a run are known without the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..games.lazy import lazily

if TYPE_CHECKING:
    from .config import TrainConfig
    from .runs import Run, begin_training, read_metrics, train
    from .trainer import Tally, Trainer, make_trainer

__all__ = ["Run", "Tally", "TrainConfig", "Trainer", "begin_training", "make_trainer", "read_metrics", "train"]
__getattr__ = lazily(
    __name__,
    {
        "Run": ".runs",
        "Tally": ".trainer",
        "TrainConfig": ".config",
        "Trainer": ".trainer",
        "begin_training": ".runs",
        "make_trainer": ".trainer",
        "read_metrics": ".runs",
        "train": ".runs",
    },
)
