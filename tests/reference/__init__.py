"""The rule books once more: slow, plain Python, written from the rules alone.

Nothing here imports the package or NumPy, nothing is clever: lists of sixteen tile indices, loops and
exact fractions. The engine, the perft files and the property tests are held against these modules.

A module a game, all with the same interface (`get(name)` finds one by the name of its game):

    TILES                       index -> tile number shown on the board (0 is the empty cell)
    slide(cells, action)        -> (cells, reward, moved): `moved` has four booleans, one a line (row for
                                   left and right, column for up and down). Legal iff any line moved.
    legal(state)                -> list of legal actions
    placements(state, action)   -> [(probability, cell, tile index)]: where and what may land after the slide
    draws(cells, bag)           -> [(probability, hint, bag)]: every next hint and the bag left by it
    outcomes(state, action)     -> [(probability, state)]: placement x draw; Fractions that sum to 1
    start(random)               -> state; `random` is a `random.Random`
    play(state, action, random) -> (state, reward): one outcome; reward of slide and placement together
    over(state)                 -> no action is legal
    value(cells)                -> Threes!: the score of the board; 2048: the potential, the sum of (e-1)*2^e
    perft(state, depth)         -> number of sequences of `depth` moves and chance outcomes from here
    fields(state)               -> the hint and the bag as the engine writes them, {} where there are none
    state_of(cells, fields)     -> the State of a board and of such fields

and what the tests that hold for every game must know of it:

    STARTING_TILES, GOAL        how many tiles a game starts with; the tile that people ask for first
    COPIES                      how many of each of 1, 2, 3 a bag or deck holds; 0 where there is none
    NEW_TILES_COUNT             new tiles earn points, so that the score is always the value of the board
    EXAMPLE                     a position before a slide to the left with few outcomes
    MOST                        the position whose slide to the left has the most placements, "" for the empty board;
                                and one that has the most draws
    SEARCHED                    positions with few empty cells, tiles above 7 (the top bit of a nibble is used), and
                                something to merge
    FEW_EMPTY                   one of mid-game, and one whose games end within a few moves
    GOLDEN                      moves, score and last position of the game that the engine deals for the seed 2584
                                when it plays, in move n, the legal action of number n, counted round
    SPECIAL                     positions for the perft files, made for one rule each

In games with a rate of the second new tile, what meets chance takes it, a Fraction, as its last argument.

Cells are numbered 0-15 row by row from the top left; actions are 0 up, 1 right, 2 down, 3 left.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

UP, RIGHT, DOWN, LEFT = ACTIONS = range(4)


class State(NamedTuple):
    """A position before a move."""

    cells: tuple[int, ...]  # 16 tile indices
    hint: tuple[int, ...] = ()  # tile indices the next tile may have, ascending; one when it is known; () for no hint
    bag: tuple[int, int, int] = (0, 0, 0)  # how many 1s, 2s and 3s are left; (0, 0, 0) only without a bag


Outcomes = list[tuple[Fraction, State]]
Slide = tuple[tuple[int, ...], int, tuple[bool, ...]]


def lines(action: int) -> list[list[int]]:
    """The four lines of cells along which an action slides, each from the wall outwards.

    >>> lines(UP)[0], lines(LEFT)[0]
    ([0, 4, 8, 12], [0, 1, 2, 3])
    """
    if action in (LEFT, RIGHT):
        whole = [[4 * r + c for c in range(4)] for r in range(4)]
    else:
        whole = [[4 * r + c for r in range(4)] for c in range(4)]
    return [line[::-1] for line in whole] if action in (RIGHT, DOWN) else whole


def names() -> tuple[str, ...]:
    """The games that have a reference."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    return tuple({"g2048": "2048"}.get(stem, stem.replace("_", "-")) for stem in found)


def get(name: str) -> ModuleType:
    """The reference of a game by its name, such as "threes-phone"."""
    return import_module("reference." + {"2048": "g2048"}.get(name, name.replace("-", "_")))
