"""One network that several machines train: each on its own copy, with the changes averaged every few seconds.

`RayTrainer` is a trainer like those of one machine, so a run with its folder, metrics and checkpoints does not
know the difference. It runs in the driver, the process that the user started. A `Learner` trains on a node of the
Ray cluster, and a `RemoteLearner` is what the driver knows of it. One `advance` is one round of a few seconds. What
the copies changed in a round is averaged (learning/copies.py) while they are in the next one, and reaches them at the
start of the one after.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilesage.cluster.connection import build, check_build, cluster, explain, need_ray
from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.learning.config import TrainConfig, check_entries
from tilesage.learning.copies import Changes, Composition, Copy, apply_changes
from tilesage.learning.rules import UpdateRule
from tilesage.learning.runs import Maker
from tilesage.learning.trainer import Tally, Trainer, make_trainer
from tilesage.learning.weights import fresh_weights
from tilesage.networks.ntuple import evaluator

MERGE_SECONDS = 5.0
SILENCE = 120.0  # seconds after which a node that says nothing counts as lost
GATHERING = 30.0  # seconds that the first round waits for everybody
ANOTHER_SEED = 0x9E37_79B9_7F4A_7C15  # 2^64 / golden ratio: every learner plays other games
MOST_LOST = 20  # learners, beyond one a round: then something is wrong with all of them
NO_LIMIT = 1 << 60


@dataclass
class Report:
    """What one copy did in one round."""

    tally: Tally
    changes: Changes
    seconds: float  # of the whole round, merging included


class Learner:
    """On a node: a trainer, and the copy of the network it learns on."""

    def __init__(self, config: TrainConfig, wanted: str) -> None:
        check_build(wanted)
        self.trainer: Trainer = make_trainer(config)
        self.threads = config.threads
        rule = config.phase_list[0].rule
        self.by_sums = rule.merging == "sums"
        if not self.by_sums:
            count_visits = getattr(self.trainer, "count_visits", None)
            if count_visits is None:
                raise InputError(f"--rule {rule.name} on {config.device} is for one machine: on Ray take --rule tc")
            count_visits()
        self.state = self.trainer.state()
        self.live = np.shares_memory(self.state["weights"], self.trainer.state()["weights"])

    def hello(self) -> str:
        """On which node we are."""
        return str(need_ray().get_runtime_context().get_node_id())

    def begin(self, weights: Array, memory: Array) -> None:
        """Start from the common copy."""
        np.copyto(self.state["weights"], weights)
        if self.by_sums:
            np.copyto(self.state["memory"], memory)
        self.copy = Copy(self.state["weights"], self.state["memory"], self.by_sums)
        self._push()

    def learn(
        self, number: int, seconds: float, moves: int, rate: float, earlier: list[int], *common: Changes
    ) -> Report:
        """Take over the common changes of earlier rounds, learn for some seconds, and tell what changed."""
        begin = time.perf_counter()
        for which, changes in zip(earlier, common, strict=True):
            self.copy.absorb(which, changes)
        if earlier:
            self._push()
        tally = Tally()
        while tally.moves < moves and (not tally.moves or time.perf_counter() - begin < seconds):
            batch = min(self.trainer.stride, moves - tally.moves)
            tally.add(self.trainer.advance(batch, NO_LIMIT, rate))
        self._pull()
        changes = self.copy.collect(number, float(tally.moves * self.trainer.config.the_network.reads))
        return Report(tally, changes, time.perf_counter() - begin)

    def _push(self) -> None:
        """A trainer on a GPU has its arrays there: what we changed here goes back."""
        if not self.live:
            self.trainer.restore(self.state)

    def _pull(self) -> None:
        if not self.live:
            self.state = self.trainer.state()
            self.copy.weights, self.copy.memory = self.state["weights"], self.state["memory"]


@dataclass
class RemoteLearner:
    """A learner as the driver sees it."""

    actor: Any
    number: int
    hello: Any  # its first word, while it is on its way
    node: str = ""
    knows: int = 0  # rounds below this one are in its copy


@dataclass
class Traffic:
    """How much went between the machines, and what for."""

    up: int = 0  # bytes from the copies
    down: int = 0  # bytes to the copies
    rounds: int = 0
    seconds: float = 0.0
    merging: float = 0.0  # seconds of averaging, during which the copies learn on
    lost: int = 0  # learners that died
    touched: list[float] = field(default_factory=list)  # share of entries in each common change

    def summary(self) -> dict[str, Any]:
        """The figures of `--json`."""
        seconds = self.seconds or 1.0
        return {
            "rounds": self.rounds,
            "bytes_up_per_second": round(self.up / seconds),
            "bytes_down_per_second": round(self.down / seconds),
            "merging_seconds": round(self.merging, 3),
            "learners_lost": self.lost,
            "touched": round(float(np.mean(self.touched)), 4) if self.touched else 0.0,
        }


class RayTrainer:
    """See `Trainer`: it drives all learners and keeps the common copy of the network."""

    stride = NO_LIMIT

    def __init__(self, ray: Any, config: TrainConfig, nodes: int, merge_seconds: float = MERGE_SECONDS) -> None:
        check_settings(config, nodes, merge_seconds)
        self.ray, self.config, self.nodes, self.merge_seconds = ray, config, nodes, merge_seconds
        self.rule = config.phase_list[0].rule
        self.by_sums = self.rule.merging == "sums"
        network, known = config.the_network, evaluator(config.the_game, config.the_network)
        self._weights = fresh_weights(known.size, network, known.entries, config.optimism)
        self.memory = np.zeros(2 * known.size if self.by_sums else 2, np.float32)
        self.merger = Composition(known.size, self.by_sums)
        self.actor = ray.remote(num_cpus=config.threads, num_gpus=int(config.device == "cuda"))(Learner)
        self.rate = 1.0
        self.learners: list[RemoteLearner] = []
        self.starting: list[RemoteLearner] = []
        self.started = 0
        self.round = 0  # the next one to be started
        self.mark = 0.0  # when the last one ended
        self.running: dict[Any, RemoteLearner] = {}
        self.common: dict[int, Any] = {}  # round -> its common change, as long as somebody has not got it
        self.merged = 0  # rounds below this one are in the common copy
        self.spent = 0.0  # seconds of training before this trainer was made
        self.start: tuple[int, Any, Any] | None = None  # the common copy in the object store, and its round
        self.traffic = Traffic()

    def advance(self, moves: int, games: int, rate: float) -> Tally:
        """One round of all learners; the next one begins before this one is merged."""
        self.rate = rate
        if not self.running:
            self._launch(moves, rate)
            self.mark = time.perf_counter()
        reports, tally = self._results(), Tally()
        for report in reports:
            tally.add(report.tally)
        now = time.perf_counter()
        tally.seconds, self.mark = now - self.mark, now
        self.traffic.seconds += tally.seconds
        if not self._over(moves - tally.moves):
            self._launch(moves - tally.moves, rate)
        self._merge(reports)
        return tally

    def _over(self, moves: int) -> bool:
        """Is the budget spent? Half a round is not worth starting."""
        return moves <= 0 or (bool(self.config.seconds) and self._seconds_left < 0.5 * self.merge_seconds)

    @property
    def _seconds_left(self) -> float:
        return self.config.seconds - self.spent - self.traffic.seconds

    def _launch(self, moves: int, rate: float) -> None:
        """Start a round on everybody who is here, with the common changes they have not got yet."""
        self._welcome()
        seconds = self.merge_seconds
        if self.config.seconds:
            seconds = min(seconds, max(0.05, self._seconds_left))
        for learner in self.learners:
            earlier = [number for number in sorted(self.common) if number >= learner.knows]
            task = learner.actor.learn.remote(
                self.round,
                seconds,
                max(1, moves // len(self.learners)),
                rate,
                earlier,
                *(self.common[number][0] for number in earlier),
            )
            self.traffic.down += sum(self.common[number][1] for number in earlier)
            learner.knows = max([learner.knows, *(number + 1 for number in earlier)])
            self.running[task] = learner
        self.round, self.start = self.round + 1, None
        for number in [number for number in self.common if all(number < learner.knows for learner in self.learners)]:
            del self.common[number]

    def _results(self) -> list[Report]:
        """Wait for the round; learners that died or fell silent are left behind, and replaced when there is room."""
        reports, limit = [], time.monotonic() + SILENCE + 3 * self.merge_seconds
        while self.running:
            done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=1.0)
            for task in done:
                learner = self.running.pop(task)
                try:
                    reports.append(self.ray.get(task))
                except self.ray.exceptions.RayActorError:
                    self._give_up(learner)
                except self.ray.exceptions.RayError as error:
                    raise explain(error) from None
            if not done and time.monotonic() > limit:
                for learner in self.running.values():
                    self.ray.kill(learner.actor)
                    self._give_up(learner)
                self.running.clear()
        return reports

    def _give_up(self, learner: RemoteLearner) -> None:
        self.learners.remove(learner)
        self.traffic.lost += 1

    def _welcome(self) -> None:
        """Call for as many learners as are wanted; let in those that have arrived. One must be there to go on."""
        begin = time.monotonic()
        while True:
            while len(self.learners) + len(self.starting) < self.nodes:
                self._start_one()
            if not self.starting:
                return
            waits = not self.learners or not self.round
            arrived, _ = self.ray.wait([learner.hello for learner in self.starting], timeout=1.0 if waits else 0.0)
            for learner in [learner for learner in self.starting if learner.hello in arrived]:
                self._admit(learner)
            waited = time.monotonic() - begin
            if self.learners and (self.round or waited > GATHERING):
                return
            if not self.learners and waited > SILENCE:
                raise InputError(
                    f"no node of the cluster has {self.config.threads} free processors: lower --threads, or add nodes"
                )

    def _start_one(self) -> None:
        """Ask for a learner; it comes when some node has room for it."""
        seed = (self.config.seed + self.started * ANOTHER_SEED) % 2**64
        actor = self.actor.options(scheduling_strategy="SPREAD").remote(replace(self.config, seed=seed), build())
        self.starting.append(RemoteLearner(actor, self.started, actor.hello.remote()))
        self.started += 1

    def _admit(self, learner: RemoteLearner) -> None:
        """A learner that has arrived starts from the common copy as it is now."""
        self.starting.remove(learner)
        try:
            learner.node = self.ray.get(learner.hello)
        except self.ray.exceptions.RayActorError as error:
            if "creation task" in str(error) or self.traffic.lost > MOST_LOST + self.traffic.rounds:
                raise explain(error) from None
            self.traffic.lost += 1
            return
        if self.start is None or self.start[0] != self.merged:
            self.start = self.merged, self.ray.put(self._weights), self.ray.put(self.memory)
        learner.actor.begin.remote(*self.start[1:])
        learner.knows = self.merged
        self.learners.append(learner)

    def _merge(self, reports: list[Report]) -> None:
        begin = time.perf_counter()
        common = self.merger.of([report.changes for report in reports], self.rate, self.memory)
        apply_changes(self._weights, self.memory, common, self.by_sums)
        self.common[self.merged_round] = (self.ray.put(common), common.bytes)
        self.merged = self.merged_round + 1
        self.traffic.up += sum(report.changes.bytes for report in reports)
        self.traffic.touched.append(len(common.entries) / len(self._weights))
        self.traffic.rounds += 1
        self.traffic.merging += time.perf_counter() - begin

    @property
    def merged_round(self) -> int:
        """The round whose reports are being merged: the last that nobody is in."""
        return self.round - 2 if self.running else self.round - 1

    def begin_phase(self, rule: UpdateRule, soften: bool = False) -> None:
        """Refused: phases are for one machine."""
        raise InputError("--phases is for one machine: on Ray train with one rule, then go on from its model")

    def average(self, afresh: bool = False) -> None:
        """Nothing: the average of the copies is the network."""

    def weights(self) -> Array:
        """A copy of the common weights."""
        return self._weights.copy()

    def state(self) -> dict[str, Array]:
        """What a checkpoint keeps: the common copy, and the time that it took."""
        seconds = np.array([self.spent + self.traffic.seconds])
        return {"weights": self._weights, "memory": self.memory, "seconds": seconds}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Everybody starts again from this copy."""
        np.copyto(self._weights, state["weights"])
        np.copyto(self.memory, state["memory"])
        self.spent = float(state["seconds"][0]) if "seconds" in state else 0.0
        self.close()

    def close(self) -> None:
        """End all learners."""
        for learner in [*self.learners, *self.starting]:
            with contextlib.suppress(Exception):
                self.ray.kill(learner.actor)
        self.learners, self.starting, self.running, self.common = [], [], {}, {}


def check_settings(config: TrainConfig, nodes: int, merge_seconds: float) -> None:
    """Refuse settings with which copies of a network cannot be averaged."""
    if nodes < 1 or not merge_seconds > 0:
        raise InputError("--nodes is a whole number from 1 on, --merge-seconds a time above 0")
    if config.phases:
        raise InputError("--phases is for one machine: on Ray train with one rule, then go on from its model")
    if config.exact:
        raise InputError("--exact is for one machine: on Ray every machine learns apart")
    rule = config.phase_list[0].rule
    if not rule.merging:
        raise InputError(f"--rule {rule.name} is for one machine: it does not say how its copies are merged")
    check_entries(evaluator(config.the_game, config.the_network).size)
    if config.stages:
        raise InputError("--stages is for one machine: unlearnt entries of later stages cannot be averaged")


@contextlib.contextmanager
def trainers_on_ray(nodes: int, merge_seconds: float = MERGE_SECONDS, address: str | None = None) -> Iterator[Maker]:
    """A maker of trainers over the nodes of a cluster; without an address, over `nodes` processes on this machine."""
    with contextlib.ExitStack() as stack:

        def make(config: TrainConfig) -> Trainer:
            check_settings(config, nodes, merge_seconds)
            room = 16 * evaluator(config.the_game, config.the_network).size * (nodes + 1)
            ray = stack.enter_context(cluster(address, nodes * config.threads, room))
            trainer = RayTrainer(ray, config, nodes, merge_seconds)
            stack.callback(trainer.close)
            return trainer

        yield make
