"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .errors import Mistake


@contextlib.contextmanager
def written(path: Path | str, text: bool = False) -> Iterator[IO[Any]]:
    """A file to write to, under a temporary name beside `path` until all of it is on the disk.

    What cannot be replaced by a file, a terminal or a pipe, is written to directly. Whatever goes wrong leaves the
    old file as it was; what the disk has against it becomes a Mistake.
    """
    path = Path(path)
    if not path.name or path.is_dir():
        raise Mistake(f"cannot write {str(path)!r}: name a file, not a folder")
    special = path.exists() and not path.is_file()
    place = path if special else path.with_name(f".{path.name[:200]}.{uuid.uuid4().hex[:8]}")
    try:
        with place.open("w" if text else "wb", encoding="utf-8" if text else None) as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            place.replace(path)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Mistake(f"cannot write {path}: {error.strerror}") from None
    finally:
        if not special:
            with contextlib.suppress(OSError):
                place.unlink()
