"""What one visitor may ask for, so that nobody's flood, nonsense or long thought is felt by the others.

Work goes through an `EngineRoom`: each visitor has a lane, and of each lane at most one job is inside. A visitor who
sends a thousand requests waits behind their own, not in front of everyone else's. A thread cannot be interrupted, so
a job that nobody waits for any more stays inside its lane until it is done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

BODY_BYTES = 64 * 1024  # of a request, except records
RECORDS_BYTES = 8 * 1024 * 1024
MESSAGE_BYTES = 256 * 1024  # of a WebSocket message: a resumed game of the longest kind fits
BODY_SECONDS = 10.0
MOST_MOVES = 120_000  # of a game that is resumed or replayed; no game of 2048 has been longer
MESSAGES_A_SECOND = 60.0
MESSAGES_AT_ONCE = 120.0
ERRORS_FORGIVEN = 40  # refused messages, after which a visitor is shown the door
QUEUE = 12  # jobs that one visitor may have waiting
UNSEEN_FRAMES = 6  # a watcher who does not look is not played to
BOARD_CHARACTERS = 400


class Busy(Exception):
    """This visitor already has enough waiting; the answer is 429."""


class Gone(Exception):
    """The visitor has left, or has not read for too long."""


@dataclass
class Bucket:
    """Lets `rate` things pass a second, and `depth` at once; says how long to wait before the next."""

    rate: float
    depth: float
    level: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.level, self.at = self.depth, time.monotonic()

    def wait(self) -> float:
        now = time.monotonic()
        self.level = min(self.depth, self.level + (now - self.at) * self.rate) - 1
        self.at = now
        return 0.0 if self.level >= 0 else -self.level / self.rate


class Lane:
    """One visitor's place in the queue."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.waiting = 0  # jobs, the one inside included

    def leave(self) -> None:
        self.waiting -= 1


class EngineRoom:
    """A few threads for the engine; first come, first served among visitors, one job each."""

    def __init__(self, threads: int, name: str) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix=f"tilesage-{name}")
        self.seats = asyncio.Semaphore(threads)

    async def run(self, lane: Lane, job: Callable[[], T]) -> T:
        if lane.waiting >= QUEUE:
            raise Busy
        with ExitStack() as held:
            lane.waiting += 1
            held.callback(lane.leave)
            await lane.turn.acquire()
            held.callback(lane.turn.release)
            await self.seats.acquire()
            held.callback(self.seats.release)
            work = asyncio.get_running_loop().run_in_executor(self.pool, job)
            # Given up when the thread is done, even if the visitor has gone, or asked for something else, by then.
            work.add_done_callback(partial(_done, held.pop_all()))
            return await asyncio.shield(work)

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def _done(held: ExitStack, work: asyncio.Future[Any]) -> None:
    held.close()
    if not work.cancelled():
        work.exception()  # seen here too, so that nothing is reported when the visitor has gone
