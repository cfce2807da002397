"""Which tile went where in a slide: what a picture needs and the engine, which only knows boards, does not say.

The engine stays the referee: `motions` checks its own account against the position that followed, and keeps quiet
when the two disagree, so a picture may jump but never shows a move that did not happen.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilesage.games import Game, State

Motion = tuple[int, int]  # from cell, to cell; two motions to one cell are a merge

_ROWS = tuple(tuple(range(4 * row, 4 * row + 4)) for row in range(4))
_COLUMNS = tuple(tuple(range(column, 16, 4)) for column in range(4))
LINES = (  # for each action the four lines, each from the wall that the tiles move to
    _COLUMNS,
    tuple(line[::-1] for line in _ROWS),
    tuple(line[::-1] for line in _COLUMNS),
    _ROWS,
)


def motions(before: State, action: int, after: State) -> tuple[Motion, ...]:
    """Where every tile of `before` went when `action` led to `after`; () when that cannot be told."""
    moved = slide_motions(before.game, before.cells, action)
    return moved if _lead_to(before.cells, moved, after.cells) else ()


def slide_motions(game: Game, cells: Sequence[int], action: int) -> tuple[Motion, ...]:
    """Where every tile goes by the rules: as far as it can, or at most one cell."""
    walk = _far if game.slides_far else _one_step
    found: list[Motion] = []
    for line in LINES[action]:
        for start, end in walk(game, [cells[cell] for cell in line]):
            found.append((line[start], line[end]))
    return tuple(sorted(found))


def compact(moved: Sequence[Motion]) -> str:
    """The motions as pairs of hexadecimal cells.

    >>> compact([(0, 0), (13, 1)])
    '00d1'
    """
    return "".join(f"{start:x}{end:x}" for start, end in moved)


def _merges(game: Game, one: int, other: int) -> bool:
    """Do these two make a larger tile, in a line from the wall?"""
    return bool(game.merged(game.tiles.index(one), game.tiles.index(other)))


def _far(game: Game, line: list[int]) -> list[Motion]:
    found: list[Motion] = []
    free, waiting = 0, 0  # the next free place; the tile just before it that may still merge
    for place, tile in enumerate(line):
        if not tile:
            continue
        if waiting and _merges(game, waiting, tile):
            found.append((place, free - 1))
            waiting = 0
        else:
            found.append((place, free))
            free, waiting = free + 1, tile
    return found


def _one_step(game: Game, line: list[int]) -> list[Motion]:
    moving = False
    found: list[Motion] = []
    for place, tile in enumerate(line):
        if not tile:
            continue
        if place and not moving:
            moving = not line[place - 1] or _merges(game, line[place - 1], tile)
        found.append((place, place - moving))
        # A gap behind this tile lets everything after it move.
        moving = moving or (place < 3 and not line[place + 1])
    return found


def _lead_to(cells: Sequence[int], moved: Sequence[Motion], after: Sequence[int]) -> bool:
    """Tiles add up when they merge (2 + 2, 1 + 2, 3 + 3), and one new tile lies on a cell that was free."""
    slid = [0] * 16
    for start, end in moved:
        slid[end] += cells[start]
    new = [cell for cell in range(16) if slid[cell] != after[cell]]
    return len(new) == 1 and slid[new[0]] == 0
