"""Reading and writing perft files: one position a line, then `; depth count` for each depth.

A position is four rows of tile indices (0-9, A-Z; a dot is an empty cell), from the top, then in Threes! the next
tile and what is left to draw from:

    2048           .1../..../2.../....
    threes         1.2./.3../..../1.3. hint=2 bag=13
    threes-phone   8.2./.3../..../1.3. hint=6+12 deck=4,0,2

The count is the number of sequences of that many moves, each a legal slide and one chance outcome (a tile on a
cell, and in Threes! the draw of the next hint). A position without a legal move counts 0 from depth 1 on.
"""

from __future__ import annotations

from pathlib import Path

import reference
from reference import State

HERE = Path(__file__).parent
GAMES = reference.names()
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_position(game: str, state: State) -> str:
    """The text of a position.

    >>> write_position("threes", State((1, 0, 2, 0, *[0] * 11, 9), (2,), (1, 0, 1)))
    '1.2./..../..../...9 hint=2 bag=13'
    """
    cells = "".join(DIGITS[i] if i else "." for i in state.cells)
    rows = "/".join(cells[i : i + 4] for i in range(0, 16, 4))
    return " ".join([rows, *(f"{name}={value}" for name, value in reference.get(game).fields(state).items())])


def read_position(game: str, text: str) -> State:
    """The position of a text, for the reference."""
    rows, *words = text.split()
    cells = tuple(0 if c == "." else DIGITS.index(c) for c in rows.replace("/", ""))
    found: State = reference.get(game).state_of(cells, dict(word.split("=") for word in words))
    return found


def read_file(game: str) -> list[tuple[str, dict[int, int]]]:
    """The positions of a game's file, as text, with their counts by depth."""
    found = []
    for line in (HERE / f"{game}.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            position, *counts = line.split(";")
            found.append((position.strip(), {int(d): int(n) for d, n in (count.split() for count in counts)}))
    return found
