"""`tilesage runs`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from tilesage import games
from tilesage.cli.flags import JsonFile, MaybeText, program, say, write_json
from tilesage.core.errors import InputError

AGES = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


@dataclass
class Command:
    """Run folders: how large, how old and how strong they are. Makes them small, or deletes them.

    examples:
      tilesage runs
      tilesage runs runs/first --slim
      tilesage runs runs/guide-small runs/guide-large --delete --yes
    """

    # Run folders, or folders of such; by default runs.
    folders: Annotated[list[Path], tyro.conf.Positional] = field(default_factory=list)
    # Keep of each its model, settings and curve: it plays on, but cannot be resumed.
    slim: bool = False
    # Remove them, with everything in them.
    delete: bool = False
    # Do not ask.
    yes: bool = False
    # For games in files of your own: my_module:my_game.
    game: MaybeText = None
    json: JsonFile = None


def run(command: Command) -> int:
    """List the runs, or do to them what is asked for."""
    from tilesage.learning.folders import bytes_in, delete, size_in_words, slim

    if command.game:
        games.get(command.game)
    wanted = command.folders or [Path("runs")]
    found = [folder for given in wanted for folder in runs_in(given, bool(command.folders))]
    if command.slim or command.delete:
        if not command.folders or (command.slim and command.delete):
            raise InputError(
                "--slim or --delete takes the folders that it is meant for: tilesage runs runs/first --slim"
            )
        for folder in found:
            if command.yes or agreed("delete" if command.delete else "slim", folder):
                before = bytes_in(folder)
                (delete if command.delete else slim)(folder)
                say(f"{folder}: {size_in_words(before - bytes_in(folder))} less")
        return 0
    listed = [describe(folder) for folder in found]
    if write_json({"runs": listed}, command.json):
        if not found:
            say(f"no runs yet: {program()} train 2048 --seconds 60 --out runs/first")
        for entry in listed:
            say(line(entry))
    return 0


def runs_in(given: Path, asked_for: bool) -> Iterator[Path]:
    """The folder itself, or the runs in it."""
    from tilesage.learning.folders import SETTINGS, is_run

    if is_run(given):
        yield given
        return
    found = sorted(path.parent for path in given.glob(f"*/{SETTINGS}"))
    if asked_for and not found:
        raise InputError(f"{given} is no run, and no folder of runs")
    yield from found


def agreed(deed: str, folder: Path) -> bool:
    """Does the user say yes?"""
    from tilesage.learning.folders import bytes_in, size_in_words

    if not sys.stdin.isatty():
        raise InputError(f"nobody is here to be asked: to {deed} {folder}, add --yes")
    return input(f"{deed} {folder} ({size_in_words(bytes_in(folder))})? [y/N] ").strip().lower() in ("y", "yes")


def describe(folder: Path) -> dict[str, Any]:
    """A run in `--json`; `mean` is that of its last 1,000 training games."""
    from tilesage.learning.config import settings_in
    from tilesage.learning.folders import SETTINGS, bytes_in, standing
    from tilesage.learning.metrics import latest, read_metrics

    entry: dict[str, Any] = {"run": str(folder), "bytes": bytes_in(folder)}
    entry["seconds_old"] = round(time.time() - folder.stat().st_mtime)
    try:
        settings, progress = settings_in(folder / SETTINGS), standing(folder)
        entry |= {"game": settings.get("game"), "network": settings.get("network"), "games": progress.games}
        return entry | latest(read_metrics(folder))
    except InputError as mistake:
        return entry | {"broken": str(mistake)}


def line(entry: dict[str, Any]) -> str:
    """A run in a line for people."""
    from tilesage.learning.folders import size_in_words

    counts = ((entry["seconds_old"] // size, name) for name, size in AGES.items())
    old = next((f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count), "new")
    words = f"{entry['run']:32s} {size_in_words(entry['bytes']):>8s}  {old:>10s}  "
    if "broken" in entry:
        return words + f"not read: {entry['broken']}"
    strength = "nothing learnt yet"
    if "mean" in entry:
        strength = f"mean {entry['mean']:,.0f} ± {entry['error']:,.0f} of its last {entry['block']:,} training games"
    return words + f"{entry['game']}, {entry['network']}: {strength}"
