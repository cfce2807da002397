"""The server: the page, the interface for programs, and the WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from tilesage import games
from tilesage.app.web.connections import ImpatientProtocol
from tilesage.app.web.fields import Form, Schema, Values, parse, read, text, whole
from tilesage.app.web.forms import (
    HINT_TOLD,
    LIST,
    PLAYED,
    PLAYER,
    POSITION,
    POSITION_TOLD,
    RECORDED,
    REPLAY_TOLD,
    WHOLE,
    WORDS,
    an_object,
)
from tilesage.app.web.guard import Guard
from tilesage.app.web.library import read_metrics
from tilesage.app.web.limits import (
    BODY_BYTES,
    BODY_SECONDS,
    MESSAGE_BYTES,
    RECORDS_BYTES,
    Busy,
    TooLong,
    caller,
)
from tilesage.app.web.openapi import document
from tilesage.app.web.players import MENU
from tilesage.app.web.positions import position
from tilesage.app.web.replays import KINDS, Replay, list_records
from tilesage.app.web.server_state import ServerState
from tilesage.app.web.settings import LOOPBACK, Settings
from tilesage.app.web.socket import socket
from tilesage.app.web.training import EVALUATION_OF, RUN, TRAINING, Trainings, offers
from tilesage.core.errors import InputError
from tilesage.drawing import palette
from tilesage.games.board import ACTIONS
from tilesage.search.agents import needs_model

STATIC = Path(__file__).parent / "static"
log = logging.getLogger("tilesage.web")
# From what all visitors share, the fields that were sent, and the address that they came from.
Handler = Callable[[ServerState, Values, str], Awaitable[Values | Response]]


@dataclass(frozen=True)
class Address:
    """One thing that programs can ask for: where, what it takes, what it answers."""

    path: str
    summary: str
    answer: Handler
    told: Schema
    """The shape of the answer."""
    form: Form = field(default_factory=dict)
    """What is sent: as JSON by POST, otherwise in the address."""
    method: str = "GET"
    most: int = BODY_BYTES
    """Bytes of the body."""
    wrong: tuple[int, ...] = (403,)
    """The statuses of what it refuses."""

    async def endpoint(self, request: Request) -> Response:
        """The answer as JSON, and what went wrong as a status and one sentence."""
        server: ServerState = request.app.state.server
        caller_is = caller(request.client.host if request.client else "unknown")
        try:
            sent: Values = {**request.query_params, **request.path_params}
            if self.method == "POST" and not self.form.keys() <= request.path_params.keys():
                sent = await _sent(server, request, caller_is, self.most) | request.path_params
            told = await self.answer(server, read(self.form, sent), caller_is)
            if isinstance(told, Response):  # a file
                return told
            return JSONResponse(told, headers={"cache-control": "no-store"})
        except InputError as mistake:
            return JSONResponse({"error": str(mistake)}, getattr(mistake, "status", 422))
        except (TimeoutError, ClientDisconnect):
            return JSONResponse({"error": "the request did not arrive in time"}, 408)


async def _sent(server: ServerState, request: Request, caller_is: str, most: int) -> Values:
    """The JSON object in the body, read no further than allowed and not for ever; of long ones a few at a time."""
    if most == BODY_BYTES:
        return parse(await _body(request, most))
    if server.uploads.locked() or caller_is in server.uploading:
        raise Busy
    server.uploading.add(caller_is)
    try:
        async with server.uploads:
            return parse(await _body(request, most))
    finally:
        server.uploading.discard(caller_is)


async def _body(request: Request, most: int) -> bytes:
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise TooLong("the request is too long")
    return bytes(body)


async def games_listed(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/games`."""
    menu = [{"spec": spec, "title": title, "model": needs_model(spec)} for spec, title in MENU]
    menu += [{"spec": text, "title": text, "model": False} for text in server.settings.agents]
    known = [
        {
            "name": g.name,
            "title": g.title,
            "summary": g.summary,
            "tiles": list(g.tiles),
            "goal": g.tiles[g.goal],
            "scoreIsValue": g.score_is_value,
            "hint": {"values": g.hint.values, "copies": g.hint.copies} if g.hint else None,
        }
        for g in games.all_games()
    ]
    return {"games": known, "agents": menu, "training": await asyncio.to_thread(server.trainings.choices)}


async def models_listed(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/models`."""
    return {"models": await asyncio.to_thread(server.library.models)}


async def hint(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/hint`."""
    queue, state = server.queue(caller_is), games.get(fields["game"]).parse(fields["board"])
    player = await server.player(queue, fields["game"], fields)
    thought = await server.thinkers.run(queue, lambda: player.think(state))
    model = fields["model"] if player.agent.model else ""
    action = ACTIONS[thought.opinion.best]
    return {"game": fields["game"], "agent": player.spec, "model": model, "action": action, **thought.told()}


async def board_read(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/position`."""
    return position(games.get(fields["game"]).parse(fields["board"]))


async def records_listed(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/records`."""
    return await server.thinkers.run(server.queue(caller_is), lambda: list_records(fields["text"]))


async def replayed(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/replay`."""
    return await server.thinkers.run(server.queue(caller_is), lambda: Replay.of(fields).told())


async def saved(server: ServerState, fields: Values, caller_is: str) -> Response:
    """`/api/save`."""
    kind, theme = fields["kind"], fields["theme"]
    file = await server.thinkers.run(server.queue(caller_is), lambda: Replay.of_lines(fields).file(kind, theme))
    return Response(file, media_type=KINDS[kind])


async def runs_listed(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/runs`."""
    return await asyncio.to_thread(server.trainings.told)


async def run_metrics(server: ServerState, fields: Values, caller_is: str) -> Values:
    """`/api/runs/NAME`."""
    return await asyncio.to_thread(lambda: read_metrics(server.library.run(fields["name"]), fields["after"]))


def changing(what: Callable[[Trainings, Values], None]) -> Handler:
    """What answers with a change of the runs."""

    async def answer(server: ServerState, fields: Values, caller_is: str) -> Values:
        return await asyncio.to_thread(server.trainings.change, what, fields)

    return answer


SAVED: Form = {
    **PLAYED,
    "kind": text("What to make of it.", among=lambda: list(KINDS)),
    "theme": text("Of the picture.", palette.THEMES[0], among=lambda: list(palette.THEMES)),
}
NAMED = an_object("name", name=WORDS)
POSTED = (400, 403, 408, 413, 422)
THOUGHT = (*POSTED, 429)
ADDRESSES = (
    Address("/api/games", "Games, agents and what can be trained", games_listed, an_object("games agents training")),
    Address("/api/models", "Models of this machine", models_listed, an_object("models", models=LIST)),
    Address(
        "/api/hint", "What would an agent do here?", hint, HINT_TOLD, {**POSITION, **PLAYER}, "POST", wrong=THOUGHT
    ),
    Address("/api/position", "Read a board", board_read, POSITION_TOLD, POSITION, "POST", wrong=POSTED),
    Address(
        "/api/records",
        "List the games of a records file",
        records_listed,
        an_object("games wrong first_wrong more"),
        {"text": text("The file.", longest=RECORDS_BYTES)},
        "POST",
        RECORDS_BYTES + BODY_BYTES,
        THOUGHT,
    ),
    Address(
        "/api/replay",
        "Every position of a recorded game",
        replayed,
        REPLAY_TOLD,
        RECORDED,
        "POST",
        RECORDS_BYTES + BODY_BYTES,
        THOUGHT,
    ),
    Address(
        "/api/save",
        "A game as a record or a film, or its last position as a picture",
        saved,
        {},
        SAVED,
        "POST",
        RECORDS_BYTES + BODY_BYTES,
        THOUGHT,
    ),
    Address(
        "/api/runs",
        "Trainings and where they stand; those that cannot be read are named",
        runs_listed,
        an_object("runs skipped failed starting", runs=LIST, skipped=LIST, starting=LIST),
    ),
    Address(
        "/api/runs/{name}",
        "The learning curve of a run, from byte after on",
        run_metrics,
        an_object("points next restarted", points=LIST, next=WHOLE),
        {**RUN, "after": whole("A byte of metrics.jsonl.", 0)},
        wrong=(403, 404, 422),
    ),
    Address("/api/trainings", "Start a training", changing(Trainings.start), NAMED, TRAINING, "POST", wrong=POSTED),
    Address(
        "/api/runs/{name}/evaluate",
        "Let the model of a run play; the figures appear among the runs",
        changing(Trainings.evaluate),
        NAMED,
        EVALUATION_OF,
        "POST",
        wrong=(*POSTED, 404),
    ),
    Address(
        "/api/runs/{name}/stop",
        "Stop what is at work on a run, wherever it was started",
        changing(Trainings.stop),
        NAMED,
        RUN,
        "POST",
        wrong=(403, 404, 422),
    ),
    Address(
        "/api/runs/{name}",
        "Delete a run with all its files",
        changing(Trainings.delete),
        NAMED,
        RUN,
        "DELETE",
        wrong=(403, 404, 422),
    ),
)


async def described(request: Request) -> Response:
    """`/openapi.json`: the interface for programs."""
    return JSONResponse(document(ADDRESSES))


def palette_css() -> str:
    """The tile colours of every game and theme as style rules."""
    lines = []
    for theme in palette.THEMES:
        for game in games.all_games():
            for index, tile in enumerate(game.tiles[1:], 1):
                face = palette.paint(game.name, index, theme)
                chosen = f'[data-theme="{theme}"] [data-palette="{game.name}"] [data-tile="{tile}"]'
                lines.append(f"{chosen} {{ --face: {face.background}; --number: {face.text}; }}")
        lines.append(
            f'[data-theme="{theme}"] {{ --board: {palette.BOARD[theme]}; --empty: {palette.EMPTY[theme]}; }}'
        )
    return "\n".join(lines)


async def palette_served(request: Request) -> Response:
    """`/palette.css`: the tile colours."""
    return Response(palette_css(), media_type="text/css")


def page(name: str) -> Callable[[Request], Awaitable[Response]]:
    """What serves this file of the page."""

    async def served(request: Request) -> Response:
        return FileResponse(STATIC / name, headers={"cache-control": "no-cache"})

    return served


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {404: "there is nothing at this address", 405: "this address takes another method"}
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"error": said.get(status, "refused")}, status, headers=headers)


def create_app(settings: Settings) -> Guard:
    """The application, ready for a server or a test."""

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.server = server = ServerState(settings)
        warm = asyncio.create_task(asyncio.to_thread(_warm_up))
        yield
        await asyncio.gather(warm, return_exceptions=True)
        server.trainings.close()
        server.close()

    routes = [
        Route("/", page("index.html")),
        Route("/api", page("api.html")),
        Route("/palette.css", palette_served),
        Route("/openapi.json", described),
        *(Route(address.path, address.endpoint, methods=[address.method]) for address in ADDRESSES),
        Mount("/static", StaticFiles(directory=STATIC)),
        WebSocketRoute("/ws", socket),
    ]
    app = Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _refused})
    return Guard(app, (*LOOPBACK, settings.host, *settings.hosts), by_number=settings.host in ("0.0.0.0", "::"))


def _warm_up() -> None:
    """Compile, or load, the rules of every game before the first visitor moves; and what the page opens with."""
    offers()
    for game in games.all_games():
        state = game.new(0)
        state.play(state.legal[0])


def make_server(settings: Settings) -> uvicorn.Server:
    """The server with its limits; `run()` it, or `serve()` it in a loop."""
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=ImpatientProtocol,
        ws="websockets-sansio",
        ws_max_size=MESSAGE_BYTES,
        ws_max_queue=8,
        ws_per_message_deflate=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=16 * 1024,
        limit_concurrency=2 * settings.visitors + 128,
        proxy_headers=bool(settings.hosts),  # an address that a proxy tells is believed where there may be one
    )
    logging.getLogger("uvicorn.error").addFilter(_without_trace)
    ImpatientProtocol.most_of_an_address = settings.visitors + 32
    return uvicorn.Server(config)


def _without_trace(record: logging.LogRecord) -> bool:
    """Text that is no UTF-8 is the fault of whoever sent it: one line of the log says so."""
    if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError):
        record.exc_info = None
    return True
