"""What all commands share: reading flags with tyro, flags that many commands have, results as JSON.

The help of a flag is the comment above it. A flag that takes only some numbers says so with `Limits`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import tyro
from tyro.conf import arg

from tilesage.core.errors import InputError
from tilesage.core.files import written

Command = TypeVar("Command")


@dataclass(frozen=True)
class Limits:
    """The numbers that a flag takes; it stands among the annotations of its type."""

    low: float
    high: float = 1e18  # beyond all use
    above: bool = False  # low itself is too small

    def check(self, flag: str, value: float) -> None:
        """Refuse what lies outside."""
        if not self.low <= value <= self.high or (self.above and value == self.low):
            kind = "whole number" if isinstance(value, int) else "number"
            low = f"above {self.low:g}" if self.above else f"from {self.low:g} on"
            high = f", at most {self.high:,.12g}" if self.high < 1e18 else ""
            raise InputError(f"--{flag} is a {kind} {low}{high}, not {value:g}")


# Flags that may be left out. The help names what they take, and not that nothing is their default.
MaybeText = Annotated[str | None, arg(metavar="STR", help_behavior_hint="")]
MaybePath = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]
MaybeWhole = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
MaybeNumber = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="")]

# Flags of many commands.
JSON = "Write the result as JSON to this file (- for standard output)."
GAME = "The name of a game (tilesage games lists them), or my_module:my_game; by default the game of the model."
PARAMETERS = "Parameters of its rules, such as four_rate=0.2; --four-rate 0.2 says the same."
RAY = "The cluster: HOST:PORT, ray://HOST:PORT or auto; by default one is started on this machine."
JsonFile = Annotated[str | None, arg(metavar="FILE", help=JSON, help_behavior_hint="")]
GameName = Annotated[str | None, arg(metavar="STR", help=GAME, help_behavior_hint="")]
Parameters = Annotated[str, arg(help=PARAMETERS, help_behavior_hint="")]
RayAddress = Annotated[str | None, arg(metavar="STR", help=RAY, help_behavior_hint="")]
Delay = Annotated[MaybeNumber, Limits(0, 3600)]


def parse(command: type[Command], name: str, words: list[str]) -> Command:
    """The command with its flags; a wrong one, or a `--json` that cannot be written, is an `InputError`."""
    if "" in words:
        before = words[words.index("") - 1] if words[0] else name
        raise InputError(f"an empty word stands after {before}: write a value, or leave the flag out")
    errors, words = io.StringIO(), with_parameters(command, words)
    try:
        with contextlib.redirect_stderr(errors):
            found = tyro.cli(command, prog=f"tilesage {name}", description=command.__doc__, args=words)
    except SystemExit as end:
        if not end.code:  # --help
            raise
        raise InputError(f"{_complaint(errors.getvalue())} (tilesage {name} --help lists the flags)") from None
    for field, kind in get_type_hints(command, include_extras=True).items():
        for limits in getattr(kind, "__metadata__", ()):
            if isinstance(limits, Limits) and (value := getattr(found, field)) is not None:
                limits.check(field.replace("_", "-"), value)
    where = getattr(found, "json", None)
    if where and where != "-" and not Path(where).parent.is_dir():
        raise InputError(f"cannot write {where}: there is no folder {Path(where).parent}")
    if hasattr(found, "given"):
        found.given = names_in(words)
    return found


def names_in(words: Sequence[str]) -> frozenset[str]:
    """The flags that were typed, by the names of their fields; both --turned and --no-turned are `turned`."""
    names = (word.partition("=")[0][2:].replace("-", "_") for word in words if word.startswith("--"))
    return frozenset(name.removeprefix("no_") for name in names)


def with_parameters(command: type[Any], words: list[str]) -> list[str]:
    """Flags that are parameters of a game, such as --four-rate 0.2, as --parameters."""
    own = names_of_flags(command)
    given = names_in(words) - own
    if "parameters" not in own or not given:
        return words
    from tilesage import games

    named = [*words[:1], *(b for a, b in pairwise(words) if a == "--game")]
    known = games.parameters_known([name for name in named if ":" in name]) & given
    rest, found = [], []
    waiting = iter(words)
    for word in waiting:
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("-", "_")
        if flag.startswith("--") and name in {*known, "parameters"}:
            value = value if equals else next(waiting, "")
            found.append(value if name == "parameters" else f"{name}={value}")
        else:
            rest.append(word)
    return [*rest, "--parameters", ",".join(found)] if found else words


def names_of_flags(command: type[Any]) -> set[str]:
    """The fields of a command, and of the dataclasses in it."""
    kinds = get_type_hints(command)
    inner = (names_of_flags(kind) for kind in kinds.values() if is_dataclass(kind) and isinstance(kind, type))
    return {"help", *kinds, *chain.from_iterable(inner)}


# From what tyro shows in a frame of many lines to one line that says what is wrong.
GIST = (
    (r"\x1b\[[0-9;]*m|[│╭╮╰╯]|[─-]{3,}", " "),  # colours and frames
    (r"\s+", " "),
    (r"(Argument helptext:|For full helptext).*", ""),
    (r"^.*?(?=Error parsing|Unrecognized options:|invalid choice|Missing from)", ""),  # the title of the frame
    (r"Error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 is a whole number, not \2"),
    (r"Error parsing (\S+): could not convert [^:]*: (.*)", r"\1 is a number, not \2"),
    (r"Missing from [^:]*: [A-Z]+ ", "missing: "),
    (r"\.? \(required\) [A-Z]+ ", "; "),
    (r"\.? \(required\)", ""),
    (r" Perhaps you meant: (--[\w-]+).*", r"; perhaps you meant \1"),
)


def _complaint(text: str) -> str:
    """The gist of the errors that tyro shows."""
    for sign, said in GIST:
        text = re.sub(sign, said, text)
    return text.strip()[:300] or "wrong flags"


def write_json(result: Mapping[str, object], where: str | None) -> bool:
    """Write a result to a file, or to standard output for `-`; True if standard output is left for people."""
    text = json.dumps(result, indent=2, ensure_ascii=False)
    if where == "-":
        print(text)
    elif where is not None:
        with written(where, text=True) as file:
            file.write(text + "\n")
    return where != "-"


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
