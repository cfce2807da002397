"""Threes!, the course variant: the hint is the exact next tile, no bonus tiles, 6144 never merges.

What the rules leave open, fixed here:

- Bag: the tiles 1, 2, 3, one each, drawn without replacement. It is refilled at the moment its last tile
  is drawn, so the bag of a state is never empty: right after the start it holds the two tiles that the
  hint left. (Refilling just before the next draw instead would be the same game.)
- Slide: going from the wall outwards, the first place of a line that is either an empty cell or a pair
  that can merge takes the change, and everything behind it moves up one cell. A line without such a place, or
  with nothing but empty cells behind its first empty one, does not move.
- Landing: a uniformly random empty cell of the border opposite to the slide, whether its line moved or not.
- Start: nine tiles, each on a uniformly random empty cell of the sixteen; then the hint is drawn.
- Score: the sum of all rewards, of slides and of placements, the start included: it equals `value(cells)`.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from reference import ACTIONS, Outcomes, Slide, State, lines

TILES = (0, 1, 2, *(3 * 2 ** (i - 3) for i in range(3, 15)))
LARGEST = 14
FULL_BAG = (1, 1, 1)
STARTING_TILES, GOAL, COPIES, NEW_TILES_COUNT = 9, 384, 1, True
EXAMPLE = "1234/5.6./12../..13 hint=3 bag=12"
MOST = (".1../.1../.1../.1.. hint=1", "1.../..../..../.... hint=1 bag=123")
SEARCHED = (
    "31.2/1453/.786/2319 hint=2 bag=13",
    "1123/2114/9356/1232 hint=3 bag=123",
    ".12./3121/4562/7893 hint=1 bag=23",
)
FEW_EMPTY = (
    "31.2/1453/.786/2319 hint=2 bag=13",
    "1313/3131/1313/313. hint=2 bag=13",
)
GOLDEN = (91, 1047, "3424/4143/3875/2311 hint=3 bag=2")
SPECIAL = (
    "1212/2121/1212/2121 hint=1 bag=23",
    "3333/3333/3333/3333 hint=3 bag=12",
    "EE../..../..../..EE hint=2 bag=123",
    "DDEE/EEDD/1122/2211 hint=1 bag=2",
    "1111/2222/1111/2222 hint=3 bag=1",
    "4567/89AB/CDE3/1313 hint=2 bag=13",
    "1313/3131/1313/3131 hint=1 bag=23",
    ".89A/BCDE/.EDC/BA98 hint=3 bag=123",
    ".333/3.33/33.3/333. hint=3 bag=2",
)
Draws = list[tuple[Fraction, tuple[int, ...], tuple[int, int, int]]]


def worth(index: int) -> int:
    """v(i): 3 for a 3, three times more for each next tile.

    >>> worth(1), worth(3), worth(4), worth(14)
    (0, 3, 9, 531441)
    """
    return 3 ** (index - 2) if index >= 3 else 0


def merged(a: int, b: int, largest: int = LARGEST) -> int:
    """The tile two neighbours make, 0 when they do not merge."""
    if {a, b} == {1, 2}:
        return 3
    return a + 1 if a == b and 3 <= a < largest else 0


def slide_line(line: list[int], largest: int = LARGEST) -> tuple[list[int], int]:
    """One line slid by at most one cell towards its first cell, and its reward.

    >>> slide_line([1, 2, 3, 3]), slide_line([0, 3, 3, 1]), slide_line([3, 0, 3, 3])
    (([3, 3, 3, 0], 3), ([3, 3, 1, 0], 0), ([3, 3, 3, 0], 0))
    """
    for i in range(3):
        near, far = line[i], line[i + 1]
        if near == 0:
            return line[:i] + line[i + 1 :] + [0], 0
        new = merged(near, far, largest)
        if new:
            return [*line[:i], new, *line[i + 2 :], 0], worth(new) - 2 * worth(new - 1)
    return line, 0


def slide(cells: tuple[int, ...], action: int, largest: int = LARGEST) -> Slide:
    after = list(cells)
    total = 0
    moved = []
    for line in lines(action):
        before = [cells[i] for i in line]
        slid, reward = slide_line(before, largest)
        total += reward
        moved.append(slid != before)
        for i, tile in zip(line, slid):
            after[i] = tile
    return tuple(after), total, tuple(moved)


def legal(state: State) -> list[int]:
    return [a for a in ACTIONS if any(slide(state.cells, a)[2])]


def over(state: State) -> bool:
    return not legal(state)


def value(cells: tuple[int, ...]) -> int:
    return sum(worth(i) for i in cells)


def opposite_border(action: int) -> list[int]:
    """The cells, one a line, farthest from the wall.

    >>> [opposite_border(a) for a in ACTIONS]
    [[12, 13, 14, 15], [0, 4, 8, 12], [0, 1, 2, 3], [3, 7, 11, 15]]
    """
    return [line[3] for line in lines(action)]


def take(bag: tuple[int, int, int], tile: int, full: tuple[int, int, int] = FULL_BAG) -> tuple[int, int, int]:
    """The bag without one tile, refilled when that was the last."""
    one, two, three = (n - (tile == k + 1) for k, n in enumerate(bag))
    return (one, two, three) if one + two + three else full


def draws(cells: tuple[int, ...], bag: tuple[int, int, int], full: tuple[int, int, int] = FULL_BAG) -> Draws:
    tiles = sum(bag)
    return [(Fraction(n, tiles), (k + 1,), take(bag, k + 1, full)) for k, n in enumerate(bag) if n]


def placements(state: State, action: int) -> list[tuple[Fraction, int, int]]:
    after, _, moved = slide(state.cells, action)
    if not any(moved):
        return []
    cells = [i for i in opposite_border(action) if after[i] == 0]
    return [(Fraction(1, len(cells)), i, state.hint[0]) for i in cells]


def outcomes(state: State, action: int) -> Outcomes:
    after = slide(state.cells, action)[0]
    states = []
    for p, i, tile in placements(state, action):
        cells = (*after[:i], tile, *after[i + 1 :])
        states += [(p * q, State(cells, hint, bag)) for q, hint, bag in draws(cells, state.bag)]
    return states


def start(random: Random, full: tuple[int, int, int] = FULL_BAG) -> State:
    cells = [0] * 16
    bag = full
    hint: tuple[int, ...] = ()
    for count in range(10):
        _, hint, bag = _pick(draws(tuple(cells), bag, full), random)
        if count < 9:
            cells[random.choice([i for i in range(16) if cells[i] == 0])] = hint[0]
    return State(tuple(cells), hint, bag)


def play(state: State, action: int, random: Random) -> tuple[State, int]:
    if action not in legal(state):
        raise ValueError(f"action {action} is illegal on {state.cells}")
    after, reward, _ = slide(state.cells, action)
    _, cell, tile = _pick(placements(state, action), random)
    cells = (*after[:cell], tile, *after[cell + 1 :])
    _, hint, bag = _pick(draws(cells, state.bag), random)
    return State(cells, hint, bag), reward + worth(tile)


def _pick(choices: list, random: Random) -> tuple:  # type: ignore[type-arg]
    """One of several tuples whose first item is its probability."""
    return random.choices(choices, [float(choice[0]) for choice in choices])[0]


def perft(state: State, depth: int) -> int:
    if depth == 0:
        return 1
    return sum(perft(s, depth - 1) for a in legal(state) for _, s in outcomes(state, a))


def fields(state: State) -> dict[str, str]:
    return {"hint": str(state.hint[0]), "bag": "".join(str(k) for k, n in enumerate(state.bag, 1) if n)}


def state_of(cells: tuple[int, ...], fields: dict[str, str]) -> State:
    one, two, three = (int(tile in fields["bag"]) for tile in "123")
    return State(cells, (int(fields["hint"]),), (one, two, three))
