"""`tilesage games`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilesage import games
from tilesage.cli.flags import JsonFile, say, write_json


@dataclass
class Command:
    """The games, their tiles and a first position.

    examples:
      tilesage games
      tilesage games --json -
    """

    json: JsonFile = None


def describe(game: games.Game) -> dict[str, Any]:
    """A game in `--json`."""
    state = game.new(seed=1)
    return {
        "name": game.name,
        "title": game.title,
        "summary": game.summary,
        "tiles": list(game.tiles[1:]),
        "start": state.text,
        "parameters": dict(game.parameters),
    }


def run(command: Command) -> int:
    """List the games."""
    found = games.all_games()
    if write_json({"games": [describe(game) for game in found]}, command.json):
        for game in found:
            tiles = f"{', '.join(map(str, game.tiles[1:5]))} … {game.tiles[-1]}"
            say(f"{game.name:14s}{game.summary}\n{'':14s}tiles {tiles}")
            for name, (about, *_) in game.takes.items():
                say(f"{'':14s}--{name.replace('_', '-')} {game.parameters[name]:g}: {about}")
            say(f"{'':14s}a start: {game.new(seed=1).text}\n")
    return 0
