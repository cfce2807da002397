"""The driver of learners on several machines, with Ray in one process and changes made by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilesage.cluster import training
from tilesage.cluster.training import NO_LIMIT, RayTrainer
from tilesage.core.compiler import Array
from tilesage.learning import copies
from tilesage.learning.config import TrainConfig
from tilesage.learning.thread_state import new_thread_state
from tilesage.learning.trainer import Tally

A_MOMENT = 1e-9  # seconds of a round: every learner makes one batch of moves
MOVES = 5  # of a lesson
CONFIG = TrainConfig(network="5", rule="td", threads=1, seed=3)
Lesson = list[tuple[int, float, float]]  # entry, by how much its weight moves, in how many visits


class Value:
    """Something in the object store: a copy that nobody can change."""

    def __init__(self, content: Any) -> None:
        self.content = copy.deepcopy(content)
        for array in self.content if isinstance(self.content, tuple) else (self.content,):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False


class Task:
    """A call of an actor; those before it come first."""

    def __init__(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> None:
        self.actor, self.name, self.arguments, self.done = actor, name, arguments, False
        actor.tasks.append(self)

    def run(self) -> None:
        while not self.done:
            task = self.actor.tasks.pop(0)
            given = [word.content if isinstance(word, Value) else word for word in task.arguments]
            task.value = copy.deepcopy(getattr(self.actor.worker, task.name)(*given))
            task.done = True


class Actor:
    """A worker; `actor.learn.remote(…)` asks it to learn."""

    def __init__(self, worker: Any) -> None:
        self.worker, self.tasks = worker, list[Task]()

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: Task(self, name, arguments))


class OneProcess:
    """Ray without processes: a task runs when somebody waits for it, and learners have room as they are let in."""

    exceptions = SimpleNamespace(RayActorError=ConnectionError, RayError=OSError)

    def __init__(self, room: int) -> None:
        self.room, self.actors, self.configs = room, list[Actor](), list[TrainConfig]()

    def remote(self, **resources: int) -> Callable[[type], Any]:
        def of(kind: type) -> Any:
            def make(config: TrainConfig, build: str) -> Actor:
                self.configs.append(config)
                self.actors.append(Actor(kind(config, build)))
                return self.actors[-1]

            return SimpleNamespace(options=lambda **wishes: SimpleNamespace(remote=make))

        return of

    def put(self, content: Any) -> Value:
        return Value(content)

    def get(self, task: Task) -> Any:
        task.run()
        return task.value

    def wait(self, tasks: list[Task], num_returns: int = 1, timeout: float = 0) -> tuple[list[Task], list[Task]]:
        ready = [task for task in tasks if self.actors.index(task.actor) < self.room][:num_returns]
        for task in ready:
            task.run()
        return ready, [task for task in tasks if task not in ready]

    def kill(self, actor: Actor) -> None:
        actor.tasks.clear()


class ByHand:
    """A trainer that learns its lessons, one a call, and notes the weights that it begins each with."""

    stride = NO_LIMIT

    def __init__(self, config: TrainConfig, lessons: list[Lesson]) -> None:
        self.config, self.lessons, self.seen = config, list(lessons), list[list[float]]()
        self.by_sums = config.rule == "tc"
        self.live = {"weights": np.zeros(16, np.float32), "memory": np.zeros(2, np.float32)}
        if self.by_sums:
            self.live["memory"] = np.zeros(32, np.float32)

    def count_visits(self) -> None:
        self.live["memory"] = np.zeros(16, np.float32)

    def state(self) -> dict[str, Array]:
        return dict(self.live)

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        weights, memory = self.live["weights"], self.live["memory"]
        self.seen.append(weights.tolist())
        for entry, step, visits in self.lessons.pop(0):
            weights[entry] += step
            if self.by_sums:
                memory[2 * entry] += step
                memory[2 * entry + 1] += visits
            else:
                memory[entry] += visits
        return Tally(moves=MOVES)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learners are in this process."""
    context = SimpleNamespace(get_node_id=lambda: "here")
    monkeypatch.setattr(training, "need_ray", lambda: SimpleNamespace(get_runtime_context=lambda: context))


@pytest.fixture
def averaging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every adjustment is a full step, so that changes become one by their average, which is easily done by hand."""
    monkeypatch.setattr(copies, "full_step", lambda rates, visits: 1.0)


def taught(
    monkeypatch: pytest.MonkeyPatch, ray: OneProcess, config: TrainConfig, lessons: list[list[Lesson]]
) -> RayTrainer:
    """A driver of learners who each have their own lessons."""
    left = iter(lessons)
    monkeypatch.setattr(training, "make_trainer", lambda config: ByHand(config, next(left)))
    return RayTrainer(ray, config, len(lessons), A_MOMENT)


def weights_of(ray: OneProcess) -> list[list[float]]:
    """The weights of every copy once the common changes that are still on their way have reached it."""
    return [actor.worker.copy.weights.tolist() for actor in ray.actors]


def deliver(trainer: RayTrainer) -> None:
    for learner in trainer.learners:
        for number in sorted(trainer.common):
            if number >= learner.knows:
                learner.actor.worker.copy.absorb(number, trainer.common[number][0].content)


def only(**entries: float) -> list[float]:
    """Sixteen weights: those of some entries, e3 is entry 3, and 0."""
    return [entries.get(f"e{k}", 0.0) for k in range(16)]


FIRST: list[Lesson] = [
    [(3, 4, 1), (5, 2, 7)],
    [(3, 8, 1)],
    [(5, -1, 1)],
    [],
]
SECOND: list[Lesson] = [
    [(3, 0, 3)],  # three visits that say 0 against one that says 4: together 1
    [(3, -4, 1), (9, 6, 2)],  # -4 against 8: together 2
    [(5, 3, 3)],  # three times 3 against -1: together 2
    [(3, 5, 2)],  # alone: 5
]


@pytest.mark.usefixtures("here", "averaging")
@pytest.mark.parametrize("rule", ["td", "tc"])
def test_every_copy_becomes_the_common_one(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """What was learnt in one round is merged during the next, and arrives at the beginning of the one after."""
    ray = OneProcess(room=2)
    trainer = taught(monkeypatch, ray, replace(CONFIG, rule=rule), [FIRST, SECOND])
    left = 4 * 2 * MOVES
    while left > 0:
        left -= trainer.advance(left, NO_LIMIT, 0.1).moves
    one, other = (actor.worker.trainer.seen for actor in ray.actors)
    assert one[0] == other[0] == only()
    assert (one[1], other[1]) == (only(e3=4, e5=2), only())  # nothing has arrived yet
    assert (one[2], other[2]) == (only(e3=1 + 8, e5=2), only(e3=1 - 4, e5=2, e9=6))  # the first round has
    assert (one[3], other[3]) == (only(e3=3, e5=2 - 1, e9=6), only(e3=3, e5=2 + 3, e9=6))
    assert trainer.weights().tolist() == only(e3=1 + 2 + 5, e5=2 + 2, e9=6)
    deliver(trainer)
    assert weights_of(ray) == [only(e3=8, e5=4, e9=6)] * 2
    assert (trainer.traffic.rounds, trainer.traffic.lost, left) == (4, 0, 0)
    if rule == "tc":  # sums over all errors, and over their sizes
        sums = {3: (4 + 0 + 8 - 4 + 5, 1 + 3 + 1 + 1 + 2), 5: (2 - 1 + 3, 7 + 1 + 3), 9: (6, 2)}
        expected = [x for k in range(16) for x in sums.get(k, (0, 0))]
        assert trainer.state()["memory"].tolist() == expected
        assert [actor.worker.copy.memory.tolist() for actor in ray.actors] == [expected] * 2


@pytest.mark.usefixtures("here", "averaging")
@pytest.mark.parametrize("rule", ["td", "tc"])
def test_a_learner_that_comes_late_starts_from_the_common_copy(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """It comes for the third round, when the first is merged and the second is not."""
    monkeypatch.setattr(training, "GATHERING", 0.0)  # the first round waits for nobody else
    ray = OneProcess(room=1)
    late: list[Lesson] = [[(3, 2, 3)], [(5, 1, 1)]]
    trainer = taught(monkeypatch, ray, replace(CONFIG, rule=rule), [FIRST, late])
    left = 2 * MOVES + 2 * 2 * MOVES
    while left > 0:
        if trainer.round == 2:
            ray.room = 2
        left -= trainer.advance(left, NO_LIMIT, 0.1).moves
    one, other = (actor.worker.trainer.seen for actor in ray.actors)
    assert one[2] == only(e3=4 + 8, e5=2)
    assert other == [only(e3=4, e5=2), only(e3=4 + 8 + 2, e5=2)]
    deliver(trainer)
    assert weights_of(ray) == [trainer.weights().tolist()] * 2
    assert trainer.weights().tolist() == only(e3=4 + 8 + 2, e5=2 - 1 + 1)


@pytest.mark.usefixtures("here", "averaging")
def test_everybody_starts_again_from_a_stored_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, sums and the time that was spent go on; learners are called anew."""
    config = replace(CONFIG, rule="tc", seconds=1000.0)
    ray = OneProcess(room=1)
    before = taught(monkeypatch, ray, config, [FIRST[:1]])
    before.advance(MOVES, NO_LIMIT, 0.1)
    stored = {name: array.copy() for name, array in before.state().items()}
    stored["seconds"][0] = 999.0
    again = OneProcess(room=1)
    after = taught(monkeypatch, again, config, [SECOND[:1]])
    after.restore(stored)
    assert after._seconds_left == 1.0
    after.advance(MOVES, NO_LIMIT, 0.1)
    assert again.actors[0].worker.trainer.seen == [only(e3=4, e5=2)]
    assert after.weights().tolist() == only(e3=4, e5=2)
    assert after.state()["memory"][6:12].tolist() == [4, 1 + 3, 0, 0, 2, 7]
    assert after.state()["seconds"][0] == 999.0 + after.traffic.seconds


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", [3, 2**64 - 1])
def test_all_learners_play_other_games(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every generator of every thread of every learner is another one, in games and in between."""
    ray = OneProcess(room=5)
    trainer = taught(monkeypatch, ray, replace(CONFIG, seed=seed, threads=2), [[[]]] * 5)
    trainer.advance(5 * MOVES, NO_LIMIT, 0.1)
    assert len(ray.configs) == 5
    assert ray.configs[0].seed == seed  # one learner alone plays what one machine plays
    game, network = CONFIG.the_game, CONFIG.the_network
    states = [
        new_thread_state(game, network, 1, config.seed, thread) for config in ray.configs for thread in range(2)
    ]
    generators = [int(rng) for state in states for rng in state.rng]
    assert len(set(generators)) == len(generators) == 5 * 2 * 2


@pytest.mark.usefixtures("here")
def test_real_trainers_end_up_alike() -> None:
    """No lessons: learners that play, a few moves a round."""
    ray = OneProcess(room=3)
    trainer = RayTrainer(ray, replace(CONFIG, network="tiny", rule="tc"), 3, 60.0)
    for _ in range(4):
        assert trainer.advance(3 * 40, NO_LIMIT, 1.0).moves >= 3 * 40
    assert trainer.traffic.rounds == 4
    assert np.abs(trainer.weights()).max() > 1
    deliver(trainer)
    for weights in weights_of(ray):
        np.testing.assert_allclose(weights, trainer.weights(), rtol=1e-5, atol=1e-4)
    states = [actor.worker.trainer.threads[0] for actor in ray.actors]
    assert len({tuple(state.board.tolist()) for state in states}) == 3
