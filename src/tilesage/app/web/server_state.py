"""What all visitors share: the threads, the players, the library of models and runs, the trainings."""

from __future__ import annotations

import asyncio

from tilesage.app.web.fields import Fields
from tilesage.app.web.library import Library
from tilesage.app.web.limits import EngineRoom, Lane
from tilesage.app.web.players import Cast, Player, check_agent
from tilesage.app.web.settings import Settings
from tilesage.app.web.training import Trainings

UPLOADS = 4  # records files that may be on their way at once; each is held in memory


class Shop:
    """Made once, when the server starts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.library = Library(settings)
        self.cast = Cast(self.library)
        self.trainings = Trainings(settings, self.library)
        self.quick = EngineRoom(1, "moves")  # a move takes microseconds and never waits for a thought
        self.thinkers = EngineRoom(settings.threads, "thoughts")
        self.uploads = asyncio.Semaphore(UPLOADS)
        self.visitors = 0
        self.lanes: dict[str, Lane] = {}  # of callers without a WebSocket, by address

    def lane(self, address: str) -> Lane:
        """The lane of an address; lanes in which nobody waits are forgotten now and then."""
        if len(self.lanes) > 1000:
            self.lanes = {key: lane for key, lane in self.lanes.items() if lane.waiting}
        return self.lanes.setdefault(address, Lane())

    async def player(self, lane: Lane, game: str, fields: Fields) -> Player:
        """The player a visitor chose, by the names of an agent and of a model that this server knows."""
        spec = check_agent(fields.text("agent", 40, "best"), self.settings.think_seconds, self.cast.guests)
        model = fields.text("model", 200, "")
        return await self.thinkers.run(lane, lambda: self.cast.player(game, spec, model))

    async def close(self) -> None:
        await self.trainings.close()
        self.quick.close()
        self.thinkers.close()
