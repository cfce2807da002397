"""`tilesage plot`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tilesage import games
from tilesage.app.plots import Curve, plot_curves
from tilesage.cli.flags import MaybePath, MaybeText, MaybeWhole, say
from tilesage.core.errors import InputError
from tilesage.learning.config import settings_in


@dataclass
class Command:
    """Draw learning curves: mean, best score and the share of games that reach a tile.

    examples:
      tilesage plot runs/first
      tilesage plot runs/fast runs/slow --against moves --out curves.svg
      tilesage plot runs/threes --tile 384
    """

    # Run folders, all of one game.
    runs: Annotated[list[Path], tyro.conf.Positional] = field(default_factory=list)
    # What the curves run along.
    against: Literal["games", "moves", "seconds"] = "games"
    # Only for a game in a file of your own: my_module:my_game.
    game: MaybeText = None
    # The tile of the third panel; by default 2048 or 384.
    tile: MaybeWhole = None
    # Names for the legend, separated by commas; by default the folders'.
    names: str = ""
    # A .png or .svg file; by default curve.png and curve.svg in the (first) run folder.
    out: MaybePath = None


def run(command: Command) -> int:
    """Draw the curves."""
    from tilesage.learning.metrics import read_metrics

    if command.game:
        games.get(command.game)
    if not command.runs:
        raise InputError("plot what? give one run folder or more")
    names = [name.strip() for name in command.names.split(",")] if command.names else []
    names = names or [folder.name or str(folder) for folder in command.runs]
    if len(names) != len(command.runs):
        raise InputError(f"--names gives {len(names)}, and the number of runs is {len(command.runs)}")
    game = game_of(command.runs[0])
    for folder in command.runs[1:]:
        if game_of(folder) != game:
            raise InputError(f"{command.runs[0]} learns {game}, {folder} {game_of(folder)}: plot one game at a time")
    curves = [Curve(name, read_metrics(folder)) for name, folder in zip(names, command.runs)]
    paths = [command.out] if command.out else [command.runs[0] / "curve.png", command.runs[0] / "curve.svg"]
    for path in paths:
        if path.suffix not in (".png", ".svg"):
            raise InputError(f"{path}: write a .png or a .svg file")
    for path in plot_curves(curves, paths, command.against, str(tile_of(game, command.tile))):
        say(f"drawn: {path}")
    return 0


def game_of(folder: Path) -> str:
    """The name of the game that a run learns."""
    path = folder / "run.toml"
    return str(settings_in(path).get("game", games.DEFAULT_GAME)) if path.exists() else games.DEFAULT_GAME


def tile_of(name: str, wanted: int | None) -> int:
    """The tile that is wanted, or that people ask for first in this game."""
    game = games.get(name)
    tiles = game.tiles[game.goal - 1 :]  # of which the metrics tell
    if wanted is not None and wanted not in tiles:
        raise InputError(f"--tile {wanted} is none of {', '.join(map(str, tiles))}")
    return wanted or game.tiles[game.goal]
