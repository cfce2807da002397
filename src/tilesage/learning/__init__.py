"""How values get better: temporal-difference learning, its trainer on the CPU, and the folders of its runs.

In come the settings of a run (`TrainConfig`); out go weights, metrics and checkpoints. rules.py has the updates of TD
and TC (`td_update`, `tc_update`), registry.py finds a rule by its name, traces.py says how far back errors reach.
forward.py, states.py and backward.py have the loops that play and learn, cpu.py the trainer, runs.py the run,
folders.py what lies on disk. The names below are imported when first used: the settings of a run are known without
the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilesage.core.lazy import lazily

if TYPE_CHECKING:
    from tilesage.learning.config import TrainConfig
    from tilesage.learning.metrics import read_metrics
    from tilesage.learning.rules import UpdateRule
    from tilesage.learning.runs import Run, begin_training, train
    from tilesage.learning.trainer import Tally, Trainer, make_trainer

__all__ = [
    "Run",
    "Tally",
    "TrainConfig",
    "Trainer",
    "UpdateRule",
    "begin_training",
    "make_trainer",
    "read_metrics",
    "train",
]
__getattr__ = lazily(
    __name__,
    {
        "Run": ".runs",
        "Tally": ".trainer",
        "TrainConfig": ".config",
        "Trainer": ".trainer",
        "UpdateRule": ".rules",
        "begin_training": ".runs",
        "make_trainer": ".trainer",
        "read_metrics": ".metrics",
        "train": ".runs",
    },
)
