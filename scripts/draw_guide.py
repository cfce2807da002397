"""Draw the pictures of docs/guide: backup diagrams and what else explains itself better in lines.

    python scripts/draw_guide.py            writes docs/guide/*.svg
    python scripts/draw_guide.py --check    says whether they are as this script draws them

A state is a circle, an afterstate a dot, a move a line, chance a dashed line; what is learnt is orange.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tilesage.networks.layout import images
from tilesage.networks.patterns import NAMES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "guide"
GREY, ORANGE, BLUE, PALE = "#7d8590", "#d9772b", "#2f7fb8", "#7d859033"
FONT = "font-family='system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif'"
R = 15  # of a state


class Drawing:
    """Lines, circles and words, as SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = GREY, dashed: bool = False) -> None:
        dash = " stroke-dasharray='4 4'" if dashed else ""
        self.parts.append(f"<path d='M{x1:g} {y1:g}L{x2:g} {y2:g}' stroke='{colour}' stroke-width='1.6'{dash}/>")

    def arc(self, x1: float, y1: float, x2: float, y2: float, height: float, colour: str = ORANGE) -> None:
        """A curved arrow from the first point to the second, bulging by `height` (upward when negative)."""
        middle, top = (x1 + x2) / 2, (y1 + y2) / 2 + 2 * height
        self.parts.append(
            f"<path d='M{x1:g} {y1:g}Q{middle:g} {top:g} {x2:g} {y2:g}' stroke='{colour}' stroke-width='2'"
            f" marker-end='url(#{'o' if colour == ORANGE else 'g'})'/>"
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str = GREY) -> None:
        self.arc(x1, y1, x2, y2, 0, colour)

    def state(self, x: float, y: float, name: str = "", colour: str = GREY) -> None:
        self.parts.append(f"<circle cx='{x:g}' cy='{y:g}' r='{R}' fill='none' stroke='{colour}' stroke-width='2'/>")
        self.text(x, y + 4.5, name, size=12)

    def after(self, x: float, y: float, name: str = "", colour: str = BLUE, below: bool = True) -> None:
        self.parts.append(f"<circle cx='{x:g}' cy='{y:g}' r='6.5' fill='{colour}'/>")
        self.text(x, y + (24 if below else -14), name, size=12)

    def box(self, x: float, y: float, width: float, height: float, fill: str = "none", colour: str = GREY) -> None:
        self.parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='3' fill='{fill}'"
            f" stroke='{colour}'/>"
        )

    def text(self, x: float, y: float, words: str, colour: str = GREY, size: int = 13, where: str = "middle") -> None:
        if words:
            words = words.replace("&", "&amp;").replace("<", "&lt;")
            self.parts.append(
                f"<text x='{x:g}' y='{y:g}' fill='{colour}' font-size='{size}' text-anchor='{where}'>{words}</text>"
            )

    def curve(self, points: list[tuple[float, float]], colour: str) -> None:
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f"<path d='M{path}' stroke='{colour}' stroke-width='2.2' fill='none'/>")

    def svg(self) -> str:
        width, height = self.size
        heads = "".join(
            f"<marker id='{name}' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='6' markerHeight='6' orient='auto'>"
            f"<path d='M0 0L8 4L0 8z' fill='{colour}'/></marker>"
            for name, colour in (("o", ORANGE), ("g", GREY))
        )
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}'"
            f" height='{height}' role='img' fill='none' {FONT}><title>{self.title}</title><defs>{heads}</defs>\n"
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def board(d: Drawing, x: float, y: float, cells: str, marked: str = "", size: int = 26) -> None:
    """A board from its top left corner; `cells` are 16 words, `marked` the hex digits of a pattern."""
    for cell, word in enumerate(cells.split()):
        left, top = x + size * (cell % 4), y + size * (cell // 4)
        d.box(left, top, size, size, ORANGE + "55" if f"{cell:x}" in marked else PALE)
        d.text(left + size / 2, top + size / 2 + 4, "" if word == "." else word, size=11)


def networks() -> Drawing:
    d = Drawing(640, 170, "A pattern picks cells, the cells make an index, the index an entry of a table")
    tiles = "2 4 8 2 . 2 4 16 . . 2 64 . . . 2"
    board(d, 16, 26, tiles, "012456")
    d.text(68, 150, "pattern 012456")
    d.arrow(130, 78, 176, 78)
    d.text(236, 70, "1 2 3 0 1 2", ORANGE, 15)
    d.text(236, 92, "tile indices", size=12)
    d.arrow(298, 78, 344, 78)
    for k in range(7):
        d.box(356, 22 + 16 * k, 74, 16, ORANGE + "55" if k == 4 else "none")
    d.text(393, 98, "+ 37.5", size=11)
    d.text(393, 150, "one table, 16⁶ entries")
    d.arrow(438, 93, 480, 80)
    d.text(556, 66, "V = Σ over all patterns")
    d.text(556, 86, "and 8 rotations and")
    d.text(556, 106, "reflections of the board")
    return d


def isomorphisms() -> Drawing:
    """Each pattern of 6x6 in a row of eight small boards; rotations and reflections share one table."""
    size, gap = 13, 66
    patterns = NAMES["6x6"].split()
    d = Drawing(120 + 8 * gap, 14 + gap * len(patterns), "Six 6-tuples, each in eight rotations and reflections")
    for row, pattern in enumerate(patterns):
        top = 12 + gap * row
        d.text(10, top + 30, pattern, where="start")
        for k, cells in enumerate(images(tuple(int(cell, 16) for cell in pattern))):
            board(d, 110 + gap * k, top, " ".join("." * 16), "".join(f"{cell:x}" for cell in cells), size)
    return d


def chain(d: Drawing, y: float, steps: int = 3, gap: float = 150) -> list[tuple[float, float]]:
    """S –move– S' - chance - S …; returns the places of the states and afterstates in turn."""
    places: list[tuple[float, float]] = []
    x = 40.0
    for t in range(steps):
        now = "t" if t == 0 else f"t+{t}"
        d.line(x + R, y, x + gap / 2, y)
        d.line(x + gap / 2, y, x + gap - R, y, dashed=True)
        d.state(x, y, f"S{'₊' + '₁₂₃'[t - 1] if t else ''}")
        d.after(x + gap / 2, y, f"S′ {now}")
        places += [(x, y), (x + gap / 2, y)]
        x += gap
    d.state(x, y, "…")
    return places


def afterstates() -> Drawing:
    d = Drawing(
        560, 150, "TD(0) on afterstates: an afterstate learns from the next afterstate and the reward between"
    )
    places = chain(d, 88)
    d.text(78, 76, "move", size=11)
    d.text(152, 76, "chance", size=11)
    (x1, y), (x2, _) = places[1], places[3]
    d.arc(x2, y - 10, x1 + 2, y - 10, -32)
    d.text((x1 + x2) / 2, 28, "V(S′) ← r + V(S′ next)", ORANGE, 14)
    d.text(232, 76, "r", ORANGE)
    return d


def states() -> Drawing:
    d = Drawing(560, 250, "TD(0) on states: a move is judged by all states that chance may make of it")
    d.state(50, 125, "S")
    for k, (top, name) in enumerate(((55, "up"), (125, "right"), (195, "left"))):
        d.line(65, 125, 170, top)
        d.text(112, (125 + top) / 2 + (26 if name == "left" else -8), name, size=11)
        d.after(170, top)
        for i in range(5):
            x, y = 300, top - 28 + 14 * i
            d.line(177, top, x - 6, y, BLUE if k == 1 and i == 3 else GREY, dashed=True)
            d.parts.append(f"<circle cx='{x}' cy='{y}' r='5' stroke='{BLUE if k == 1 and i == 3 else GREY}'/>")
    d.text(300, 240, "0.9 for a 2, 0.1 for a 4, every empty cell", size=11)
    d.text(430, 60, "choose the move with", size=13)
    d.text(430, 80, "the largest r + E[V(next)]", size=13)
    d.arc(296, 143, 64, 137, 24)
    d.text(430, 140, "V(S) ← r + V(S next)", ORANGE, 14)
    d.text(430, 160, "with the state that really came", size=12)
    return d


def directions() -> Drawing:
    d = Drawing(560, 220, "Forward learning updates as the game goes, backward learning from its end")
    for y, title, order in ((60, "forward", "1234"), (160, "backward", "4321")):
        d.text(16, y - 28, title, size=13, where="start")
        for k in range(5):
            x = 60 + 100 * k
            if k < 4:
                d.line(x, y, x + 100, y)
                d.arc(x + 94, y - 9, x + 6, y - 9, -13)
                d.text(x + 50, y - 27, order[k], ORANGE, 13)
            d.after(x, y, "" if k < 4 else "end")
    d.text(300, 208, "backward, each target already contains what was learnt after it", size=12)
    return d


def traces() -> Drawing:
    d = Drawing(560, 160, "TD(λ): an afterstate learns from later errors too, each λ times less")
    for k in range(5):
        x = 60 + 105 * k
        if k < 4:
            d.line(x, 105, x + 105, 105)
            d.text(x + 52, 126, f"δ{'₀₁₂₃'[k]}", size=14)
        d.after(x, 105, "", ORANGE if k == 0 else BLUE)
    for k, weight in enumerate(("1", "λ", "λ²", "λ³")):
        d.arc(112 + 105 * k, 92, 62 + 3 * k, 94, -12 - 13 * k)
        d.text(124 + 105 * k, 88, weight, ORANGE, 14)
    d.text(280, 150, "V(S′) moves by α (δ₀ + λ δ₁ + λ² δ₂ + …)", size=13)
    return d


def coherence() -> Drawing:
    d = Drawing(560, 170, "Temporal coherence: errors that agree keep the rate high, errors that cancel lower it")
    for y, title, signs, rate in (
        (48, "errors agree", (1, 1, -1, 1, 1, 1), "|E| / A = 4/6: goes on learning"),
        (118, "errors cancel", (1, -1, 1, -1, 1, -1), "|E| / A = 0/6: rests"),
    ):
        d.text(16, y + 5, title, where="start")
        for k, sign in enumerate(signs):
            x = 140 + 32 * k
            d.arrow(x, y + 16 * sign, x, y - 16 * sign, ORANGE if sign > 0 else GREY)
        d.text(340, y + 5, rate, where="start")
    d.text(280, 162, "E = Σ δ, A = Σ |δ|, kept for every weight", size=12)
    return d


def optimism() -> Drawing:
    d = Drawing(560, 190, "Optimistic start: what was never tried looks better than what is known")
    for x, heights, title in ((40, (20, 70, 20, 20), "start at 0"), (320, (120, 70, 64, 120), "start high")):
        best = max(heights)
        for k, height in enumerate(heights):
            known = height not in (20, 120)
            d.box(x + 50 * k, 150 - height, 34, height, PALE if known else "none", ORANGE if height == best else GREY)
            d.text(x + 50 * k + 17, 166, "tried" if known else "new", size=11)
        d.text(x + 92, 184, title)
    d.text(132, 60, "the known move again", ORANGE, 12)
    d.text(412, 18, "something new", ORANGE, 12)
    return d


def stages() -> Drawing:
    d = Drawing(560, 150, "Stages: other tables once a large tile is on the board")
    d.arrow(30, 110, 530, 110)
    d.text(500, 130, "the game goes on", size=12)
    for x, word in ((210, "8192"), (380, "16384")):
        d.line(x, 30, x, 116, dashed=True)
        d.text(x, 130, word, size=12)
    for x, name in ((120, "tables 0"), (295, "tables 1"), (455, "tables 2")):
        d.box(x - 44, 56, 88, 34, PALE)
        d.text(x, 78, name)
    for x1, x2 in ((150, 275), (325, 440)):
        d.arc(x1, 52, x2, 52, -14)
    d.text(290, 22, "an entry never learnt is first a copy of the stage before", ORANGE, 12)
    return d


def expectimax() -> Drawing:
    d = Drawing(560, 270, "Expectimax: maximum over moves, mean over chance, the network at the leaves")
    d.state(280, 30, "S")
    for k, x in enumerate((120, 280, 440)):
        d.line(280, 45, x, 100)
        d.after(x, 100, "")
        for i in (-1, 0, 1):
            y, left = 170, x + 46 * i
            d.line(x, 100, left, y - 9, dashed=True)
            d.parts.append(f"<circle cx='{left}' cy='{y}' r='9' stroke='{GREY}' stroke-width='2'/>")
            for j in (-1, 1):
                d.line(left, y + 9, left + 11 * j, 220)
                d.parts.append(f"<circle cx='{left + 11 * j}' cy='220' r='4' fill='{ORANGE if k == 1 else BLUE}'/>")
    d.text(520, 66, "max", size=12)
    d.text(520, 136, "mean", size=12)
    d.text(520, 200, "max", size=12)
    d.text(280, 252, "V(S″): the network's word about each leaf", ORANGE, 13)
    return d


def mcts() -> Drawing:
    d = Drawing(640, 200, "Monte Carlo tree search: select, expand, roll out, back up")
    for k, title in enumerate(("select", "expand", "roll out", "back up")):
        x = 80 + 160 * k
        d.text(x, 192, title)
        nodes = {0: (x, 24), 1: (x - 34, 70), 2: (x + 34, 70), 3: (x + 12, 116), 4: (x + 56, 116)}
        path = [(0, 2), (2, 3)]
        for a, b in ((0, 1), (0, 2), (2, 3), (2, 4)):
            used = (a, b) in path and k in (0, 3)
            d.line(*nodes[a], *nodes[b], ORANGE if used else GREY)
        if k >= 1:
            d.line(*nodes[3], x + 12, 150, ORANGE if k == 1 else GREY)
            d.after(x + 12, 150, "", ORANGE if k == 1 else BLUE)
        if k == 2:
            d.curve([(x + 12, 156), (x + 18, 162), (x + 6, 167), (x + 18, 172), (x + 10, 178)], ORANGE)
        for place in nodes.values():
            d.parts.append(f"<circle cx='{place[0]}' cy='{place[1]}' r='8' fill='{PALE}' stroke='{GREY}'/>")
        if k == 3:
            d.arrow(x + 2, 146, x + 2, 124, ORANGE)
            d.arrow(x + 2, 106, x + 22, 82, ORANGE)
            d.arrow(x + 20, 62, x - 4, 36, ORANGE)
    return d


def curves() -> Drawing:
    d = Drawing(560, 240, "A learning curve: the mean of training games against their number")
    d.arrow(50, 200, 530, 200)
    d.arrow(50, 200, 50, 20)
    d.text(290, 226, "training games", size=12)
    d.text(50, 14, "mean score", size=12)
    rising = [(50 + 4.6 * i, 200 - 150 * (1 - 0.965**i)) for i in range(100)]
    d.curve(rising, ORANGE)
    d.curve([(50 + 4.6 * i, 200 - 88 * (1 - 0.93**i)) for i in range(100)], BLUE)
    steps = [(50 + 4.6 * i, 200 - min(120 * (1 - 0.972**i), 64 + (i > 62) * 0.9 * (i - 62))) for i in range(100)]
    d.curve(steps, GREY)
    d.text(505, 42, "still learning", ORANGE, 12)
    d.text(300, 106, "at its ceiling", BLUE, 12)
    d.text(300, 150, "stuck below a tile, then through", GREY, 12)
    return d


PICTURES: tuple[Callable[[], Drawing], ...] = (
    networks,
    isomorphisms,
    afterstates,
    states,
    directions,
    traces,
    coherence,
    optimism,
    stages,
    expectimax,
    mcts,
    curves,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    old = []
    for picture in PICTURES:
        path, text = FOLDER / f"{picture.__name__}.svg", picture().svg()
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                old.append(path.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if old:
        print(f"not as this script draws them: {', '.join(old)}", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
