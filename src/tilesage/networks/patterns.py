"""The shapes of an n-tuple network: which cells each table looks at, and how a network is written.

A pattern is a list of cells as hex digits (cells 0-f, row by row), read in all eight rotations and reflections of
the board, which share one table. A network is written as one of the names below, as patterns separated by commas,
or as a sum of both: `4x6`, `012345,456789`, `4x6+small`. After `once:`, a pattern is read only where it is written,
so that every place has a table of its own: `once:0123,048c` is the first row and the first column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache

from tilesage.core.errors import InputError

Pattern = tuple[int, ...]

CLASSIC = "012345 456789 012456 45689a"  # two 2×3 rectangles, two staircases (Yeh et al. 2016)
SQUARES = "0145 1256 569a"
SMALL = f"0123 4567 {SQUARES}"  # both lines and the three squares

NAMES = {
    "4x6": CLASSIC,
    "5x6": f"{CLASSIC} 01259a",
    "6x6": f"{CLASSIC} 01259d 012458",  # a T and an arrow
    "8x6": "012345 456789 012456 234569 01259a 345678 134567 01489a",
    "8x7": "0123456 456789a 0124589 012456a 012569a 1345678 234569a 01489ad",
    "8x5": "01234 45678 01245 45689 01256 12569 01259 04589",
    "8x4": f"{SMALL} 0124 0125 0156",  # lines, squares, L, T and S
    "17x4": SMALL,  # the 8 lines and 9 squares of the board, shared by symmetry
    "group0": CLASSIC,
    "group1": "156 0125 01259 04589a",
    "group2": "01259 6abde 12569 0125",
    "group0+1": f"{CLASSIC} 156 0125 01259 04589a",
    "small": SMALL,
    "squares": SQUARES,
    "tiny": "012 456 0145",
    "lines": "once: 0123 4567 89ab cdef 048c 159d 26ae 37bf",
}
NOTES = {
    "4x6": "the classic four, as in TDL2048+",
    "5x6": "the classic four and a stair",
    "6x6": "the classic four, a T and an arrow",
    "8x6": "the strongest published set",
    "8x7": "eight shapes of seven cells, 8.6 GB: our strongest, for a GPU and a quarter of an hour",
    "8x5": "eight shapes of five cells: a strong network in 30 MB",
    "8x4": "lines, squares, L, T and S: small and quick",
    "17x4": "every line and square of the board",
    "group0": "the classic four under their name in the ablation",
    "group1": "four shapes of three to six cells",
    "group2": "four shapes of four and five cells",
    "group0+1": "both groups together",
    "small": "both lines and three squares: add to a large network to speed up its start",
    "squares": "three squares: much of what small gives, and quicker; what the built-in players know, with 4x6",
    "tiny": "three small shapes, for tests and first steps",
    "lines": "a table for each row and each column, no symmetry: the network that many begin with",
}
ONCE = "once:"  # before patterns that are not turned or mirrored
LONGEST, MOST, MOST_STAGES = 7, 64, 6
SHOWN = 40  # characters of a network's name in its `repr`


@dataclass(frozen=True)
class Network:
    """What tables there are: patterns × stages (× hints)."""

    name: str
    patterns: tuple[Pattern, ...]
    stages: tuple[int, ...] = ()  # tile indices; each doubles the tables: with and without this tile
    by_hint: bool = False  # Threes!: a set of tables a hint
    fold: int = 0  # from this tile index on, boards are brought down before the tables see them; 0 never
    turned: bool = False  # by hint, on boards turned so that the slide is always left
    by_age: bool = False  # one more table, of what is usual so far into a game
    once: bool = False  # every pattern is read only where it is written, in none of its symmetries

    def __repr__(self) -> str:
        plain = Network(self.name, self.patterns)
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(plain, field.name)]
        settings = "".join(f", {name}={getattr(self, name)!r}" for name in names)
        name = self.name if len(self.name) <= SHOWN else f"{self.name[: SHOWN - 1]}…"
        return f"Network({name!r}{settings})"

    @property
    def symmetries(self) -> int:
        """In how many of the eight symmetries each table reads a board."""
        return 1 if self.once else 2 if self.turned else 8

    @property
    def reads(self) -> int:
        """How many table entries make up one value (the m of the formulas)."""
        return self.symmetries * len(self.patterns)

    @property
    def written(self) -> str:
        """The patterns as text."""
        return ONCE * self.once + ",".join(write_pattern(pattern) for pattern in self.patterns)

    @property
    def sets(self) -> int:
        """How many copies of the tables there are."""
        return (1 << len(self.stages)) * (HINTS if self.by_hint else 1)

    @property
    def ages(self) -> int:
        """Entries of the table of ages."""
        return AGES if self.by_age else 0

    @property
    def key(self) -> str:
        """Tells networks apart in the cache of compiled code."""
        stages = ",".join(map(str, self.stages))
        by = f"{int(self.by_hint)}{int(self.turned)}{int(self.by_age)}"
        return f"{self.written}/{stages}/{by}/{self.fold}"


HINTS = 4  # 1, 2, 3, or a bonus
AGES = 4096


def write_pattern(pattern: Pattern) -> str:
    """The cells of a pattern as hexadecimal digits, such as 012345."""
    return "".join(f"{cell:x}" for cell in pattern)


def parse_pattern(text: str) -> Pattern:
    """The cells of one pattern written in hex digits."""
    if not re.fullmatch("[0-9a-fA-F]+", text):
        raise InputError(
            f"{text!r} is neither a network ({', '.join(NAMES)}) nor cells written as hex digits, like 012345"
        )
    cells = tuple(int(digit, 16) for digit in text)
    if len(set(cells)) < len(cells):
        raise InputError(f"pattern {text!r} names a cell twice")
    if len(cells) > LONGEST:
        raise InputError(
            f"pattern {text!r} has {len(cells)} cells: at most {LONGEST}, a table holds 16^cells entries"
        )
    return cells


@cache
def parse_network(
    text: str,
    stages: tuple[int, ...] = (),
    by_hint: bool = False,
    fold: int = 0,
    turned: bool = True,
    by_age: bool = False,
) -> Network:
    """The network that `text` names or lists. `turned` matters to networks by hint that are read in symmetries.

    >>> parse_network("012,456+tiny").patterns
    ((0, 1, 2), (4, 5, 6), (0, 1, 4, 5))
    """
    found: dict[Pattern, bool] = {}  # by whether it is read once
    for part in [text] if text in NAMES else text.split("+"):
        cells = NAMES.get(part.strip(), part.strip())
        for word in cells.removeprefix(ONCE).replace(",", " ").split():
            found[parse_pattern(word)] = cells.startswith(ONCE)
    if not found:
        raise InputError(f"no pattern in {text!r}: write one of {', '.join(NAMES)}, or cells like 012345,456789")
    once = all(found.values())
    if any(found.values()) != once:
        raise InputError(
            f"{text!r} adds patterns that are read once to others: write {ONCE} before each part, or none"
        )
    if len(found) > MOST:
        raise InputError(f"{len(found)} patterns are too many: at most {MOST}")
    if len(stages) > MOST_STAGES or not all(1 <= stage <= 15 for stage in stages):
        raise InputError(
            f"stages {stages} are not up to {MOST_STAGES} tile indices from 1 to 15: each doubles the tables"
        )
    if fold and not 8 <= fold <= 15:
        raise InputError(f"boards are folded from a tile with index 8 to 15 on (2048: 256 to 32768), not {fold}")
    turned = by_hint and turned and not once
    patterns = _turned(tuple(found)) if turned else tuple(found)
    return Network(text, patterns, tuple(sorted(set(stages))), by_hint, fold, turned, by_age, once)


def _turned(patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """Every pattern in its rotations: turned boards keep only the mirror symmetry, so nothing else turns them.

    A rotation that covers the cells of an earlier one, or their mirror image, would learn the same again.
    """
    found: dict[frozenset[int], Pattern] = {}
    for pattern in patterns:
        for _ in range(4):
            if frozenset(cell ^ 12 for cell in pattern) not in found:
                found.setdefault(frozenset(pattern), pattern)
            pattern = tuple(4 * (cell % 4) + 3 - cell // 4 for cell in pattern)
    return tuple(found.values())


def drawing(pattern: Pattern) -> str:
    """The pattern on the board, in four lines.

    >>> print(drawing((0, 1, 2, 5)))
    ■ ■ ■ ·
    · ■ · ·
    · · · ·
    · · · ·
    """
    marks = ["■" if cell in pattern else "·" for cell in range(16)]
    return "\n".join(" ".join(marks[row : row + 4]) for row in range(0, 16, 4))
