"""What all commands share: reading flags with tyro, and writing results as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import textwrap
from dataclasses import is_dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import tyro

from tilesage.core.errors import InputError
from tilesage.core.files import written

Command = TypeVar("Command")


def parse(command: type[Command], name: str, words: list[str]) -> Command:
    """The command with its flags; a wrong one, or a `--json` that cannot be written, is an `InputError`."""
    errors, words = io.StringIO(), with_parameters(command, words)
    try:
        with contextlib.redirect_stderr(errors):
            found = tyro.cli(command, prog=f"tilesage {name}", description=command.__doc__, args=words)
    except SystemExit as end:
        if not end.code:  # --help
            raise
        raise InputError(f"{_complaint(errors.getvalue())} (tilesage {name} --help lists the flags)") from None
    check_place(getattr(found, "json", None))
    return found


def with_parameters(command: type[Command], words: list[str]) -> list[str]:
    """Flags that are parameters of a game, such as --four-rate 0.2, as --parameters."""
    own = names_of_flags(command)
    given = {word.partition("=")[0][2:].replace("-", "_") for word in words if word.startswith("--")} - own
    if "parameters" not in own or not given:
        return words
    from tilesage import games

    named = [*words[:1], *(b for a, b in pairwise(words) if a == "--game")]
    known = games.parameters_known([name for name in named if ":" in name])
    rest, found = [], []
    waiting = iter(words)
    for word in waiting:
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("-", "_")
        if flag.startswith("--") and name in known & given:
            found.append(f"{name}={value if equals else next(waiting, '')}")
        elif flag == "--parameters":
            found.append(value if equals else next(waiting, ""))
        else:
            rest.append(word)
    return [*rest, "--parameters", ",".join(found)] if found else words


def names_of_flags(command: type[Any]) -> set[str]:
    """The fields of a command, and of the dataclasses in it."""
    kinds = get_type_hints(command)
    inner = (names_of_flags(kind) for kind in kinds.values() if is_dataclass(kind) and isinstance(kind, type))
    own = {"help", *kinds, *chain.from_iterable(inner)}
    return own | {f"no_{name}" for name in own}


def check_place(where: str | None) -> None:
    """Before long work: can its result be written there at all?"""
    if where and where != "-" and not Path(where).parent.is_dir():
        raise InputError(f"cannot write {where}: there is no folder {Path(where).parent}")


NUMBERS = {r"invalid literal for int\(\) with base 10": "a whole number", "could not convert .*": "a number"}


def _complaint(text: str) -> str:
    """The gist of tyro's box of errors: what is wrong, and what comes nearest to it."""
    wrong, *more = _sections(text) or [""]
    if wrong.startswith("Missing from"):
        helps = re.findall(r"^ {8}.*(?:\n {8}.*)*", wrong, flags=re.MULTILINE)
        return "missing: " + "; ".join(_line(text).removesuffix(" (required)").rstrip(".") for text in helps)
    found = _line(wrong)
    for sign, kind in NUMBERS.items():
        found = re.sub(rf"Error parsing (\S+): {sign}: (.*)", rf"\1 is {kind}, not \2", found)
    if more and more[0].startswith("Perhaps you meant"):
        near = dict.fromkeys(re.findall(r"^ +(--[\w-]+)", more[0], flags=re.MULTILINE))
        found += f"; perhaps you meant {' or '.join(near)}" if near else ""
    return found[:300] or "wrong flags"


def _sections(text: str) -> list[str]:
    """What stands between the lines of a box, without its title; where the terminal has no box, lines are dashes."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    boxed = any(line.startswith("╭") for line in lines)
    inside = [line.strip("│").rstrip() for line in lines if not line.startswith(("╭", "╰"))]
    parts = re.split(r"^ *[─-]{3,}$", "\n".join(inside), flags=re.MULTILINE)
    return [textwrap.dedent(part).strip() for part in parts[0 if boxed else 1 :]]


def _line(text: str) -> str:
    return " ".join(text.split())


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


def program() -> str:
    """What to type for this command, here: its name where the shell finds it, else the way to it."""
    if shutil.which("tilesage"):
        return "tilesage"
    here = Path(sys.argv[0])
    if here.name != "tilesage":
        return "python -m tilesage"
    return os.path.relpath(here) if here.absolute().is_relative_to(Path.cwd()) else str(here)
