"""Solved endgames on disk: the same tables as solved, and nothing believed that is not whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilesage import games
from tilesage.search.game_2048 import solving
from tilesage.search.game_2048 import table_cache as shelf
from tilesage.search.game_2048.endgames import BLOCK, SNAKE, Endgames, kind_of
from tilesage.search.game_2048.solving import name_of, solve

GAME = games.get("2048")
TABLES = [(SNAKE, 3), (BLOCK, 2)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILESAGE_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(shelf, "SMALLEST", 1)
    return tmp_path / "kept"


def solved() -> Endgames:
    return solve(GAME, TABLES, threads=1, kept=True)


def forbid_solving(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        pytest.fail("solved again")

    monkeypatch.setattr(solving, "solve_table", never)


def test_the_second_time_tables_come_from_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, plain = solved(), solve(GAME, TABLES, threads=1)
    assert np.array_equal(first.slides, plain.slides)
    assert sorted(path.name.split("-")[1:4] for path in folder.iterdir()) == [
        ["012376", "8", "0.1"],
        ["123765", "4", "0.1"],
    ]
    forbid_solving(monkeypatch)
    for again, before in zip(solved(), first):
        assert np.array_equal(again, before)


def cut_short(data: bytearray) -> bytearray:
    return data[: len(data) // 2]


def a_bit_turned(data: bytearray) -> bytearray:
    data[-100] ^= 16
    return data


def no_header(data: bytearray) -> bytearray:
    return bytearray(b"\xff" * len(data))


def longer(data: bytearray) -> bytearray:
    """The header tells of more than the file holds."""
    return bytearray(data).replace(b'"shape": [', b'"shape": [1')


def nothing(data: bytearray) -> bytearray:
    return bytearray()


@pytest.mark.parametrize("damage", [cut_short, a_bit_turned, no_header, longer, nothing])
def test_a_damaged_file_is_solved_anew(folder: Path, damage: object) -> None:
    first = solved()
    for path in folder.iterdir():
        path.write_bytes(damage(bytearray(path.read_bytes())))  # type: ignore[operator]
    assert np.array_equal(solved().slides, first.slides)
    table = shelf.path_of(name_of(GAME, *TABLES[0]))
    assert table is not None
    assert shelf.take(name_of(GAME, *TABLES[0]), np.zeros(first.slides.size, np.uint8)) is False
    part = int(first.offsets[first.places[kind_of(BLOCK), 2, 1]]) // 2
    assert shelf.take(name_of(GAME, *TABLES[0]), np.zeros(part, np.uint8))  # whole again


def test_other_rules_never_meet_an_old_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved()
    before = set(folder.iterdir())
    monkeypatch.setattr(shelf, "rules_digest", lambda: "other")
    assert not shelf.take(name_of(GAME, *TABLES[0]), np.zeros(8, np.uint8))
    solved()
    after = set(folder.iterdir())
    assert len(after) == len(before)
    assert not before & after  # what nobody reads any more is gone
    rarer = games.get("2048", four_rate=0.2)
    assert name_of(rarer, *TABLES[0]) != name_of(GAME, *TABLES[0])


def test_small_tables_and_full_disks_leave_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = solve(GAME, TABLES, threads=1)
    monkeypatch.setattr(shelf, "FREE", 1 << 60)
    assert np.array_equal(solved().slides, plain.slides)
    monkeypatch.setattr(shelf, "FREE", 1)
    monkeypatch.setattr(shelf, "SMALLEST", 1 << 24)
    assert np.array_equal(solved().slides, plain.slides)
    assert list(folder.iterdir()) == []
    (folder.parent / "file").write_text("no folder")
    monkeypatch.setattr(shelf, "SMALLEST", 1)
    monkeypatch.setenv("TILESAGE_CACHE", str(folder.parent / "file"))
    assert np.array_equal(solved().slides, plain.slides)


def test_only_what_will_be_there_is_promised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "SMALLEST", 1 << 29)
    monkeypatch.setattr(shelf, "FREE", 0)
    assert shelf.promise([1 << 30, 1 << 30, 1]) == f" (kept in {folder}, 2.0 GB)"
    assert shelf.promise([100, 200]) == ""
    monkeypatch.setattr(shelf, "FREE", 1 << 60)
    assert shelf.promise([1 << 30]) == ""
    monkeypatch.setenv("TILESAGE_CACHE", "")
    assert shelf.promise([1 << 30]) == ""


def test_where_tables_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESAGE_CACHE", "")
    assert shelf.folder() is None
    assert shelf.path_of("x") is None
    monkeypatch.delenv("TILESAGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert shelf.folder() == Path("/somewhere/tilesage")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert shelf.folder() == Path("/home/me/.cache/tilesage")


def test_a_player_says_where_they_are_kept_and_starts_at_once_the_next_time(tmp_path: Path) -> None:
    """The real command, with the smallest tables that are kept."""
    words = ["hint", "4096 2048 1024 512 / 0 0 128 256 / 0 0 0 2 / 2 0 0 4", "--agent", "best,endgames=128"]
    environment = {**os.environ, "TILESAGE_CACHE": str(tmp_path / "kept"), "TILESAGE_QUIET": ""}
    runs = [
        subprocess.run([sys.executable, "-m", "tilesage", *words], env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0]
    assert f"191 million positions … (kept in {tmp_path / 'kept'}, 0.1 GB)" in runs[0].stderr
    assert "solving" not in runs[1].stderr
    assert runs[0].stdout == runs[1].stdout
