"""Models from the tables of other programs and back: the cells of each table, and the order of its entries.

Other programs number the entries of a table by the tiles of its cells, as the digits of a number: Σ tile[k] · base^k.
The base is nearly always 16 (then this is Σ tile[k] << 4k), 15 in some course projects; the first cell is the lowest
digit, or the highest. Our entries lie as layout.py says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import Game
from tilesage.networks.exchange import READERS, StoredTable, read_tables, write_tables
from tilesage.networks.files import Model, size_of
from tilesage.networks.layout import layout_of
from tilesage.networks.patterns import LONGEST, NAMES, Network, Pattern, parse_network, write_pattern

NIBBLE = 16
BASES = range(2, 65)
COMMON_BASES = (16, 15)  # recognised without being told
LARGEST = 8 << 30  # bytes of a model that is made


@dataclass(frozen=True)
class Numbering:
    """How a program numbers the entries of a table."""

    base: int | None = None  # None: what the length of the table says
    first: str = "low"  # the first cell is the lowest digit, or the highest: "high"


@dataclass(frozen=True)
class Imported:
    """A model made from foreign tables, and what there is to say about it."""

    model: Model
    form: str
    base: int
    guessed: bool  # the patterns were recognised by their sizes alone
    lost: int  # entries of tiles that a nibble cannot hold


def import_model(
    path: Path, game: Game, network: str | None, form: str | None, numbering: Numbering, of: str = "afterstates"
) -> Imported:
    """The model that the tables of a file make up."""
    form, tables = read_tables(path, form)
    found = _network_of(path, tables, network, numbering)
    bases = _bases_of(path, tables, found, numbering)
    if 4 * size_of(found) > LARGEST:
        raise InputError(f"{path} would make a model of {4 * size_of(found) >> 30} GiB: at most {LARGEST >> 30}")
    weights = np.zeros(size_of(found), np.float32)
    lost = 0
    for number, (place, table, base) in enumerate(zip(layout_of(found).tables, tables, bases), 1):
        plain, beyond = _renumbered(np.asarray(table.values), len(place.pattern), base, NIBBLE, numbering.first)
        if not np.isfinite(plain).all():
            raise InputError(f"{path}: table {number} holds numbers that are infinite or not numbers at all")
        weights[place.entries_in_order()] = plain
        lost += beyond
    model = Model(game, found, weights, of, {"imported": form, "file": path.name})
    return Imported(model, form, bases[0], network is None and tables[0].pattern is None, lost)


def export_model(model: Model, path: Path, form: str, numbering: Numbering) -> int:
    """Write the tables of a model; returns how many learnt entries have no place in this numbering."""
    network, base = model.network, numbering.base or NIBBLE
    if network.sets > 1:
        raise InputError(
            f"{model.name} keeps {network.sets} sets of tables (stages, hints): a {form} file has room for one, "
            "so only networks without stages and without tables by hint can be written"
        )
    if network.fold or network.by_age:
        raise InputError(
            f"{model.name} sees large boards folded or goes by age, which a {form} file cannot say: "
            "only networks without --fold and --by-age can be written"
        )
    if network.once and form in ("demo", "tdl2048"):
        raise InputError(
            f"{model.name} reads each pattern once, a {form} file is read in all symmetries: write --to course"
        )
    if form == "tdl2048" and max(map(len, network.patterns)) > LONGEST:
        raise InputError(f"a tdl2048 file names patterns of at most {LONGEST} cells")
    if form in ("demo", "tdl2048") and (base, numbering.first) != (NIBBLE, "low"):
        raise InputError(
            f"a {form} file numbers its entries in base 16, the first cell lowest: leave --base and --first"
        )
    lost = 0

    def tables() -> Iterator[tuple[Pattern, Array]]:
        nonlocal lost
        for place in layout_of(network).tables:
            plain = np.asarray(model.weights[place.entries_in_order()])
            values, beyond = _renumbered(plain, len(place.pattern), NIBBLE, base, numbering.first)
            lost += beyond
            yield place.pattern, values

    write_tables(path, form, tables(), len(network.patterns))
    return lost


def _renumbered(values: Array, cells: int, base: int, new_base: int, first: str) -> tuple[Array, int]:
    """The same table in another base and order of digits, and how many entries other than 0 do not fit."""
    grid = values.reshape((base,) * cells)
    if first == "high":
        grid = grid.transpose()
    kept = grid[(slice(min(base, new_base)),) * cells]
    lost = int(np.count_nonzero(grid)) - int(np.count_nonzero(kept)) if new_base < base else 0
    if new_base <= base:
        return np.ascontiguousarray(kept, np.float32).reshape(-1), lost
    wide = np.zeros((new_base,) * cells, np.float32)
    wide[(slice(base),) * cells] = kept
    return wide.reshape(-1), 0


def _network_of(path: Path, tables: list[StoredTable], wanted: str | None, numbering: Numbering) -> Network:
    """The network of the tables: as wanted, as the file names it, or as their sizes suggest."""
    named = [write_pattern(table.pattern) for table in tables if table.pattern is not None]
    if wanted is not None:
        network = parse_network(wanted)
        patterns = [write_pattern(pattern) for pattern in network.patterns]
        if named and named != patterns:
            raise InputError(
                f"{path} names its patterns {','.join(named)}: leave out the network, or write just those"
            )
        if len(patterns) != len(tables):
            raise InputError(
                f"{path} holds {len(tables)} tables ({_sizes(tables)}), but {wanted} has {len(patterns)} patterns"
            )
        return network
    if named:
        network = parse_network(",".join(named))
        if len(network.patterns) != len(tables):
            raise InputError(f"{path} names a pattern twice: {','.join(named)}")
        return _by_its_name(network)
    return _guess(path, tables, numbering)


def _by_its_name(network: Network) -> Network:
    """The same patterns under the name people know, if they have one."""
    for name in NAMES:
        if parse_network(name).written == network.written:
            return parse_network(name)
    return network


def _guess(path: Path, tables: list[StoredTable], numbering: Numbering) -> Network:
    for base in (numbering.base,) if numbering.base else COMMON_BASES:
        for name in NAMES:
            network = parse_network(name)
            if [base ** len(pattern) for pattern in network.patterns] == [len(table) for table in tables]:
                return network
    raise InputError(
        f"{path} holds {len(tables)} tables ({_sizes(tables)}), like no network known by name: give its patterns, "
        "for instance --patterns 012345,456789"
    )


def _bases_of(path: Path, tables: list[StoredTable], network: Network, numbering: Numbering) -> list[int]:
    """The base of each table, from its length and the number of its cells; one for all of them."""
    bases = []
    for number, (table, pattern) in enumerate(zip(tables, network.patterns), 1):
        fitting = [base for base in BASES if base ** len(pattern) == len(table) and numbering.base in (None, base)]
        if not fitting:
            wanted = (numbering.base or NIBBLE) ** len(pattern)
            raise InputError(
                f"{path}: table {number} has {len(table):,} entries, its pattern {write_pattern(pattern)} {wanted:,}"
                + ("" if numbering.base else " (or another power: 15^cells, …)")
            )
        bases.append(fitting[0])
    if len(set(bases)) > 1:
        raise InputError(
            f"{path}: its tables are in different bases ({', '.join(map(str, bases))}) for these patterns"
        )
    return bases


def _sizes(tables: list[StoredTable]) -> str:
    sizes = [f"{len(table):,}" for table in tables[:4]]
    return "of " + ", ".join(dict.fromkeys(sizes)) + (", …" if len(tables) > 4 else "") + " entries"


FORMATS = (*READERS, "tilesage")


def format_by_name(path: Path) -> str:
    """The format that the name of a file to write suggests."""
    if path.suffix == ".safetensors":
        return "tilesage"
    if path.suffix == ".w":
        return "tdl2048"
    known = {"weights.bin": "course", "2048.bin": "demo"}
    if path.name in known:
        return known[path.name]
    raise InputError(
        f"the name {path.name} does not say what to write: add --to {', --to '.join(FORMATS)}, or name it "
        "….safetensors, ….w, weights.bin or 2048.bin"
    )
