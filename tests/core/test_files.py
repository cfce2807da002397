"""Files that one process has for itself, on systems of both kinds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilesage.core import files


def test_a_lock_is_for_one_process_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    program = f"file = open({str(path)!r}, 'a+'); print(lock(file), flush=True); input()"
    words = [sys.executable, "-c", f"from tilesage.core.files import lock; {program}"]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
        path.open("a+") as mine,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert not files.lock(mine)
        other.kill()
        other.wait()
        assert files.lock(mine)


def test_a_system_without_flock_locks_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls that Windows gets: one byte that nobody reads, without waiting; a refusal is a lock that is taken."""
    calls: list[tuple[int, int, int]] = []

    def locking(number: int, mode: int, size: int) -> None:
        calls.append((os.lseek(number, 0, os.SEEK_CUR), mode, size))
        if len(calls) > 1:
            raise PermissionError

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with (tmp_path / "run.lock").open("a+") as file:
        monkeypatch.setattr(files, "os", SimpleNamespace(name="nt", lseek=os.lseek, SEEK_SET=os.SEEK_SET))
        assert [files.lock(file), files.lock(file)] == [True, False]
    assert calls == [(files.FAR_BYTE, 2, 1)] * 2


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")
    path.chmod(0o600)
    with files.written(path, text=True) as file:
        file.write("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
