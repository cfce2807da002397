"""Draw what `tilesage watch` shows as a picture, cell by cell, for the documentation.

python scripts/draw_terminal.py docs/images/terminal.png
"""

from __future__ import annotations

import argparse
import io
import time
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.segment import Segment

from tilesage import games
from tilesage.app.live import WATCH_KEYS, Adviser, landed
from tilesage.drawing.terminal import Scene, draw
from tilesage.search.agents import make_agent

AGENT, MOVES = "rollouts:100", 840
WIDE, HIGH, COLUMNS, ROWS, SCALE = 10, 20, 84, 26, 2
BLOCKS = {"▄": (0.5, 1.0), "▀": (0.0, 0.5), "▆": (0.25, 1.0)}  # from which to which height
GROUND, INK, DIM = "#0b1015", "#dfe7ec", "#75848e"


def scene() -> Scene:
    """A real moment: a player without a model plays some hundred moves, then thinks once more."""
    game = games.get("2048")
    adviser, state, action, new = Adviser(make_agent(AGENT, game)), game.new(seed=1), 0, None
    adviser.think(state)  # the first thought may compile
    begin = time.monotonic()
    while not state.over and state.moves < MOVES:
        action = adviser.think(state).best
        before, state = state, state.play(action)
        new = landed(before, action, state)
    speed, thinking = state.moves / (time.monotonic() - begin), time.monotonic()
    opinion = adviser.think(state)
    figures = (("thought", f"{1000 * (time.monotonic() - thinking):.1f} ms"), ("speed", f"{speed:,.1f} moves/s"))
    scene = Scene(state, "dark", f"2048 · {AGENT}", opinion.values, opinion.best, new=new)
    return scene.but(figures=figures, keys=WATCH_KEYS)


def font(bold: bool) -> ImageFont.FreeTypeFont:
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    name = "DejaVuSansMono-Bold.ttf" if bold else "DejaVuSansMono.ttf"
    return ImageFont.truetype(str(Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / name), 16 * SCALE)


def paint(canvas: ImageDraw.ImageDraw, segment: Segment, x: int, y: int) -> None:
    """One run of characters of one style; blocks are drawn as boxes, so that they meet."""
    style, wide, high = segment.style, WIDE * SCALE, HIGH * SCALE
    colour = style.color.get_truecolor().hex if style and style.color and style.color.triplet else INK
    if style and style.color and style.color.name == "bright_black":
        colour = DIM
    for k, character in enumerate(segment.text):
        left, top = (x + k) * wide, y * high
        if style and style.bgcolor and style.bgcolor.triplet:
            canvas.rectangle((left, top, left + wide - 1, top + high - 1), style.bgcolor.triplet.hex)
        if character in BLOCKS:
            upper, lower = (top + round(high * share) for share in BLOCKS[character])
            canvas.rectangle((left, upper, left + wide - 1, lower - 1), colour)
        elif character.strip():
            canvas.text((left, top), character, fill=colour, font=font(bool(style and style.bold)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    target = parser.parse_args().picture
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=COLUMNS - 4, height=30)
    lines = console.render_lines(draw(scene(), console), pad=False)
    image = Image.new("RGB", (COLUMNS * WIDE * SCALE, ROWS * HIGH * SCALE), GROUND)
    canvas = ImageDraw.Draw(image)
    for y, line in enumerate(lines):
        x = 2
        for segment in line:
            paint(canvas, segment, x, y)
            x += segment.cell_length
    small = image.quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(target, optimize=True)


if __name__ == "__main__":
    main()
