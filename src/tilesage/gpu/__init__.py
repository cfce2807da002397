"""Learning, playing and searching on an NVIDIA GPU, in Python: thousands of games at once, by the rules of games/.

All that knows of CUDA is in this package. Importing it needs nothing; `make_gpu_trainer` and `lesson_of` say what is
missing when the machine has no GPU (docs/gpu.md).

available       is there a GPU at all?
machine         what only a GPU can do, with stand-ins for the simulator
memory          arrays, and whether there is room for them
lesson          a game, a network and a rule: what is burnt into the kernels
tables          reading a network, collecting errors, applying them
slots           the games in flight: how they begin, go on and end
turns           the three ways to learn from a move
steps           one step of batch learning: choose, then apply
learner         weights, records and games in flight in the GPU's memory
trainer         the learner as runs use it
restoring       what a checkpoint says is not believed
play            playing without learning
search          expectimax of many games at once
lists           lists that grow, many threads at a time
known_values    values that a search has read before
endgames        solved endgames
repeated        work that is recorded once and replayed
arrange         from and to the layout of the CPU and of files
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilesage.gpu.available import require_gpu

if TYPE_CHECKING:
    from tilesage.gpu.lesson import Lesson
    from tilesage.gpu.trainer import GpuTrainer
    from tilesage.learning.config import TrainConfig


def make_gpu_trainer(config: TrainConfig) -> GpuTrainer:
    """The trainer of `--device cuda`."""
    require_gpu()
    from tilesage.gpu.trainer import GpuTrainer

    return GpuTrainer(config)


def lesson_of(model: Any) -> Lesson:
    """A model as the kernels know it."""
    require_gpu()
    from tilesage.gpu.lesson import Lesson

    return Lesson(model.game, model.evaluator, of_states=model.of == "states")


__all__ = ["lesson_of", "make_gpu_trainer", "require_gpu"]
