"""What one visitor, and one address, may ask for, so that nobody's flood or long thought is felt by the others.

Work goes through a `WorkerPool`: each visitor has a queue, and of each queue at most one job runs. Of all queues of
an address at most so many run that a thread is left for others, however many connections it has opened. A thread
cannot be interrupted, so a job that nobody waits for any more holds its queue until it is done.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from tilesage.core.errors import InputError

T = TypeVar("T")

BODY_BYTES = 64 * 1024  # of a request, except records
RECORDS_BYTES = 8 * 1024 * 1024
MESSAGE_BYTES = 256 * 1024  # of a WebSocket message: a resumed game of the longest kind fits
BODY_SECONDS = 10.0
MOST_MOVES = 120_000  # of a game that is resumed or replayed; no game of 2048 has been longer
MESSAGES_A_SECOND = 60.0
MESSAGES_AT_ONCE = 120.0
ERRORS_FORGIVEN = 40  # refused messages, after which a visitor is disconnected
MOST_ADDRESSES = 1000  # that are remembered
MOST_WAITING = 12  # jobs that one visitor may have in the queue
UNSEEN_FRAMES = 6  # a watcher who does not look is not played to
BOARD_CHARACTERS = 400


class Refused(InputError):
    """What this server does for nobody, or not for this one."""

    status = 403


class Missing(InputError):
    """There is nothing of this name."""

    status = 404


class TooLong(InputError):
    """The body is longer than this address takes."""

    status = 413


class Busy(InputError):
    """This visitor already has enough waiting."""

    status = 429

    def __init__(self) -> None:
        super().__init__("too many requests at once")


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
        """Take one thing out; the seconds to wait before it may pass."""
        now = time.monotonic()
        self.level = min(self.depth, self.level + (now - self.at) * self.rate) - 1
        self.at = now
        return 0.0 if self.level >= 0 else -self.level / self.rate


def caller(host: str) -> str:
    """The address that is limited: of IPv6 the network that a household is given.

    >>> caller("10.0.0.7"), caller("2001:db8::1:2"), caller("testclient")
    ('10.0.0.7', '2001:db8::', 'testclient')
    """
    try:
        network = ipaddress.ip_network((host.partition("%")[0], 64 if ":" in host else 32), strict=False)
    except ValueError:
        return host
    return str(network.network_address)


class VisitorQueue:
    """The jobs of one visitor, of which one runs at a time."""

    def __init__(self, address: str = "") -> None:
        self.address = address
        self.turn = asyncio.Lock()
        self.waiting = 0  # jobs, the one that runs included

    def leave(self) -> None:
        """A job is done, or given up."""
        self.waiting -= 1


class WorkerPool:
    """A few threads that run the jobs of all visitors, first come, first served, and `each` at most of an address."""

    def __init__(self, threads: int, name: str, each: int = 1) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix=f"tilesage-{name}")
        self.free_threads = asyncio.Semaphore(threads)
        self.shares: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(each))

    async def run(self, queue: VisitorQueue, job: Callable[[], T]) -> T:
        """The result of the job, once its turn came; Busy when this visitor has too many waiting."""
        if queue.waiting >= MOST_WAITING:
            raise Busy
        if len(self.shares) > MOST_ADDRESSES:  # forget those that have nothing waiting
            for address in [name for name, share in self.shares.items() if not share.locked()]:
                del self.shares[address]
        with ExitStack() as held:
            queue.waiting += 1
            held.callback(queue.leave)
            for place in (queue.turn, self.shares[queue.address], self.free_threads):
                await place.acquire()
                held.callback(place.release)
            work = asyncio.get_running_loop().run_in_executor(self.executor, job)
            # Given up when the thread is done, even if the visitor has gone, or asked for something else, by then.
            work.add_done_callback(partial(_done, held.pop_all()))
            return await asyncio.shield(work)

    def close(self) -> None:
        """Take no further jobs, and forget those that wait."""
        self.executor.shutdown(wait=False, cancel_futures=True)


def _done(held: ExitStack, work: asyncio.Future[Any]) -> None:
    held.close()
    if not work.cancelled():
        work.exception()  # seen here too, so that nothing is reported when the visitor has gone
