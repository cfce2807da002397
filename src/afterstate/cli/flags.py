"""What all commands share: reading flags with tyro, and writing results as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from typing import Any, TypeVar

import tyro

from afterstate.games.disk import written
from afterstate.games.errors import Mistake

Command = TypeVar("Command")


def parse(command: type[Command], name: str, words: list[str]) -> Command:
    """The command with its flags; a wrong flag is a `Mistake` in one line."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(command, prog=f"afterstate {name}", description=command.__doc__, args=words)
    except SystemExit as end:
        if not end.code:  # --help
            raise
        raise Mistake(f"{_complaint(errors.getvalue())} (afterstate {name} --help lists the flags)") from None


def _complaint(text: str) -> str:
    """The gist of tyro's box of errors."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip(" │╭╮╰╯─|") for line in plain.splitlines()]
    lines = [line for line in lines if line and not set(line) <= set("─-—=")]
    kept = [line for line in lines if not line.lower().startswith(("parsing error", "for full helptext", "see "))]
    return "; ".join(kept[:3])[:300] or "wrong flags"


def write_json(result: dict[str, Any], where: str) -> None:
    """Write a result to a file, or to standard output for `-`."""
    text = json.dumps(result, indent=2, ensure_ascii=False)
    if where == "-":
        print(text)
        return
    with written(where, text=True) as file:
        file.write(text + "\n")


def say(text: str = "", *, to_stderr: bool = False) -> None:
    """A line for people: on standard error when standard output carries JSON."""
    print(text, file=sys.stderr if to_stderr else sys.stdout, flush=True)
