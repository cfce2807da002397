"""Learning rates that change over a run, written as text.

0.1                 constant
0.5>0.01            linear from 0.5 to 0.01
0.1,0.01@0.5        stepped: 0.01 from the middle of the run on
1,1>0.05@0.7        pieces: 1, and from 70 % of the run on falling to 0.05
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tilesage.core.errors import InputError

NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:e-?\d+)?"
PIECE = re.compile(rf"({NUMBER})(?:>({NUMBER}))?(?:@({NUMBER}))?")


@dataclass(frozen=True)
class Piece:
    begin: float  # share of the run, 0 to 1
    first: float
    last: float


@dataclass(frozen=True)
class Schedule:
    """A rate as a function of how much of the run is done."""

    text: str
    pieces: tuple[Piece, ...]

    def at(self, done: float) -> float:
        """The rate when this share of the run (0 to 1) is done.

        >>> [parse_schedule("1>0.5").at(done) for done in (0, 0.5, 1)]
        [1.0, 0.75, 0.5]
        """
        done = min(max(done, 0.0), 1.0)
        number = max(i for i, piece in enumerate(self.pieces) if piece.begin <= done)
        piece = self.pieces[number]
        end = self.pieces[number + 1].begin if number + 1 < len(self.pieces) else 1.0
        share = (done - piece.begin) / (end - piece.begin) if end > piece.begin else 1.0
        return piece.first + (piece.last - piece.first) * share


def parse_schedule(text: str) -> Schedule:
    pieces: list[Piece] = []
    for word in text.replace(" ", "").split(","):
        match = PIECE.fullmatch(word)
        if not match:
            raise InputError(f"{text!r} is not a rate: write 0.1, 0.5>0.01 (linear) or 0.1,0.01@0.5 (steps)")
        first, last, begin = match.groups()
        piece = Piece(float(begin or 0), float(first), float(last or first))
        if not all(math.isfinite(x) for x in (piece.first, piece.last)) or piece.begin > 1:
            raise InputError(f"{text!r}: rates are numbers, and what follows @ is a share of the run from 0 to 1")
        if pieces and piece.begin <= pieces[-1].begin:
            raise InputError(
                f"{text!r}: the pieces of a rate begin one after another, such as 0.1,0.01@0.5,0.001@0.8"
            )
        pieces.append(piece)
    if pieces[0].begin > 0:
        raise InputError(f"{text!r}: the first piece of a rate begins at 0")
    return Schedule(text, tuple(pieces))
