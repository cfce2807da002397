"""The benchmark of all players: nobody is left out, rows are kept and not played again, who is beaten is named."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tilesage.search.registry import REGISTRY


@pytest.fixture(scope="module")
def ladder() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "ladder.py"
    spec = importlib.util.spec_from_file_location("ladder", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_built_in_player_is_on_the_ladder(ladder: ModuleType) -> None:
    turns = list(ladder.in_turn())
    assert {re.split("[:,]", spec)[0] for _, spec in turns} == set(REGISTRY)
    assert len(set(turns)) == len(turns) == sum(len(specs) for specs, _ in ladder.KINDS.values())
    assert [kind for kind, _ in turns[: len(ladder.KINDS)]] == list(ladder.KINDS)
    assert len(ladder.COLOURS) == len(ladder.KINDS)


def row(agent: str, mean: float, stderr: float, ms: float, games: int = 100) -> dict[str, object]:
    return {"agent": agent, "mean": mean, "stderr": stderr, "ms_per_move": ms, "games": games}


def test_a_player_is_beaten_by_a_cheaper_and_better_one_beyond_doubt(ladder: ModuleType) -> None:
    rows = [row("a", 100, 3, 1), row("b", 90, 4, 2), row("c", 89, 4, 2), row("d", 300, 9, 3), row("e", 0, 0, 9, 2)]
    found = {one["agent"]: ladder.beaten(one, rows) for one in rows}
    assert found == {"a": None, "b": None, "c": rows[0], "d": None, "e": None}  # 11 > 2 * 5, and 10 is not


def test_rows_are_kept_and_not_played_again(
    ladder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    players = {"random": (["random"], "below all others"), "flat": (["rollouts:1", "rollouts:2"], "needs no network")}
    monkeypatch.setattr(ladder, "KINDS", players)
    words = ["ladder.py", "play", "2048", "--out", str(tmp_path), "--row", "60", "--workers", "2", "--most", "12"]
    monkeypatch.setattr(sys, "argv", words)
    ladder.main()
    rows = json.loads((tmp_path / "2048.json").read_text())
    assert [(one["agent"], one["seed"], one["complete"]) for one in rows] == [
        ("random", 1, True),
        ("rollouts:1", 1, True),
        ("rollouts:2", 1, True),
    ]
    assert [one["games"] for one in rows] == [12] * 3
    assert all(one["ms_per_move"] > 0 for one in rows)
    (tmp_path / "2048.json").write_text(json.dumps(rows[:2]))
    capsys.readouterr()
    ladder.main()
    assert len(capsys.readouterr().out.splitlines()) == 1
    files = ["--picture", str(tmp_path / "ladder.png"), "--page", str(tmp_path / "ladder.md")]
    monkeypatch.setattr(sys, "argv", ["ladder.py", "show", str(tmp_path), *files])
    monkeypatch.setattr(ladder, "COLOURS", ladder.COLOURS[:2])
    ladder.main()
    assert "| `rollouts:2` |" in capsys.readouterr().out
    assert (tmp_path / "ladder.png").stat().st_size > 1000
    assert "| `rollouts:2` |" in (tmp_path / "ladder.md").read_text(encoding="utf-8")
