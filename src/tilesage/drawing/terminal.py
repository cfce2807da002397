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
ASCII = str.maketrans({"·": ".", "←": "<", "→": ">", "↑": "^", "↓": "v", "…": "...", "−": "-", "–": "-", "⇧": "^"})


@dataclass(frozen=True)
class Scene:
    """What the screen shows."""

    state: State
    theme: str = "dark"
    title: str = ""
    values: Sequence[float | None] = ()  # of the four moves
    best: int | None = None  # the move whose value stands whole, beside the losses of the others; else the largest
    played: int | None = None  # the move that was made here, in a game that is looked at again
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


def shares(values: Sequence[float | None], best: int) -> list[float | None]:
    """How full the bar of each move is, as on the page.

    The best bar is full. The others are shorter by what they lose, on a scale of at least 5 % of the best, so that
    moves that are nearly equal look nearly equal.

    >>> [round(share, 2) for share in shares([210_630, 210_603, 200_000, None], 0) if share is not None]
    [1.0, 1.0, 0.13]
    """
    top = values[best] or 0.0
    losses = [None if value is None else max(0.0, top - value) for value in values]
    scale = max(1.15 * max(loss for loss in losses if loss is not None), 0.05 * abs(top), 1e-9)
    return [None if loss is None else max(0.03, 1 - loss / scale) for loss in losses]


def bars(values: Sequence[float | None], best: int | None = None, played: int | None = None) -> list[Text]:
    """The four moves as bars: what the best one is worth, and what each of the others loses against it."""
    known = {action: value for action, value in enumerate(values) if value is not None}
    if not known:
        return []
    best = max(known, key=lambda action: known[action]) if best is None or best not in known else best
    lines = []
    for action, share in enumerate(shares(values, best)):
        line = Text(f"{ARROWS[action]} {ACTIONS[action]:<6}", no_wrap=True)
        if share is None:
            line.stylize(DIM)
            line.append("·".rjust(BAR + 10), DIM)
        else:
            loss = known[best] - known[action]
            told = f"{known[best]:,.0f}" if action == best else "the same" if loss < 0.5 else f"−{loss:,.0f}"
            line.append(("▆" * max(1, round(share * BAR))).ljust(BAR), GOOD if action == best else DIM)
            line.append(told.rjust(10), "bold" if action == best else "")
        line.append(" played" if action == played else "", "bold")
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
    plain = console.color_system is None or console.no_color
    if plain or not (console.encoding or "").lower().startswith("utf"):
        return Text("\n".join(line[: console.width] for line in plain_lines(scene)[: console.height]))
    advice = bars(scene.values, scene.best, scene.played)
    beside = [*_figures(scene), Text(""), *advice]
    foot = [Text(scene.message, "bold"), Text(scene.keys, DIM)]
    board = board_text(scene.state, scene.theme, console.height >= 27 and console.width >= 80, scene.new)
    wide, high = len(board.plain.split("\n", 1)[0]), board.plain.count("\n") + 1
    narrow = console.width < wide + 3 + 32
    if console.height < high + 4 or console.width < wide or (narrow and console.height < high + len(beside) + 2):
        return Group(*_cut([_head(scene), *_small_board(scene, console.width), *advice, *foot], console.width))
    if narrow:
        return Group(board, *_cut(beside, console.width), *_cut(foot, console.width))
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_row(board, Group(*_cut(beside, console.width - wide - 3)))
    return Group("", table, "", *_cut(foot, console.width))


def _cut(lines: list[Text], width: int) -> list[Text]:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _head(scene: Scene) -> Text:
    """What must be told where there is one line for it."""
    state = scene.state
    head = Text.assemble((f"{state.score:,}", "bold"), (f" points · {state.moves:,} moves", DIM))
    return head.append(f" · next {' '.join(map(str, state.hint))}" if state.hint else "", "bold")


def _small_board(scene: Scene, width: int) -> list[Text]:
    """A line for each row of the board."""
    state, lines = scene.state, [Text(no_wrap=True) for _ in range(4)]
    for cell in range(16):
        _append_tile(lines[cell // 4], state, cell, "number", min(10, width // 4) - 1, scene.theme, cell == scene.new)
        lines[cell // 4].append(" ")
    return lines


def plain_lines(scene: Scene) -> list[str]:
    """The scene without colours, in ASCII, for dumb terminals."""
    state = scene.state
    lines = [f"{state.game.title}  score {state.score}  moves {state.moves}", *str(state).splitlines()]
    for action, value in enumerate(scene.values):
        marks = ("best move " if action == scene.best else "") + ("played" if action == scene.played else "")
        lines.append(f"{ACTIONS[action]:>6} {'-' if value is None else format(value, ',.0f'):>12} {marks}".rstrip())
    lines += [line for line in (scene.message, scene.keys) if line]
    lines += [f"{name}: {value}" for name, value in scene.figures]
    return [line.translate(ASCII).encode("ascii", "replace").decode() for line in lines]


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
