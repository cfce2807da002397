"""Threes! as on the phone, reconstructed by its players: a deck of twelve, moved lines only, bonus tiles.

Slides, merges, rewards and values are those of `threes`, with these differences. What the rules
leave open is fixed here.

- Largest tile: 6144 + 6144 makes a 12288 (index 15, worth 3^13). The move that makes it is completed: the
  next tile lands and the next hint is drawn as ever. Then the game is over: with a 12288 on the board
  no slide is legal, and `slide` leaves the board as it is.
- Deck: twelve tiles, four each of 1, 2, 3, drawn without replacement. Refilled at the moment its last tile is
  drawn, so the deck of a state is never empty. The start takes nine of the first deck and the first
  hint a tenth: a new game has two tiles left.
- Landing: a uniformly random line among those that moved; the tile enters at its cell of the border
  opposite to the slide, which is always empty.
- Hint: drawn right after a tile has landed (and after the start), from the board as it is then. If
  the largest tile on that board is 48 or more, the hint is a bonus with probability 1/21 and the deck stays
  as it is. Otherwise (always, while the largest tile is below 48) a tile is taken from the deck and the hint
  is that tile, exactly.
- Bonus: the candidates are 6, 12, ..., largest / 8 (indices 4 to largest - 3). The hint shows a window of
  min(3, number of candidates) consecutive candidates, chosen uniformly among all windows of
  that size: with 48 on the board the window is (6), with 96 (6 12), with 192 (6 12 24), with 384 (6 12 24) or
  (12 24 48), and so on. The tile itself is uniform among the tiles of the window, decided when it lands.
- Score: a tile is worth its value when it lands (a 3 is worth 3, a bonus of 12 is worth 27), so the
  score always equals `value(cells)`.

A hint of one tile below 6 means the deck, anything else a bonus; 3 is never a bonus.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from reference import ACTIONS, Outcomes, Slide, State, threes
from reference.threes import Draws, opposite_border, worth

TILES = (*threes.TILES, 12288)
LARGEST, LARGEST_IN_PLAY = 15, 14
FULL_DECK = (4, 4, 4)
BONUS_RATE = Fraction(1, 21)
BONUS_FROM = 7  # index of 48
STARTING_TILES, GOAL, COPIES, NEW_TILES_COUNT = 9, 384, 4, True
EXAMPLE = "1.8A/5.3./12../..13 hint=6+12+24 deck=1,2,3"
MOST = (".1../.1../.1../.1.. hint=6+12+24", "F.../..../..../.... hint=1")
SEARCHED = (
    "31.2/1453/.786/2319 hint=2 deck=1,0,2",
    "33.2/1453/.7B6/2319 hint=6+12+24 deck=1,1,0",
)
FEW_EMPTY = (
    "33.2/1453/.7B6/2319 hint=6+12+24 deck=1,1,0",
    "1313/3131/1313/313. hint=2 deck=1,0,2",
)
GOLDEN = (23, 93, "2431/2513/4145/1313 hint=2 deck=0,2,1")
SPECIAL = (
    "7.../..../..../.... hint=6 deck=4,4,4",
    "8.../.3../..../.... hint=6+12 deck=0,0,1",
    "...9/.3../.1../...2 hint=6+12+24 deck=1,2,3",
    "E.../.3.3/..../...2 hint=192+384+768 deck=4,4,4",
    "EE../..../..../.... hint=1 deck=4,4,4",
    "EE12/1313/3131/1313 hint=48+96+192 deck=0,4,0",
    "F.../..12/..../.... hint=2 deck=1,1,1",
    "DDEE/EEDD/1122/2211 hint=3 deck=4,0,0",
    "1212/2121/1212/212. hint=2 deck=0,0,1",
    "789A/BCDE/.EDC/BA98 hint=3 deck=2,3,4",
    "1313/3131/1313/3131 hint=1 deck=1,0,0",
    "6.6./..../6.6./.... hint=3 deck=0,1,0",
)
SMALLEST_BONUS = 4  # index of 6

value = threes.value


def slide(cells: tuple[int, ...], action: int) -> Slide:
    if LARGEST in cells:
        return cells, 0, (False,) * 4
    return threes.slide(cells, action, LARGEST)


def legal(state: State) -> list[int]:
    return [a for a in ACTIONS if any(slide(state.cells, a)[2])]


def over(state: State) -> bool:
    return not legal(state)


def windows(largest: int) -> list[tuple[int, ...]]:
    """The windows a bonus may show when the largest tile has this index.

    >>> windows(6), windows(7), windows(8), windows(10)
    ([], [(4,)], [(4, 5)], [(4, 5, 6), (5, 6, 7)])
    """
    if largest < BONUS_FROM:
        return []
    candidates = list(range(SMALLEST_BONUS, largest - 2))
    size = min(3, len(candidates))
    return [tuple(candidates[i : i + size]) for i in range(len(candidates) - size + 1)]


def draws(cells: tuple[int, ...], bag: tuple[int, int, int]) -> Draws:
    basic = threes.draws(cells, bag, FULL_DECK)
    bonus = windows(max(cells))
    if not bonus:
        return basic
    choices: Draws = [((1 - BONUS_RATE) * p, hint, left) for p, hint, left in basic]
    return choices + [(BONUS_RATE / len(bonus), window, bag) for window in bonus]


def placements(state: State, action: int) -> list[tuple[Fraction, int, int]]:
    _, _, moved = slide(state.cells, action)
    cells = [cell for cell, line_moved in zip(opposite_border(action), moved) if line_moved]
    return [(Fraction(1, len(cells) * len(state.hint)), i, tile) for i in cells for tile in state.hint]


def outcomes(state: State, action: int) -> Outcomes:
    after = slide(state.cells, action)[0]
    states = []
    for p, i, tile in placements(state, action):
        cells = (*after[:i], tile, *after[i + 1 :])
        states += [(p * q, State(cells, hint, bag)) for q, hint, bag in draws(cells, state.bag)]
    return states


def start(random: Random) -> State:
    return threes.start(random, FULL_DECK)


def play(state: State, action: int, random: Random) -> tuple[State, int]:
    if action not in legal(state):
        raise ValueError(f"action {action} is illegal on {state.cells}")
    after, reward, _ = slide(state.cells, action)
    _, cell, tile = threes._pick(placements(state, action), random)
    cells = (*after[:cell], tile, *after[cell + 1 :])
    _, hint, bag = threes._pick(draws(cells, state.bag), random)
    return State(cells, hint, bag), reward + worth(tile)


def perft(state: State, depth: int) -> int:
    if depth == 0:
        return 1
    return sum(perft(s, depth - 1) for a in legal(state) for _, s in outcomes(state, a))


def fields(state: State) -> dict[str, str]:
    return {"hint": "+".join(str(TILES[i]) for i in state.hint), "deck": ",".join(map(str, state.bag))}


def state_of(cells: tuple[int, ...], fields: dict[str, str]) -> State:
    one, two, three = map(int, fields["deck"].split(","))
    return State(cells, tuple(TILES.index(int(tile)) for tile in fields["hint"].split("+")), (one, two, three))
