"""The server: the page, the interface for programs, and the WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from tilesage import games
from tilesage.app.web.connections import ImpatientProtocol
from tilesage.app.web.fields import Fields
from tilesage.app.web.guard import LOOPBACK, Guard
from tilesage.app.web.library import describe_run, read_metrics
from tilesage.app.web.limits import BOARD_CHARACTERS, BODY_BYTES, BODY_SECONDS, MESSAGE_BYTES, RECORDS_BYTES, Busy
from tilesage.app.web.openapi import document
from tilesage.app.web.players import MENU
from tilesage.app.web.replays import Replay, list_records
from tilesage.app.web.server_state import ServerState
from tilesage.app.web.session import position
from tilesage.app.web.settings import Settings
from tilesage.app.web.socket import socket
from tilesage.core.errors import InputError
from tilesage.drawing import palette
from tilesage.games.board import ACTIONS
from tilesage.search.agents import needs_model

STATIC = Path(__file__).parent / "static"
log = logging.getLogger("tilesage.web")
Handler = Callable[[ServerState, Request], Awaitable[dict[str, Any]]]


class TooLong(Exception):
    """The body is longer than this address takes."""


async def read_fields(request: Request, most: int = BODY_BYTES) -> Fields:
    """The JSON object in the body, read no further than allowed and not for ever."""
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise TooLong
    return Fields.parse(bytes(body))


def answers(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The handler's answer as JSON, and what went wrong as a status and one sentence."""

    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(
                await handler(request.app.state.server, request), headers={"cache-control": "no-store"}
            )
        except InputError as mistake:
            status = 400 if str(mistake) == "this is no JSON" else 422
            return JSONResponse({"error": str(mistake)}, status)
        except TooLong:
            return JSONResponse({"error": "the request is too long"}, 413)
        except (TimeoutError, ClientDisconnect):
            return JSONResponse({"error": "the request did not arrive in time"}, 408)
        except Busy:
            return JSONResponse({"error": "too many requests at once"}, 429)

    return endpoint


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


async def games_listed(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/games`: games, agents, and what can be trained."""
    known = games.all_games()
    return {
        "games": [
            {"name": g.name, "title": g.title, "summary": g.summary, "tiles": list(g.tiles), "goal": g.tiles[g.goal]}
            for g in known
        ],
        "agents": [
            *({"spec": spec, "title": title, "model": needs_model(spec)} for spec, title in MENU),
            *({"spec": text, "title": text, "model": False} for text in server.settings.agents),
        ],
        "training": server.trainings.choices(),
    }


async def models_listed(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/models`: the models that may be named."""
    return {"models": await asyncio.to_thread(server.library.models)}


async def hint(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/hint`: what an agent would do in a position."""
    fields = await read_fields(request)
    game, board = fields.choice("game", games.names()), fields.text("board", BOARD_CHARACTERS)
    queue = server.queue(_address(request))
    state = games.get(game).parse(board)
    player = await server.player(queue, game, fields)
    thought = await server.thinkers.run(queue, lambda: player.think(state))
    return {
        "game": game,
        "agent": player.spec,
        "model": fields.text("model", 200, "") if player.agent.model else "",
        "values": thought.values,
        "best": thought.best,
        "action": ACTIONS[thought.best],
        "think_ms": round(1000 * thought.seconds, 3),
    }


async def board_read(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/position`: what a text says."""
    fields = await read_fields(request)
    game, board = fields.choice("game", games.names()), fields.text("board", BOARD_CHARACTERS)
    return position(games.get(game).parse(board))


async def read_upload(server: ServerState, request: Request) -> Fields:
    """A long body; only a few at a time."""
    if server.uploads.locked():
        raise Busy
    async with server.uploads:
        return await read_fields(request, RECORDS_BYTES + BODY_BYTES)


async def records_listed(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/records`: the games of a records file."""
    text = (await read_upload(server, request)).text("text", RECORDS_BYTES)
    return await server.thinkers.run(server.queue(_address(request)), lambda: list_records(text))


async def replayed(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/replay`: every position of a recorded game."""
    fields = await read_upload(server, request)
    return await server.thinkers.run(server.queue(_address(request)), lambda: Replay.of(fields).told())


async def runs_listed(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/runs`: the trainings and where they stand."""
    return {
        "runs": await asyncio.to_thread(lambda: [describe_run(run) for run in server.library.runs()]),
        "running": {name: training.stopping for name, training in server.trainings.running.items()},
        "failed": server.trainings.failed,
    }


async def run_metrics(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/runs/NAME`: the learning curve of a run."""
    fields = Fields({"after": request.query_params.get("after", "0")})
    after, name = fields.whole("after", 0, 2**53), request.path_params["name"]
    return await asyncio.to_thread(lambda: read_metrics(server.library.run(name), after))


async def training_started(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/trainings`: start one."""
    return await server.trainings.start(await read_fields(request))


async def training_stopped(server: ServerState, request: Request) -> dict[str, Any]:
    """`/api/trainings/stop`: stop one."""
    return await server.trainings.stop(await read_fields(request))


async def described(server: ServerState, request: Request) -> dict[str, Any]:
    """`/openapi.json`: the interface for programs."""
    return document()


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
        await server.close()

    routes = [
        Route("/", page("index.html")),
        Route("/api", page("api.html")),
        Route("/palette.css", palette_served),
        Route("/openapi.json", answers(described)),
        Route("/api/games", answers(games_listed)),
        Route("/api/models", answers(models_listed)),
        Route("/api/hint", answers(hint), methods=["POST"]),
        Route("/api/position", answers(board_read), methods=["POST"]),
        Route("/api/records", answers(records_listed), methods=["POST"]),
        Route("/api/replay", answers(replayed), methods=["POST"]),
        Route("/api/runs", answers(runs_listed)),
        Route("/api/runs/{name}", answers(run_metrics)),
        Route("/api/trainings", answers(training_started), methods=["POST"]),
        Route("/api/trainings/stop", answers(training_stopped), methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        WebSocketRoute("/ws", socket),
    ]
    app = Starlette(routes=routes, lifespan=life, exception_handlers={HTTPException: _refused})
    return Guard(app, (*LOOPBACK, settings.host, *settings.hosts), by_number=settings.host in ("0.0.0.0", "::"))


def _warm_up() -> None:
    """Compile, or load, the rules of every game before the first visitor moves."""
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
        limit_concurrency=settings.visitors + 128,
    )
    return uvicorn.Server(config)
