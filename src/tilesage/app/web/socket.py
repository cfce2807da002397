"""The WebSocket of a visitor: questions come as {"id", "do", …}, answers go back with the same id.

    game.open    game, seed?, board?, actions?   a new game, a board that was set up, or a game brought back
    game.step    game, line, action              0 up, 1 right, 2 down, 3 left
    game.place   game, line, action, cell, now?  the same with chance by hand
    game.read    game, board                     what this text says
    advice       game, line, agent, model?       what each move is worth
    judge        game, lines, actions, agent, model?   as many of these moves as can be judged in a moment
    watch.start  game, agent, model?, seed?, actions?, speed, paused
    watch.control speed, paused · watch.step · watch.seen frame
    ping                                         an empty answer: the server is there

Moves are answered at once. Advice and judging happen beside them, each in a slot of its own: of each kind one thought
a visitor, the newest question first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

from tilesage import games
from tilesage.app.web.fields import Form, Values, parse, read, text, whole
from tilesage.app.web.forms import GAME, PLAYED, PLAYER, POSITION, SPEED, STEP, board, seed
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
from tilesage.app.web.positions import moved, placed, play_actions, start_state, told
from tilesage.app.web.replays import Replay
from tilesage.app.web.server_state import ServerState
from tilesage.app.web.watching import Watcher
from tilesage.core.errors import InputError
from tilesage.games import State

log = logging.getLogger("tilesage.web")
Answer = dict[str, Any]
SEND_SECONDS = 20.0  # a visitor who does not read for so long is gone


@dataclass
class Slot:
    """The thought of one kind that a visitor waits for."""

    queue: VisitorQueue
    task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """A newer question takes its place, or the visitor is gone."""
        if self.task:
            self.task.cancel()


class Visitor:
    """One connection: its watched game, its thoughts."""

    def __init__(self, server: ServerState, socket: WebSocket, address: str) -> None:
        self.server, self.socket = server, socket
        self.queue = VisitorQueue(address)
        self.slots = {what: Slot(VisitorQueue(address)) for what, command in COMMANDS.items() if command.thinks}
        self.watcher = Watcher(server.thinkers, self._send, VisitorQueue(address))
        self.sending = asyncio.Lock()
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
            for slot in self.slots.values():
                slot.stop()

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
            slot = self.slots[asked["do"]]
            slot.stop()
            slot.task = asyncio.create_task(self._thought(number, command, sent))
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

    async def open(self, fields: Values) -> Answer:
        """`game.open`."""
        number = secrets.randbelow(10**6) if fields["seed"] is None else fields["seed"]
        pool = self.server.thinkers if fields["actions"] else self.server.movers
        asked = {**fields, "seed": number, "record": None}
        return {"seed": str(number), **await pool.run(self.queue, lambda: Replay.of(asked).told())}

    async def step(self, fields: Values) -> Answer:
        """`game.step`."""
        state, action = read_line(fields, "line"), fields["action"]
        return await self.server.movers.run(self.queue, lambda: moved(state, action, state.play(action)))

    async def place(self, fields: Values) -> Answer:
        """`game.place`."""
        state, action, cell = read_line(fields, "line"), fields["action"], fields["cell"]
        now = read_line(fields, "now") if fields["now"] else None
        return await self.server.movers.run(self.queue, lambda: placed(state, action, cell, now))

    async def read(self, fields: Values) -> Answer:
        """`game.read`."""
        state = read_line(fields, "board")
        return {"cells": state.cells, **told(state)}

    async def advise(self, fields: Values) -> Answer:
        """`advice`."""
        state, queue = read_line(fields, "line"), self.slots["advice"].queue
        if state.over:
            raise InputError("there is no move to advise on")
        player = await self.server.player(queue, state.game.name, fields)
        thought = await self.server.thinkers.run(queue, lambda: player.think(state))
        return {**thought.told(), "choices": list(state.legal)}

    async def judge(self, fields: Values) -> Answer:
        """`judge`."""
        queue = self.slots["judge"].queue
        replay = await self.server.thinkers.run(queue, lambda: Replay.of_lines(fields))
        player = await self.server.player(queue, replay.game, fields)
        return await self.server.thinkers.run(queue, lambda: replay.judge(player))

    async def ping(self, fields: Values) -> Answer:
        """`ping`."""
        return {}

    async def watch(self, fields: Values) -> Answer:
        """`watch.start`."""
        game, queue = fields["game"], self.watcher.queue
        number = secrets.randbelow(10**6) if fields["seed"] is None else fields["seed"]
        start = start_state(game, number, None)
        states = await self.server.thinkers.run(queue, lambda: play_actions(start, fields["actions"]))
        player = await self.server.player(queue, game, fields)
        return self.watcher.start(states[-1], player, number, fields["speed"], fields["paused"])

    async def control(self, fields: Values) -> Answer:
        """`watch.control`."""
        self.watcher.control(fields["speed"], fields["paused"])
        return {}

    async def watch_step(self, fields: Values) -> Answer:
        """`watch.step`."""
        self.watcher.step()
        return {}

    async def seen(self, fields: Values) -> None:
        """`watch.seen`."""
        self.watcher.acknowledge(fields["frame"])


def read_line(fields: Values, name: str) -> State:
    """The position of this field, in the game that the message names."""
    return games.get(fields["game"]).parse(fields[name])


class Command(NamedTuple):
    """What may be asked: who answers, what is sent with it, and whether it takes a thought."""

    answer: Callable[[Visitor, Values], Awaitable[Answer | None]]
    form: Form = MappingProxyType({})
    thinks: bool = False


MAYBE_MOVES = text("Letters U R D L.", "", longest=MOST_MOVES)
COMMANDS = {
    "game.open": Command(
        Visitor.open, {"game": GAME, "seed": seed(None), "board": board(None), "actions": MAYBE_MOVES}
    ),
    "game.step": Command(Visitor.step, STEP),
    "game.place": Command(Visitor.place, {**STEP, "cell": whole("Row by row.", high=15), "now": board(None)}),
    "game.read": Command(Visitor.read, POSITION),
    "advice": Command(Visitor.advise, {"game": GAME, "line": board(), **PLAYER}, thinks=True),
    "judge": Command(Visitor.judge, {**PLAYED, **PLAYER}, thinks=True),
    "ping": Command(Visitor.ping),
    "watch.start": Command(
        Visitor.watch, {"game": GAME, "seed": seed(None), "actions": MAYBE_MOVES, **PLAYER, **SPEED}
    ),
    "watch.control": Command(Visitor.control, SPEED),
    "watch.step": Command(Visitor.watch_step),
    "watch.seen": Command(Visitor.seen, {"frame": whole("The newest frame that was drawn.")}),
}
QUESTION: Form = {"id": whole("Of the question.", 0), "do": text("What is asked.", among=lambda: list(COMMANDS))}


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
