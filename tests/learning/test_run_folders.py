"""What a run keeps: the best model, checkpoints at their times, and every game that is under way."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilesage.learning import Run, TrainConfig, cpu, read_metrics, runs
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.registry import get
from tilesage.learning.rules import UpdateRule
from tilesage.learning.thread_state import NO_GAME, TILES, ThreadState
from tilesage.learning.trainer import Tally
from tilesage.networks.files import load_model, map_tensor, read_header, size_of, write_tensors

ALWAYS = -1.0  # seconds between checkpoints: one after every step
CONFIG = TrainConfig(network="5", rule="td", threads=1, block=10, seed=5)


class Scripted:
    """A trainer whose n-th step is ten games with the n-th of these means; all weights become n."""

    stride = 1000
    rule = get("td")

    def __init__(self, config: TrainConfig, means: list[int]) -> None:
        self.config, self.means, self.step = config, means, 0
        self.size = size_of(config.the_network)

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        mean = self.means[self.step]
        self.step += 1
        return Tally(games=10, moves=1000, points=10 * mean, best=mean, seconds=1.0)

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None: ...

    def average(self, afresh: bool = False) -> None: ...

    def weights(self) -> np.ndarray:
        return np.full(self.size, self.step, np.float32)

    def state(self) -> dict[str, np.ndarray]:
        return {"step": np.array([self.step], np.int64)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.step = int(state["step"][0])


def kept(folder: Path, name: str) -> tuple[float, dict[str, Any]]:
    """All weights of a model of `Scripted` in a folder, and what it says about its training."""
    model = load_model(folder / f"{name}.safetensors")
    assert len(set(model.weights.tolist())) == 1
    return float(model.weights[0]), dict(model.training)


# --- the best model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "peak"),
    [([100, 300, 200, 250, 50], 2), ([300, 200, 100], 1), ([100, 200, 300], 3), ([200, 50, 240, 10], 3)],
)
def test_best_holds_the_weights_of_the_peak(tmp_path: Path, means: list[int], peak: int) -> None:
    """By the mean of the games since the checkpoint before, and of no others."""
    config = replace(CONFIG, games=10 * len(means))
    Run.begin(config, tmp_path / "run", ALWAYS, make=lambda c: Scripted(c, means)).train()
    best, training = kept(tmp_path / "run", "best")
    assert best == peak
    assert (training["mean"], training["games"], training["moves"]) == (max(means), 10 * peak, 1000 * peak)
    last, training = kept(tmp_path / "run", "last")
    assert last == len(means)
    assert (training["games"], training["seconds"]) == (10 * len(means), len(means))
    assert float(load_model(tmp_path / "run").weights[0]) == peak
    assert [line["mean"] for line in read_metrics(tmp_path / "run")] == means


def test_the_games_between_two_checkpoints_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps a checkpoint: (100 + 400) / 2 beats (240 + 240) / 2 and 200."""
    now = clock(monkeypatch)
    make = ticking(now, [240, 240, 100, 400, 200])
    Run.begin(replace(CONFIG, games=50), tmp_path / "run", 15.0, make).train()
    best, training = kept(tmp_path / "run", "best")
    assert (best, training["mean"]) == (4, 250)


@pytest.mark.parametrize(("means", "peak"), [([100, 300, 200, 250], 2), ([100, 50, 40, 120], 4)])
def test_a_resumed_run_remembers_its_best(tmp_path: Path, means: list[int], peak: int) -> None:
    run = Run.begin(replace(CONFIG, games=40), tmp_path / "run", ALWAYS, make=lambda c: Scripted(c, means))

    def stop_early(line: object, progress: object) -> None:
        run.stopping = run.progress.games == 30

    run.train(stop_early)
    assert kept(tmp_path / "run", "last")[0] == 3
    Run.resume(tmp_path / "run", every=ALWAYS, make=lambda c: Scripted(c, means)).train()
    assert kept(tmp_path / "run", "last")[0] == 4
    best, training = kept(tmp_path / "run", "best")
    assert (best, training["mean"]) == (peak, max(means))


# --- when ----------------------------------------------------------------------------------------------------


def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of runs stands still until somebody moves it."""
    now = [1000.0]
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0]))
    return now


def ticking(now: list[float], means: list[int]) -> runs.Maker:
    """`Scripted`, ten seconds a step."""

    class Ticking(Scripted):
        def advance(self, moves: int, games: int, rate: float) -> Tally:
            now[0] += 10
            return super().advance(moves, games, rate)

    return lambda config: Ticking(config, means)


def test_checkpoints_come_at_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 10 s, a save takes 8 s, more than 25 s between two: after steps 3, 6, 9, and at the end."""
    now, saved = clock(monkeypatch), list[int]()
    run = Run.begin(replace(CONFIG, games=100), tmp_path / "run", 25.0, ticking(now, [100] * 10))
    checkpoint = run.checkpoint

    def slow_checkpoint() -> None:
        saved.append(run.progress.games // 10)
        checkpoint()
        now[0] += 8

    monkeypatch.setattr(run, "checkpoint", slow_checkpoint)
    run.train()
    assert saved == [3, 6, 9, 10]


def test_a_model_says_what_its_values_are_of_and_of_which_rules(tmp_path: Path) -> None:
    config = replace(CONFIG, of="states", parameters="four_rate=0.3", games=20)
    Run.begin(config, tmp_path / "run", make=lambda c: Scripted(c, [10, 20])).train()
    for name in ("best", "last"):
        model = load_model(tmp_path / "run" / f"{name}.safetensors")
        assert (model.of, model.game.parameters["four_rate"]) == ("states", 0.3)
        assert model.training["settings"]["parameters"] == "four_rate=0.3"


# --- what is under way ---------------------------------------------------------------------------------------

UNDER_WAY: dict[str, dict[str, Any]] = {
    "threes": {"game": "threes"},
    "threes-phone": {"game": "threes-phone"},
    "ahead": {"start": "ahead", "stages": "64,128"},
    "two threads": {"threads": 2},
}
NOT_KEPT = {"age"}  # written anew before they are read


def one_after_another(config: TrainConfig) -> CpuTrainer:
    """A trainer whose threads take turns, so that it can be compared."""
    trainer = CpuTrainer(config)
    trainer.pool.shutdown()
    trainer.pool = ThreadPoolExecutor(1)
    return trainer


@pytest.mark.parametrize("name", UNDER_WAY)
def test_a_stopped_and_resumed_run_equals_a_straight_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(cpu, "ALONE", 0)
    config = TrainConfig(**{"network": "tiny", "threads": 1, "games": 200, "block": 20, "seed": 5} | UNDER_WAY[name])
    Run.begin(config, tmp_path / "straight", make=one_after_another).train()
    run = Run.begin(config, tmp_path / "stopped", make=one_after_another)

    assert isinstance(run.trainer, CpuTrainer)
    threads = run.trainer.threads

    def stop_early(line: object, progress: object) -> None:
        run.stopping = run.progress.games > 50 and (config.game == "2048" or bool(threads[0].gain.any()))

    run.train(stop_early)
    assert 50 < run.progress.games < 150
    assert all((thread.length > 0).any() for thread in threads)
    Run.resume(tmp_path / "stopped", make=one_after_another).train()
    weights = [load_model(tmp_path / which / "last.safetensors").weights for which in ("straight", "stopped")]
    assert np.array_equal(*weights)
    clocks = ("seconds", "moves_per_second")
    lines = [read_metrics(tmp_path / which) for which in ("straight", "stopped")]
    for line in lines[0] + lines[1]:
        assert [line.pop(clock) for clock in clocks]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("name", UNDER_WAY)
def test_a_restored_trainer_holds_every_number_of_the_stored_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(cpu, "ALONE", 0)
    config = TrainConfig(**{"network": "tiny", "threads": 1, "games": 9, "seed": 5} | UNDER_WAY[name])
    stored, fresh = one_after_another(config), one_after_another(config)
    for _ in range(2):
        stored.advance(60 * config.threads, 100, 1.0)
        stored.average()
    while config.game != "2048" and not stored.threads[0].gain.any():  # until a new tile has just brought points
        stored.advance(1, 100, 1.0)
    path = tmp_path / "state.safetensors"
    write_tensors(path, stored.state(), {"format": "test"})
    header, _, start = read_header(path, "test")
    fresh.restore({part: map_tensor(path, tensor, start) for part, tensor in header.items()})
    assert len(fresh.threads) == len(stored.threads) == config.threads
    for ours, theirs in zip(fresh.threads, stored.threads, strict=True):
        assert (theirs.length != NO_GAME).all()
        assert theirs.score.any()
        assert theirs.gain.any() == (config.game != "2048")
        different = {f for f in ThreadState._fields if not np.array_equal(getattr(ours, f), getattr(theirs, f))}
        assert different <= NOT_KEPT
    assert np.array_equal(fresh.memory, stored.memory)
    assert np.array_equal(fresh.mean, stored.mean, equal_nan=True)
    assert not np.array_equal(fresh.mean, fresh._weights, equal_nan=True)
    assert (fresh.done, fresh.averaged, fresh.rule.name) == (stored.done, 2, "tc")
    assert fresh.done >= 120 * config.threads
    for trainer in (stored, fresh):
        trainer.advance(60 * config.threads, 100, 1.0)
        trainer.average()
    assert np.array_equal(fresh.weights(), stored.weights())


def test_a_checkpoint_says_where_the_run_stands(tmp_path: Path) -> None:
    """In the middle of a block: what its games have counted so far is kept."""
    config = replace(CONFIG, games=60, block=100)
    run = Run.begin(config, tmp_path / "run", make=lambda c: Scripted(c, [30, 50]))
    assert [run.step(), run.step()] == [None, None]
    run.checkpoint()
    run.close()
    _, metadata, _ = read_header(tmp_path / "run" / "checkpoint.safetensors", runs.CHECKPOINT)
    nothing = {
        "games": 0,
        "moves": 0,
        "points": 0,
        "best": 0,
        "replays": 0,
        "worst": 0,
        "seconds": 0,
        "tiles": [0] * TILES,
    }
    counted = nothing | {"games": 20, "moves": 2000, "points": 800, "best": 50, "seconds": 2}
    whole = {"games": 20, "moves": 2000, "seconds": 2, "phase": 0, "phases": "", "lines": 0, "best": 40}
    assert json.loads(metadata["progress"]) == whole | {"block": counted, "recent": nothing}


def test_a_checkpoint_by_hand_is_where_the_run_goes_on(tmp_path: Path) -> None:
    """Its figures are written by hand, and those that follow are added to them."""
    config = replace(CONFIG, games=60)
    Run.begin(config, tmp_path / "run", make=lambda c: Scripted(c, [100] * 6)).close()
    tallies = {"games": 4, "moves": 90, "points": 40, "best": 25, "replays": 3, "worst": 1.5, "seconds": 0.5}
    tiles = [0] * TILES
    tiles[11] = 4
    block, recent = tallies | {"tiles": tiles}, tallies | {"games": 24, "points": 4000, "tiles": tiles}
    whole = {"games": 34, "moves": 5000, "seconds": 7.0, "phase": 0, "phases": "", "lines": 1, "best": 150.0}
    progress = json.dumps(whole | {"block": block, "recent": recent})
    metadata = {"format": runs.CHECKPOINT, "progress": progress}
    write_tensors(tmp_path / "run" / "checkpoint.safetensors", {"step": np.array([2], np.int64)}, metadata)
    lines = [
        {"games": n, "moves": 1, "seconds": 1, "mean": 1, "max": 1, "reach": {}, "moves_per_second": 1}
        for n in (1, 2)
    ]
    (tmp_path / "run" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = Run.resume(tmp_path / "run", make=lambda c: Scripted(c, [100] * 6))
    assert run.step() is not None
    first, second = read_metrics(tmp_path / "run")
    assert first == lines[0]  # what came after the checkpoint is gone
    assert (second["games"], second["moves"], second["seconds"]) == (44, 6000, 8.0)
    assert second["mean"] == round((40 + 1000) / 14, 2)
    assert (second["max"], second["replays"], second["largest_error"]) == (100, 3, 1.5)
    assert second["reach"] == {"1024": round(4 / 14, 5), "2048": round(4 / 14, 5)}
    run.checkpoint()
    assert kept(tmp_path / "run", "best") == kept(tmp_path / "run", "last")
    assert kept(tmp_path / "run", "last")[0] == 3
    assert run.progress.best == (4000 + 1000) / 34
    run.close()


# --- Ctrl-C in a program -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_ctrl_c")
def test_ctrl_c_waits_for_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They work on the very arrays that are saved next: pressed while both learn, saved when none does."""
    monkeypatch.setattr(cpu, "ALONE", 0)
    run = Run.begin(TrainConfig(network="tiny", threads=2, moves=10**12), tmp_path / "run")
    assert isinstance(run.trainer, CpuTrainer)
    work, checkpoint, stop = run.trainer._work, run.checkpoint, run.stop
    noticed, both = threading.Event(), threading.Barrier(2)
    working: set[int] = set()
    at_work: list[int] = []

    def pressing(thread: ThreadState, rate: float, moves: int, games: int) -> None:
        working.add(id(thread))
        presses = both.wait() == 0
        while presses and not noticed.wait(0.5):  # one that comes just before the main thread waits does not wake it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        noticed.wait()  # by the main thread, which then waits for both, or does not
        work(thread, rate, 1000, games)
        working.discard(id(thread))

    def looking() -> None:
        at_work.append(len(working))
        noticed.set()
        checkpoint()

    monkeypatch.setattr(run.trainer, "_work", pressing)
    monkeypatch.setattr(run, "checkpoint", looking)
    monkeypatch.setattr(run, "stop", lambda: (stop(), noticed.set()))
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert at_work == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = Run.resume(tmp_path / "run")
    assert resumed.progress.moves == run.progress.moves == run.trainer.done >= 2000
    resumed.close()
