"""The guide keeps its word: every command of its pages is run, with few games and the smallest network."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tilesage.cli import main

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(page.stem for page in GUIDE.glob("*.md") if page.stem != "README")
SMALLER = (  # what a command says, what the test makes of it
    (r"--games \d+", "--games 4"),
    (r"--network \S+", "--network tiny"),
    (r"--stages \d+", "--stages 64"),
    (r"(mcts|rollouts):\d+", r"\1:3"),
)


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", (GUIDE / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def smaller(command: str) -> list[str]:
    for said, made in SMALLER:
        command = re.sub(said, made, command)
    words = shlex.split(command)
    return [*words[1:], "--threads", "1"] if words[1] == "train" else words[1:]


@pytest.mark.parametrize("page", PAGES)
def test_commands(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = commands_of(page)
    assert commands
    for command in commands:
        assert command.startswith("tilesage ")
        assert main(smaller(command)) == 0, f"{command}: {capsys.readouterr().err}"
        assert capsys.readouterr().out
        if made := re.search(r"--out (\S+)", command):
            assert (tmp_path / made[1]).exists()


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_whole(page: str) -> None:
    text = (GUIDE / f"{page}.md").read_text(encoding="utf-8")
    assert f"({page}.svg)" in text
    assert (GUIDE / f"{page}.svg").exists()
    assert "**What to expect.**" in text
    assert f"({page}.md)" in (GUIDE / "README.md").read_text(encoding="utf-8")


def test_pictures_are_as_the_script_draws_them() -> None:
    script = ROOT / "scripts" / "draw_guide.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
