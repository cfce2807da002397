"""How values get better: temporal-difference learning on CPU and GPU, and the folders of its runs."""

from __future__ import annotations

from .config import TrainConfig
from .runs import Run, read_metrics, train
from .trainer import Tally, Trainer, make_trainer

__all__ = ["Run", "Tally", "TrainConfig", "Trainer", "make_trainer", "read_metrics", "train"]
