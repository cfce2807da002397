"""What all visitors share: the threads, the players, the library of models and runs, the trainings."""

from __future__ import annotations

import asyncio

from tilesage.app.web.fields import Fields
from tilesage.app.web.library import Library
from tilesage.app.web.limits import VisitorQueue, WorkerPool
from tilesage.app.web.players import AgentCache, Player, check_agent
from tilesage.app.web.settings import Settings
from tilesage.app.web.training import Trainings

UPLOADS = 4  # records files that may be on their way at once; each is held in memory


class ServerState:
    """Made once, when the server starts; closed when it ends."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.library = Library(settings)
        self.agents = AgentCache(self.library)
        self.trainings = Trainings(settings, self.library)
        self.movers = WorkerPool(1, "moves")  # a move takes microseconds and never waits for a thought
        self.thinkers = WorkerPool(settings.threads, "thoughts")
        self.uploads = asyncio.Semaphore(UPLOADS)
        self.visitors = 0
        self.queues: dict[str, VisitorQueue] = {}  # of callers without a WebSocket, by address

    def queue(self, address: str) -> VisitorQueue:
        """The queue of an address; empty queues are forgotten now and then."""
        if len(self.queues) > 1000:
            self.queues = {key: queue for key, queue in self.queues.items() if queue.waiting}
        return self.queues.setdefault(address, VisitorQueue())

    async def player(self, queue: VisitorQueue, game: str, fields: Fields) -> Player:
        """The player a visitor chose, by the names of an agent and of a model that this server knows."""
        spec = check_agent(fields.text("agent", 40, "best"), self.settings.think_seconds, self.agents.named_at_start)
        model = fields.text("model", 200, "")
        return await self.thinkers.run(queue, lambda: self.agents.player(game, spec, model))

    async def close(self) -> None:
        """Stop the trainings, and take no further jobs."""
        await self.trainings.close()
        self.movers.close()
        self.thinkers.close()
