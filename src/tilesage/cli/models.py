"""`tilesage models`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilesage import games
from tilesage.cli.flags import JsonFile, MaybeText, program, say, write_json
from tilesage.core.errors import InputError

NAMES = {"mean": "mean while training"}  # of what a model tells of its training


@dataclass
class Command:
    """The models on this machine: the built-in ones, and those in run folders.

    examples:
      tilesage models
      tilesage models --runs runs elsewhere/runs --json -
    """

    # Folders in which run folders are looked for.
    runs: list[Path] = field(default_factory=lambda: [Path("runs")])
    # For games in files of your own: my_module:my_game.
    game: MaybeText = None
    json: JsonFile = None


def run(command: Command) -> int:
    """List the models."""
    if command.game:
        games.get(command.game)
    for folder in command.runs:
        if not folder.is_dir() and command.runs != Command().runs:
            raise InputError(f"{folder} is no folder of runs")
    found = [describe(source, path) for source, path in sources(command.runs)]
    if not write_json({"models": found}, command.json):
        return 0
    if not found:
        say(f"no models yet: {program()} train 2048 --seconds 60 --out runs/first")
    for model in found:
        say("\n".join(lines(model)) + "\n")
    return 0


def sources(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """What to write for a model, and where it lies."""
    from tilesage.networks.files import built_in_names, find_model, model_in

    for name in built_in_names():
        yield name, find_model(name)
    for folder in folders:
        for path in sorted(folder.glob("*/")) if folder.is_dir() else []:
            model = model_in(path)
            if model is not None:
                yield str(path), model


def describe(source: str, path: Path) -> dict[str, Any]:
    """A model in `--json`."""
    from tilesage.networks.files import describe_model, size_of

    try:
        model = describe_model(path)
    except InputError as mistake:
        return {"model": source, "broken": str(mistake)}
    return {
        "model": source,
        "game": model.game.name,
        "network": model.network.name,
        "of": model.of,
        "bytes": path.stat().st_size,
        "entries": size_of(model.network),
        "strength": model.training.get("strength", {}),
        "training": {key: value for key, value in model.training.items() if key != "strength"},
    }


def lines(model: dict[str, Any]) -> list[str]:
    """A model in lines for people."""
    if "broken" in model:
        return [f"{model['model']}", f"    not read: {model['broken']}"]
    size = model["bytes"] / 2**20
    found = [
        f"{model['model']}",
        f"    {model['game']}, network {model['network']}, values of {model['of']}, {size:,.1f} MiB on disk",
    ]
    training = model["training"]
    if training:
        told = {key: value for key, value in training.items() if isinstance(value, (int, float, str))}
        maker = [str(told.pop("made_by"))] if "made_by" in told else []
        found.append(
            "    made by: " + ", ".join(maker + [f"{NAMES.get(key, key)} {shown(told[key])}" for key in told])
        )
    for agent, figures in model["strength"].items():
        words = (
            [f"mean {shown(figures['mean'])} ± {shown(figures['stderr'])}"]
            if {"mean", "stderr"} <= figures.keys()
            else []
        )
        rest = {key: value for key, value in figures.items() if not words or key not in ("mean", "stderr")}
        found.append(f"    {agent}: " + ", ".join(words + [f"{key} {shown(value)}" for key, value in rest.items()]))
    return found


def shown(value: Any) -> str:
    """A figure as people read it.

    >>> shown(26696.1), shown(0.5), shown("cpu")
    ('26,696', '0.5', 'cpu')
    """
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
