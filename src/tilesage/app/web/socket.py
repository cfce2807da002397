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
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

from tilesage import games
from tilesage.app.web.fields import Form, Text, Values, Whole, parse, read
from tilesage.app.web.forms import GAME, PLAYER, POSITION, RECORDED, SPEED, board, seed
from tilesage.app.web.limits import (
    ERRORS_FORGIVEN,
    MESSAGE_BYTES,
    MESSAGES_A_SECOND,
    MESSAGES_AT_ONCE,
    MOST_MOVES,
    Bucket,
    Gone,
    VisitorQueue,
    caller,
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

    def __init__(self, server: ServerState, socket: WebSocket, address: str) -> None:
        self.server, self.socket = server, socket
        self.session, self.queue, self.thought_queue = Session(), VisitorQueue(address), VisitorQueue(address)
        self.watcher = Watcher(server.thinkers, self._send, VisitorQueue(address))
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
            sent = parse(text)
            asked = read(QUESTION, sent)
            number, command = asked["id"], COMMANDS[asked["do"]]
        except InputError as nonsense:  # no page of ours sends this
            self.errors += 1
            await self._send({"id": number, "error": str(nonsense)})
            return
        if command.thinks:
            if self.thought:
                self.thought.cancel()
            self.thought = asyncio.create_task(self._thought(number, command, sent))
            return
        try:
            answer = await command.answer(self, read(command.form, sent))
        except InputError as error:
            answer = {"error": str(error)}
        if answer is not None:
            await self._send({"id": number, **answer})

    async def _thought(self, number: int | None, command: Command, sent: Values) -> None:
        try:
            await self._send({"id": number, **(await command.answer(self, read(command.form, sent)) or {})})
        except InputError as error:
            await self._send({"id": number, "error": str(error)})
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

    async def new(self, fields: Values) -> Answer:
        """`play.new`."""
        game, number, start = fields["game"], fields["seed"], fields["board"]
        return await self.server.movers.run(self.queue, lambda: self.session.open(game, number, start))

    async def resume(self, fields: Values) -> Answer:
        """`play.resume`."""
        return await self.server.thinkers.run(self.queue, lambda: self.session.open(**fields))

    async def move(self, fields: Values) -> Answer:
        """`play.move`."""
        return await self.server.movers.run(self.queue, lambda: self.session.move(fields["action"]))

    async def read(self, fields: Values) -> Answer:
        """`play.read`."""
        return position(games.get(fields["game"]).parse(fields["board"]))

    async def undo(self, fields: Values) -> Answer:
        """`play.undo`."""
        return await self.server.movers.run(self.queue, self.session.undo)

    async def ask(self, fields: Values) -> Answer:
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

    async def watch(self, fields: Values) -> Answer:
        """`watch.start`."""
        game, number = fields["game"], fields["seed"]
        player = await self.server.player(self.watcher.queue, game, fields)
        number = secrets.randbelow(10**6) if number is None else number
        return self.watcher.start(game, player, number, fields["speed"], fields["paused"])

    async def control(self, fields: Values) -> Answer:
        """`watch.control`."""
        self.watcher.control(fields["speed"], fields["paused"])
        return {}

    async def step(self, fields: Values) -> Answer:
        """`watch.step`."""
        self.watcher.step()
        return {}

    async def seen(self, fields: Values) -> None:
        """`watch.seen`."""
        self.watcher.acknowledge(fields["frame"])

    async def record(self, fields: Values) -> Answer:
        """`watch.record`."""
        return self.watcher.record()

    async def demo(self, fields: Values) -> Answer:
        """`replay.demo`."""
        player = await self.server.player(self.thought_queue, fields["game"], fields)
        return await play_one(player, fields["game"], lambda job: self.server.thinkers.run(self.thought_queue, job))

    async def mistakes(self, fields: Values) -> Answer:
        """`replay.mistakes`."""
        run = self.server.thinkers.run
        replay = await run(self.thought_queue, lambda: Replay.of(fields))
        player = await self.server.player(self.thought_queue, replay.game, fields)

        async def told(done: float) -> None:
            await self._send({"push": "replay.progress", "done": done})

        found = await find_mistakes(replay, player, lambda job: run(self.thought_queue, job), told)
        return {"mistakes": found}


class Command(NamedTuple):
    """What may be asked: who answers, what is sent with it, and whether it takes a thought."""

    answer: Callable[[Visitor, Values], Awaitable[Answer | None]]
    form: Form = MappingProxyType({})
    thinks: bool = False


COMMANDS = {
    "play.new": Command(Visitor.new, {"game": GAME, "seed": seed(None), "board": board(None)}),
    "play.resume": Command(
        Visitor.resume,
        {"game": GAME, "seed": seed(), "board": board(None), "actions": Text("Letters.", longest=MOST_MOVES)},
    ),
    "play.move": Command(Visitor.move, {"action": Whole("A direction.", high=3)}),
    "play.undo": Command(Visitor.undo),
    "play.read": Command(Visitor.read, POSITION),
    "play.ask": Command(Visitor.ask, PLAYER, thinks=True),
    "watch.start": Command(Visitor.watch, {"game": GAME, "seed": seed(None), **PLAYER, **SPEED}),
    "watch.control": Command(Visitor.control, SPEED),
    "watch.step": Command(Visitor.step),
    "watch.seen": Command(Visitor.seen, {"frame": Whole("The newest frame that was drawn.")}),
    "watch.record": Command(Visitor.record),
    "replay.demo": Command(Visitor.demo, {"game": GAME, **PLAYER}, thinks=True),
    "replay.mistakes": Command(Visitor.mistakes, {**RECORDED, **PLAYER}, thinks=True),
}
QUESTION: Form = {"id": Whole("Of the question.", 0), "do": Text("What is asked.", among=lambda: list(COMMANDS))}


async def socket(websocket: WebSocket) -> None:
    """Let a visitor in, unless the server has as many as it takes, half of them from this address."""
    server: ServerState = websocket.app.state.server
    address = caller(websocket.client.host if websocket.client else "unknown")
    most, visitors = server.settings.visitors, server.visitors
    if visitors.total() >= most or visitors[address] >= (most + 1) // 2:
        await websocket.close(1013, "too many visitors")
        return
    visitors[address] += 1
    try:
        await websocket.accept()
        await Visitor(server, websocket, address).serve()
    finally:
        visitors[address] -= 1
        if not visitors[address]:
            del visitors[address]
