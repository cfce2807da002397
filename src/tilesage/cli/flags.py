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
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import tyro

from tilesage.core.errors import InputError
from tilesage.core.files import written

Command = TypeVar("Command")

# Flags that may be left out. The help names what they take, and not that nothing is their default.
MaybeText = Annotated[str | None, tyro.conf.arg(metavar="STR", help_behavior_hint="")]
MaybePath = Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
MaybeWhole = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
MaybeNumber = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]


def parse(
    command: type[Command], name: str, words: list[str], groups: Mapping[str, Sequence[str]] | None = None
) -> Command:
    """The command with its flags; a wrong one, or a `--json` that cannot be written, is an `InputError`.

    `groups` are titles and the flags that the help shows under them.
    """
    errors, words, output = io.StringIO(), with_parameters(command, words), _Output()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(output):
            found = tyro.cli(command, prog=f"tilesage {name}", description=command.__doc__, args=words)
    except SystemExit as end:
        if not end.code:  # --help
            print(in_groups(output.getvalue(), groups or {}), end="")
            raise
        raise InputError(f"{_complaint(errors.getvalue())} (tilesage {name} --help lists the flags)") from None
    check_place(getattr(found, "json", None))
    if hasattr(found, "given"):
        found.given = names_in(words)
    return found


def names_in(words: Sequence[str]) -> frozenset[str]:
    """The flags that were typed, by the names of their fields; both --turned and --no-turned are `turned`."""
    names = (word.partition("=")[0][2:].replace("-", "_") for word in words if word.startswith("--"))
    return frozenset(name.removeprefix("no_") for name in names)


class _Output(io.StringIO):
    """Keeps what is printed, drawn and coloured as standard output takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.terminal = sys.stdout

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.terminal.encoding

    def isatty(self) -> bool:
        return self.terminal.isatty()


def in_groups(text: str, groups: Mapping[str, Sequence[str]]) -> str:
    """A help in which each group of flags has a frame of its own; flags of no group stay under "options"."""
    lines = text.splitlines(keepends=True)
    plain = [_plain(line) for line in lines]
    top = next((i for i, line in enumerate(plain) if re.match("(╭─)? options ", line)), None)
    if top is None:
        return text
    first = top + (1 if plain[top].startswith("╭") else 2)  # a frame of dashes has a line of them below the title
    bottom = next((i for i in range(first, len(lines)) if not plain[i].strip(" ╰─╯\n")), len(lines))
    title_of = {f"--{flag}": title for title, flags in groups.items() for flag in flags}
    inside, title = {"options": list[str](), **{title: [] for title in groups}}, "options"
    for line, read in zip(lines[first:bottom], plain[first:bottom]):
        if flag := re.match(r"[│ ] (--?[\w-]+)", read):
            title = title_of.get(flag[1], "options")
        inside[title].append(line)
    found = lines[:top]
    for title, content in inside.items():
        if content:
            found += [_titled(lines[top], title), *lines[top + 1 : first], *content, *lines[bottom : bottom + 1]]
    return "".join([*found, *lines[bottom + 1 :]])


def _titled(edge: str, title: str) -> str:
    """The upper edge of the frame "options" with another title, as long as it was."""
    more = len(title) - len("options")
    edge = edge.replace("options", title, 1)
    return "".join(edge.rsplit("─" * more, 1)) if more > 0 else edge.replace("╮", "─" * -more + "╮")


def _plain(line: str) -> str:
    """The line without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


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
    """The gist of the errors that tyro shows: what is wrong, and what comes nearest to it."""
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
    """What stands between the lines of a frame, without its title; where the terminal has none, lines are dashes."""
    lines = _plain(text).splitlines()
    boxed = any(line.startswith("╭") for line in lines)
    inside = [line.strip("│").rstrip() for line in lines if not line.startswith(("╭", "╰"))]
    parts = re.split(r"^ *[─-]{3,}$", "\n".join(inside), flags=re.MULTILINE)
    return [textwrap.dedent(part).strip() for part in parts[0 if boxed else 1 :]]


def _line(text: str) -> str:
    return " ".join(text.split())


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
