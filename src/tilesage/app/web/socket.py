"""The WebSocket of a visitor: questions come as {"id", "do", …}, answers go back with the same id.

    play.new     game, seed?, board?         a new game, or a board that was set up
    play.resume  game, seed, board?, actions a game brought back by its actions
    play.move    action                      0 up, 1 right, 2 down, 3 left
    play.undo                                one move back
    play.read    game, board                 what this text says
    play.ask     agent, model?               the four expected final scores
    watch.start  game, agent, model?, seed?, speed, paused
    watch.control speed, paused · watch.step · watch.seen frame · watch.record
    replay.demo  game, agent, model?         a game of the agent
    replay.mistakes  (a game, see replays.py) agent, model?

Moves are answered at once; thinking happens beside them, one thought a visitor, the newest question first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from tilesage import games
from tilesage.app.web.fields import Fields
from tilesage.app.web.limits import (
    BOARD_CHARACTERS,
    ERRORS_FORGIVEN,
    MESSAGE_BYTES,
    MESSAGES_A_SECOND,
    MESSAGES_AT_ONCE,
    MOST_MOVES,
    Bucket,
    Busy,
    Gone,
    VisitorQueue,
)
from tilesage.app.web.replays import Replay, find_mistakes, play_one
from tilesage.app.web.server_state import ServerState
from tilesage.app.web.session import Session, position
from tilesage.app.web.watching import Watcher
from tilesage.core.errors import InputError

log = logging.getLogger("tilesage.web")
Answer = dict[str, Any]
SEND_SECONDS = 20.0  # a visitor who does not read for so long is gone


class Visitor:
    """One connection: its game, its watched game, its thought."""

    def __init__(self, server: ServerState, socket: WebSocket) -> None:
        self.server, self.socket = server, socket
        self.session, self.queue, self.thought_queue = Session(), VisitorQueue(), VisitorQueue()
        self.watcher = Watcher(server.thinkers, self._send)
        self.sending = asyncio.Lock()
        self.thought: asyncio.Task[None] | None = None
        self.errors = 0

    async def serve(self) -> None:
        """Answer messages until the visitor leaves."""
        bucket = Bucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE)
        try:
            while self.errors <= ERRORS_FORGIVEN:
                message = await self.socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await asyncio.sleep(bucket.wait())
                await self._handle(message.get("text") or "")
            await self.socket.close(1008, "too many wrong messages")
        except (Gone, WebSocketDisconnect, RuntimeError):
            return
        except asyncio.CancelledError:  # the server ends while a flood is still being let in slowly
            return
        finally:
            self.watcher.close()
            if self.thought:
                self.thought.cancel()

    async def _handle(self, text: str) -> None:
        number: int | None = None
        try:
            if len(text) > MESSAGE_BYTES:
                raise InputError("the message is too long")
            fields = Fields.parse(text)
            number = fields.whole("id", 0, 2**53, 0)
            what = fields.text("do", 40)
            if what not in COMMANDS and what not in QUESTIONS:
                raise InputError(f"do must be one of {', '.join([*COMMANDS, *QUESTIONS])}")
        except InputError as nonsense:  # no page of ours sends this
            self.errors += 1
            await self._send({"id": number, "error": str(nonsense)})
            return
        if what in QUESTIONS:
            self._think(number, QUESTIONS[what], fields)
            return
        try:
            answer = await COMMANDS[what](self, fields)
        except (InputError, Busy) as error:
            answer = {"error": str(error) or "too many requests at once"}
        if answer is not None:
            await self._send({"id": number, **answer})

    def _think(self, number: int, thought: Callable[[Visitor, Fields], Awaitable[Answer]], fields: Fields) -> None:
        if self.thought:
            self.thought.cancel()
        self.thought = asyncio.create_task(self._thought(number, thought, fields))

    async def _thought(self, number: int, thought: Callable[..., Awaitable[Answer]], fields: Fields) -> None:
        try:
            await self._send({"id": number, **await thought(self, fields)})
        except (InputError, Busy) as error:
            await self._send({"id": number, "error": str(error) or "too many requests at once"})
        except asyncio.CancelledError:
            with contextlib.suppress(Gone):
                await self._send({"id": number, "error": "a newer question took its place"})
            raise
        except Gone:
            return
        except Exception:
            log.exception("a thought failed")
            await self._send({"id": number, "error": "the server stumbled; its log says why"})

    async def _send(self, message: Answer) -> None:
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
        try:
            async with self.sending, asyncio.timeout(SEND_SECONDS):
                await self.socket.send_text(text)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            raise Gone from None

    # What may be asked.

    async def new(self, fields: Fields) -> Answer:
        """`play.new`."""
        game = fields.choice("game", games.names())
        seed = None if fields.data.get("seed") is None else fields.seed(0)
        board = fields.maybe_text("board", BOARD_CHARACTERS)
        return await self.server.movers.run(self.queue, lambda: self.session.open(game, seed, board))

    async def resume(self, fields: Fields) -> Answer:
        """`play.resume`."""
        game, seed = fields.choice("game", games.names()), fields.seed(0)
        board, actions = fields.maybe_text("board", BOARD_CHARACTERS), fields.text("actions", MOST_MOVES)
        return await self.server.thinkers.run(self.queue, lambda: self.session.open(game, seed, board, actions))

    async def move(self, fields: Fields) -> Answer:
        """`play.move`."""
        action = fields.whole("action", 0, 3)
        return await self.server.movers.run(self.queue, lambda: self.session.move(action))

    async def read(self, fields: Fields) -> Answer:
        """`play.read`."""
        game, board = fields.choice("game", games.names()), fields.text("board", BOARD_CHARACTERS)
        return position(games.get(game).parse(board))

    async def undo(self, fields: Fields) -> Answer:
        """`play.undo`."""
        return await self.server.movers.run(self.queue, self.session.undo)

    async def ask(self, fields: Fields) -> Answer:
        """`play.ask`."""
        state = self.session.state
        if state is None or state.over:
            raise InputError("there is no move to advise on")
        player = await self.server.player(self.thought_queue, state.game.name, fields)
        thought = await self.server.thinkers.run(self.thought_queue, lambda: player.think(state))
        return {
            "values": thought.values,
            "best": thought.best,
            "legal": list(state.legal),
            "think_ms": 1000 * thought.seconds,
        }

    async def watch(self, fields: Fields) -> Answer:
        """`watch.start`."""
        game = fields.choice("game", games.names())
        seed, speed, paused = (
            fields.seed(secrets.randbelow(10**6)),
            fields.number("speed", 0, 1000),
            fields.flag("paused"),
        )
        player = await self.server.player(self.watcher.queue, game, fields)
        return self.watcher.start(game, player, seed, speed, paused)

    async def control(self, fields: Fields) -> Answer:
        """`watch.control`."""
        self.watcher.control(fields.number("speed", 0, 1000), fields.flag("paused"))
        return {}

    async def step(self, fields: Fields) -> Answer:
        """`watch.step`."""
        self.watcher.step()
        return {}

    async def seen(self, fields: Fields) -> None:
        """`watch.seen`."""
        self.watcher.acknowledge(fields.whole("frame", 0, 2**53))

    async def record(self, fields: Fields) -> Answer:
        """`watch.record`."""
        return self.watcher.record()

    async def demo(self, fields: Fields) -> Answer:
        """`replay.demo`."""
        game = fields.choice("game", games.names())
        player = await self.server.player(self.thought_queue, game, fields)
        return await play_one(player, game, lambda job: self.server.thinkers.run(self.thought_queue, job))

    async def mistakes(self, fields: Fields) -> Answer:
        """`replay.mistakes`."""
        run = self.server.thinkers.run
        replay = await run(self.thought_queue, lambda: Replay.of(fields))
        player = await self.server.player(self.thought_queue, replay.game, fields)

        async def told(done: float) -> None:
            await self._send({"push": "replay.progress", "done": done})

        found = await find_mistakes(replay, player, lambda job: run(self.thought_queue, job), told)
        return {"mistakes": found}


COMMANDS: dict[str, Callable[[Visitor, Fields], Awaitable[Answer | None]]] = {
    "play.new": Visitor.new,
    "play.resume": Visitor.resume,
    "play.move": Visitor.move,
    "play.undo": Visitor.undo,
    "play.read": Visitor.read,
    "watch.start": Visitor.watch,
    "watch.control": Visitor.control,
    "watch.step": Visitor.step,
    "watch.seen": Visitor.seen,
    "watch.record": Visitor.record,
}
QUESTIONS: dict[str, Callable[[Visitor, Fields], Awaitable[Answer]]] = {
    "play.ask": Visitor.ask,
    "replay.demo": Visitor.demo,
    "replay.mistakes": Visitor.mistakes,
}


async def socket(websocket: WebSocket) -> None:
    """Let a visitor in, unless the server has as many as it takes."""
    server: ServerState = websocket.app.state.server
    if server.visitors >= server.settings.visitors:
        await websocket.close(1013, "too many visitors")
        return
    server.visitors += 1
    try:
        await websocket.accept()
        await Visitor(server, websocket).serve()
    finally:
        server.visitors -= 1
