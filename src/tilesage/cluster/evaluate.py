"""Evaluation on a Ray cluster: the same games as on one machine, dealt out to all of its processors.

A task is a run of game numbers. Chance and dice of a game depend on the seed and its number alone, so it does not
matter which node plays it, or whether a node dies over it and another plays it again: a task has one result. The
weights travel once to each node, where all its processes read the same copy in the object store.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from tilesage import games as all_games
from tilesage.cluster.connection import build, check_build, cluster, cpus, explain
from tilesage.core.errors import InputError, check_seed
from tilesage.evaluation.evaluate import Crew, Evaluating, Evaluation, LocalWorker, Played, whole_portion
from tilesage.networks.files import Model
from tilesage.records.record import Record
from tilesage.records.statistics import Statistics
from tilesage.search.agents import Agent, make_agent
from tilesage.search.python_players import PythonAgent

TASK_SECONDS = 0.5  # a task shorter than this is mostly overhead: the next one gets twice as many games
SHARE_SECONDS = 0.02  # … and shorter than this times the workers, it would keep the driver busy (about 6 ms a task)
RETRIES = 5  # how often the games of a task are played again because its process or node died


@dataclass(frozen=True)
class Order:
    """Who plays what, in words that travel; the model travels beside it."""

    agent: str
    game: str
    parameters: dict[str, float]
    seed: int
    keep: bool
    build: str = field(default_factory=build)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def worker(self, model: Model | None) -> LocalWorker:
        """The player at its games, on the node."""
        game = all_games.get(self.game, **self.parameters)
        return LocalWorker(make_agent(self.agent, game, model), self.keep)


def order_of(agent: Agent, seed: int, keep: bool) -> Order:
    """The order for this agent's games."""
    if not agent.game.is_registered():
        raise InputError(f"no other process finds this {agent.game}: write it in a module, my_module:my_game")
    return Order(agent.spec, agent.game.name, dict(agent.game.parameters), seed, keep)


_workers: dict[str, LocalWorker] = {}  # of this process: one evaluation at a time


def play_games(order: Order, model: Model | None, first: int, games: int) -> list[Played]:
    """On a node: games first … first + games - 1."""
    if order.token not in _workers:
        check_build(order.build)
        _workers.clear()
        _workers[order.token] = order.worker(model)
    return whole_portion(_workers[order.token], order.seed, first, games)


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
    check_seed(seed)
    if isinstance(agent, PythonAgent):
        raise InputError(f"{agent.spec} is plain Python and plays on this machine: leave out --on ray")
    room = agent.model.weights.nbytes if agent.model else 0
    with cluster(address, workers, room) as ray:
        return OnRay(ray, agent, games, seed, workers, keep, progress).run()


class RayCrew(Crew):
    """The processors of a cluster.

    Tasks are never cancelled: in a connection of our own they end with it, in somebody else's with their last game.
    Ray (2.60) aborts the whole process where a task ends while it is being cancelled: "Tried to complete task that
    was not pending", in 2 of 12 evaluations on a busy machine whose tasks all failed at once.
    """

    def __init__(self, ray: Any, order: Order, model: Model | None) -> None:
        super().__init__([])
        self.play = ray.remote(num_cpus=1, max_retries=RETRIES)(play_games)
        self.order, self.model = ray.put(order), ray.put(model)

    def submit(self, seed: int, first: int, games: int) -> Future[list[Played]]:
        future: Future[list[Played]] = self.play.remote(self.order, self.model, first, games).future()
        return future


class OnRay(Evaluating):
    """Deals out the games to a cluster, and counts them as on one machine."""

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
        self.chunk = max(TASK_SECONDS, SHARE_SECONDS * self.workers)

    def _crew(self) -> Crew:
        order, model = order_of(self.agent, self.seed, self.keep is not None), self.agent.model
        return RayCrew(self.ray, order, replace(model, path=None) if model else None)  # nodes do not see our files

    @property
    def outstanding(self) -> int:
        """Two tasks a processor; processors that join the cluster are used."""
        if self.limit is None:
            self.workers = min(self.games, cpus(self.ray))
        return self.limit or 2 * self.workers

    def run(self) -> Evaluation:
        """Play all games on the cluster, until they are finished or the user stops them."""
        try:
            return super().run()
        except self.ray.exceptions.RayError as error:
            raise explain(error) from None
