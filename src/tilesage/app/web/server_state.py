"""What all visitors share: the threads, the players, the library of models and runs, the trainings."""

from __future__ import annotations

import asyncio
from collections import Counter

from tilesage.app.web.fields import Values
from tilesage.app.web.library import Library
from tilesage.app.web.limits import MOST_ADDRESSES, VisitorQueue, WorkerPool
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
        self.thinkers = WorkerPool(settings.threads, "thoughts", each=max(1, settings.threads - 1))
        self.uploads = asyncio.Semaphore(UPLOADS)
        self.uploading: set[str] = set()  # addresses
        self.visitors: Counter[str] = Counter()  # WebSockets, by address
        self.queues: dict[str, VisitorQueue] = {}  # of callers without a WebSocket, by address

    def queue(self, address: str) -> VisitorQueue:
        """The queue of an address; empty queues are forgotten now and then."""
        if len(self.queues) > MOST_ADDRESSES:
            self.queues = {key: queue for key, queue in self.queues.items() if queue.waiting}
        return self.queues.setdefault(address, VisitorQueue(address))

    async def player(self, queue: VisitorQueue, game: str, fields: Values) -> Player:
        """The player a visitor chose, by the names of an agent and of a model that this server knows."""
        spec = check_agent(fields["agent"], self.settings.think_seconds, self.agents.named_at_start)
        return await self.thinkers.run(queue, lambda: self.agents.player(game, spec, fields["model"]))

    def close(self) -> None:
        """Take no further jobs."""
        self.movers.close()
        self.thinkers.close()
