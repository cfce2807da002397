"""Positions as drawings in a notebook: installed by `import tilesage` where IPython runs, at no cost elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilesage.games import Afterstate, State

PLAY = "tilesage.games.state"  # named, not imported: the games are loaded when the first position is made
WIDTH, SMALL = 300, 150
MOST = 48  # positions of a list that are drawn


def drawing(state: State, width: int = WIDTH) -> str:
    """The position as SVG, of a size for notebooks."""
    from tilesage.drawing.pictures import svg

    return svg(state, width=width)


def drawing_of_afterstate(after: Afterstate, width: int = WIDTH) -> str:
    """The board after the move and before chance."""
    from tilesage.drawing.pictures import svg
    from tilesage.games import State
    from tilesage.games.board import ACTIONS

    before = after.before
    state = State(before.game, after.board, after.aux, before.score + after.reward, before.moves + 1)
    return svg(state, note=f"after {ACTIONS[after.action]}", width=width)


def drawing_of_list(items: Sequence[Any]) -> str | None:
    """Positions side by side, as HTML; None for a list of anything else, which is shown as ever."""
    if not items or not all(type(item).__module__ == PLAY for item in items):
        return None
    draw: dict[str, Callable[..., str]] = {"State": drawing, "Afterstate": drawing_of_afterstate}
    drawn = [draw[type(item).__name__](item, SMALL) for item in items[:MOST]]
    more = f"<p>… and {len(items) - MOST} more</p>" if len(items) > MOST else ""
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(drawn)}</div>{more}'


def install(shell: Any) -> None:
    """Teach an IPython shell to draw positions, and lists and tuples of them."""
    pictures = shell.display_formatter.formatters["image/svg+xml"]
    pictures.for_type_by_name(PLAY, "State", drawing)
    pictures.for_type_by_name(PLAY, "Afterstate", drawing_of_afterstate)
    for kind in (list, tuple):
        shell.display_formatter.formatters["text/html"].for_type(kind, drawing_of_list)


def install_if_there(modules: dict[str, Any]) -> None:
    """Install in the running shell, if IPython was imported and has one."""
    find = getattr(modules.get("IPython"), "get_ipython", None)
    shell = find() if find else None
    if shell is not None and getattr(shell, "display_formatter", None) is not None:
        install(shell)
