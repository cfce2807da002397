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

from tilesage.core.errors import InputError
from tilesage.learning import Run, TrainConfig, cpu, folders, read_metrics, runs
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.progress import Progress
from tilesage.learning.registry import get
from tilesage.learning.rules import UpdateRule
from tilesage.learning.thread_state import NO_GAME, TILES, ThreadState
from tilesage.learning.trainer import Tally
from tilesage.networks.files import FORMAT, load_model, size_of
from tilesage.networks.tensors import Tensors, write_tensors

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
        return {"step": np.array([self.step], np.int64), "weights": self.weights()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.step = int(state["step"][0])


def kept(folder: Path, name: str) -> tuple[float, dict[str, Any]]:
    """All weights of a model of `Scripted` in a folder, and what it says about its training."""
    model = load_model(folder / f"{name}.safetensors")
    assert len(set(model.weights.tolist())) == 1
    return float(model.weights[0]), dict(model.training)


# --- the model that a folder means ---------------------------------------------------------------------------


def played(folder: Path, means: list[int], config: TrainConfig = CONFIG) -> Run:
    """A run with a checkpoint after each of these means; ten games each, whose error is a third of their mean."""
    whole = replace(config, games=10 * len(means), average=False)
    run = Run.begin(whole, folder, make=lambda c: Scripted(c, means))
    for _ in run.blocks():
        run.checkpoint()
    return run


@pytest.mark.parametrize(
    ("means", "kept_step"),
    [
        ([100, 300, 200, 250], None),  # nothing leads by two errors
        ([100, 3000, 2000, 50], 3),  # the two that are level count together, and the later one has learnt more
        ([100, 3000, 50, 60, 40], 2),
        ([100, 3000, 50, 2900], None),  # it has come back
        ([3000, 2800, 2600, 2400, 2200, 2000, 1800], None),
    ],
)
def test_a_folder_means_its_last_model_unless_an_earlier_one_clearly_leads(
    tmp_path: Path, means: list[int], kept_step: int | None
) -> None:
    run = played(tmp_path / "run", means)
    assert kept(tmp_path / "run", "last")[0] == len(means)
    assert (tmp_path / "run" / "best.safetensors").exists() == (kept_step is not None)
    best = kept_step or len(means)
    for model in (load_model(tmp_path / "run"), run.model, load_model(run)):
        assert (float(model.weights[0]), model.training["games"]) == (best, 10 * best)
        assert model.training["mean"] == means[best - 1]
    assert [line["mean"] for line in read_metrics(tmp_path / "run")] == means


def test_a_slow_decline_is_one() -> None:
    """No step of it is as long as two errors, and yet what is level counts together: it is noticed."""
    progress, followed = Progress(), []
    for step in range(12):
        mean = 3000 - 45 * step  # by 1.5 errors
        progress.recent = Tally(games=400, points=400 * mean, squares=400 * (mean**2 + (20 * mean // 100) ** 2))
        followed.append(progress.is_best(averaged=False))
    assert followed[:2] == [True, True]
    assert not followed[-1]


def test_noise_does_not_win() -> None:
    """Checkpoints that are all alike: of a hundred runs of forty, hardly one ends with another than its last."""
    random, kept_back = np.random.default_rng(1), 0
    for _ in range(100):
        progress = Progress()
        for _ in range(40):
            scores = random.exponential(10_000, 100).astype(np.int64)
            points, squares = int(scores.sum()), int((scores**2).sum())
            progress.recent = Tally(games=100, points=points, squares=squares)
            last = progress.is_best(averaged=False)
        kept_back += not last
    assert kept_back < 8


def test_a_mean_of_weights_beats_weights_unless_they_lead() -> None:
    progress = Progress()

    def after(mean: int, averaged: bool) -> bool:
        progress.recent = Tally(games=100, points=100 * mean, squares=100 * (mean**2 + 100))
        return progress.is_best(averaged)

    assert after(1000, averaged=False)
    assert after(900, averaged=True)  # the games are those of the weights
    assert not after(900, averaged=False)  # a later end: the mean is begun afresh
    assert after(1000, averaged=False)
    assert not progress.averaged


def test_a_resumed_run_remembers_what_leads(tmp_path: Path) -> None:
    means = [100, 3000, 50, 60]
    run = Run.begin(replace(CONFIG, games=40, average=False), tmp_path / "run", make=lambda c: Scripted(c, means))
    for _ in range(2):
        run.step()
        run.checkpoint()
    run.close()
    again = Run.resume(tmp_path / "run", make=lambda c: Scripted(c, means))
    for _ in again.blocks():
        again.checkpoint()
    assert kept(tmp_path / "run", "best")[0] == 2
    assert kept(tmp_path / "run", "last")[0] == 4


def test_a_run_that_is_resumed_and_learns_nothing_keeps_its_figures(tmp_path: Path) -> None:
    played(tmp_path / "run", [100, 120])
    before = load_model(tmp_path / "run").training
    Run.resume(tmp_path / "run", make=lambda c: Scripted(c, [])).train()
    assert load_model(tmp_path / "run").training == before
    assert before["mean"] == 120


def test_without_room_for_a_copy_training_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(network="tiny", threads=1, games=40, block=20, seed=5, stages="64")
    monkeypatch.setattr(folders, "free_memory", lambda: 0)
    Run.begin(config, tmp_path / "waits").train()
    monkeypatch.undo()
    Run.begin(config, tmp_path / "beside").train()
    one, other = (load_model(tmp_path / name) for name in ("waits", "beside"))
    assert np.array_equal(one.weights, other.weights)
    assert (tmp_path / "waits" / "last.safetensors").stat().st_size > other.path.stat().st_size  # type: ignore[union-attr]
    Run.resume(tmp_path / "waits", games=60).train()


def test_what_is_met_is_all_that_is_stored(tmp_path: Path) -> None:
    """At most twice what is known of the entries met, in all settings, and whatever was hoped for at first."""
    for name, settings in enumerate([{"rule": "td"}, {}, {"stages": "64", "optimism": 4000.0}, {"by_age": True}]):
        config = TrainConfig(**{"network": "8x4+012345", "threads": 1, "games": 30, "seed": 5} | settings)
        run = Run.begin(config, tmp_path / str(name))
        fresh = run.trainer.state()["weights"].copy()
        run.train()
        met = np.count_nonzero(run.trainer.state()["weights"].view(np.uint32) != fresh.view(np.uint32))
        files = sum(path.stat().st_size for path in (tmp_path / str(name)).iterdir())
        assert files < 2 * met * config.bytes_an_entry + 100_000
        again = Run.resume(tmp_path / str(name), games=31)
        for part, array in run.trainer.state().items():
            if array.dtype == np.float32 and part != "mean":
                assert np.array_equal(array.view(np.uint32), again.trainer.state()[part].view(np.uint32))
        again.close()


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

    def slow_checkpoint(wait: bool = True) -> None:
        saved.append(run.progress.games // 10)
        checkpoint()
        now[0] += 8

    monkeypatch.setattr(run, "checkpoint", slow_checkpoint)
    run.train()
    assert saved == [3, 6, 9, 10]


def test_a_model_says_what_its_values_are_of_and_of_which_rules(tmp_path: Path) -> None:
    config = replace(CONFIG, of="states", parameters="four_rate=0.3", games=20)
    Run.begin(config, tmp_path / "run", make=lambda c: Scripted(c, [10, 20])).train()
    model = load_model(tmp_path / "run")
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
    fresh.restore(Tensors.open(path, "test"))
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
    metadata = Tensors.open(tmp_path / "run" / "last.safetensors", FORMAT).metadata
    nothing = {
        "games": 0,
        "moves": 0,
        "points": 0,
        "best": 0,
        "replays": 0,
        "worst": 0,
        "seconds": 0,
        "squares": 0,
        "tiles": [0] * TILES,
    }
    counted = nothing | {"games": 20, "moves": 2000, "points": 800, "best": 50, "seconds": 2}
    whole = {"games": 20, "moves": 2000, "seconds": 2, "phase": 0, "phases": "", "mean": 40}
    whole |= {"averaged": False, "behind": False}
    assert json.loads(metadata["progress"]) == whole | {"block": counted, "recent": nothing, "level": counted}


def test_a_checkpoint_by_hand_is_where_the_run_goes_on(tmp_path: Path) -> None:
    """Its figures are written by hand, and those that follow are added to them."""
    config = replace(CONFIG, games=60)
    Run.begin(config, tmp_path / "run", make=lambda c: Scripted(c, [100] * 6)).close()
    tallies = {"games": 4, "moves": 90, "points": 40, "best": 25, "replays": 3, "worst": 1.5, "seconds": 0.5}
    tiles = [0] * TILES
    tiles[11] = 4
    block, recent = tallies | {"tiles": tiles}, tallies | {"games": 24, "points": 4000, "tiles": tiles}
    whole = {"games": 34, "moves": 5000, "seconds": 7.0, "phase": 0, "phases": "", "mean": 150.0}
    whole |= {"averaged": False, "behind": False}
    progress = json.dumps(whole | {"block": block, "recent": recent, "level": tallies | {"tiles": tiles}})
    metadata = {"format": FORMAT, "progress": progress}
    write_tensors(tmp_path / "run" / "last.safetensors", {"step": np.array([2], np.int64)}, metadata)
    zero = {"moves": 1, "seconds": 1, "block": 1, "mean": 1, "error": 0, "max": 1, "reach": {}, "moves_per_second": 1}
    lines = [{"games": n} | zero for n in (30, 31)]  # 34 games, of which 4 are in the open block
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
    assert kept(tmp_path / "run", "last")[0] == 3
    assert run.progress.mean == (4000 + 1000) / 34
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

    def looking(wait: bool = True) -> None:
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


LINE = json.dumps(
    dict.fromkeys(("games", "moves", "seconds", "block", "mean", "error", "max", "moves_per_second"), 10)
    | {"reach": {"2048": 0.5}, "rate": 1.0}
)


@pytest.mark.parametrize("end", [0, 1, LINE.index("}") + 1, len(LINE) - 1])
def test_a_line_of_metrics_that_was_cut_is_left_out(tmp_path: Path, end: int) -> None:
    (tmp_path / "metrics.jsonl").write_text(f"{LINE}\n{LINE[:end]}")
    assert len(read_metrics(tmp_path)) == 1


@pytest.mark.parametrize("wrong", [LINE[:30], "[]", LINE.replace('{"2048": 0.5}', "[]")])
def test_lines_after_a_damaged_one_are_not_lost_without_a_word(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f"{LINE}\n{wrong}\n{LINE}\n")
    with pytest.raises(InputError, match="line 2 is no line of metrics"):
        read_metrics(tmp_path)


def test_a_model_that_was_replaced_is_gone_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    played(folder, [1000, 2000])
    best = folder / "best.safetensors"
    best.write_bytes((folder / "last.safetensors").read_bytes())  # as if killed before it was removed
    Run.resume(folder, games=100, make=lambda config: Scripted(config, [3000] * 10)).close()
    assert not best.exists()


def test_a_checkpoint_without_a_hint_on_its_path_is_refused(tmp_path: Path) -> None:
    config = TrainConfig("threes", "tiny", by_hint=True, direction="backward", threads=1, games=10, seed=5)
    run = Run.begin(config, tmp_path / "run")
    run.trainer.advance(50, 10**6, 0.1)
    run.checkpoint()
    run.close()
    last = tmp_path / "run" / "last.safetensors"
    opened = Tensors.open(last, FORMAT)
    arrays = {name: np.array(array) for name, array in opened.items()}
    Run.resume(tmp_path / "run").close()
    arrays["thread0.path_auxes"][0, 0] = 0
    write_tensors(last, arrays, opened.metadata)
    with pytest.raises(InputError, match="without its next tile"):
        Run.resume(tmp_path / "run")


def test_a_folder_is_measured_while_files_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(bytes(1000))
    (tmp_path / "other-name").hardlink_to(tmp_path / "kept")
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for number in range(20):
                (tmp_path / f"passing{number}").touch()
            for number in range(20):
                (tmp_path / f"passing{number}").unlink()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert {folders.bytes_in(tmp_path) for _ in range(300)} == {1000}
    finally:
        over.set()
        thread.join()
