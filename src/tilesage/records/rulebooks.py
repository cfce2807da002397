"""The referee's own rule books: slides and the dealing of tiles, sharing nothing with the engine.

A game without a book here is judged by its own rules (by_game_rules.py), and the verdict says so.

A board is four lines, a line is four tile indices of six bits each; what a slide does to a line is worked out once
and kept in a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Protocol

from tilesage.core.errors import InputError
from tilesage.records.notation import NOTATIONS, SYMBOLS

BITS = 6  # of a tile
TILE, LINE = (1 << BITS) - 1, (1 << 4 * BITS) - 1
INDEX = {symbol: i for i, symbol in enumerate(SYMBOLS)}


@dataclass
class Chance:
    """How often chance chose what, over many games: what the fairness tests look at."""

    landings: Counter[int] = field(default_factory=Counter)  # candidate cells << 4 | cell
    choices: Counter[tuple[str, tuple[int, ...], int]] = field(default_factory=Counter)  # kind, situation, choice

    def merge(self, other: Chance) -> None:
        """Add what chance did in other games."""
        self.landings.update(other.landings)
        self.choices.update(other.choices)


class Dealer(Protocol):
    """Checks the tiles that chance deals in one game: returns what is wrong, or None."""

    finished: bool  # no slide is legal any more, whatever the board

    def deal(self, tile: int, hint: str, lines: list[int]) -> str | None:
        """A tile has landed (`lines` includes it), and the characters of the next hint are shown."""


@dataclass(frozen=True)
class Question:
    """What a fairness test asks of one kind of choice: its fair probabilities in a situation."""

    name: str
    kind: str
    text: str
    fair: Callable[[tuple[int, ...]], Mapping[int, float]]


@dataclass(frozen=True)
class RuleBook:
    """What the replay must know of a game."""

    name: str
    tables: tuple[Slides, Slides, Slides, Slides]  # by action
    dealer: Callable[[Chance], Dealer]
    questions: tuple[Question, ...]
    worth: tuple[int, ...] = (0,) * len(SYMBOLS)  # index -> what a placement of the tile earns

    @property
    def landing(self) -> str:
        """Where new tiles land: anywhere, at the border, or at the border of a line that moved."""
        return self.tables[0].landing

    @property
    def width(self) -> int:
        """How many characters a placement has in a record."""
        return NOTATIONS[self.name].width

    @property
    def start(self) -> int:
        """How many tiles a game starts with."""
        return NOTATIONS[self.name].start


class Slides(dict[int, tuple[int, int, int]]):
    """line -> (line after the slide, reward, cells of the line where a tile may land), filled as lines occur.

    The landing cells are bits, `step` apart: 1 when lines are rows, 4 when they are columns.
    """

    def __init__(self, slide: Slide, towards_end: bool, step: int, landing: str) -> None:
        self.slide = slide
        self.towards_end = towards_end
        self.step = step
        self.landing = landing

    def __missing__(self, line: int) -> tuple[int, int, int]:
        before = [line >> BITS * k & TILE for k in range(4)]
        slid, reward = self.slide(before[::-1] if self.towards_end else before)
        after = slid[::-1] if self.towards_end else slid
        far = 0 if self.towards_end else 3
        if self.landing == "anywhere":
            cells = [k for k in range(4) if not after[k]]
        elif self.landing == "border":
            cells = [] if after[far] else [far]
        else:
            cells = [] if after == before else [far]
        bits = sum(1 << self.step * k for k in cells)
        self[line] = sum(tile << BITS * k for k, tile in enumerate(after)), reward, bits
        return self[line]


Slide = Callable[[list[int]], tuple[list[int], int]]


class Turned(dict[int, int]):
    """line -> its four tiles spread out, a line apart: the line as one cell each of four others."""

    def __missing__(self, line: int) -> int:
        self[line] = sum((line >> BITS * k & TILE) << 4 * BITS * k for k in range(4))
        return self[line]


TURNED = Turned()


def turned(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    """Rows from columns, or columns from rows."""
    board = TURNED[a] | TURNED[b] << BITS | TURNED[c] << 2 * BITS | TURNED[d] << 3 * BITS
    return board & LINE, board >> 4 * BITS & LINE, board >> 8 * BITS & LINE, board >> 12 * BITS


def slide_2048(line: list[int]) -> tuple[list[int], int]:
    """Tiles as far as they go, each merging at most once; 131072 (index 17) never."""
    slid: list[int] = []
    reward, open_to_merge = 0, False
    for tile in line:
        if tile and open_to_merge and slid[-1] == tile and tile < 17:
            slid[-1] += 1
            reward += 1 << slid[-1]
            open_to_merge = False
        elif tile:
            slid.append(tile)
            open_to_merge = True
    return slid + [0] * (4 - len(slid)), reward


NUMBERS_OF_2584 = [0, 1, 2]  # by index; larger ones do not fit on a board
while len(NUMBERS_OF_2584) < 33:
    NUMBERS_OF_2584.append(sum(NUMBERS_OF_2584[-2:]))


def slide_2584(line: list[int]) -> tuple[list[int], int]:
    """Tiles as far as they go, each merging at most once: 1 and 1 to 2, neighbours of the sequence to the next."""
    waiting = [tile for tile in line if tile]
    slid: list[int] = []
    reward = 0
    while waiting:
        tile = waiting.pop(0)
        other = waiting[0] if waiting else 0
        larger = max(tile, other)
        if other and (tile + other == 2 or abs(tile - other) == 1) and larger < 32:
            waiting.pop(0)
            tile = larger + 1
            reward += NUMBERS_OF_2584[tile]
        slid.append(tile)
    return slid + [0] * (4 - len(slid)), reward


def worth_in_threes(index: int) -> int:
    """What a tile of this index adds to the score of Threes!"""
    return 3 ** (index - 2) if index > 2 else 0


def slide_threes(line: list[int], last: int) -> tuple[list[int], int]:
    """One cell at most: from the wall, the first gap closes or the first pair merges."""
    tiles = line[:]
    reward = 0
    for k in range(1, 4):
        near, tile = tiles[k - 1], tiles[k]
        if near == 0:
            tiles[k - 1], tiles[k] = tile, 0
        elif (near > 2 and near == tile and near < last) or (near + tile == 3 and tile):
            made = 3 if near < 3 else near + 1
            reward += worth_in_threes(made) - 2 * worth_in_threes(made - 1)
            tiles[k - 1], tiles[k] = made, 0
    return tiles, reward


def _tables(slide: Slide, landing: str) -> tuple[Slides, Slides, Slides, Slides]:
    up, right = Slides(slide, False, 4, landing), Slides(slide, True, 1, landing)
    down, left = Slides(slide, True, 4, landing), Slides(slide, False, 1, landing)
    return up, right, down, left


WORTH_IN_THREES = tuple(worth_in_threes(i) for i in range(len(SYMBOLS)))


def _left_in(situation: tuple[int, ...]) -> dict[int, float]:
    """Each tile that is left is as likely as any other."""
    return {tile: n / sum(situation) for tile, n in enumerate(situation, 1) if n}


def _alike(n: int) -> dict[int, float]:
    return dict.fromkeys(range(n), 1 / n)


def _windows(situation: tuple[int, ...]) -> dict[int, float]:
    values = situation[0] - 6  # of a bonus: 6, 12, … largest / 8
    return _alike(values - min(3, values) + 1)


HINTS = Question("hints", "draw", "each tile left in the bag equally likely to be the next hint", _left_in)


def _book_of_two(name: str, slide: Slide, rate: float, small: str, large: str) -> RuleBook:
    """The rules of a game with two kinds of new tiles."""
    text = f"a {large} with probability {rate:g}, else a {small}"
    question = Question("tiles", "tile", text, lambda situation: {1: 1 - rate, 2: rate})
    slides = _tables(slide, "anywhere")
    return RuleBook(name, slides, lambda chance: DealerOfTwo(chance, rate, (small, large)), (question,))


def book_2048(four_rate: float = 0.1) -> RuleBook:
    """The rules of 2048."""
    return _book_of_two("2048", slide_2048, four_rate, "2", "4")


def book_fibonacci(two_rate: float = 0.1) -> RuleBook:
    """The rules of 2584."""
    return _book_of_two("fibonacci", slide_2584, two_rate, "1", "2")


def book_threes() -> RuleBook:
    """The rules of the Threes! of the course."""
    slides = _tables(lambda line: slide_threes(line, 14), "border")
    return RuleBook("threes", slides, DealerThrees, (HINTS,), WORTH_IN_THREES)


def book_threes_phone() -> RuleBook:
    """The rules of Threes! as it is on the phone."""
    slides = _tables(lambda line: slide_threes(line, 15), "moved")
    questions = (
        HINTS,
        Question(
            "bonus", "bonus", "a bonus with probability 1/21 from 48 on", lambda situation: {0: 20 / 21, 1: 1 / 21}
        ),
        Question("windows", "window", "each window of a bonus equally likely", _windows),
        Question("inside", "inside", "each tile of a window equally likely", lambda situation: _alike(situation[0])),
    )
    return RuleBook("threes-phone", slides, DealerPhone, questions, WORTH_IN_THREES)


BOOKS: dict[str, Callable[..., RuleBook]] = {
    "2048": book_2048,
    "threes": book_threes,
    "threes-phone": book_threes_phone,
    "fibonacci": book_fibonacci,
}


@cache
def rule_book(game: str, **parameters: float) -> RuleBook:
    """The referee's rules of a game."""
    for name, value in parameters.items():
        if name not in signature(BOOKS[game]).parameters:
            known = ", ".join(signature(BOOKS[game]).parameters) or "none"
            raise InputError(f"{game} has no parameter {name}; it takes: {known}")
        if not 0 <= value <= 1:
            raise InputError(f"{name} is a probability from 0 to 1, not {value}")
    return BOOKS[game](**parameters)


class DealerOfTwo:
    """Two kinds of tiles, the second one at a rate."""

    finished = False

    def __init__(self, chance: Chance, second_rate: float, numbers: tuple[str, str]) -> None:
        self.choices = chance.choices
        self.possible = {i: numbers[i - 1] for i, rate in ((1, 1 - second_rate), (2, second_rate)) if rate > 0}

    def deal(self, tile: int, hint: str, lines: list[int]) -> str | None:
        """What is wrong with this new tile, if anything."""
        if tile not in self.possible:
            tiles = " or ".join(self.possible.values())
            return f"a tile of index {SYMBOLS[tile]} cannot appear, only {tiles}"
        self.choices["tile", (), tile] += 1
        return None


class Deck:
    """Tiles 1, 2, 3, a number of each, drawn without putting back and filled up when empty."""

    def __init__(self, chance: Chance, each: int) -> None:
        self.choices = chance.choices
        self.each = each
        self.left = [0, 0, 0]

    def draw(self, tile: int) -> bool:
        """Take a tile out; False when it is not there."""
        if not any(self.left):
            self.left = [self.each] * 3
        if not 1 <= tile <= 3 or not self.left[tile - 1]:
            return False
        self.choices["draw", tuple(self.left), tile] += 1
        self.left[tile - 1] -= 1
        return True

    def __str__(self) -> str:
        tiles = [str(k + 1) for k, n in enumerate(self.left) for _ in range(n)]
        return f"the bag held {' '.join(tiles)}" if self.each == 1 else f"the deck held {' '.join(tiles)}"


class DealerThrees:
    """The hint is the next tile, out of a bag of 1, 2, 3."""

    finished = False

    def __init__(self, chance: Chance) -> None:
        self.bag = Deck(chance, 1)
        self.hint = 0

    def deal(self, tile: int, hint: str, lines: list[int]) -> str | None:
        """What is wrong with this new tile and the hint after it, if anything."""
        if self.hint and tile != self.hint:
            return f"the tile is {SYMBOLS[tile]}, but the hint was {self.hint}"
        if not self.hint and not self.bag.draw(tile):
            return f"the first tile has index {SYMBOLS[tile]}: the bag holds 1, 2, 3"
        self.hint = INDEX[hint]
        if not self.bag.draw(self.hint):
            return f"the hint {hint} was not in the bag: {self.bag}"
        return None


class DealerPhone:
    """A deck of twelve, and bonus tiles announced by a window; a 12288 ends the game."""

    def __init__(self, chance: Chance) -> None:
        self.deck = Deck(chance, 4)
        self.choices = chance.choices
        self.low = self.high = 0
        self.finished = False

    def deal(self, tile: int, hint: str, lines: list[int]) -> str | None:
        """What is wrong with this new tile and the hint after it, if anything."""
        if not self.low:
            if not self.deck.draw(tile):
                return f"the first tile has index {SYMBOLS[tile]}: the deck holds 1, 2, 3"
        elif not self.low <= tile <= self.high:
            shown = str(self.low) if self.low == self.high else f"{SYMBOLS[self.low]} to {SYMBOLS[self.high]}"
            return f"the tile is {SYMBOLS[tile]}, but the hint was {shown}"
        elif self.high > self.low:
            self.choices["inside", (self.high - self.low + 1,), tile - self.low] += 1
        self.low, self.high = INDEX[hint[0]], INDEX[hint[1]]
        largest = max(line >> BITS * k & TILE for line in lines for k in range(4))
        self.finished = largest == 15
        return self._draw(hint, largest)

    def _draw(self, hint: str, largest: int) -> str | None:
        """Is the new hint a tile of the deck, or a window that a bonus may have?"""
        bonus = self.low > 3 or self.low != self.high
        if largest >= 7:
            self.choices["bonus", (), int(bonus)] += 1
        if not bonus:
            return None if self.deck.draw(self.low) else f"the hint {self.low} was not in the deck: {self.deck}"
        if largest < 7:
            return f"the hint {hint} is a bonus, but no tile is 48 or more"
        span = min(3, largest - 6)
        if self.low < 4 or self.high > largest - 3 or self.high - self.low + 1 != span:
            return f"the hint {hint} is no window of {span} bonus tiles from index 4 to {SYMBOLS[largest - 3]}"
        self.choices["window", (largest,), self.low - 4] += 1
        return None
