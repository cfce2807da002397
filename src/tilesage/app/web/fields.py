"""What may come in from outside, declared once: the same declaration checks a field and describes it.

A form is a dictionary of fields. `read` gives the values of a JSON object, or an InputError that says what would be
right; `openapi.py` writes the forms of all addresses down. A field without `otherwise` must be sent; one with it may
be left out, or be null.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilesage.core.errors import InputError

Schema = dict[str, Any]
Values = dict[str, Any]
SENT = object()  # in place of `otherwise`: the field must be there
DIGITS = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True)
class Field(ABC):
    """A field: what it is for, and its value where it is left out."""

    about: str = ""
    otherwise: Any = SENT
    example: Any = None

    @abstractmethod
    def schema(self) -> Schema:
        """What is accepted, in the words of JSON Schema."""

    @abstractmethod
    def check(self, name: str, value: Any) -> Any:
        """The value as it is used; an InputError if it is of the wrong kind."""

    def described(self) -> Schema:
        """The schema with all that is said about the field."""
        found = self.schema()
        if self.otherwise is not SENT:
            found["type"] = [found["type"], "null"] if isinstance(found["type"], str) else [*found["type"], "null"]
            found |= {"enum": [*found["enum"], None]} if "enum" in found else {}
        more = {"description": self.about, "example": self.example}
        return found | {name: said for name, said in more.items() if said}


@dataclass(frozen=True)
class Text(Field):
    """A text; `among` names the only ones there are, a pattern must fit the whole."""

    longest: int = 60
    pattern: str = ""
    among: Callable[[], list[str]] | None = None

    def schema(self) -> Schema:
        found: Schema = {"type": "string", "maxLength": self.longest}
        found |= {"pattern": f"^{self.pattern}$"} if self.pattern else {}
        return found | ({"enum": self.among()} if self.among else {})

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            raise InputError(f"{name} must be a text")
        if self.among and value not in self.among():
            raise InputError(f"{name} must be one of {', '.join(self.among())}")
        if len(value) > self.longest:
            raise InputError(f"{name} is too long: at most {self.longest} characters")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise InputError(f"{name}: {self.about}")
        return value


@dataclass(frozen=True)
class Number(Field):
    """A number within bounds."""

    low: float = 0
    high: float = 1

    def schema(self) -> Schema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise InputError(f"{name} must be a number from {self.low:g} to {self.high:g}")
        return float(value)


@dataclass(frozen=True)
class Whole(Field):
    """A whole number; digits in a text are one too, because JavaScript's numbers end at 2^53."""

    low: int = 0
    high: int = 2**53

    def schema(self) -> Schema:
        pattern = DIGITS.pattern
        return {
            "type": ["integer", "string"],
            "minimum": self.low,
            "maximum": self.high,
            "pattern": f"^{pattern}$",
        }

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and DIGITS.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise InputError(f"{name} must be a whole number from {self.low} to {self.high}")
        return value


@dataclass(frozen=True)
class Flag(Field):
    """True or false."""

    otherwise: Any = False

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false")
        return value


Form = Mapping[str, Field]


class NoJson(InputError):
    """The text is no JSON."""

    status = 400


def parse(text: str | bytes) -> Values:
    """The JSON object in a text, nothing checked yet."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise NoJson("this is no JSON") from None
    if not isinstance(data, dict):
        raise InputError("send a JSON object")
    return data


def read(form: Form, data: Values) -> Values:
    """The value of each field of the form; what it does not know is passed over."""
    found = {}
    for name, field in form.items():
        value = data.get(name)
        if value is None and field.otherwise is not SENT:
            found[name] = field.otherwise
        else:
            found[name] = field.check(name, value)
    return found
