"""Compiles every kernel for an H200 on a machine that needs no card; the CUDA toolkit must be there.

    python tests/gpu/compile_kernels.py [FOLDER]

What Numba's CUDA simulator lets pass, types above all, fails here. Arrays of the GPU lie in this machine's memory,
and launching a kernel compiles it for its arguments instead. Each line names a kernel, how many lines of PTX it has,
and whether it uses memory of its own beside registers; the PTX goes to FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba import cuda
from numba.cuda import compiler, dispatcher

H200 = (9, 0)  # its compute capability
PLENTY = 1 << 27  # bytes free, as it were


class There(np.ndarray[Any, Any]):
    """An array of the GPU."""

    def copy_to_host(self, *_: Any) -> Any:
        return np.array(self)

    def copy_to_device(self, other: Any, **_: Any) -> None:
        self[...] = np.asarray(other)


class Stream:
    handle = 0

    def synchronize(self) -> None: ...


def plain(argument: Any) -> Any:
    """An argument as Numba knows its type."""
    if hasattr(argument, "_make"):
        return type(argument)(*map(plain, argument))
    return np.asarray(argument).view(np.ndarray) if isinstance(argument, There) else argument


class Compiling:
    """Kernels that are compiled where they would be launched."""

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.what, self.known = folder, "", dict[Any, Any]()

    def launch(self, kernel: Any) -> Any:
        def launched(*arguments: Any) -> None:
            types = tuple(numba.typeof(plain(argument)) for argument in arguments)
            if (kernel, types) not in self.known:
                bounds = kernel.targetoptions.get("launch_bounds")
                found = compiler.compile(
                    kernel.py_func, types, device=False, cc=H200, abi="numba", launch_bounds=bounds
                )
                self.known[kernel, types] = found
                self.tell(kernel.py_func.__name__, found[0])

        return launched

    def tell(self, name: str, ptx: str) -> None:
        print(f"{self.what}: {name} {len(ptx.splitlines())} lines{', own memory' * ('.local' in ptx)}", flush=True)
        if self.folder:
            (self.folder / f"{self.what}-{name}.ptx".replace(" ", "_")).write_text(ptx)

    def instead_of_a_gpu(self) -> None:
        from tilesage.gpu import learner, search

        device = SimpleNamespace(compute_capability=H200, name="none")
        dispatcher.get_current_device = compiler.get_current_device = lambda: device
        dispatcher.CUDADispatcher.__getitem__ = lambda kernel, grid: self.launch(kernel)
        context = SimpleNamespace(
            get_memory_info=lambda: SimpleNamespace(free=PLENTY), deallocations=SimpleNamespace(clear=lambda: None)
        )
        cuda.to_device = lambda array, **_: np.array(array).view(There)
        cuda.device_array = lambda shape, kind: np.zeros(shape, kind).view(There)
        cuda.current_context, cuda.synchronize, cuda.stream = lambda: context, lambda: None, Stream
        learner.repeated = search.repeated = lambda work, stream: lambda: None


def compile_all(compiling: Compiling) -> int:
    """The kernels of all lessons, searches and endgames of the tests; how many they are."""
    import gpu_kernels as tests

    from tilesage.gpu.endgames import solve_on_gpu
    from tilesage.gpu.learner import Learner
    from tilesage.gpu.play import GpuPlayer
    from tilesage.gpu.search import GpuSearcher, Practised, Search
    from tilesage.search.game_2048.practice import PARTS

    def move_once(player: Any, name: str) -> None:
        compiling.what, at = name, tests.some_games(player.lesson, 4)
        results, taken = cuda.to_device(np.zeros((4, 3), np.int64)), cuda.to_device(np.zeros(1, np.int64))
        player.mover(at, results, taken, 1)()

    lessons = {name: lesson for name, (lesson, _) in tests.LESSONS.items()}
    lessons |= {f"folded, {name}": lesson for name, lesson in tests.FOLDED.items()}
    lessons |= {"ahead": tests.lesson_of(stages=(14,), ahead=True)}
    for name, lesson in lessons.items():
        compiling.what, learner = name, Learner(lesson, 16)
        learner.warm_up()
        learner.soften(0.1)
        for _ in range(2):
            learner.average()
        learner.host_memory() if lesson.coherence else learner.host_average()
    for name, (lesson, search) in tests.SEARCHES.items():
        weights = tests.random_weights(lesson)
        move_once(GpuPlayer(lesson, weights), f"greedy play, {name}")
        move_once(GpuSearcher(lesson, search, weights, nodes=100), f"search, {name}")
    lesson = tests.lesson_of()
    weights, two = tests.random_weights(lesson), Search(2)
    for part in PARTS:
        other = tests.lesson_of(f"2048-{part.name}", "01,56")
        practised = Practised(part, other, tests.random_weights(other))
        move_once(GpuSearcher(lesson, two, weights, practised=practised, nodes=100), f"search with {part.name}")
    compiling.what = "endgames"
    solved = solve_on_gpu(lesson.game, [(tests.SNAKE, 2)])
    move_once(GpuSearcher(lesson, two, weights, endgames=solved, nodes=100), "search with endgames")
    return len(compiling.known)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    compiling = Compiling(folder)
    compiling.instead_of_a_gpu()
    print(f"{compile_all(compiling)} kernels")


if __name__ == "__main__":
    main()
