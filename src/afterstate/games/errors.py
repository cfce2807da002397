"""The one kind of error that a user can put right."""

from __future__ import annotations


class Mistake(ValueError):
    """Wrong input. The message says in one line what is wrong and what would be right."""
