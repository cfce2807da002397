"""Weights from and to other programs: whose file is it, what is in it, and is all of it true.

Four formats, little-endian, none with a magic word:

- `course`: u32 number of tables; a table is a u64 length and float32 × length.
- `course64`: the same with a u64 number of tables, as the Python port writes it.
- `demo`: u64 number of tables; a table is an i32 length of the name, the name (`6-tuple pattern 012345`), a u64
  length and float32 × length.
- `tdl2048`: u8 0, u32 number of tables; a table is a u8 4, eight bytes of name, then fields until a u16 0. A field is
  a u16 (bytes a number), a u64 (how many) and the numbers; the first holds the weights, later ones the memory of TC.

A file is walked table by table before anything is read: every length it states must fit into its own size, and the
last table must end where the file ends. Tables stay on disk (memory maps) until they are needed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.networks.patterns import Pattern, parse_pattern, write_pattern

MOST_TABLES = 4096
LONGEST_NAME = 256
TDL_FILE, TDL_TABLE, TDL_END = 0, 4, 0  # code bytes of TDL2048+ files
TDL_NUMBERS = {2: np.float16, 4: np.float32, 8: np.float64}


@dataclass(frozen=True)
class StoredTable:
    """One table of a file, still on disk."""

    values: Array  # [length] float32 (tdl2048: float16 and float64 too)
    pattern: Pattern | None = None  # where the file names it

    def __len__(self) -> int:
        return len(self.values)


class _Broken(Exception):
    """The file is not what this walk takes it for."""


class _Walk:
    """Steps through the bytes of a file; no step can leave it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            size = path.stat().st_size
            self.data: Array = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except ValueError:
            raise InputError(f"cannot read {path}: it is not a file of weights") from None
        self.at = 0

    def take(self, size: int) -> Array:
        if not 0 <= size <= len(self.data) - self.at:
            raise _Broken(f"cut short at byte {len(self.data)}, or not such a file")
        part = self.data[self.at : self.at + size]
        self.at += size
        return part

    def number(self, kind: str) -> int:
        return int(struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)).tobytes())[0])

    def count(self, kind: str) -> int:
        """The number of tables: at least one, and no more than have room in the file."""
        count = self.number(kind)
        if not 1 <= count <= MOST_TABLES:
            raise _Broken(f"it would hold {count} tables")
        return count

    def numbers(self, length: int, kind: Any = np.float32) -> Array:
        return self.take(length * np.dtype(kind).itemsize).view(kind)

    def end(self) -> None:
        if self.at != len(self.data):
            raise _Broken(f"{len(self.data) - self.at} bytes follow the last table")


def _course(walk: _Walk, count: str) -> Iterator[StoredTable]:
    for _ in range(walk.count(count)):
        yield StoredTable(walk.numbers(walk.number("Q")))


def _demo(walk: _Walk) -> Iterator[StoredTable]:
    for _ in range(walk.count("Q")):
        length = walk.number("i")
        if not 1 <= length <= LONGEST_NAME:
            raise _Broken(f"a name of {length} bytes")
        name = walk.take(length).tobytes().decode("ascii", "replace")
        found = re.fullmatch(r"\d+-tuple pattern ([0-9a-fA-F]+)", name)
        if not found:
            raise _Broken(f"{name!r} names no pattern: '6-tuple pattern 012345' would")
        yield StoredTable(walk.numbers(walk.number("Q")), parse_pattern(found[1]))


def _tdl2048(walk: _Walk) -> Iterator[StoredTable]:
    if walk.number("B") != TDL_FILE:
        raise _Broken("it does not begin with a zero")
    for _ in range(walk.count("I")):
        if walk.number("B") != TDL_TABLE:
            raise _Broken("a table does not begin with a 4")
        sign = walk.take(8).tobytes()
        fields = []
        while size := walk.number("H"):
            if size not in TDL_NUMBERS:
                raise _Broken(f"numbers of {size} bytes")
            fields.append(walk.numbers(walk.number("Q"), TDL_NUMBERS[size]))
        if not fields:
            raise _Broken("a table without weights")
        yield StoredTable(fields[0], parse_pattern(_tdl_name(sign, len(fields[0]))))


def _tdl_name(sign: bytes, length: int) -> str:
    """The cells of a table: a number in hex with its width, or text. An old width of 0 follows from the length."""
    number, width, rest = struct.unpack("<IHH", sign)
    if rest == 0:
        return f"{number:0{min(width or (length.bit_length() - 1) // 4, 8)}x}"
    name = sign.decode("ascii", "replace").split(" ")[0]
    if not re.fullmatch("[0-9a-fA-F]+", name):
        raise _Broken(f"{name!r} names no pattern (stages and features of another kind are not read)")
    return name


READERS: dict[str, Callable[[_Walk], Iterator[StoredTable]]] = {
    "demo": _demo,
    "tdl2048": _tdl2048,
    "course": lambda walk: _course(walk, "I"),
    "course64": lambda walk: _course(walk, "Q"),
}


def _walk_through(path: Path, form: str) -> list[StoredTable]:
    walk = _Walk(path)
    try:
        tables = list(READERS[form](walk))
        walk.end()
    except InputError as mistake:
        raise InputError(f"{path}: {mistake}") from None
    return tables


def read_tables(path: Path, form: str | None = None) -> tuple[str, list[StoredTable]]:
    """The format and the tables of a file; without `form`, the one format that explains every byte."""
    if form is not None:
        try:
            return form, _walk_through(path, form)
        except _Broken as reason:
            raise InputError(f"{path} is not a {form} file: {reason}") from None
    for name in READERS:
        try:
            return name, _walk_through(path, name)
        except _Broken:
            continue
    raise InputError(
        f"{path} is not a file of weights, or it is cut short: its size fits none of {', '.join(READERS)} "
        "(--from says which it should be, and then what is wrong with it)"
    )


HEADS: dict[str, Callable[[int], bytes]] = {
    "demo": lambda count: struct.pack("<Q", count),
    "tdl2048": lambda count: struct.pack("<BI", TDL_FILE, count),
    "course": lambda count: struct.pack("<I", count),
    "course64": lambda count: struct.pack("<Q", count),
}


def write_tables(path: Path, form: str, tables: Iterable[tuple[Pattern, Array]], count: int) -> None:
    """Write tables one by one, under a temporary name until all are there."""
    with written(path) as file:
        file.write(HEADS[form](count))
        for pattern, values in tables:
            file.write(_head(form, pattern, len(values)))
            file.write(np.ascontiguousarray(values, np.float32).data.cast("B"))
            if form == "tdl2048":
                file.write(struct.pack("<H", TDL_END))


def _head(form: str, pattern: Pattern, length: int) -> bytes:
    """What stands before the numbers of a table."""
    name = write_pattern(pattern)
    if form == "demo":
        text = f"{len(pattern)}-tuple pattern {name}".encode()
        return struct.pack("<i", len(text)) + text + struct.pack("<Q", length)
    if form == "tdl2048":
        return struct.pack("<BIHHHQ", TDL_TABLE, int(name, 16), len(name), 0, 4, length)
    return struct.pack("<Q", length)
