"""2584: two neighbours of 1, 2, 3, 5, 8, … merge to the next one, and two 1s to a 2; exact up to index 32.

A chance outcome is one tile on one empty cell: 1 with probability 1 - two_rate, 2 with two_rate.
With a rate of 0 or 1 the impossible tile is left out.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from reference import ACTIONS, Outcomes, Slide, State, lines

LARGEST = 32
TWO_RATE = Fraction(1, 10)
STARTING_TILES, GOAL, COPIES, NEW_TILES_COUNT = 2, 2584, 0, False
EXAMPLE = "1235/4.../..../...1"
MOST = ("", "1.../..../..../....")
SEARCHED = (
    "1.35/2468/.ACE/1D13",
    "1..1/1352/4646/9BDE",
    "EFG1/1H35/3513/135.",
)
FEW_EMPTY = (
    "1357/7531/1357/753.",
    "2468/8642/2468/864.",
)
GOLDEN = (445, 3303, "1351/37A3/6CA6/2263")
SPECIAL = (
    "1111/1111/1111/1111",
    "1122/2211/1212/2121",
    "2222/3333/4444/1112",
    "1234/4321/2345/5432",
    "1323/3132/1323/3132",
    "EF../..../..../..FE",
    "FFGG/HH../..../....",
    "FGGF/GFFG/HHII/FIHG",
    "UVWV/WUVW/VWUV/UWVU",
    "WW../..../..../..VV",
    "VWUV/..../T.U./....",
    "V.U./.W.V/..../....",
    "1313/3131/1313/313.",
    "DE.F/E..D/F.EG/....",
    "NOPQ/QPON/RSTU/1112",
)


def _sequence() -> tuple[int, ...]:
    found = [0, 1, 2]
    for i in range(3, LARGEST + 1):
        found.append(found[i - 1] + found[i - 2])
    return tuple(found)


TILES = _sequence()


def made_of(near: int, far: int) -> int:
    """The index that two tiles make, 0 if they do not merge.

    >>> made_of(1, 1), made_of(1, 2), made_of(2, 1), made_of(2, 2), made_of(31, 32)
    (2, 3, 3, 0, 0)
    """
    total = TILES[near] + TILES[far]
    if near == far and near != 1:
        return 0
    return TILES.index(total) if total in TILES else 0


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """One line slid towards its first cell, and its reward.

    >>> slide_line([1, 1, 1, 0]), slide_line([3, 2, 2, 3]), slide_line([5, 0, 3, 4])
    (([2, 1, 0, 0], 2), ([4, 4, 0, 0], 10), ([5, 5, 0, 0], 8))
    """
    tiles = [i for i in line if i]
    slid = []
    reward = 0
    while tiles:
        i = tiles.pop(0)
        if tiles and made_of(i, tiles[0]):
            i = made_of(i, tiles.pop(0))
            reward += TILES[i]
        slid.append(i)
    return slid + [0] * (4 - len(slid)), reward


def slide(cells: tuple[int, ...], action: int) -> Slide:
    after = list(cells)
    total = 0
    moved = []
    for line in lines(action):
        before = [cells[i] for i in line]
        slid, reward = slide_line(before)
        total += reward
        moved.append(slid != before)
        for i, tile in zip(line, slid):
            after[i] = tile
    return tuple(after), total, tuple(moved)


def legal(state: State) -> list[int]:
    return [a for a in ACTIONS if any(slide(state.cells, a)[2])]


def over(state: State) -> bool:
    return not legal(state)


def worth(index: int) -> int:
    """What a tile has earned on its way, without luck: that of the two it was made of, and its number.

    >>> [worth(i) for i in range(6)]
    [0, 0, 2, 5, 12, 25]
    """
    before, this = 0, 0
    for i in range(2, index + 1):
        before, this = this, before + this + TILES[i]
    return this


def value(cells: tuple[int, ...]) -> int:
    return sum(worth(i) for i in cells)


def fields(state: State) -> dict[str, str]:
    return {}


def state_of(cells: tuple[int, ...], fields: dict[str, str]) -> State:
    return State(cells)


def _tiles(two_rate: Fraction) -> list[tuple[Fraction, int]]:
    return [(p, i) for p, i in ((1 - two_rate, 1), (two_rate, 2)) if p > 0]


def placements(state: State, action: int, two_rate: Fraction = TWO_RATE) -> list[tuple[Fraction, int, int]]:
    after, _, moved = slide(state.cells, action)
    if not any(moved):
        return []
    empty = [i for i in range(16) if after[i] == 0]
    return [(p / len(empty), i, tile) for i in empty for p, tile in _tiles(two_rate)]


def draws(
    cells: tuple[int, ...], bag: tuple[int, int, int]
) -> list[tuple[Fraction, tuple[int, ...], tuple[int, int, int]]]:
    return [(Fraction(1), (), bag)]


def outcomes(state: State, action: int, two_rate: Fraction = TWO_RATE) -> Outcomes:
    after = slide(state.cells, action)[0]
    return [(p, State((*after[:i], t, *after[i + 1 :]))) for p, i, t in placements(state, action, two_rate)]


def _drop(cells: list[int], random: Random, two_rate: Fraction) -> None:
    cell = random.choice([i for i in range(16) if cells[i] == 0])
    cells[cell] = 2 if random.random() < two_rate else 1


def start(random: Random, two_rate: Fraction = TWO_RATE) -> State:
    cells = [0] * 16
    _drop(cells, random, two_rate)
    _drop(cells, random, two_rate)
    return State(tuple(cells))


def play(state: State, action: int, random: Random, two_rate: Fraction = TWO_RATE) -> tuple[State, int]:
    after, reward, moved = slide(state.cells, action)
    if not any(moved):
        raise ValueError(f"action {action} is illegal on {state.cells}")
    cells = list(after)
    _drop(cells, random, two_rate)
    return State(tuple(cells)), reward


def perft(state: State, depth: int) -> int:
    if depth == 0:
        return 1
    return sum(perft(s, depth - 1) for a in legal(state) for _, s in outcomes(state, a))
