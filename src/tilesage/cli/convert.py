"""`tilesage convert`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import tyro

from tilesage import games
from tilesage.cli.flags import GameName, JsonFile, Limits, MaybeText, MaybeWhole, say, write_json
from tilesage.core.errors import InputError
from tilesage.networks.patterns import write_pattern

if TYPE_CHECKING:
    from tilesage.networks.files import Model

Format = Literal["tilesage", "course", "course64", "demo", "tdl2048"]
FORMATS = f"{{{','.join(get_args(Format))}}}"


@dataclass
class Command:
    """Carry weights from and to other programs: the course framework, the demo program, TDL2048+.

    What IN holds is recognised by its bytes, what OUT should hold by its name: ….safetensors is a model of ours,
    ….w TDL2048+, weights.bin the course, 2048.bin the demo program.

    examples:
      tilesage convert 2048.bin runs/demo.safetensors
      tilesage convert weights.bin threes.safetensors --game threes --network 4x6
      tilesage convert runs/first weights.bin --base 15
      tilesage convert runs/first first.w
    """

    # IN: a file of weights, or a model of ours (a file, a run folder, a name).
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    # OUT: the file to write.
    target: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    # What IN is, when it should not be recognised.
    from_: Annotated[Format | None, tyro.conf.arg(name="from", metavar=FORMATS, help_behavior_hint="")] = None
    # What to write, when the name of OUT does not say it.
    to: Annotated[Format | None, tyro.conf.arg(metavar=FORMATS, help_behavior_hint="")] = None
    # The patterns of the tables of IN, in their order: 4x6, 8x4, … or cells like 012345,456789.
    network: Annotated[MaybeText, tyro.conf.arg(aliases=("--patterns",))] = None
    game: GameName = None
    # What the values of IN are of.
    of: Literal["afterstates", "states"] = "afterstates"
    # Entries are numbered Σ tile[k] · base^k: read from the size of the tables, 16 when written.
    base: Annotated[MaybeWhole, Limits(2, 64)] = None
    # Whether the first cell of a pattern is the lowest or the highest digit of that number.
    first: Literal["low", "high"] = "low"
    # Write a model of ours small: a byte a weight, only what was learnt.
    packed: bool = False
    # Replace OUT if it is there.
    force: bool = False
    json: JsonFile = None


def run(command: Command) -> int:
    """Read the weights of one program and write them for another."""
    from tilesage.networks.convert import Numbering, export_model, format_by_name
    from tilesage.networks.files import save_model

    form = command.to or format_by_name(command.target)
    _check(command, form)
    model, notes = _read(command)
    command.target.parent.mkdir(parents=True, exist_ok=True)
    lost = 0
    if form == "tilesage":
        save_model(model, command.target, command.packed)
    else:
        lost = export_model(model, command.target, form, Numbering(command.base, command.first))
    if lost:
        notes.append(f"{lost:,} learnt entries have tiles that base {command.base} cannot number: they are left out")
    result = {
        "source": command.source,
        "target": str(command.target),
        "format": form,
        "game": model.game.name,
        "network": model.network.name,
        "patterns": [write_pattern(pattern) for pattern in model.network.patterns],
        "of": model.of,
        "notes": notes,
    }
    if write_json(result, command.json):
        head = f"{command.target}: {form}, {model.game.name}, {model.network.name}, values of {model.of}"
        say("\n  ".join([head, *notes]))
    return 0


def _check(command: Command, form: str) -> None:
    if command.packed and form != "tilesage":
        raise InputError(f"--packed is for models of ours, not for {form} files")
    if command.target.is_dir():
        raise InputError(f"{command.target} is a folder: name the file to write")
    if command.target.exists() and not command.force:
        raise InputError(f"{command.target} is already there: choose another name, or add --force to replace it")


def _read(command: Command) -> tuple[Model, list[str]]:
    """The model in IN, and what the user should know about it."""
    from tilesage.networks.convert import Numbering, import_model
    from tilesage.networks.exchange import read_tables
    from tilesage.networks.files import load_model

    path = Path(command.source)
    if command.from_ == "tilesage" or (command.from_ is None and _is_ours(path)):
        if command.network:
            raise InputError(f"{command.source} is a model of ours and names its network: leave out --network")
        return load_model(command.source, command.game), []
    form, tables = read_tables(path, command.from_)
    named = tables[0].pattern is not None
    if command.game is None and not named:
        raise InputError(f"{path} is a {form} file, which does not say its game: add --game threes or --game 2048")
    numbering, game = Numbering(command.base, command.first), games.get(command.game or games.DEFAULT_GAME)
    done = import_model(path, game, command.network, form, numbering, command.of)
    notes = [f"from a {done.form} file of {len(tables)} tables, numbered in base {done.base}"]
    if done.guessed:
        cells = ",".join(write_pattern(pattern) for pattern in done.model.network.patterns)
        notes.append(f"its sizes are those of {done.model.network.name} ({cells}): give --patterns if yours differ")
    if done.lost:
        notes.append(f"{done.lost:,} entries of tiles beyond index 15 were left out")
    return done.model, notes


def _is_ours(path: Path) -> bool:
    """A folder, the name of a built-in model, or a file whose header is ours."""
    from tilesage.networks.files import FORMAT
    from tilesage.networks.tensors import Tensors

    if not path.is_file():
        return True
    try:
        Tensors.open(path, FORMAT)
    except InputError:
        return path.suffix == ".safetensors"
    return True
