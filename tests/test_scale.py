"""Ray, really: one small cluster for the whole file, workers that are killed, clusters that are not there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from afterstate import games
from afterstate.arena.cluster import join, need_ray
from afterstate.arena.evaluate import Evaluation, evaluate
from afterstate.arena.records import Record
from afterstate.arena.scale import evaluate_on_ray, order_of
from afterstate.arena.statistics import Statistics
from afterstate.games import Mistake
from afterstate.search.agents import make_agent
from afterstate.values.files import Model, open_model, save_model, size_of
from afterstate.values.patterns import parse_network

pytest.importorskip("ray", reason="pip install 'afterstate[scale]'")
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("default"),  # Ray has warnings of its own
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
SOURCES = str(Path(__file__).parent.parent / "src")


@pytest.fixture(scope="module")
def head() -> Iterator[str]:
    """A cluster of two processors on this machine, and its address."""
    ray = need_ray()
    context = ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 << 20,
        log_to_driver=False,
        configure_logging=False,
    )
    yield context.address_info["gcs_address"]
    ray.shutdown()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A player with opinions of its own, in a file."""
    network = parse_network("tiny")
    weights = np.random.default_rng(5).normal(size=size_of(network)).astype(np.float32)
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    return open_model(save_model(Model(games.get("2048"), network, weights), path))


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it."""
    settings = {**os.environ, "PYTHONPATH": SOURCES, **environment}
    return subprocess.run(
        [sys.executable, "-m", "afterstate", *words],
        capture_output=True,
        text=True,
        env=settings,
        timeout=120,
        check=False,
    )


def processes_of(title: str) -> list[int]:
    """Processes below this one that call themselves so."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if (folder / "cmdline").read_text().startswith(title):
                found.append(int(folder.name))
        except OSError:
            continue

    def is_ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return [process for process in found if is_ours(process)]


def same(a: Evaluation, b: Evaluation) -> bool:
    return a.complete and b.complete and a.statistics == b.statistics


@pytest.mark.parametrize("workers", [1, 3])
def test_ray_plays_the_very_games_of_one_machine(head: str, model: Model, workers: int) -> None:
    player, here, there = make_agent("greedy", model.game, model), list[Record](), list[Record]()
    local = evaluate(player, 60, seed=7, workers=2, keep=here.append)
    spread = evaluate_on_ray(player, 60, 7, workers, keep=there.append)
    assert same(local, spread)
    assert [record.actions for record in there] == [record.actions for record in here]


def test_a_player_without_a_network(head: str) -> None:
    player = make_agent("random", games.get("threes"))
    assert same(evaluate(player, 50, seed=3, workers=1), evaluate_on_ray(player, 50, 3))


def test_a_killed_worker_changes_nothing(head: str) -> None:
    player = make_agent("rollouts:4", games.get("2048"))
    killed: list[int] = []

    def kill_one(statistics: Statistics, seconds: float) -> None:
        if 0 < statistics.games < 30 and not killed:
            killed.extend(processes_of("ray::play_games")[:1])
            for process in killed:
                os.kill(process, signal.SIGKILL)

    spread = evaluate_on_ray(player, 60, 11, progress=kill_one)
    assert killed
    assert spread.statistics.games == 60
    assert same(spread, evaluate(player, 60, seed=11, workers=2))


def test_the_command_on_a_running_cluster(head: str, model: Model, tmp_path: Path) -> None:
    words = ["evaluate", str(model.path), "--games", "30", "--seed", "5", "--style", "demo"]
    local, spread = command(*words), command(*words, "--on", "ray", "--ray-address", head)
    assert spread.returncode == 0, spread.stderr
    assert spread.stdout == local.stdout


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("afterstate: ")]
    assert len(lines) == 1
    assert "Traceback" not in result.stderr
    return lines[0]


def test_an_address_where_nobody_is() -> None:
    result = command("evaluate", "--agent", "random", "--on", "ray", "--ray-address", "127.0.0.1:1")
    assert "no Ray cluster answers at 127.0.0.1:1" in complaint(result)


@pytest.mark.parametrize("address", ["nowhere", "host:99999", ":6379", "host:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(Mistake, match="HOST:PORT"):
        join(need_ray(), address)


def test_an_address_where_somebody_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that opens but speaks no Ray: the waiting ends."""
    monkeypatch.setattr("afterstate.arena.cluster.PATIENCE", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(Mistake, match="no answer within 3 s"):
        join(need_ray(), f"127.0.0.1:{server.getsockname()[1]}")


def with_module(folder: Path, name: str, text: str) -> str:
    """A PYTHONPATH on which `name` is this text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    return f"{folder}{os.pathsep}{SOURCES}"


def test_without_the_extra(tmp_path: Path) -> None:
    path = with_module(tmp_path, "ray", "raise ImportError('not here')")
    result = command("evaluate", "--agent", "random", "--on", "ray", PYTHONPATH=path)
    assert "pip install 'afterstate[scale]'" in complaint(result)


def test_a_cluster_of_another_version(head: str, tmp_path: Path) -> None:
    path = with_module(tmp_path, "sitecustomize", "import ray; ray.__version__ = '1.2.3'")
    result = command("evaluate", "--agent", "random", "--on", "ray", "--ray-address", head, PYTHONPATH=path)
    assert "runs other versions" in complaint(result)
    assert "1.2.3" in complaint(result)


def test_nodes_with_other_code_are_refused(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterstate.arena.scale.order_of", lambda *given: replace(order_of(*given), build="0.0.1"))
    with pytest.raises(Mistake, match=r"runs afterstate .*, this machine 0\.0\.1: install the same"):
        evaluate_on_ray(make_agent("random", games.get("2048")), 10)
