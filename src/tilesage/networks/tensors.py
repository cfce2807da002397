"""Files of arrays in the safetensors format: written whole or not at all, checked before they are believed.

A table of a network is mostly fresh: a run of one second meets two entries in a hundred. So tables may be stored
sparse. What is known of an entry, its weight and what a rule remembers of it, is a row. Rows are cut into segments,
of each of which the usual row is kept once, and into words of 64, of which only those are kept that hold an unusual
one: the number of the word (`places`), which of its rows are unusual (`masks`), and those rows (`values`).
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.files import written

LONGEST_HEADER = 1 << 23  # bytes: a checkpoint takes 3 kB for each thread
LARGEST = 1 << 56  # bytes of an array, if none of its sides were 0
DTYPES: dict[str, Any] = {
    "F32": np.float32,
    "F64": np.float64,
    "I64": np.int64,
    "U8": np.uint8,
    "U32": np.uint32,
    "U64": np.uint64,
}
WORD = 64  # rows
SEGMENTS, SHORTEST = 256, 1024  # about so many of them, of so many rows or more
SAMPLES = 101  # rows of a segment, among which the usual one is found
TOGETHER = 1 << 14  # words that are unpacked at once
SHARE = 0.5  # tables of which more than this is unusual are stored as they are

# --- sparse arrays -----------------------------------------------------------------------------------------------


class Sparse(NamedTuple):
    """An array of which only the unusual rows are kept."""

    shape: tuple[int, ...]
    places: Array  # [words] uint32, ascending
    masks: Array  # [words] uint64, bit k is row k of the word
    values: Array  # [unusual rows, numbers of the array in a row]
    usual: Array  # [segments, numbers of the array in a row]


Stored = Array | Sparse
Run = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]  # map, or that of several threads


def _length(rows: int) -> int:
    """Rows of a segment, a power of two."""
    return max(SHORTEST, 1 << (rows // SEGMENTS).bit_length())


def sparse(arrays: Mapping[str, Array], rows: int, run: Run = map) -> dict[str, Stored]:
    """Copies of arrays, each with so many rows: sparse, unless that would not make them smaller."""
    tables, length = [array.reshape(rows, -1) for array in arrays.values()], _length(rows)
    parts = list(run(lambda first: _segment(tables, first, length), range(0, rows, length)))
    if sum(len(part[2]) for part in parts) > SHARE * rows:
        return {name: array.copy() for name, array in arrays.items()}
    places, masks, *columns = (np.concatenate(column) for column in zip(*parts))
    found = zip(arrays.items(), columns[::2], columns[1::2])
    return {name: Sparse(array.shape, places, masks, values, usual) for (name, array), values, usual in found}


def _segment(tables: list[Array], first: int, length: int) -> list[Any]:
    """Places, masks, and the values and the usual row of each table, from this row on."""
    parts = [table[first : first + length] for table in tables]
    unusual = np.zeros(-(-len(parts[0]) // WORD) * WORD, np.bool_)
    usual_rows = []
    for part in parts:
        bits = part.view(f"u{8 if part.shape[1] * part.itemsize == 8 else part.itemsize}")  # -0 is not 0, NaN is NaN
        found, counts = np.unique(bits[:: max(1, len(bits) // SAMPLES)], axis=0, return_counts=True)
        usual = found[counts.argmax()]
        for k, number in enumerate(usual):
            unusual[: len(part)] |= bits[:, k] != number
        usual_rows.append(usual[None].view(part.dtype))
    words = np.packbits(unusual, bitorder="little").view("<u8")
    used = np.flatnonzero(words)
    columns = [column for part, row in zip(parts, usual_rows) for column in (part[unusual[: len(part)]], row)]
    return [(used + first // WORD).astype(np.uint32), words[used], *columns]


def unpacked(stored: Sparse, path: Path) -> Array:
    """The whole array. What the parts say may be anything, as they are from a file."""
    (count, width), size = stored.values.shape, math.prod(stored.shape)
    rows = np.zeros((size // max(1, width), width), stored.values.dtype)  # pages that stay 0 take no memory
    length = _length(len(rows))
    fits = rows.size == size and stored.usual.shape == (-(-len(rows) // length), width)
    places, masks = stored.places.astype(np.int64), np.ascontiguousarray(stored.masks, "<u8").view(np.uint8)
    done = 0
    if fits and len(masks) == 8 * len(places):
        for number in np.flatnonzero(np.ascontiguousarray(stored.usual).view(np.uint8).any(axis=1)):
            rows[number * length : (number + 1) * length] = stored.usual[number]
        for first in range(0, len(places), TOGETHER):
            bits = np.flatnonzero(np.unpackbits(masks[8 * first : 8 * (first + TOGETHER)], bitorder="little"))
            index = places[first + bits // WORD] * WORD + bits % WORD
            if done + len(index) > count or (len(index) and int(index.max()) >= len(rows)):
                break
            rows[index] = stored.values[done : done + len(index)]
            done += len(index)
    if not fits or done != count:
        raise InputError(f"{path} is damaged: its tables do not fit together")
    return rows.reshape(stored.shape)


# --- files -------------------------------------------------------------------------------------------------------


def write_tensors(path: Path, tensors: Mapping[str, Stored], metadata: Mapping[str, str]) -> None:
    """A file of these arrays: a header of names, types and places, then the bytes."""
    names = {np.dtype(kind): name for name, kind in DTYPES.items()}
    parts, shapes = _parts(tensors)
    header: dict[str, Any] = {"__metadata__": dict(metadata) | ({"sparse": json.dumps(shapes)} if shapes else {})}
    place = 0
    for name, part in parts.items():
        header[name] = {
            "dtype": names[part.dtype],
            "shape": list(part.shape),
            "data_offsets": [place, place + part.nbytes],
        }
        place += part.nbytes
    text = json.dumps(header).encode()
    if len(text) > LONGEST_HEADER:
        raise InputError(f"cannot write {path}: it would have too many parts to be read again")
    text += b" " * (-(len(text) + 8) % 64)  # so that the weights start on a cache line
    with written(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts.values():
            if part.size:
                file.write(np.ascontiguousarray(part).data.cast("B"))


def _parts(tensors: Mapping[str, Stored]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Everything by the name in the file; of sparse arrays their shapes, and whose places and masks are theirs."""
    parts: dict[str, Array] = {}
    shapes: dict[str, Any] = {}
    owners: dict[int, str] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, Sparse):
            owner = owners.setdefault(id(tensor.masks), name)
            shapes[name] = [owner, *tensor.shape]
            parts |= {f"{owner}.places": tensor.places, f"{owner}.masks": tensor.masks}
            parts |= {f"{name}.values": tensor.values, f"{name}.usual": tensor.usual}
        else:
            parts[name] = tensor
    return parts, shapes


@dataclass(frozen=True)
class Tensors(Mapping[str, Array]):
    """The arrays of a file, each a memory map, or unpacked when it is asked for."""

    path: Path
    parts: Mapping[str, Mapping[str, Any]]  # by name: type, shape and place of what the file holds
    metadata: Mapping[str, str]
    start: int  # of the data
    shapes: Mapping[str, list[Any]]  # of sparse arrays: whose places and masks are theirs, and their shape
    limit: int  # bytes of one array: a small file may speak of an endless one

    @classmethod
    def open(cls, path: Path, kind: str, limit: int = 1 << 62) -> Tensors:
        """After checking that the header can be true."""
        parts, metadata, start = _read_header(path, kind)
        try:
            shapes = json.loads(metadata.pop("sparse", "{}"))
            for owner, *shape in shapes.values():
                if not all(type(n) is int and 0 <= n <= limit for n in shape) or type(owner) is not str:
                    raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{path} is damaged: its sparse tables make no sense") from None
        return cls(path, parts, metadata, start, shapes, limit)

    def kind_of(self, name: str) -> tuple[Any, tuple[int, ...]]:
        """Type and shape of an array; none of nothing for one that is not there."""
        part = self.parts.get(f"{name}.values" if name in self.shapes else name)
        if part is None:
            return None, ()
        return DTYPES[part["dtype"]], tuple(self.shapes[name][1:] if name in self.shapes else part["shape"])

    def stored(self, name: str) -> Stored:
        """An array as it lies in the file."""
        if name not in self.shapes:
            return self._map(name)
        owner, *shape = self.shapes[name]
        places, masks, values, usual = (
            self._map(part) for part in (f"{owner}.places", f"{owner}.masks", f"{name}.values", f"{name}.usual")
        )
        kinds = places.dtype == np.uint32 and masks.dtype == np.uint64 and values.dtype == usual.dtype
        if not kinds or places.ndim != 1 or masks.ndim != 1 or values.ndim != 2:
            raise InputError(f"{self.path} is damaged: its tables do not fit together")
        if math.prod(shape) * values.itemsize > self.limit:
            raise InputError(f"{self.path} is damaged: {name} would be larger than it can be")
        return Sparse(tuple(shape), places, masks, values, usual)

    def __getitem__(self, name: str) -> Array:
        found = self.stored(name)
        return unpacked(found, self.path) if isinstance(found, Sparse) else found

    def __contains__(self, name: object) -> bool:
        return name in self.shapes or name in self.parts

    def __iter__(self) -> Iterator[str]:
        belongs = {f"{owner}.{part}" for owner in self.shapes for part in ("places", "masks", "values", "usual")}
        return iter([*self.shapes, *(name for name in self.parts if name not in belongs)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _map(self, name: str) -> Array:
        if name not in self.parts:
            raise InputError(f"{self.path} is damaged: {name} is missing")
        part = self.parts[name]
        kind = DTYPES[part["dtype"]]
        if 0 in part["shape"]:
            return np.zeros(part["shape"], kind)
        return np.memmap(self.path, kind, "r", self.start + part["data_offsets"][0], tuple(part["shape"]))


def _read_header(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, str], int]:
    """Parts, metadata and the place of the data, after checking that all of it can be true."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= LONGEST_HEADER + 64:
                raise InputError(f"{path} is not a model: tilesage writes .safetensors files")
            if length > size - 8:
                raise InputError(f"{path} is cut short: {length + 8 - size} bytes of its header alone are missing")
            header = json.loads(file.read(length))
        metadata = header.pop("__metadata__")
        if metadata.get("format") != kind:
            raise InputError(f"{path} is a safetensors file, but not an {kind}")
        if not all(type(value) is str for value in metadata.values()):
            raise ValueError
        _check_places(path, header, size - 8 - length)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a model: its header makes no sense") from None
    return header, metadata, 8 + length


def _check_places(path: Path, header: dict[str, Any], room: int) -> None:
    for name, tensor in header.items():
        begin, end = places = tensor["data_offsets"]
        shape = tensor["shape"]
        whole = all(type(n) is int and n >= 0 for n in (*places, *shape)) and len(shape) <= 8
        whole = whole and 8 * math.prod(filter(None, shape)) < LARGEST
        kind = DTYPES.get(tensor["dtype"])
        if kind is None or not whole or end - begin != np.dtype(kind).itemsize * math.prod(shape):
            raise InputError(f"{path}: tensor {name!r} does not fit its description")
        if end > room:
            raise InputError(f"{path} is cut short: {end - room} bytes are missing")
