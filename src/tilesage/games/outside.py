"""Games that are not in this package: in a file of one's own, or in a package that offers them.

`my_module:my_game` is a `Game`, or a function that makes one of its parameters, in a module that Python finds, also
in the current folder. A package offers its games as entry points of the group `GROUP`.

Code is imported where somebody asks for it by name, never because a file does: what a model or a record says of its
game is only looked up among those that are known by then (`check_known`).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.games.game import Game

Maker = Callable[..., "Game"]
GROUP = "tilesage.games"
NAME, PLACE = re.compile(r"\w[\w.-]*"), re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
found: dict[str, Maker] = {}  # by name, those that this process has asked for


@cache
def offered() -> dict[str, str]:
    """The games that installed packages offer, by name, with their places."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return {point.name: point.value for point in points if NAME.fullmatch(point.name)}


def names() -> list[str]:
    """The games from outside that are known: those that packages offer, and those asked for so far."""
    return list(dict.fromkeys([*offered(), *found]))


def check_known(name: str, where: object) -> None:
    """Refuse a game that a file names and nobody has asked for."""
    if ":" in name and name not in found:
        raise InputError(
            f"{where} is of the game {name!r}, which is not known here: if you trust it, add --game {name}"
        )


def maker(name: str) -> Maker | None:
    """What makes the game of this name, None when there is none."""
    place = offered().get(name, name)
    if not PLACE.fullmatch(place):
        return None
    if name not in found:
        found[name] = _load(name, place)
    return found[name]


def _load(name: str, place: str) -> Maker:
    module_name, _, attribute = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    if not _exists(module_name):
        raise InputError(f"there is no module {module_name!r} for the game {name}, neither here nor installed")
    file = _file_of(module_name)
    with _Blamed(file):
        thing = getattr(importlib.import_module(module_name), attribute, None)
    if thing is None:
        raise InputError(f"{file} has no {attribute!r} for the game {name}")
    mark = sha256(Path(file).read_bytes()).hexdigest()[:12] if Path(file).is_file() else ""

    @cache
    def make(**parameters: float) -> Game:
        from tilesage.games.game import Game

        with _Blamed(file):
            game = thing(**parameters) if callable(thing) else thing
            if not isinstance(game, Game):
                raise InputError(f"{attribute} is a {type(game).__name__}, not a Game or a function that makes one")
            game = replace(game, name=name, key=f"{name} {mark} {game.key}")
            check(game)
        return game

    make()
    return make


def _exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except (ImportError, ValueError):
        return False


def _file_of(module_name: str) -> str:
    spec = importlib.util.find_spec(module_name)
    file = spec.origin if spec and spec.origin else module_name
    return os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file


def check(game: Game) -> None:
    """Play a game and ask for everything that the rules must answer, so that errors show at once."""
    from tilesage.games.board import CELLS

    if game.rows.shape != (1 << 16,) or game.tiles[0] != 0 or not 0 < game.goal < len(game.tiles):
        raise InputError(
            "rows has 65536 entries, tiles begins with 0 for an empty cell, and goal is the index of a tile"
        )
    state = game.new(0)
    if sum(map(bool, state.indices)) != game.starting_tiles or len(state.indices) != CELLS:
        raise InputError(
            f"start lays {sum(map(bool, state.indices))} tiles, and starting_tiles says {game.starting_tiles}"
        )
    for _ in range(3):
        if state.over:
            break
        after = state.slide(state.legal[0])
        if abs(sum(share for share, _ in after.outcomes()) - 1) > 1e-6:
            raise InputError("the probabilities of placements and draws do not add up to 1")
        state = after.spawn()
    game.rules.deal(state.board * 0, state.aux * 0, state.rng)
    for ask in (game.rules.largest, game.rules.sum_of_tiles, game.rules.value_of_board):
        ask(state.board, state.aux)
    if game.parse(state.text).indices != state.indices:
        raise InputError("read does not read what write wrote")


class _Blamed:
    """Errors on the way are the user's file's: one line with its name, and the line if it is known."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.file}: {error}") from None
        if isinstance(error, Exception):
            raise InputError(f"{self.file}{_line_of(self.file, error)}: {_gist(error)}") from error


def _line_of(file: str, error: Exception) -> str:
    """The line of the user's file on which an error happened."""
    place = os.path.abspath(file)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
    compiled = getattr(error, "loc", None)  # where the compiler was
    if compiled is not None and compiled.filename == place:
        lines.append(compiled.line)
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines and lines[-1] else ""


def _gist(error: Exception) -> str:
    """What an error says, in one line: the compiler's messages are pages."""
    said = [" ".join(line.split()) for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()]
    telling = [line for line in said if line and not line.startswith(("Failed in", "File ", "-", "^", "During"))]
    whole = telling[:2] if telling and telling[0].endswith(":") else telling[:1]
    return f"{type(error).__name__}: {' '.join(whole)}"[:300]
