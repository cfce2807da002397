"""What came in from outside, read field by field: the right kind, within bounds, or an InputError that says so."""

from __future__ import annotations

import json
from typing import Any

from tilesage.core.errors import InputError

SEEDS = 2**63


class Fields:
    """The fields of a JSON object that a visitor sent."""

    def __init__(self, data: object) -> None:
        if not isinstance(data, dict):
            raise InputError("send a JSON object")
        self.data: dict[str, Any] = data

    @classmethod
    def parse(cls, text: str | bytes) -> Fields:
        """The fields of a JSON text."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError("this is no JSON") from None
        return cls(data)

    def text(self, name: str, longest: int, otherwise: str | None = None) -> str:
        """A text of at most `longest` characters."""
        value = self.data.get(name)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, str):
            raise InputError(f"{name} must be a text")
        if len(value) > longest:
            raise InputError(f"{name} is too long: at most {longest} characters")
        return value

    def maybe_text(self, name: str, longest: int) -> str | None:
        """A text, or None where it is left out."""
        return None if self.data.get(name) is None else self.text(name, longest)

    def whole(self, name: str, low: int, high: int, otherwise: int | None = None) -> int:
        """A whole number; digits in a text are one too, because JavaScript's numbers end at 2^53."""
        value = self.data.get(name)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError(f"{name} must be a whole number from {low} to {high}")
        return value

    def seed(self, otherwise: int) -> int:
        """A seed."""
        return self.whole("seed", 0, SEEDS - 1, otherwise)

    def number(self, name: str, low: float, high: float, otherwise: float | None = None) -> float:
        """A number, whole or not."""
        value = self.data.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise InputError(f"{name} must be a number from {low:g} to {high:g}")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where it is left out."""
        value = self.data.get(name, False)
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false")
        return value

    def choice(self, name: str, among: list[str], otherwise: str | None = None) -> str:
        """One of these words."""
        value = self.text(name, 60, otherwise)
        if value not in among:
            raise InputError(f"{name} must be one of {', '.join(among)}")
        return value
