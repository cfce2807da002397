"""2048, exact up to 131072 (exponent 17): two tiles of 131072 do not merge.

A chance outcome is one tile on one empty cell: 2 with probability 1 - four_rate, 4 with four_rate.
With a rate of 0 or 1 the impossible tile is left out.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from reference import ACTIONS, Outcomes, Slide, State, lines

TILES = (0, *(2**e for e in range(1, 18)))
LARGEST = 17
FOUR_RATE = Fraction(1, 10)
STARTING_TILES, GOAL, COPIES, NEW_TILES_COUNT = 2, 2048, 0, False
EXAMPLE = "1234/5.../..../...1"
MOST = ("", "1.../..../..../....")
SEARCHED = (
    "1.23/2345/.987/3A12",
    "1..1/2123/3434/9ABC",
    "1212/2121/1212/212.",
)
FEW_EMPTY = (
    "1.23/2345/.987/3A12",
    "2343/4565/2343/566.",
)
GOLDEN = (173, 2060, "4231/1385/2421/1342")
SPECIAL = (
    "1111/1111/1111/1111",
    "FFGG/HH../..../....",
    "FF../..../..../..FF",
    "GGFF/FEFE/EFEF/FEFE",
    "HHHH/HGHG/GHGH/HHHH",
    "HGFE/ABCD/9876/1112",
    "1212/2121/1212/2121",
    "1212/2121/1212/2122",
    "12FF/21EE/1212/212.",
    "F..F/..../..../F..F",
    "...8/...9/...A/89AF",
)


def slide_line(line: list[int]) -> tuple[list[int], int]:
    """One line slid towards its first cell, and its reward.

    >>> slide_line([1, 1, 1, 0]), slide_line([1, 1, 1, 1]), slide_line([2, 0, 1, 1])
    (([2, 1, 0, 0], 4), ([2, 2, 0, 0], 8), ([2, 2, 0, 0], 4))
    """
    tiles = [e for e in line if e]
    slid = []
    reward = 0
    while tiles:
        e = tiles.pop(0)
        if tiles and tiles[0] == e and e < LARGEST:
            tiles.pop(0)
            e += 1
            reward += 2**e
        slid.append(e)
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
        for i, e in zip(line, slid):
            after[i] = e
    return tuple(after), total, tuple(moved)


def legal(state: State) -> list[int]:
    return [a for a in ACTIONS if any(slide(state.cells, a)[2])]


def over(state: State) -> bool:
    return not legal(state)


def value(cells: tuple[int, ...]) -> int:
    return sum((e - 1) * 2**e for e in cells if e)


def fields(state: State) -> dict[str, str]:
    return {}


def state_of(cells: tuple[int, ...], fields: dict[str, str]) -> State:
    return State(cells)


def _tiles(four_rate: Fraction) -> list[tuple[Fraction, int]]:
    return [(p, e) for p, e in ((1 - four_rate, 1), (four_rate, 2)) if p > 0]


def placements(state: State, action: int, four_rate: Fraction = FOUR_RATE) -> list[tuple[Fraction, int, int]]:
    after, _, moved = slide(state.cells, action)
    if not any(moved):
        return []
    empty = [i for i in range(16) if after[i] == 0]
    return [(p / len(empty), i, e) for i in empty for p, e in _tiles(four_rate)]


def draws(
    cells: tuple[int, ...], bag: tuple[int, int, int]
) -> list[tuple[Fraction, tuple[int, ...], tuple[int, int, int]]]:
    return [(Fraction(1), (), bag)]


def outcomes(state: State, action: int, four_rate: Fraction = FOUR_RATE) -> Outcomes:
    after = slide(state.cells, action)[0]
    return [(p, State((*after[:i], e, *after[i + 1 :]))) for p, i, e in placements(state, action, four_rate)]


def _drop(cells: list[int], random: Random, four_rate: Fraction) -> None:
    cell = random.choice([i for i in range(16) if cells[i] == 0])
    cells[cell] = 2 if random.random() < four_rate else 1


def start(random: Random, four_rate: Fraction = FOUR_RATE) -> State:
    cells = [0] * 16
    _drop(cells, random, four_rate)
    _drop(cells, random, four_rate)
    return State(tuple(cells))


def play(state: State, action: int, random: Random, four_rate: Fraction = FOUR_RATE) -> tuple[State, int]:
    after, reward, moved = slide(state.cells, action)
    if not any(moved):
        raise ValueError(f"action {action} is illegal on {state.cells}")
    cells = list(after)
    _drop(cells, random, four_rate)
    return State(tuple(cells)), reward


def perft(state: State, depth: int) -> int:
    if depth == 0:
        return 1
    return sum(perft(s, depth - 1) for a in legal(state) for _, s in outcomes(state, a))
