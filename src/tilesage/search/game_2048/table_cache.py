"""Solved endgames on disk: minutes of work the first time, a second or two after that.

One file a table, in the folder that TILESAGE_CACHE names, or else in the user's cache folder; with TILESAGE_CACHE
set to nothing, none are kept. A file's name tells the table and the rules by which it was solved, so a change of the
rules never meets an old one. A file that is missing, cut short or damaged is solved anew; a disk without room costs
nothing but the work next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import board, exact, g2048
from tilesage.networks.files import SUFFIX
from tilesage.networks.tensors import Tensors, write_tensors

FORMAT = "tilesage-endgames"
SMALLEST = 1 << 24  # bytes of a table that is worth keeping: a smaller one is solved in a second or two
FREE = 2  # so many times a table's size must be free on the disk


def folder() -> Path | None:
    """Where tables are kept, if they are."""
    named = os.environ.get("TILESAGE_CACHE")
    if named is not None:
        return Path(named) if named else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "tilesage"


@cache
def rules_digest() -> str:
    """Other for every change of what solves."""
    here = Path(__file__).parent
    rules = (Path(str(module.__file__)) for module in (g2048, exact, board))
    sources = here / "endgames.py", here / "solving.py", *rules
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def path_of(table: str) -> Path | None:
    place = folder()
    return place / f"endgames-{table}-{rules_digest()}{SUFFIX}" if place else None


def take(table: str, slides: Array) -> bool:
    """Fill in a table from its file; False if that cannot be done, and the table is empty."""
    path = path_of(table)
    if path is None or not path.exists():
        return False
    with contextlib.suppress(InputError, OSError, ValueError, KeyError, TypeError):
        kept = Tensors.open(path, FORMAT)
        np.copyto(slides, kept["slides"])
        if zlib.crc32(slides.data) == int(kept.metadata["crc"]):
            return True
    slides[:] = 0
    return False


def room_for(size: int) -> Path | None:
    """The folder for so many bytes, if tables are kept and the disk has room."""
    place = folder()
    with contextlib.suppress(OSError):
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            return place if shutil.disk_usage(place).free >= FREE * size else None
    return None


def promise(sizes: Iterable[int]) -> str:
    """What to tell people of tables that are about to be solved: where they will be, those that are worth it."""
    size = sum(size for size in sizes if size >= SMALLEST)
    place = room_for(size) if size else None
    return f" (kept in {place}, {gigabytes(size)})" if place else ""


def keep(table: str, slides: Array) -> None:
    """Write a table, if it is large enough and the disk has room, and clear away what older rules have left of it."""
    path = path_of(table)
    if path is None or slides.nbytes < SMALLEST or room_for(slides.nbytes) is None:
        return
    with contextlib.suppress(InputError, OSError):
        write_tensors(path, {"slides": slides}, {"format": FORMAT, "crc": str(zlib.crc32(slides.data))})
        for old in path.parent.glob(f"endgames-{table}-*{SUFFIX}"):
            if old != path:
                old.unlink()


def gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GB"
