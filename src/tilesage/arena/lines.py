"""The text of game records: symbols, patterns, and lines read one at a time (docs/records.md).

Shared by the reader and writer of records and by the referee; it knows the form of a record, no rules of a game.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, NamedTuple

from tilesage.games.errors import InputError

SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SLIDES = "URDL"  # letters of the actions 0-3
START_TILES = {"2048": 2, "threes": 9, "threes-phone": 9}
PLACEMENT_WIDTH = {"2048": 2, "threes": 3, "threes-phone": 4}  # characters of a placement

# 2048 ends after at most about a million moves of 22 characters: no game has a longer line.
LONGEST_LINE = 32 * 2**20

NAME = r"[^|:@\x00-\x1f]{0,200}"
HEAD = re.compile(rf"({NAME}):({NAME})@([0-9]{{1,18}})\|")
TAIL = re.compile(rf"({NAME})@([0-9]{{1,18}})")
MARKS = r"(?:\[([0-9]{1,12})\])?(?:\(([0-9]{1,12})\))?"
ACTION = re.compile(rf"#(.){MARKS}|([0-9A-Z]+){MARKS}")


class Line(NamedTuple):
    """One line of a file; of a line longer than any game only the beginning, and `whole` is False."""

    number: int
    text: str
    whole: bool = True


def guess_game(moves: str) -> str:
    """Which game the moves of a record are from: by the characters before the first slide.

    Two placements of two characters are 2048, nine of three Threes!, nine of four Threes! as on the phone;
    a damaged start goes to the nearest.
    """
    first = re.split(r"[#|]", moves[:2000])[0]
    width = len(re.sub(r"\[[^\]]*\]|\([^)]*\)", "", first))
    return min(START_TILES, key=lambda game: abs(START_TILES[game] * PLACEMENT_WIDTH[game] - width))


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
    """Open a file of records for reading; an InputError when it cannot be."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
