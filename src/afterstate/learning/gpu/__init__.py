"""Learning and playing on an NVIDIA GPU, in Python: thousands of games at once, by the rules of the games room.

All that knows of CUDA is in this package. Importing it needs nothing; `make_gpu_trainer` and `gpu_player` say what is
missing when the machine has no GPU (docs/gpu.md).

machine    what only a GPU can do, with stand-ins for the simulator
tables     reading a network, collecting errors, applying them
steps      one step of batch learning: choose, then apply
learner    weights, records and games in flight in the GPU's memory
trainer    the learner behind the seam that runs use
play       playing without learning
arrange    from and to the layout of the CPU and of files
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .available import require_gpu

if TYPE_CHECKING:
    from ..config import TrainConfig
    from .trainer import GpuTrainer


def make_gpu_trainer(config: TrainConfig) -> GpuTrainer:
    """The trainer of `--device cuda`."""
    require_gpu()
    from .trainer import GpuTrainer

    return GpuTrainer(config)


def gpu_player(model: Any, layers: int, seen: Any = None) -> Any:
    """A player of `evaluate --device cuda`: greedy for one layer, expectimax:2 for two.

    `seen(board, aux)` is the position on which a move is chosen, where that is not the real one (tile-downgrading).
    """
    require_gpu()
    from .play import GpuPlayer
    from .steps import Lesson

    lesson = Lesson(model.game, model.evaluator, of_states=model.of == "states")
    return GpuPlayer(lesson, layers, model.weights, seen)


__all__ = ["gpu_player", "make_gpu_trainer", "require_gpu"]
