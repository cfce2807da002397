"""The door: help that is quick, errors that are one line with status 2, results as tables and as JSON."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from afterstate import cli
from afterstate.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    out, err = capsys.readouterr()
    return status, out, err


def test_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for name in cli.available():
        assert f"\n  {name} " in out
    assert "examples:" in out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_there_and_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in cli.available()
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code in (0, None)
    out = capsys.readouterr().out
    assert "usage:" in out
    assert f"afterstate {name}" in out


def test_help_and_import_load_nothing_heavy() -> None:
    check = (
        "import sys, afterstate, afterstate.cli; afterstate.cli.main(['--help']);"
        "sys.exit(any(name in sys.modules for name in ('numba', 'numpy', 'rich', 'matplotlib', 'tyro')))"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0


def test_the_help_of_every_command_loads_nothing_heavy() -> None:
    """One process asks for the help of every command, and tells which one was the first to bring something along."""
    check = """
import contextlib, io, json, sys
from afterstate import cli

helped, loaded = [], {}
for name in cli.COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        cli.main([name, "--help"])
    if "usage:" in out.getvalue():
        helped.append(name)
    for module in ("numba", "numpy", "matplotlib", "PIL", "starlette"):
        if module in sys.modules:
            loaded.setdefault(module, name)
print(json.dumps([helped, loaded]))
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [list(cli.COMMANDS), {}]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("fly",), "unknown command 'fly'"),
        (("train", "chess"), "unknown game 'chess'"),
        (("train", "--game", "threes", "2048"), "two games: 2048 and --game threes"),
        (("train", "--by-hint"), "2048 shows no hint"),
        (("train", "threes", "--fold", "4097"), "--fold takes a tile"),
        (("evaluate", "--wings", "2"), "--wings"),
        (("evaluate", "--games", "many"), "--games"),
        (("evaluate", "--games", "0", "--agent", "random"), "from 1 on"),
        (("evaluate", "--agent", "oracle", "--game", "2048"), "oracle"),
        (("evaluate", "--agent", "random", "--game", "2084"), "unknown game '2084'"),
        (("evaluate", "no-such-model", "--games", "1"), "no model 'no-such-model'"),
        (("evaluate", "--agent", "random", "--games", "1", "--save", "no/such/folder/x.txt"), "no/such/folder"),
        (("evaluate", "--agent", "random", "--games", "1", "--seed", "-5"), "seed"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    assert part in err
    assert err.startswith("afterstate: ")
    assert err.count("\n") == 1


def test_evaluate_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    status, out, _ = run(capsys, "evaluate", "--agent", "random", "--games", "50", "--json", str(file))
    assert status == 0
    assert "50 games of 2048" in out
    result = json.loads(file.read_text())
    assert {"game", "agent", "model", "network", "games", "seed", "mean", "stderr", "max", "moves"} <= set(result)
    assert result["games"] == 50
    assert result["moves_per_second"] > 0
    assert result["tiles"]["64"]["reach"] >= result["tiles"]["128"]["reach"] > 0


def test_json_on_standard_output_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "evaluate", "--agent", "random", "--games", "5", "--json", "-")
    assert json.loads(out)["games"] == 5
    _, out, _ = run(capsys, "games", "--json", "-")
    assert [game["name"] for game in json.loads(out)["games"]] == ["2048", "threes", "threes-phone"]


@pytest.mark.parametrize("module", ["afterstate", "afterstate.games", "afterstate.values", "afterstate.learning"])
def test_public_names_are_the_documented_ones(module: str) -> None:
    public = importlib.import_module(module)
    for name in public.__all__:
        assert getattr(public, name) is not None
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
        public.nonsense  # noqa: B018


@pytest.mark.parametrize("words", [("threes",), ("--game", "threes")])
def test_flags_of_a_game_are_read_for_the_game_that_is_named(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ("--by-hint", "--stages", "192", "--network", "tiny", "--games", "50", "--threads", "1", "--quiet")
    status, _, err = run(capsys, "train", *words, *flags, "--out", str(tmp_path / "run"))
    assert (status, err) == (0, "")
    assert 'game = "threes"' in (tmp_path / "run" / "run.toml").read_text()


def test_bench_measures_play_and_training(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = run(capsys, "bench", "--seconds", "0.05", "--threads", "2", "--json", str(tmp_path / "b.json"))
    assert status == 0
    figures = json.loads((tmp_path / "b.json").read_text())["figures"]
    assert len(figures) == len(out.splitlines()) == 6
    for name, found in figures.items():
        assert name in out
        assert min(found["moves_per_second"], found["on_2_threads"]) > 1000


def test_downgrade_tries_tiles_and_writes_nothing_when_dry(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "run")
    words = ("--network", "tiny", "--games", "300", "--threads", "1", "--quiet", "--out", out)
    assert run(capsys, "train", "2048", *words)[0] == 0
    before = (tmp_path / "run" / "last.safetensors").read_bytes()
    status, text, err = run(capsys, "downgrade", out, "--games", "40", "--dry", "--json", "-")
    found = json.loads(text)
    assert (status, found["kept"]) == (0, False)
    assert found["trials"][0]["threshold"] is None
    assert len(found["trials"]) > 1
    assert "no downgrading" in err
    assert "nothing written" in err
    assert (tmp_path / "run" / "last.safetensors").read_bytes() == before
