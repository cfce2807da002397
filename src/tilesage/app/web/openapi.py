"""The interface for programs, written down from the table of addresses: `/openapi.json`, drawn by the page `/api`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tilesage.app.web.fields import Form, Schema, described
from tilesage.app.web.forms import ERROR_TOLD, an_object

if TYPE_CHECKING:
    from tilesage.app.web.app import Address

SAID = {
    400: "Not JSON.",
    403: "A foreign host name or site; or a training, and this server leaves them to others.",
    404: "No such thing.",
    408: "It did not arrive in time.",
    413: "Too long.",
    422: "Wrong input; the text says what would be right.",
    429: "Too many requests at once.",
}
ABOUT = "Advice, replays and learning curves of 2048-like games. Boards are written as for the command hint."


def body_of(form: Form) -> Schema:
    """The JSON object that a form takes."""
    required = " ".join(name for name, field in form.items() if "default" not in field)
    return an_object(required, **{name: described(field) for name, field in form.items()})


def _parameters(path: str, form: Form) -> list[Schema]:
    """The fields of a form that stand in the address: in its path, or after the question mark."""
    found = []
    for name, field in form.items():
        inside = f"{{{name}}}" in path
        place = {"in": "path", "required": True} if inside else {"in": "query"}
        found.append({"name": name, **place, "schema": field})
    return found


def _operation(address: Address) -> Schema:
    said: Schema = {"200": {"description": "The answer.", "content": _json(address.told)}}
    for code in address.wrong:
        said[str(code)] = {"description": SAID[code], "content": _json(ERROR_TOLD)}
    in_path = {name: field for name, field in address.form.items() if f"{{{name}}}" in address.path}
    sent = address.method == "POST"
    found: Schema = {
        "summary": address.summary,
        "parameters": _parameters(address.path, in_path if sent else address.form),
        "responses": said,
    }
    body = {name: field for name, field in address.form.items() if name not in in_path}
    if sent and body:
        found["requestBody"] = {"required": True, "content": _json(body_of(body))}
    return found


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def document(addresses: Iterable[Address]) -> Schema:
    """The whole description."""
    paths: Schema = {}
    for address in addresses:
        paths.setdefault(address.path, {})[address.method.lower()] = _operation(address)
    return {"openapi": "3.1.0", "info": {"title": "tilesage", "version": "1", "description": ABOUT}, "paths": paths}
