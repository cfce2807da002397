"""A position in the terminal: coloured tiles, the figures beside them, and what a player thinks of the four moves."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from tilesage.drawing.palette import BOARD, EMPTY, paint
from tilesage.games import State
from tilesage.games.board import ACTIONS

ARROWS = ("↑", "→", "↓", "←")
BAR = 14
GOOD, DIM = "#3fb0a6", "bright_black"


@dataclass(frozen=True)
class Scene:
    """What the screen shows."""

    state: State
    theme: str = "dark"
    title: str = ""
    values: Sequence[float | None] = ()
    new: int | None = None  # the cell of the tile that just appeared
    figures: tuple[tuple[str, str], ...] = ()  # further lines beside the board
    message: str = ""
    keys: str = ""

    def but(self, **changes: object) -> Scene:
        return replace(self, **changes)  # type: ignore[arg-type]


def board_text(state: State, theme: str = "dark", tall: bool = False, new: int | None = None) -> Text:
    """The tiles as blocks of colour; half blocks leave half a line between them."""
    width, ground, text = 10 if tall else 8, BOARD[theme], Text(no_wrap=True)
    for row in range(4):
        cells = range(4 * row, 4 * row + 4)
        lines = ["▄", *([" "] if tall else []), "number", *([" "] if tall else []), "▀"]
        for line in lines:
            for cell in cells:
                text.append(" ", Style(bgcolor=ground))
                _append_tile(text, state, cell, line, width, theme, cell == new)
            text.append(" ", Style(bgcolor=ground))
            text.append("\n")
    text.right_crop(1)
    return text


def _append_tile(text: Text, state: State, cell: int, line: str, width: int, theme: str, new: bool) -> None:
    index = state.indices[cell]
    colours = paint(state.game.name, index, theme)
    face = colours.background if index else EMPTY[theme]
    if line in "▄▀":
        text.append(line * width, Style(color=face, bgcolor=BOARD[theme]))
    elif line == "number" and index:
        number = str(state.game.tiles[index])
        text.append(number.center(width), Style(color=colours.text, bgcolor=face, bold=True))
    else:
        text.append(" " * width, Style(bgcolor=face))
    if new and line == "number" and index:  # a dot marks the tile that just appeared
        text.right_crop(1)
        text.append("•", Style(color=colours.text, bgcolor=face))


def bars(values: Sequence[float | None]) -> list[Text]:
    """The four moves as small bars, the best one in colour; the shortest bar is the worst legal move."""
    legal = [value for value in values if value is not None]
    if not legal:
        return []
    low, high = min(legal), max(legal)
    lines = []
    for action, value in enumerate(values):
        line = Text(f"{ARROWS[action]} {ACTIONS[action]:<6}", no_wrap=True)
        if value is None:
            line.stylize(DIM)
            line.append("·".rjust(BAR + 10), DIM)
        else:
            share = 1.0 if high == low else 0.15 + 0.85 * (value - low) / (high - low)
            line.append(("▆" * round(share * BAR)).ljust(BAR), GOOD if value == high else DIM)
            line.append(f"{value:,.0f}".rjust(10), "bold" if value == high else "")
        lines.append(line)
    return lines


def _figures(scene: Scene) -> list[Text]:
    state = scene.state
    rows = [("score", f"{state.score:,}"), ("moves", f"{state.moves:,}"), ("largest", f"{state.largest:,}")]
    lines = [Text(scene.title or state.game.title, "bold")]
    for name, value in [*rows, *scene.figures]:
        lines.append(Text.assemble((f"{name:<10}", DIM), (value, "bold" if name == "score" else "")))
    if state.hint:
        lines.append(Text(f"{'next':<10}", DIM))
        for number in state.hint:
            colours = paint(state.game.name, state.game.tiles.index(number), scene.theme)
            lines[-1].append(f" {number} ", Style(color=colours.text, bgcolor=colours.background, bold=True))
            lines[-1].append(" ")
    return lines


def draw(scene: Scene, console: Console) -> RenderableType:
    """The whole scene, as large as the terminal allows; without colours, plain text."""
    if console.color_system is None or not (console.encoding or "").lower().startswith("utf"):
        return Text("\n".join(plain_lines(scene)))
    tall = console.height >= 27 and console.width >= 80
    board = board_text(scene.state, scene.theme, tall, scene.new)
    wide = len(board.plain.split("\n", 1)[0])
    beside = [*_figures(scene), Text(""), *bars(scene.values)]
    foot = [Text(scene.message, "bold"), Text(scene.keys, DIM)]
    narrow = console.width < wide + 3 + 32
    for line in beside:
        line.truncate(console.width if narrow else console.width - wide - 3, overflow="ellipsis")
    for line in foot:
        line.truncate(console.width, overflow="ellipsis")
    if narrow:
        return Group(board, *beside, *foot)
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_row(board, Group(*beside))
    return Group("", table, "", *foot)


def plain_lines(scene: Scene) -> list[str]:
    """The scene without colours, for dumb terminals."""
    state = scene.state
    lines = [f"{state.game.title}  score {state.score}  moves {state.moves}", *str(state).splitlines()]
    for action, value in enumerate(scene.values):
        lines.append(f"{ACTIONS[action]:>6} {'-' if value is None else format(value, ',.0f'):>12}")
    lines += [f"{name} {value}" for name, value in scene.figures]
    lines += [line for line in (scene.message, scene.keys) if line]
    return [line.replace("·", ".") for line in lines]


def move_line(state: State, action: int, gained: int) -> str:
    """One move in one line, for pipes: its number, the move, what it earned, the score, the position."""
    return f"{state.moves:>6}  {ACTIONS[action]:<5}  {gained:>+7}  {state.score:>8}  {state.text}"


def start_line(state: State) -> str:
    """The start of a game in the same columns."""
    return f"{state.moves:>6}  {'start':<5}  {'':>7}  {state.score:>8}  {state.text}"


def ansi(state: State, theme: str = "dark") -> str:
    """The position as text with ANSI colours."""
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="truecolor", width=72, height=24, legacy_windows=False
    )
    with console.capture() as capture:
        console.print(draw(Scene(state, theme), console))
    return capture.get()


def is_interactive() -> bool:
    """Both ends of the program are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not Console().is_dumb_terminal
