"""The colours of the tiles, one place for the page, the terminal and the pictures.

Small tiles are mist, then sea, leaf, amber, ember, and at last night: every doubling changes the hue, so a
position can be read from across the room. Each theme has its own quiet end of the scale; the text colour of a
tile is ink or paper, whichever is easier to read on it.
"""

from __future__ import annotations

from dataclasses import dataclass

INK = "#13202b"
PAPER = "#ffffff"
GOLD = "#ffd766"

THEMES = ("light", "dark")
BOARD = {"light": "#c9d3d8", "dark": "#10161c"}  # what the cells lie on
EMPTY = {"light": "#dbe3e7", "dark": "#1b242c"}  # a cell without a tile

_SCALE = {  # the ladder of doublings: 2, 4, 8, … in 2048, and 3, 6, 12, … in Threes!
    "light": (
        *("#f7fafb", "#c2e0e6", "#83c9cd", "#3fb0a6", "#3a9a6c", "#7dae45"),
        *("#c3ba3a", "#ecb431", "#f1953a", "#e97440", "#cc3b34", "#b82a5e"),
        *("#972b86", "#6d38a8", "#3f43b0", "#22306e", "#11131f"),
    ),
    "dark": (
        *("#394854", "#3a5f6e", "#2f7a83", "#3fb0a6", "#3fa274", "#7dae45"),
        *("#c3ba3a", "#ecb431", "#f1953a", "#e97440", "#cf403a", "#c03268"),
        *("#a63a96", "#7b48b8", "#5357c9", "#a3b1ff", "#fff1bd"),
    ),
}
_ONE = {"light": "#74bdf2", "dark": "#5aaae6"}
_TWO = {"light": "#f48fae", "dark": "#e87a9c"}
_WITH_ONES = ("threes", "threes-phone", "fibonacci")  # games whose 1 and 2 stand beside the ladder, which begins at 3


@dataclass(frozen=True)
class Paint:
    """How one tile looks: `#rrggbb` of its face and of the number on it."""

    background: str
    text: str


def paint(game: str, index: int, theme: str = "light") -> Paint:
    """The colours of the tile with this index; a game that is not listed goes up the ladder from its first tile.

    >>> paint("2048", 11).background == paint("threes", 13).background
    True
    >>> paint("2048", 0) == Paint(EMPTY["light"], EMPTY["light"])
    True
    """
    if index <= 0:
        return Paint(EMPTY[theme], EMPTY[theme])
    scale: tuple[str, ...] = _SCALE[theme]
    if game in _WITH_ONES:
        scale = (_ONE[theme], _TWO[theme], *scale)
    face = scale[min(index, len(scale)) - 1]
    return Paint(face, _text_on(face))


def rgb(colour: str) -> tuple[int, int, int]:
    """The three channels of `#rrggbb`.

    >>> rgb("#ff8000")
    (255, 128, 0)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast(one: str, other: str) -> float:
    """The WCAG contrast ratio of two colours, from 1 (the same) to 21 (black on white)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _text_on(face: str) -> str:
    if face == _SCALE["light"][-1]:
        return GOLD
    return max((INK, PAPER), key=lambda text: contrast(face, text))
