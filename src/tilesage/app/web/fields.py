"""What may come in from outside, declared once: the same declaration checks a field and describes it.

A field is a piece of JSON Schema, and a form is a dictionary of fields. `read` gives the values of a JSON object, or
an InputError that says what would be right; `openapi.py` writes the forms of all addresses down. A field without a
default must be sent; one with it may be left out, or be null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tilesage.core.errors import InputError

Schema = dict[str, Any]
Values = dict[str, Any]
Form = Mapping[str, Schema]
SENT = object()  # in place of a default: the field must be there
DIGITS = "[0-9]{1,19}"


def _field(kind: str | list[str], about: str, otherwise: object, example: object, **limits: object) -> Schema:
    more = {} if otherwise is SENT else {"default": otherwise}
    said = {"description": about, "example": example}
    return {"type": kind, **limits, **more, **{name: value for name, value in said.items() if value}}


def text(
    about: str,
    otherwise: object = SENT,
    example: object = None,
    longest: int = 60,
    pattern: str = "",
    among: Callable[[], list[str]] | None = None,
) -> Schema:
    """A text; `among` names the only ones there are, a pattern must fit the whole."""
    limits: Schema = {"maxLength": longest} | ({"pattern": f"^{pattern}$"} if pattern else {})
    return _field("string", about, otherwise, example, **limits, **({"enum": among} if among else {}))


def number(about: str, otherwise: object = SENT, example: object = None, low: float = 0, high: float = 1) -> Schema:
    """A number within bounds."""
    return _field("number", about, otherwise, example, minimum=low, maximum=high)


def whole(about: str, otherwise: object = SENT, example: object = None, low: int = 0, high: int = 2**53) -> Schema:
    """A whole number; digits in a text are one too, because JavaScript's numbers end at 2^53."""
    kinds = ["integer", "string"]
    return _field(kinds, about, otherwise, example, minimum=low, maximum=high, pattern=f"^{DIGITS}$")


def flag(about: str = "", otherwise: bool = False) -> Schema:
    """True or false."""
    return _field("boolean", about, otherwise, None)


def described(field: Schema) -> Schema:
    """The field as it is written down: with the words that there are now, and null where it may be left out."""
    found = dict(field)
    if "enum" in field:
        found["enum"] = [*field["enum"](), *([None] if "default" in field else [])]
    if "default" in field:
        found["type"] = [*([field["type"]] if isinstance(field["type"], str) else field["type"]), "null"]
    return found


def check(name: str, field: Schema, value: Any) -> Any:
    """The value as it is used; an InputError if it is not what the field takes."""
    kind, low, high = field["type"], field.get("minimum", 0), field.get("maximum", 0)
    if kind == "string":
        return _checked_text(name, field, value)
    if kind == "boolean":
        right, wanted = isinstance(value, bool), "true or false"
    elif kind == "number":
        right, wanted = type(value) in (int, float) and low <= value <= high, f"a number from {low:g} to {high:g}"
    else:
        digits = isinstance(value, str) and re.fullmatch(DIGITS, value)
        value = int(value) if digits or (isinstance(value, float) and value.is_integer()) else value
        right, wanted = type(value) is int and low <= value <= high, f"a whole number from {low} to {high}"
    if not right:
        raise InputError(f"{name} must be {wanted}")
    return float(value) if kind == "number" else value


def _checked_text(name: str, field: Schema, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text")
    if "enum" in field and value not in field["enum"]():
        raise InputError(f"{name} must be one of {', '.join(field['enum']())}")
    if len(value) > field["maxLength"]:
        raise InputError(f"{name} is too long: at most {field['maxLength']} characters")
    if "pattern" in field and not re.fullmatch(field["pattern"], value):
        raise InputError(f"{name}: {field['description']}")
    return value


class NoJson(InputError):
    """The text is no JSON."""

    status = 400


def parse(sent: str | bytes) -> Values:
    """The JSON object in a text, nothing checked yet."""
    try:
        data = json.loads(sent)
    except (ValueError, RecursionError):
        raise NoJson("this is no JSON") from None
    if not isinstance(data, dict):
        raise InputError("send a JSON object")
    return data


def read(form: Form, data: Values) -> Values:
    """The value of each field of the form; what it does not know is passed over."""

    def value(name: str, field: Schema) -> Any:
        left_out = data.get(name) is None and "default" in field
        return field["default"] if left_out else check(name, field, data.get(name))

    return {name: value(name, field) for name, field in form.items()}
