"""The one kind of error that a user can put right."""

from __future__ import annotations

from numbers import Integral

LONGEST = 600  # characters of a message; what is quoted in it may be a whole broken file


class InputError(ValueError):
    """Wrong input. The message says in one line what is wrong and what would be right.

    >>> print(InputError("odd \x1b[31mcolours"))
    odd \\x1b[31mcolours
    """

    def __init__(self, message: str) -> None:
        text = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in message[: 100 * LONGEST])
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 3 :]}")


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed!r}")
