"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tilesage.core.errors import InputError

FAR_BYTE = 1 << 30
MOST_LINKS = 40  # one after another, as the system has it


def lock(file: IO[Any]) -> bool:
    """Take an open file for this process alone, until it is closed or the process dies; False if another has it."""
    try:
        if os.name == "nt":
            windows: Any = importlib.import_module("msvcrt")
            os.lseek(file.fileno(), FAR_BYTE, os.SEEK_SET)  # a locked byte cannot be read: take one that nobody reads
            windows.locking(file.fileno(), windows.LK_NBLCK, 1)
        else:
            posix: Any = importlib.import_module("fcntl")
            posix.flock(file, posix.LOCK_EX | posix.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def written(path: Path | str, text: bool = False, buffering: int = -1) -> Iterator[IO[Any]]:
    """A file to write to, under a temporary name beside `path` until all of it is on the disk.

    What cannot be replaced by a file, a terminal or a pipe, is written to directly, and so is what is open already
    (/dev/stdout). A link stays a link: the file that it leads to is written. Whatever goes wrong leaves the old file
    as it was; what the disk has against it becomes an InputError.
    """
    path = _followed(Path(path))
    if not path.name or path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: name a file, not a folder")
    opened = _is_open(path)
    special = opened or (path.exists() and not path.is_file())
    place = path if special else path.with_name(f".{path.name[:200]}.{uuid.uuid4().hex[:8]}")
    try:
        target = os.dup(int(path.name)) if opened else place
        with open(target, "w" if text else "wb", buffering, encoding="utf-8" if text else None) as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if path.is_file() and not special:
            shutil.copymode(path, place)
        if not special:
            place.replace(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        if not special:
            with contextlib.suppress(OSError):
                place.unlink()


def _followed(path: Path) -> Path:
    """Where a link leads, link by link, up to those that stand for an open file."""
    for _ in range(MOST_LINKS):
        path = path.parent.resolve() / path.name
        if _is_open(path) or not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return path


def _is_open(path: Path) -> bool:
    """Is it one of the open files of this process, such as what /dev/stdout leads to?"""
    return path.parent == Path(f"/proc/{os.getpid()}/fd") and path.name.isdecimal()
