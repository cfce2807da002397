"""The interface for programs, written down: what `/openapi.json` serves and the page `/api` draws."""

from __future__ import annotations

from typing import Any

from tilesage import games
from tilesage.app.web.limits import BOARD_CHARACTERS, MOST_MOVES, RECORDS_BYTES
from tilesage.learning import registry

Schema = dict[str, Any]


def _object(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "required": required, "properties": properties}


def _text(description: str, longest: int, example: str | None = None) -> Schema:
    schema: Schema = {"type": "string", "maxLength": longest, "description": description}
    return schema | ({"example": example} if example is not None else {})


WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
LIST: Schema = {"type": "array"}
GAME: Schema = {"type": "string", "enum": games.names()}
BOARD = _text(
    "A position: sixteen tile numbers, or four rows of indices; in Threes! also hint=1.",
    BOARD_CHARACTERS,
    "2 4 8 16 0 0 2 4 0 0 0 2 0 0 0 0",
)
AGENT = _text("best, greedy, expectimax:2, expectimax:200ms, mcts:400, rollouts:100 …", 40, "best")
MODEL = _text("A name of /api/models; empty for the built-in one of the game.", 200, "")
SEED: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53, "example": 1}
RECORDED: dict[str, Schema] = {
    "record": _text("One line of a records file.", RECORDS_BYTES),
    "game": GAME,
    "seed": SEED,
    "actions": _text("Letters U R D L from the start that the seed gives.", MOST_MOVES, "LDLD"),
}
VALUES: Schema = {"type": "array", "items": MAYBE_NUMBER, "minItems": 4, "maxItems": 4}
POSITION = _object(
    ["game", "cells", "score", "legal", "over", "text"],
    game=GAME,
    cells={"type": "array", "items": WHOLE, "minItems": 16, "maxItems": 16},
    score=WHOLE,
    moves=WHOLE,
    largest=WHOLE,
    legal={"type": "array", "items": WHOLE},
    over={"type": "boolean"},
    hint={"type": ["array", "null"], "items": WHOLE},
    text={"type": "string"},
)
HINT = _object(
    ["game", "agent", "values", "best", "action", "think_ms"],
    game=GAME,
    agent={"type": "string"},
    model={"type": "string", "description": "The one that was asked for; empty if the agent reads none."},
    values=VALUES | {"description": "Expected final scores of up, right, down, left; null where not legal."},
    best=WHOLE,
    action={"type": "string", "enum": ["up", "right", "down", "left"]},
    think_ms=NUMBER,
)
ERROR = _object(["error"], error={"type": "string"})
NAME = _text("Letters, digits, - and _.", 40, "first-run")
TRAINING = _object(
    ["name"],
    name=NAME | {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"},
    game=GAME,
    network=_text("A network such as 4x6.", 60, "4x6"),
    rule={"type": "string", "enum": registry.names()},
    decay={"type": "number", "minimum": 0, "maximum": 1, "example": 0.5, "description": "λ of TD(λ) and TC(λ)."},
    seconds={"type": "integer", "minimum": 1, "maximum": 86400, "example": 60},
    threads={"type": "integer", "minimum": 1, "maximum": 64, "example": 1},
    seed=SEED,
)


def _answers(schema: Schema, *wrong: int) -> Schema:
    said = {
        400: "Not JSON.",
        403: "A foreign host name or site.",
        404: "No such thing.",
        413: "Too long.",
        422: "Wrong input; the text says what would be right.",
        429: "Too many requests at once.",
    }
    found: Schema = {"200": {"description": "The answer.", "content": {"application/json": {"schema": schema}}}}
    for code in (403, *wrong):
        found[str(code)] = {"description": said[code], "content": {"application/json": {"schema": ERROR}}}
    return found


def _get(summary: str, schema: Schema, parameters: list[Schema] | None = None) -> Schema:
    wrong = (404, 422) if parameters else ()
    return {"get": {"summary": summary, "parameters": parameters or [], "responses": _answers(schema, *wrong)}}


def _post(summary: str, body: Schema, schema: Schema) -> Schema:
    content = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": {"summary": summary, "requestBody": content, "responses": _answers(schema, 400, 413, 422, 429)}}


def document() -> Schema:
    """The whole description."""
    GAME["enum"] = games.names()  # a game may have been added since
    run: list[Schema] = [
        {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
        {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 2**53}},
    ]
    played = _object(["game", "positions", "actions", "scores"], game=GAME, positions=LIST, scores=LIST)
    paths = {
        "/api/games": _get("Games, agents and what can be trained", _object(["games", "agents"])),
        "/api/models": _get("Models of this machine", _object(["models"], models=LIST)),
        "/api/hint": _post(
            "What would an agent do here?",
            _object(["game", "board"], game=GAME, board=BOARD, agent=AGENT, model=MODEL),
            HINT,
        ),
        "/api/position": _post("Read a board", _object(["game", "board"], game=GAME, board=BOARD), POSITION),
        "/api/records": _post(
            "List the games of a records file",
            _object(["text"], text=_text("The file.", RECORDS_BYTES)),
            _object(["games"]),
        ),
        "/api/replay": _post("Every position of a recorded game", _object([], **RECORDED), played),
        "/api/runs": _get("Trainings and where they stand", _object(["runs"], runs=LIST)),
        "/api/runs/{name}": _get("The learning curve of a run, from byte after on", _object(["points", "next"]), run),
        "/api/trainings": _post("Start a training", TRAINING, _object(["name"])),
        "/api/trainings/stop": _post("Stop a training", _object(["name"], name=NAME), _object(["name"])),
    }
    about = "Advice, replays and learning curves of 2048-like games. Boards are written as for the command hint."
    return {"openapi": "3.1.0", "info": {"title": "tilesage", "version": "1", "description": about}, "paths": paths}
