"""The metrics of a run: a line of JSON for every block of games."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.games import Game
from tilesage.learning.progress import Progress

NAME = "metrics.jsonl"
ENOUGH = 1000  # games of which a mean is told, if there are so many
LONGEST_LINE = 10_000  # characters
MOST = 1 << 60
FIGURES = ("games", "moves", "seconds", "block", "mean", "error", "max", "moves_per_second")

Line = dict[str, Any]


def line_of(progress: Progress, game: Game, rate: float) -> Line:
    """The block of games that ends here, as one line."""
    block, p = progress.block, progress
    reached = {str(game.tiles[i]): round(block.reach(i), 5) for i in range(game.goal - 1, len(game.tiles))}
    line = {
        "games": p.games,
        "moves": p.moves,
        "seconds": round(p.seconds, 3),
        "block": block.games,
        "mean": round(block.mean, 2),
        "error": round(block.error, 2),
        "max": block.best,
        "reach": {tile: share for tile, share in reached.items() if share},
        "rate": rate,
        "moves_per_second": round(block.moves / block.seconds) if block.seconds else 0,
        "largest_error": round(block.worst, 1),
    }
    return line | ({"replays": block.replays} if block.replays else {})


def latest(lines: Sequence[Line], games: int = ENOUGH) -> Line:
    """Mean, its error, and reach over the last blocks, as many as make up so many games; {} without any.

    >>> blocks = [{"block": 900, "mean": 10, "error": 1}, {"block": 2, "mean": 90, "error": 9}]
    >>> latest([line | {"reach": {}} for line in blocks])
    {'block': 902, 'mean': 10.18, 'error': 1.0, 'reach': {}}
    """
    taken: list[Line] = []
    while len(taken) < len(lines) and sum(line["block"] for line in taken) < games:
        taken.append(lines[-1 - len(taken)])
    count = sum(line["block"] for line in taken)
    if not count:
        return {}
    shares = [line["block"] / count for line in taken]
    tiles = dict.fromkeys(tile for line in reversed(taken) for tile in line["reach"])
    reach = {tile: sum(share * line["reach"].get(tile, 0) for share, line in zip(shares, taken)) for tile in tiles}
    return {
        "block": count,
        "mean": round(sum(share * line["mean"] for share, line in zip(shares, taken)), 2),
        "error": round(math.hypot(*(share * line["error"] for share, line in zip(shares, taken))), 2),
        "reach": {tile: round(share, 5) for tile, share in reach.items()},
    }


def read_metrics(folder: Path) -> list[Line]:
    """The lines of a run's metrics; a last line that was cut by a kill is left out."""
    path = folder / NAME
    if not path.exists():
        raise InputError(f"{folder} is not a run: {NAME} is missing")
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        try:
            found.append(_checked(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if len(line) > LONGEST_LINE or line.endswith(b"\n"):
                raise InputError(f"{path}: line {number} is no line of metrics") from None
    return found


def _checked(line: Line) -> Line:
    """The line, if it has the figures that every reader relies on."""
    for name in FIGURES:
        if type(line[name]) not in (int, float) or not 0 <= line[name] < MOST:
            raise ValueError(name)
    if not all(type(share) in (int, float) and 0 <= share <= 1 for share in line["reach"].values()):
        raise ValueError("reach")
    return line


def cut(folder: Path, games: int) -> None:
    """Forget the blocks that ended after so many games: a run goes on from there, and plays them again."""
    lines = read_metrics(folder) if (folder / NAME).exists() else []
    with written(folder / NAME, text=True) as file:
        write_lines(file, (line for line in lines if line["games"] <= games))


def write_lines(file: IO[str], lines: Iterable[Line]) -> None:
    """Each on a line of its own, for other processes to see."""
    file.writelines(json.dumps(line) + "\n" for line in lines)
    file.flush()
