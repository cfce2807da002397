"""Parts that are not in this package: in a file of one's own, or in a package that offers them by entry points.

`my_module:my_part` lies in a module that Python finds, also in the current folder. Code is imported where somebody
asks for it by name, never because a file does. Whatever goes wrong in it is one line with the name of that file.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from tilesage.core.errors import InputError

NAME, PLACE = re.compile(r"\w[\w.-]*"), re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")


def offered_by_packages(group: str) -> dict[str, str]:
    """The parts that installed packages offer in a group of entry points, by name, with their places."""
    points = sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name)
    return {point.name: point.value for point in points if NAME.fullmatch(point.name)}


def load(place: str, what: str) -> tuple[Any, str]:
    """The part at `module:name`, and the file it is in. `what` is how messages call it: "the game chess"."""
    module_name, _, attribute = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    if module_name.endswith(".py"):
        raise InputError(f"{what} is named by its module, not by a file: write {module_name[:-3]}:{attribute}")
    if not _exists(module_name):
        raise InputError(f"there is no module {module_name!r} for {what}, neither here nor installed")
    file = _file_of(module_name)
    with Blamed(file):
        module = importlib.import_module(module_name)
    thing: Any = module
    for name in attribute.split("."):
        thing = getattr(thing, name, None)
    if thing is None:
        known = [name for name, one in vars(module).items() if callable(one) and not name.startswith("_")]
        raise InputError(
            f"{file} has no {attribute!r} for {what}; it has {', '.join(known[:8]) or 'nothing like it'}"
        )
    return thing, file


def _exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except (ImportError, ValueError):
        return False


def _file_of(module_name: str) -> str:
    spec = importlib.util.find_spec(module_name)
    file = spec.origin if spec and spec.origin else module_name
    return os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file


class Blamed:
    """Errors on the way are the user's file's: one line with its name, and the line if it is known."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.file}: {error}") from None
        if isinstance(error, Exception | SystemExit):
            raise InputError(f"{self.file}{_line_of(self.file, error)}: {_gist(error)}") from error


def _line_of(file: str, error: BaseException) -> str:
    """The line of the user's file on which an error happened."""
    place = os.path.abspath(file)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
    compiled = getattr(error, "loc", None)  # where the compiler was; it says where it stood inside
    if compiled is not None and compiled.filename == place:
        inside = re.findall(rf'File "[^"]*{re.escape(os.path.basename(file))}", line (\d+)', str(error))
        lines.append(int(inside[-1]) if inside else compiled.line)
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines and lines[-1] else ""


def _gist(error: BaseException) -> str:
    """What an error says, in one line: the compiler's messages are pages."""
    said = [" ".join(line.split()) for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    telling = [line for line in said if line and not line.startswith(("Failed in", "File ", "-", "^", "During"))]
    whole = telling[:2] if telling and telling[0].endswith(":") else telling[:1]
    return f"{type(error).__name__}: {' '.join(whole)}"[:300]
