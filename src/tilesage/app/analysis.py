"""What a player thinks of the moves of a game: what each gave away, where it went wrong, how accurate it was.

A move's share is what it gives away, of the figure of its position. The numbers are those of the page (analysis.js).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tilesage.evaluation.forecast import Opinion

CLASSES = ((0.05, "blunder"), (0.02, "mistake"), (0.005, "inaccuracy"))
NEAR = 8  # moves within which two mistakes are one incident
STEEP = 50.0  # of the accuracy of a move: 100 · exp(-50 · share)


class Judged(NamedTuple):
    """A move that was made, and what the player thinks of the position."""

    opinion: Opinion
    action: int

    @property
    def share(self) -> float | None:
        """What the move gave away, as a share; None where the player has no opinion."""
        value, loss = self.opinion.value, self.opinion.losses[self.action]
        return None if value is None or loss is None else loss / max(1.0, value)

    @property
    def kind(self) -> str:
        """The class of the mistake, or nothing.

        >>> Judged(Opinion(0, [100.0, 97.0, None, None], [0.0, 3.0, None, None], ""), 1).kind
        'mistake'
        """
        share = self.share or 0.0
        return next((name for least, name in CLASSES if share >= least), "")


def incidents(moves: Sequence[Judged]) -> list[int]:
    """The worst move of each incident: mistakes that lie close together are one."""
    found: list[list[int]] = []
    for number, move in enumerate(moves):
        if move.kind and found and number - found[-1][-1] <= NEAR:
            found[-1].append(number)
        elif move.kind:
            found.append([number])
    return [
        max(close, key=lambda number: moves[number].opinion.losses[moves[number].action] or 0.0) for close in found
    ]


def accuracy(moves: Sequence[Judged]) -> float | None:
    """The mean accuracy of the moves that the player has an opinion of, at most 100."""
    told = [100 * math.exp(-STEEP * move.share) for move in moves if move.share is not None]
    return sum(told) / len(told) if told else None
