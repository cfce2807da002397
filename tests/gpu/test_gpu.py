"""Learning on the GPU, as far as it goes without one: the batch rule, and the real kernels in Numba's simulator."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slow_batch import BatchLearner, batch_rate

from tilesage import games
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.evaluation.on_gpu import counted, evaluate_on_gpu
from tilesage.gpu.available import require_gpu, require_toolkit
from tilesage.learning.weights import fresh_weights
from tilesage.networks.files import Model, save_model
from tilesage.networks.layout import layout_of
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network
from tilesage.search.agents import make_agent

HERE = Path(__file__).parent
KERNELS = HERE / "gpu_kernels.py"
with_numba_cuda = pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not there")


def has_gpu() -> bool:
    try:
        require_gpu()
    except InputError:
        return False
    return True


def run_kernels(**settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(KERNELS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **settings}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE.parent)


@with_numba_cuda
def test_the_kernels_in_the_simulator() -> None:
    result = run_kernels(NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="1")
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="no GPU")
def test_the_kernels_on_the_gpu() -> None:
    result = run_kernels()
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_what_is_missing() -> None:
    with pytest.raises(InputError, match=r"--device cuda needs .*(numba-cuda|NVIDIA GPU)") as caught:
        require_gpu()
    assert "\n" not in str(caught.value)


def has_toolkit() -> bool:
    try:
        require_toolkit()
    except (InputError, ImportError):
        return False
    return True


@with_numba_cuda
@pytest.mark.skipif(has_toolkit(), reason="the CUDA toolkit is there")
def test_without_the_cuda_toolkit_one_line_says_what_brings_it() -> None:
    with pytest.raises(InputError, match=r"needs the CUDA toolkit .*pip install '\.\[gpu\]'") as caught:
        require_toolkit()
    assert "\n" not in str(caught.value)


def test_games_behind_one_that_is_unfinished_do_not_count() -> None:
    agent = make_agent("random", games.get("2048"), None)
    results = np.array([[2000, 100, 7], [100, 10, 5], [-1, -1, -1], [40, 5, 4], [-1, -1, -1]])
    found = counted(agent, results)
    assert (found.games, found.total, found.slides) == (2, 2100, 110)
    results[2] = results[4] = 400, 30, 6
    assert counted(agent, results).games == 5


@pytest.mark.parametrize(("games_wanted", "seed"), [(1, -1), (1, 2**64), (0, 1)])
def test_what_cannot_be_played_on_a_gpu_is_one_line_before_it_is_looked_for(games_wanted: int, seed: int) -> None:
    with pytest.raises(InputError, match="whole number"):
        evaluate_on_gpu(make_agent("random", games.get("2048"), None), games_wanted, seed)


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
@pytest.mark.parametrize("command", [["train", "--seconds", "1"], ["evaluate", "runs/none"]])
def test_the_command_without_a_gpu(command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if command[0] == "evaluate":
        game = games.get("2048")
        network = parse_network("01")
        found = evaluator(game, network)
        weights = fresh_weights(found.size, network, found.entries, 1.0)
        save_model(Model(game, network, weights), tmp_path / "m.safetensors")
        command = ["evaluate", str(tmp_path / "m.safetensors")]
    else:
        command = [*command, "--out", str(tmp_path / "run")]
    assert main([*command, "--device", "cuda"]) == 2
    error = capfd.readouterr().err
    assert error.startswith("tilesage: --device cuda needs")
    assert error.count("\n") == 1


@with_numba_cuda
@pytest.mark.parametrize("network", ["01234,01245,5", "tiny"])
def test_the_order_of_the_gpu_is_that_of_other_programs(network: str) -> None:
    from tilesage.gpu.arrange import moves_of

    for table in layout_of(parse_network(network)).tables:
        index = np.random.default_rng(1).integers(0, 16 ** len(table.cells), 1000).astype(np.uint64)
        place = np.full(1000, table.offset, np.uint64)
        for bit, to in moves_of(table):
            place += ((index >> bit) & np.uint64(1)) << to
        assert np.array_equal(place, table.entries_in_order()[index.astype(np.int64)])


@pytest.mark.parametrize("hits", [1, 2, 3, 10, 1000])
def test_the_batch_rate_is_that_of_updates_one_after_the_other(hits: int) -> None:
    rate = np.float32(0.1)
    value = 0.0
    for _ in range(hits):
        value += 0.1 * (1 - value)
    assert batch_rate(rate, hits) == pytest.approx(value, rel=1e-4)
    assert batch_rate(np.float32(1), hits) == 1


@pytest.mark.parametrize("coherence", [False, True])
def test_the_batch_rule_moves_values_towards_what_was_earned(coherence: bool) -> None:
    game = games.get("2048")
    found = evaluator(game, parse_network("01,56"))
    learner = BatchLearner(
        game, found, np.zeros(found.size, np.float32), 4, rate=1.0 if coherence else 0.1, coherence=coherence
    )
    for _ in range(25):
        learner.step()
    values = [learner.value(*slot.before) for slot in learner.slots if slot.before]
    assert len(values) == 4
    assert all(value > 0 for value in values)
    assert (learner.absolutes > 0).any() == coherence
