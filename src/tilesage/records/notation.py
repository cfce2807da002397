"""The text of game records: symbols, patterns, and lines read one at a time (docs/records.md).

Shared by the reader and writer of records and by the referee; it knows the form of a record, no rules of a game.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, NamedTuple

from tilesage import games
from tilesage.core.errors import InputError

SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SLIDES = "URDL"  # letters of the actions 0-3


class Notation(NamedTuple):
    """How the games of one game are written."""

    start: int  # placements before the first slide
    width: int  # characters of a placement: POS TILE, with a hint of one tile 3, with one that may be several 4
    placer: str = "chance"  # who places; its name tells the game where the form of a record does not


NOTATIONS = {
    "2048": Notation(2, 2),
    "threes": Notation(9, 3),
    "threes-phone": Notation(9, 4),
    "fibonacci": Notation(2, 2, "chance of fibonacci"),
}
TOLD_BY_FORM = ("2048", "threes", "threes-phone")
PLACER_OF = "chance of "

# 2048 ends after at most about a million moves of 22 characters: no game has a longer line.
LONGEST_LINE = 32 * 2**20

NAME = r"[^|:@\x00-\x1f]{0,200}"
HEAD = re.compile(rf"({NAME}):({NAME})@([0-9]{{1,18}})\|")
TAIL = re.compile(rf"({NAME})@([0-9]{{1,18}})")
MARKS = r"(?:\[([0-9]{1,12})\])?(?:\(([0-9]{1,12})\))?"
ACTION = re.compile(rf"#(.){MARKS}|([0-9A-Z]+){MARKS}")


REWARD = re.compile(r"\[([0-9]{1,12})\]")


def earned(moves: str) -> int:
    """The sum of the rewards in the moves of a record."""
    return sum(map(int, REWARD.findall(moves)))


class Line(NamedTuple):
    """One line of a file; of a line longer than any game only the beginning, and `whole` is False."""

    number: int
    text: str
    whole: bool = True


def notation_of(game: str) -> Notation:
    """How a game is written: by its row in the table, or by what it says of itself."""
    if game in NOTATIONS:
        return NOTATIONS[game]
    found = games.get(game)
    hint = 0 if found.hint is None else 1 if found.hint.values == 1 else 2
    return Notation(found.starting_tiles, 2 + hint, PLACER_OF + game.replace(":", "."))


def guess_game(moves: str, placer: str = "") -> str:
    """Which game a record is from: its placer's name says it, or else the characters before the first slide do.

    Two placements of two characters are 2048, nine of three Threes!, nine of four Threes! as on the phone;
    a damaged start goes to the nearest.
    """
    if placer.startswith(PLACER_OF):
        return _named(placer.removeprefix(PLACER_OF))
    first = re.split(r"[#|]", moves[:2000])[0]
    width = len(re.sub(r"\[[^\]]*\]|\([^)]*\)", "", first))
    return min(TOLD_BY_FORM, key=lambda game: abs(NOTATIONS[game].start * NOTATIONS[game].width - width))


def _named(text: str) -> str:
    """The game that a record names. A file imports nobody's code: only what is known by now is found."""
    module, dot, attribute = text.rpartition(".")
    game = f"{module}:{attribute}" if dot else text
    if game not in games.names():
        raise InputError(f"these are games of {game!r}, which is not known here: if you trust it, add --game {game}")
    return game


def read_lines(stream: IO[bytes]) -> Iterator[Line]:
    """The lines of a file up to the first empty one, never more than one in memory."""
    number = 0
    while raw := _read_line(stream):
        number += 1
        raw = raw.rstrip(b"\r\n")
        if not raw:
            return
        whole = len(raw) <= LONGEST_LINE
        yield Line(number, (raw if whole else raw[:1000]).decode("utf-8", "surrogateescape"), whole)
        if not whole:
            return


def _read_line(stream: IO[bytes]) -> bytes:
    try:
        return stream.readline(LONGEST_LINE + 2)
    except OSError as error:
        raise InputError(f"cannot read on: {error.strerror}") from None


def open_records(path: str | PathLike[str]) -> IO[bytes]:
    """Open a file of records for reading, - for standard input; an InputError when it cannot be."""
    try:
        return os.fdopen(os.dup(0), "rb") if str(path) == "-" else Path(path).open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
