"""Evaluation on a Ray cluster: the same games as on one machine, dealt out to all of its processors.

A task is a run of game numbers. Chance and dice of a game depend on the seed and its number alone, so it does not
matter which node plays it, or whether a node dies over it and another plays it again: a task has one result. The
weights travel once to each node, where all its processes read the same copy in the object store.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tilesage import games as all_games
from tilesage.cluster.connection import build, check_build, cluster, cpus, explain
from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.interrupts import postponed
from tilesage.evaluation.evaluate import Evaluating, Evaluation, LocalWorker, Played
from tilesage.networks.files import Model
from tilesage.networks.patterns import Network
from tilesage.records.record import Record
from tilesage.records.statistics import Statistics
from tilesage.search.agents import Agent, make_agent
from tilesage.search.python_players import PythonAgent

TASK_SECONDS = 0.5  # a task shorter than this is mostly overhead: the next one gets twice as many games
SHARE_SECONDS = 0.02  # … and shorter than this times the workers, it would keep the driver busy (about 6 ms a task)
RETRIES = 5  # how often the games of a task are played again because its process or node died


@dataclass(frozen=True)
class Order:
    """Who plays what, in words that travel; the weights travel beside it."""

    agent: str
    game: str
    parameters: dict[str, float]
    network: Network | None
    of: str
    training: dict[str, Any]
    seed: int
    keep: bool
    build: str = field(default_factory=build)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def worker(self, weights: Array | None) -> LocalWorker:
        """The player at its games, on the node."""
        game = all_games.get(self.game, **self.parameters)
        model = None
        if self.network is not None and weights is not None:
            model = Model(game, self.network, weights, self.of, self.training)
        return LocalWorker(make_agent(self.agent, game, model), self.keep)


def order_of(agent: Agent, seed: int, keep: bool) -> Order:
    """The order for this agent's games."""
    model = agent.model
    return Order(
        agent=agent.spec,
        game=agent.game.name,
        parameters=dict(agent.game.parameters),
        network=model.network if model else None,
        of=model.of if model else "afterstates",
        training=dict(model.training) if model else {},
        seed=seed,
        keep=keep,
    )


_workers: dict[str, LocalWorker] = {}  # of this process: one evaluation at a time


def play_games(order: Order, weights: Array | None, first: int, games: int) -> tuple[int, list[Played]]:
    """On a node: games first … first + games - 1, and the process that played them."""
    if order.token not in _workers:
        check_build(order.build)
        _workers.clear()
        _workers[order.token] = order.worker(weights)
    worker, end, played = _workers[order.token], first + games, []
    while first < end:
        played.append(worker.play(order.seed, first, end - first))
        first += len(played[-1])
    return os.getpid(), played


def evaluate_on_ray(
    agent: Agent,
    games: int,
    seed: int = 1,
    workers: int | None = None,
    *,
    address: str | None = None,
    keep: Callable[[Record], None] | None = None,
    progress: Callable[[Statistics, float], None] | None = None,
) -> Evaluation:
    """`evaluate` on a Ray cluster: the same result, bit for bit, however many workers there are or die.

    Without an address, a cluster of `workers` processes on this machine; with one, all processors of that cluster, or
    `workers` of them.
    """
    if games < 1 or (workers is not None and workers < 1):
        raise InputError("games and workers are whole numbers from 1 on")
    if not 0 <= seed < 2**64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed}")
    if isinstance(agent, PythonAgent):
        raise InputError(f"{agent.spec} is plain Python and plays on this machine: leave out --on ray")
    room = agent.model.weights.nbytes if agent.model else 0
    with cluster(address, workers, room) as ray:
        return OnRay(ray, agent, games, seed, workers, keep, progress).run()


class OnRay(Evaluating):
    """Deals out the games and collects them in order, as the threads of one machine do.

    Tasks are never cancelled: in a connection of our own they end with it, in somebody else's with their last game.
    Ray (2.60) aborts the whole process where a task ends while it is being cancelled: "Tried to complete task that
    was not pending", in 2 of 12 evaluations on a busy machine whose tasks all failed at once.
    """

    def __init__(
        self,
        ray: Any,
        agent: Agent,
        games: int,
        seed: int,
        limit: int | None,
        keep: Callable[[Record], None] | None,
        progress: Callable[[Statistics, float], None] | None,
    ) -> None:
        super().__init__(agent, games, seed, min(games, limit or cpus(ray)), keep, progress)
        self.ray, self.limit = ray, limit
        self.play = ray.remote(num_cpus=1, max_retries=RETRIES)(play_games)
        self.order = ray.put(order_of(agent, seed, keep is not None))
        self.weights = ray.put(agent.model.weights) if agent.model else None
        self.dealt: dict[Any, float] = {}  # task -> when it was handed out
        self.size = 1
        self.tasks = 0
        self.hands: Counter[int] = Counter()  # process -> games

    def run(self) -> Evaluation:
        """Play all games on the cluster, until they are finished or the user stops them."""
        begin = time.perf_counter()
        try:
            while self.next_game < self.games or self.dealt:
                self._deal()
                self._collect()
                with postponed():  # a game that is counted is recorded too
                    self._count()
                if self.progress is not None:
                    self.progress(self.statistics, time.perf_counter() - begin)
        except KeyboardInterrupt:
            pass  # the games that are finished count
        except self.ray.exceptions.RayError as error:
            raise explain(error) from None
        seconds = time.perf_counter() - begin
        return self._result(seconds)

    def _deal(self) -> None:
        """Two tasks a processor, so that none waits for us; processors that join the cluster are used."""
        if self.limit is None:
            self.workers = min(self.games, cpus(self.ray))
        while len(self.dealt) < (self.limit or 2 * self.workers):
            first, size = self._take(self.size)
            if not size:
                return
            self.dealt[self.play.remote(self.order, self.weights, first, size)] = time.perf_counter()

    def _collect(self) -> None:
        done, _ = self.ray.wait(list(self.dealt), num_returns=len(self.dealt), timeout=0.1)
        for task in done:
            process, played = self.ray.get(task)
            del self.dealt[task]
            self.tasks += 1
            for games in played:
                self.hands[process] += len(games)
                self._deliver(games)
            if sum(games.seconds for games in played) < max(TASK_SECONDS, SHARE_SECONDS * self.workers):
                self.size = min(2 * self.size, max(1, self.games // (8 * self.workers)))
