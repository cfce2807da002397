"""Ray, really: one small cluster for the whole file, workers that are killed, clusters that are not there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilesage import games
from tilesage.cluster.connection import OutputOfOneThread, join, need_ray
from tilesage.cluster.evaluate import evaluate_on_ray, order_of
from tilesage.cluster.training import NO_LIMIT, RayTrainer, trainers_on_ray
from tilesage.cluster.trials import sweep_on_ray
from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import Evaluation, evaluate
from tilesage.evaluation.sweep import claim, read_sweep
from tilesage.learning.config import TrainConfig
from tilesage.learning.progress import Progress
from tilesage.learning.runs import Run
from tilesage.networks.files import Model, load_model, save_model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.records.record import Record
from tilesage.records.referee import judge
from tilesage.records.statistics import Statistics
from tilesage.search.agents import make_agent

pytest.importorskip("ray", reason="pip install '.[scale]'")
pytestmark = [
    pytest.mark.filterwarnings("default"),  # Ray has warnings of its own
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
STORE = 100 << 20
SOURCES = str(Path(__file__).resolve().parents[2] / "src")


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """A cluster whose nodes are all on this machine; the first has two processors."""
    ray = need_ray()
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # nothing here listens beyond this machine
    found = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False},
    )
    ray.init(address=found.address, log_to_driver=False, configure_logging=False)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(scope="module")
def head(machines: Any) -> str:
    """The address of the cluster."""
    return str(machines.address)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A player with opinions of its own, in a file."""
    network = parse_network("tiny")
    weights = np.random.default_rng(5).normal(size=size_of(network)).astype(np.float32)
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    return load_model(save_model(Model(games.get("2048"), network, weights), path))


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it."""
    settings = {**os.environ, "PYTHONPATH": SOURCES, **environment}
    return subprocess.run(
        [sys.executable, "-m", "tilesage", *words],
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
    player = make_agent("rollouts:40", games.get("2048"))
    killed: list[int] = []

    def kill_one(statistics: Statistics, seconds: float) -> None:
        if statistics.games < 60 and not killed:
            killed.extend(processes_of("ray::play_games")[:1])
            for process in killed:
                os.kill(process, signal.SIGKILL)

    spread = evaluate_on_ray(player, 60, 11, progress=kill_one)
    assert killed
    assert spread.statistics.games == 60
    assert same(spread, evaluate(player, 60, seed=11, workers=2))


def test_the_command_on_a_running_cluster(head: str, model: Model, tmp_path: Path) -> None:
    words = ["evaluate", str(model.path), "--games", "30", "--seed", "5", "--json", "-"]
    local, spread = command(*words), command(*words, "--on", "ray", "--ray-address", head)
    assert spread.returncode == 0, spread.stderr
    found = [json.loads(result.stdout) for result in (local, spread)]
    for figures in found:
        assert [figures.pop(name) for name in ("seconds", "moves_per_second", "workers")]
    assert found[0] == found[1]


def test_ctrl_c_keeps_what_was_played_and_nobody_plays_on(head: str, tmp_path: Path) -> None:
    records = tmp_path / "records.txt"
    words = ["evaluate", "--agent", "rollouts:40", "--games", "1000000", "--save", str(records), "--on", "ray"]
    with subprocess.Popen(
        [sys.executable, "-m", "tilesage", *words, "--ray-address", head],
        env={**os.environ, "PYTHONPATH": SOURCES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        while not [path for path in tmp_path.iterdir() if path.stat().st_size > 1000]:
            assert driver.poll() is None
            time.sleep(0.05)
        assert processes_of("ray::play_games")
        driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=120)
    assert driver.returncode == 130, err
    assert "Traceback" not in err
    verdict = judge(records)
    assert verdict.ok
    assert f"{verdict.statistics.games:,} game" in out
    deadline = time.monotonic() + 60
    while processes_of("ray::play_games") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of("ray::play_games")


def complaint(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("tilesage: ")]
    assert len(lines) == 1
    assert "Traceback" not in result.stderr
    return lines[0]


def test_an_address_where_nobody_is() -> None:
    result = command("evaluate", "--agent", "random", "--on", "ray", "--ray-address", "127.0.0.1:1")
    assert "no Ray cluster answers at 127.0.0.1:1" in complaint(result)


@pytest.mark.parametrize("address", ["nowhere", "host:99999", ":6379", "host:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        join(need_ray(), address)


def test_an_address_where_somebody_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that opens but speaks no Ray: the waiting ends."""
    monkeypatch.setattr("tilesage.cluster.connection.PATIENCE", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(InputError, match="no answer within 3 s"):
        join(need_ray(), f"127.0.0.1:{server.getsockname()[1]}")


def with_module(folder: Path, name: str, text: str) -> str:
    """A PYTHONPATH on which `name` is this text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    return f"{folder}{os.pathsep}{SOURCES}"


def test_without_the_extra(tmp_path: Path) -> None:
    path = with_module(tmp_path, "ray", "raise ImportError('not here')")
    result = command("evaluate", "--agent", "random", "--on", "ray", PYTHONPATH=path)
    assert "pip install '.[scale]'" in complaint(result)


def test_a_cluster_of_another_version(head: str, tmp_path: Path) -> None:
    path = with_module(tmp_path, "sitecustomize", "import ray; ray.__version__ = '1.2.3'")
    result = command("evaluate", "--agent", "random", "--on", "ray", "--ray-address", head, PYTHONPATH=path)
    assert "runs other versions" in complaint(result)
    assert "1.2.3" in complaint(result)


def test_nodes_with_other_code_are_refused(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesage.cluster.evaluate.order_of", lambda *given: replace(order_of(*given), build="0.0.1"))
    with pytest.raises(InputError, match=r"runs tilesage .*, this machine 0\.0\.1: install the same"):
        evaluate_on_ray(make_agent("random", games.get("2048")), 10)


SMALL = TrainConfig(network="8x4", rule="tc", threads=1, block=100, seed=3)


def test_two_nodes_learn_one_network(machines: Any) -> None:
    node = machines.add_node(num_cpus=1, object_store_memory=STORE)
    with trainers_on_ray(nodes=2, merge_seconds=0.2) as make:
        run = Run.begin(replace(SMALL, moves=12_000_000), None, make=make)
        trainer, homes = run.trainer, set[str]()
        assert isinstance(trainer, RayTrainer)
        lines = []

        def listen(line: Mapping[str, Any], at: Progress) -> None:
            homes.update(learner.node for learner in trainer.learners)
            lines.extend([line] if line else [])

        run.train(listen)
    machines.remove_node(node)
    assert len(homes) == 2
    assert trainer.traffic.rounds > 1
    assert 0 < trainer.traffic.down <= 2 * trainer.traffic.up
    assert lines[-1]["mean"] > 10_000
    played = evaluate(make_agent("greedy", run.model.game, run.model), 100)
    assert played.statistics.mean > 10_000


def test_nodes_may_come_late_and_die(machines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesage.cluster.training.GATHERING", 1.0)
    deadline, joined, most = time.monotonic() + 200, None, 0
    with trainers_on_ray(nodes=3, merge_seconds=0.3) as make:
        trainer = make(SMALL)
        assert isinstance(trainer, RayTrainer)
        while not trainer.traffic.lost and time.monotonic() < deadline:
            assert trainer.advance(NO_LIMIT, NO_LIMIT, 1.0).moves > 0
            if len(trainer.learners) == 2 and joined is None:
                joined = machines.add_node(num_cpus=1, object_store_memory=STORE)
            if len(trainer.learners) == 3 and not most:
                most = 3
                machines.remove_node(joined, allow_graceful=False)
        after = [trainer.advance(NO_LIMIT, NO_LIMIT, 1.0) for _ in range(4)]
        assert most == 3
        assert trainer.traffic.lost == 1
        assert len(trainer.learners) == 2
        assert all(tally.moves > 0 for tally in after)
        assert after[-1].worst < 1e9


def test_td_is_learnt_together(head: str) -> None:
    """Rounds end by their moves, on every machine alike. How visits are merged: test_together.py."""
    with trainers_on_ray(nodes=2, merge_seconds=600.0) as make:
        trainer = make(replace(SMALL, rule="td", network="tiny"))
        assert isinstance(trainer, RayTrainer)
        tallies = [trainer.advance(400_000, NO_LIMIT, 0.1) for _ in range(3)]
        assert [tally.moves for tally in tallies] == pytest.approx([400_000] * 3, abs=4)
        assert trainer.traffic.lost == 0
        assert len(trainer.traffic.touched) == 3
    assert tallies[2].mean > 3_000  # a random player makes 1,100
    assert tallies[2].mean > 1.25 * tallies[0].mean


@pytest.mark.parametrize("setting", [{"stages": "2048"}, {"phases": "td:0.1:0.5,tc:1:0.5", "rule": "tc"}])
def test_what_only_one_machine_can_train(setting: dict[str, str]) -> None:
    with trainers_on_ray(nodes=2) as make, pytest.raises(InputError, match="for one machine"):
        make(replace(SMALL, **setting))


def test_bad_numbers_of_nodes(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    result = command("train", "--seconds", "1", "--on", "ray", "--nodes", "0", "--out", folder)
    assert "--nodes is a whole number from 1 on" in complaint(result)
    assert "--on ray" in complaint(command("train", "--seconds", "1", "--nodes", "2", "--out", folder))


GRID = """
[evaluate]
games = 20
[train]
network = "tiny"
rule = "td"
threads = 1
block = 100
seed = 2
games = {games}
[grid]
rate = [0.1, 0.05]
"""


def test_a_sweep_goes_on_after_its_driver_was_killed(head: str, tmp_path: Path) -> None:
    grid, out = tmp_path / "grid.toml", tmp_path / "out"
    grid.write_text(GRID.format(games=20_000))
    words = ["sweep", str(grid), "--out", str(out), "--on", "ray", "--ray-address", head]
    with subprocess.Popen(
        [sys.executable, "-m", "tilesage", *words],
        env={**os.environ, "PYTHONPATH": SOURCES},
        stderr=subprocess.PIPE,
    ) as driver:
        deadline = time.monotonic() + 120
        while len(list(out.glob("0*/metrics.jsonl"))) < 2 and time.monotonic() < deadline and driver.poll() is None:
            time.sleep(0.05)
        assert driver.poll() is None
        driver.kill()
    assert not (out / "summary.json").exists()
    again = command(*words, "--json", "-")
    assert again.returncode == 0, again.stderr
    result = json.loads(again.stdout)
    assert result["complete"]
    assert [trial["training_games"] for trial in result["trials"]] == [20_000, 20_000]


def test_a_sweep_whose_folder_a_node_does_not_see_says_so(head: str, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID.format(games=300))
    with pytest.raises(InputError, match="on a disk that all nodes share"):
        sweep_on_ray(read_sweep(grid, tmp_path / "nowhere"), head)


def test_trials_on_a_cluster_are_those_of_one_machine(head: str, tmp_path: Path) -> None:
    grid, told = tmp_path / "grid.toml", list[str]()
    grid.write_text(GRID.format(games=300))
    here, there = (read_sweep(grid, tmp_path / where) for where in ("here", "there"))
    for sweep in (here, there):
        claim(sweep, grid)
    for trial in here.trials:
        trial.finish()
    sweep_on_ray(there, head, note=told.append)
    assert len(told) == 2
    assert there.waiting() == []
    for ours, theirs in zip(here.trials, there.trials):
        assert np.array_equal(load_model(ours.folder).weights, load_model(theirs.folder).weights)
        assert ours.result["mean"] == theirs.result["mean"]
    sweep_on_ray(there, head, note=told.append)
    assert len(told) == 2


def test_a_trial_that_fails_on_a_node_does_not_hold_up_the_others(head: str, tmp_path: Path) -> None:
    grid, told = tmp_path / "grid.toml", list[str]()
    grid.write_text(GRID.format(games=300).replace("0.05", "100000"))
    sweep = read_sweep(grid, tmp_path / "out")
    claim(sweep, grid)
    sweep_on_ray(sweep, head, note=told.append)
    assert [trial.state for trial in sweep.trials] == ["finished", "failed"]
    assert "diverged" in sweep.trials[1].failure
    assert len(told) == 2


def test_what_other_threads_say_stays_out_of_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.redirect_stdout(OutputOfOneThread(sys.stdout)):
        thread = threading.Thread(target=print, args=("a node has died",))
        thread.start()
        thread.join()
        print("the result")
    out, err = capsys.readouterr()
    assert (out, err) == ("the result\n", "a node has died\n")
