"""Positions as drawings in a notebook: installed by `import tilesage` where IPython runs, at no cost elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilesage.games import Afterstate, State

PLAY = "tilesage.games.play"  # named, not imported: the games are loaded when the first position is made
WIDTH = 300


def drawing(state: State) -> str:
    """The position as SVG, of a size for notebooks."""
    from .pictures import svg

    return svg(state, width=WIDTH)


def drawing_of_afterstate(after: Afterstate) -> str:
    """The board after the move and before chance."""
    from tilesage.games import State
    from tilesage.games.board import ACTIONS

    from .pictures import svg

    before = after.before
    state = State(before.game, after.board, after.aux, before.score + after.reward, before.moves + 1)
    return svg(state, note=f"after {ACTIONS[after.action]}", width=WIDTH)


def install(shell: Any) -> None:
    """Teach an IPython shell to draw positions."""
    pictures = shell.display_formatter.formatters["image/svg+xml"]
    pictures.for_type_by_name(PLAY, "State", drawing)
    pictures.for_type_by_name(PLAY, "Afterstate", drawing_of_afterstate)


def install_if_there(modules: dict[str, Any]) -> None:
    """Install in the running shell, if IPython was imported and has one."""
    find = getattr(modules.get("IPython"), "get_ipython", None)
    shell = find() if find else None
    if shell is not None and getattr(shell, "display_formatter", None) is not None:
        install(shell)
