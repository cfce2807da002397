"""Pictures of a position: PNG by Pillow, SVG by hand, both from the same measures.

>>> from tilesage import games
>>> state = games.get("threes").new(seed=1)
>>> picture(state).size
(480, 552)
>>> svg(state).startswith("<svg")
True
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from tilesage.core.errors import InputError
from tilesage.drawing.palette import BOARD, EMPTY, INK, THEMES, paint, rgb
from tilesage.games import State

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

# Measures in points; `scale` pixels make a point.
TILE, GAP, MARGIN, HEADER, HINT = 94, 12, 22, 72, 38
SIDE = 4 * TILE + 5 * GAP  # of the board
WIDTH, HEIGHT = SIDE + 2 * MARGIN, SIDE + 2 * MARGIN + HEADER
NEXT = WIDTH / 2 - 14  # the middle of the hint: the score needs more room than the title
CORNER, EDGE = 12, 4  # a tile's rounding, and the thickness that shows below its face
PAGE = {"light": "#f5f8f9", "dark": "#0b1015"}
WORDS = {"light": INK, "dark": "#eef3f6"}
QUIET = {"light": "#5d6c76", "dark": "#8d9ba5"}
FINE = 4  # shapes are drawn this many times larger and reduced: smooth edges


@dataclass(frozen=True)
class Text:
    """A piece of text: `anchor` is l, m or r, `y` the middle of its digits."""

    x: float
    y: float
    words: str
    size: float
    colour: str
    anchor: str = "l"


def _check(theme: str) -> None:
    if theme not in THEMES:
        raise InputError(f"unknown theme {theme!r}: write {' or '.join(THEMES)}")


def cell_corner(cell: int) -> tuple[float, float]:
    """The top left corner of a cell, in points."""
    row, column = divmod(cell, 4)
    return MARGIN + GAP + column * (TILE + GAP), MARGIN + HEADER + GAP + row * (TILE + GAP)


def hint_corners(hints: int) -> list[tuple[float, float]]:
    """Where the small tiles of the hint stand, about the middle of the header."""
    left = NEXT - (hints * HINT + (hints - 1) * 5) / 2
    return [(left + k * (HINT + 5), MARGIN + 19) for k in range(hints)]


def header(state: State, theme: str, note: str = "") -> list[Text]:
    """The words above the board: the game and the move on the left, the score on the right, "next" between."""
    right = WIDTH - MARGIN
    words, quiet = WORDS[theme], QUIET[theme]
    texts = [
        Text(MARGIN, MARGIN + 16, state.game.title.split(" ")[0], 29, words),
        Text(MARGIN, MARGIN + 47, note or f"move {state.moves:,}", 15, quiet),
        Text(right, MARGIN + 16, f"{state.score:,}", 29, words, "r"),
        Text(right, MARGIN + 47, "score", 15, quiet, "r"),
    ]
    if state.hint:
        texts.append(Text(NEXT, MARGIN + 6, "next", 13, quiet, "m"))
    return texts


def number_size(number: str, tile: float = TILE) -> float:
    """The font size at which a number fits its tile with room at the sides."""
    digits = len(number)
    return tile * ((0.5, 0.45, 0.365, 0.29, 0.24, 0.2)[digits - 1] if digits <= 6 else 1.2 / digits)


def darker(colour: str, share: float = 0.2) -> str:
    return "#" + "".join(f"{round(channel * (1 - share)):02x}" for channel in rgb(colour))


# --- PNG ----------------------------------------------------------------------------------------------------------


@cache
def font(size: float) -> FreeTypeFont:
    """DejaVu Sans Bold, which comes with matplotlib."""
    from PIL import ImageFont

    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise InputError("pictures need the fonts of matplotlib, which is not installed here")
    path = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"
    return ImageFont.truetype(str(path), size)


@cache
def _rounded(side: tuple[int, int], corner: float, colour: str) -> Image:
    """A smooth rounded rectangle on nothing."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (side[0] * FINE, side[1] * FINE), 0)
    box = (0, 0, side[0] * FINE - 1, side[1] * FINE - 1)
    ImageDraw.Draw(mask).rounded_rectangle(box, corner * FINE, fill=255)
    shape = Image.new("RGBA", side, (*rgb(colour), 0))
    shape.putalpha(mask.reduce(FINE))
    return shape


def _write(image: Image, text: Text, scale: float) -> None:
    from PIL import ImageDraw

    letters, draw = font(text.size * scale), ImageDraw.Draw(image)
    left, top, right, bottom = letters.getbbox(text.words)
    _, top, _, bottom = letters.getbbox("0")
    across = {"l": -left, "m": -(left + right) / 2, "r": -right}[text.anchor]
    place = (text.x * scale + across, text.y * scale - (top + bottom) / 2)
    draw.text(place, text.words, font=letters, fill=text.colour)


@cache
def _tile(game: str, index: int, number: str, theme: str, side: int) -> Image:
    """One tile: a face with an edge below it, and its number."""
    from PIL import Image

    colours, edge = paint(game, index, theme), max(1, round(EDGE * side / TILE))
    tile = Image.new("RGBA", (side, side), (*rgb(colours.background), 0))
    if index == 0:
        return _rounded((side, side), CORNER * side / TILE, EMPTY[theme])
    corner = CORNER * side / TILE
    tile.alpha_composite(_rounded((side, side), corner, darker(colours.background)))
    tile.alpha_composite(_rounded((side, side - edge), corner, colours.background))
    middle = Text(side / 2, (side - edge) / 2, number, number_size(number, side), colours.text, "m")
    _write(tile, middle, 1.0)
    return tile


@cache
def _ground(theme: str, scale: float) -> Image:
    """The page with an empty board."""
    from PIL import Image

    page = Image.new("RGB", (round(WIDTH * scale), round(HEIGHT * scale)), PAGE[theme])
    board = _rounded((round(SIDE * scale),) * 2, 18 * scale, BOARD[theme])
    page.paste(board, (round(MARGIN * scale), round((MARGIN + HEADER) * scale)), board)
    empty = _tile("", 0, "", theme, round(TILE * scale))
    for cell in range(16):
        x, y = cell_corner(cell)
        page.paste(empty, (round(x * scale), round(y * scale)), empty)
    return page


def picture(
    state: State, theme: str = "light", scale: float = 1.0, new: int | None = None, note: str = "", veil: str = ""
) -> Image:
    """The position as an image. `new` rings the tile on that cell; `note` stands in place of the move number;
    `veil` is written across a faded board, such as the end of a game."""
    _check(theme)
    image = _ground(theme, scale).copy()
    for text in header(state, theme, note):
        _write(image, text, scale)
    name, side = state.game.name, round(TILE * scale)
    if new is not None and state.indices[new]:
        ring, corner = max(2, round(3 * scale)), cell_corner(new)
        frame = _rounded((side + 2 * ring,) * 2, CORNER * scale + ring, WORDS[theme])
        image.paste(frame, (round(corner[0] * scale) - ring, round(corner[1] * scale) - ring), frame)
    for cell, index in enumerate(state.indices):
        if index:
            x, y = cell_corner(cell)
            tile = _tile(name, index, str(state.game.tiles[index]), theme, side)
            image.paste(tile, (round(x * scale), round(y * scale)), tile)
    for (x, y), number in zip(hint_corners(len(state.hint)), state.hint):
        tile = _tile(name, state.game.tiles.index(number), str(number), theme, round(HINT * scale))
        image.paste(tile, (round(x * scale), round(y * scale)), tile)
    return _veiled(image, theme, scale, veil) if veil else image


def _veiled(image: Image, theme: str, scale: float, words: str) -> Image:
    from PIL import Image as Images

    side, corner = round(SIDE * scale), (round(MARGIN * scale), round((MARGIN + HEADER) * scale))
    veil = _rounded((side, side), 18 * scale, PAGE[theme]).copy()
    veil.putalpha(veil.getchannel("A").point(lambda a: a * 2 // 5))
    page = image.convert("RGBA")
    page.alpha_composite(veil, corner)
    sign = Images.new("RGBA", (round(250 * scale), round(64 * scale)), (0, 0, 0, 0))
    sign.alpha_composite(_rounded(sign.size, 18 * scale, WORDS[theme]))
    _write(sign, Text(125, 32, words, 27, PAGE[theme], "m"), scale)
    middle = (corner[0] + (side - sign.width) // 2, corner[1] + (side - sign.height) // 2)
    page.alpha_composite(sign, middle)
    return page.convert("RGB")


def png(state: State, theme: str = "light", scale: float = 2.0) -> bytes:
    """The position as the bytes of a PNG file."""
    buffer = io.BytesIO()
    picture(state, theme, scale).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


# --- SVG ----------------------------------------------------------------------------------------------------------

_FONT = 'font-family="\'DejaVu Sans\',Verdana,Arial,sans-serif" font-weight="700"'
_ANCHOR = {"l": "start", "m": "middle", "r": "end"}
CAP = 0.729  # the height of a digit of DejaVu Sans, in font sizes


def _svg_text(text: Text) -> str:
    return (
        f'<text x="{text.x:g}" y="{text.y + CAP * text.size / 2:.1f}" font-size="{text.size:.1f}" '
        f'fill="{text.colour}" text-anchor="{_ANCHOR[text.anchor]}">{escape(text.words)}</text>'
    )


def _svg_box(x: float, y: float, width: float, height: float, corner: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:.1f}" fill="{colour}"/>'


def _svg_tile(state: State, index: int, x: float, y: float, side: float, theme: str) -> list[str]:
    colours, number = paint(state.game.name, index, theme), str(state.game.tiles[index])
    corner, edge = CORNER * side / TILE, EDGE * side / TILE
    if index == 0:
        return [_svg_box(x, y, side, side, corner, EMPTY[theme])]
    middle = Text(x + side / 2, y + (side - edge) / 2, number, number_size(number, side), colours.text, "m")
    return [
        _svg_box(x, y, side, side, corner, darker(colours.background)),
        _svg_box(x, y, side, side - edge, corner, colours.background),
        _svg_text(middle),
    ]


def svg(state: State, theme: str = "light", note: str = "", width: int = WIDTH) -> str:
    """The position as an SVG document of this width."""
    _check(theme)
    parts = [
        _svg_box(0, 0, WIDTH, HEIGHT, 20, PAGE[theme]),
        _svg_box(MARGIN, MARGIN + HEADER, SIDE, SIDE, 18, BOARD[theme]),
    ]
    parts += map(_svg_text, header(state, theme, note))
    for cell, index in enumerate(state.indices):
        parts += _svg_tile(state, index, *cell_corner(cell), TILE, theme)
    for (x, y), number in zip(hint_corners(len(state.hint)), state.hint):
        parts += _svg_tile(state, state.game.tiles.index(number), x, y, HINT, theme)
    label = f"{state.game.title}, score {state.score}, move {state.moves}: {_spoken(state.cells)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{width}" '
        f'height="{width * HEIGHT / WIDTH:g}" role="img" {_FONT}><title>{escape(label)}</title>{"".join(parts)}</svg>'
    )


def _spoken(cells: Sequence[int]) -> str:
    return " / ".join(" ".join(str(tile) for tile in cells[i : i + 4]) for i in range(0, 16, 4))


def save(state: State, path: str | Path, theme: str = "light", scale: float = 2.0, kind: str = "") -> None:
    """Write the picture of a position: .png or .svg, by `kind` or by the name of the file."""
    kind = kind or Path(path).suffix.lower()
    if kind == ".svg":
        Path(path).write_text(svg(state, theme), encoding="utf-8")
    elif kind == ".png":
        Path(path).write_bytes(png(state, theme, scale))
    else:
        raise InputError(f"{path} is no picture: give it a name that ends in .png or .svg")
