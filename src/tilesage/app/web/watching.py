"""An agent plays and a visitor watches: from one move a second to as fast as it goes.

Frames are pushed at most about thirty a second, whatever the speed, and only as long as the visitor acknowledges
them: a page that hangs or sleeps stops its own game and nobody else's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilesage.app.web.limits import UNSEEN_FRAMES, Gone, VisitorQueue, WorkerPool
from tilesage.app.web.players import Player, Thought
from tilesage.app.web.positions import LETTERS, moved, start_state, told
from tilesage.core.errors import InputError
from tilesage.games import State

FRAMES_A_SECOND = 30.0
BATCH_SECONDS = 0.02  # of full speed before the thread is handed to the next visitor
MOST_IN_A_BATCH = 1 << 15  # moves
PAUSE_AT_THE_END = 1.5  # seconds in which a finished game can be seen, at slow speeds
SLOW = 10.0  # moves a second up to which it matters
log = logging.getLogger("tilesage.web")
Push = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass
class Played:
    """What a batch of moves gave: the last move in full, the others by their number."""

    before: State
    action: int
    after: State
    thought: Thought  # about the last move
    letters: str
    seconds: float  # spent thinking


@dataclass
class Watched:
    """The game on the screen and the tally of those before it."""

    game: str
    player: Player
    seed: int
    state: State
    games: int = 0
    total: int = 0


class Watcher:
    """One visitor's Watch tab: the game that an agent plays there, and how fast it is shown."""

    def __init__(self, pool: WorkerPool, push: Push, queue: VisitorQueue) -> None:
        self.pool, self.push, self.queue = pool, push, queue
        self.watched: Watched | None = None
        self.speed, self.paused, self.steps = 1.0, True, 0
        self.frame = self.seen = 0
        self.wake = asyncio.Event()
        self.recent: deque[tuple[float, int]] = deque(maxlen=64)  # (when, moves) of the frames of the last seconds
        self.task: asyncio.Task[None] | None = None

    def start(self, state: State, player: Player, seed: int, speed: float, paused: bool) -> dict[str, Any]:
        """The game that this seed began, from this position on; further ones follow with the next seeds."""
        self.watched = Watched(state.game.name, player, seed, state)
        self.steps = 0
        self.control(speed, paused)
        if self.task is None:
            self.task = asyncio.create_task(self._until_gone())
        return {**told(self.watched.state), "seed": str(seed)}

    def control(self, speed: float, paused: bool) -> None:
        """`speed` in moves a second; 0 is as fast as it goes."""
        self.speed, self.paused = speed, paused
        self.recent.clear()
        self.wake.set()

    def step(self) -> None:
        """Pause, and play one move."""
        self._now()
        self.paused, self.steps = True, min(self.steps + 1, 10)
        self.wake.set()

    def acknowledge(self, frame: int) -> None:
        """The visitor has seen this frame: more may be sent."""
        self.seen = max(self.seen, min(frame, self.frame))
        self.wake.set()

    def close(self) -> None:
        """The visitor has left."""
        if self.task:
            self.task.cancel()

    def _now(self) -> Watched:
        if self.watched is None:
            raise InputError("start a game to watch first")
        return self.watched

    async def _until_gone(self) -> None:
        with contextlib.suppress(Gone):
            await self._play()

    async def _play(self) -> None:
        due = 0.0
        while True:
            await self._allowed()
            now, stepping = self._now(), self.steps > 0
            self.steps = max(0, self.steps - 1)
            try:
                if now.state.over:
                    await self._next_game(now)
                    continue
                many = not stepping and (self.speed == 0 or self.speed > FRAMES_A_SECOND)
                batch = max(1, round(self.speed / FRAMES_A_SECOND)) if self.speed else MOST_IN_A_BATCH
                played = await self.pool.run(self.queue, partial(_play_batch, now, batch if many else 1))
            except Exception as error:
                await self._failed(error)
                continue
            if self.speed and not stepping:
                due = max(time.monotonic(), due + len(played.letters) / self.speed)
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            if now is self.watched:
                await self._show(now, played)

    async def _allowed(self) -> None:
        while (self.paused and not self.steps) or self.frame - self.seen >= UNSEEN_FRAMES:
            self.wake.clear()
            await self.wake.wait()

    async def _failed(self, error: Exception) -> None:
        self.paused, self.steps = True, 0
        told = "the agent stumbled; the server's log says why"
        if isinstance(error, InputError):
            told = str(error)
        else:
            log.error("an agent failed", exc_info=error)
        await self.push({"push": "watch.failed", "error": told})

    async def _next_game(self, now: Watched) -> None:
        if 0 < self.speed <= SLOW and not self.paused:
            await asyncio.sleep(PAUSE_AT_THE_END)
        now.games += 1
        now.total += now.state.score
        now.seed += 1
        now.state = start_state(now.game, now.seed, None)
        if now is self.watched:
            await self._push(now, {**told(now.state), "letters": "", "motions": ""})

    async def _show(self, now: Watched, played: Played) -> None:
        clock = time.monotonic()
        self.recent.append((clock, len(played.letters)))
        span = clock - self.recent[0][0]
        counted = sum(moves for _, moves in list(self.recent)[1:])
        shown = moved(played.before, played.action, played.after)
        if len(played.letters) > 1:
            shown["motions"] = ""
        per_move = {
            "think_ms": 1000 * played.seconds / len(played.letters),
            "rate": counted / span if span > 0 else 0.0,
        }
        last_move = {"action": played.action, "choices": list(played.before.legal), "letters": played.letters}
        await self._push(now, {**played.thought.told(), **shown, **last_move, **per_move})

    async def _push(self, now: Watched, shown: dict[str, Any]) -> None:
        self.frame += 1
        over, score = now.state.over, now.state.score
        games, total = now.games + over, now.total + score * over
        tally = {"frame": self.frame, "seed": str(now.seed), "games": games, "mean": total / max(1, games)}
        await self.push({"push": "watch", "game": now.game, **shown, **tally})


def _play_batch(now: Watched, most: int) -> Played:
    """Play up to `most` moves, or as many as fit in a batch; an opinion only of the last, which is seen."""
    began = time.perf_counter()
    if most == 1:
        before = now.state
        thought = now.player.think(before)
        now.state, actions, seconds = (
            before.play(thought.opinion.best),
            bytes([thought.opinion.best]),
            thought.seconds,
        )
    else:
        before, now.state, actions = now.player.run(now.state, most, BATCH_SECONDS)
        seconds = time.perf_counter() - began
        thought = now.player.think(before)
    return Played(before, actions[-1], now.state, thought, "".join(LETTERS[action] for action in actions), seconds)
