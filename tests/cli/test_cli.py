"""The command: help that is quick, errors that are one line with status 2, results as tables and as JSON."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import tilesage
from tilesage import cli
from tilesage.cli import main
from tilesage.cli.flags import parse
from tilesage.games import names
from tilesage.learning.config import TrainConfig


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["evaluate", "--game", "/x"], "unknown game '/x'"),
        (["evaluate", "--game", "a**"], "unknown game 'a**'"),
        (["train", "2048", "--stages", "²", "--games", "1"], "a stage is a tile of 2048"),
        (["serve", "--host", "a" * 64 + ".x"], "is no name of a host"),
        (["replay", "RECORDS", "1" * 5000], "is no number of a game"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_odd_words_are_one_line(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.txt"
    records.write_text("")
    status, out, err = run(capsys, *(str(records) if word == "RECORDS" else word for word in words))
    assert (status, out) == (2, "")
    assert err.startswith("tilesage: ")
    assert err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["evaluate", "--agnet", "random"], "Unrecognized options: --agnet, random; perhaps you meant --agent"),
        (["evaluate", "--games", "many"], "--games is a whole number, not 'many'"),
        (["bench", "--seconds", "long"], "--seconds is a number, not 'long'"),
        (["reproduce"], "missing: D0, D1, D2, D3 or D4"),
        (["convert"], "a name); OUT: the file to write"),
        (["evaluate", "--style", "other"], "Expected one of ('ours', 'course', 'demo')"),
        (["evaluate", "--json", "nowhere/a.json"], "there is no folder nowhere"),
        (["evaluate", "--json", "-", "--save", "-"], "would be mixed"),
        (["train", "--seconds", "1", "--checkpoint", "nan"], "--checkpoint is a number above 0, not nan"),
        (["evaluate", ""], "an empty word stands after evaluate"),
        (["evaluate", "--agent", "random", "--json", ""], "an empty word stands after --json"),
        (["demo", "--games", "0"], "--games is a whole number from 1 on"),
        (["models", "--runs", "nowhere"], "nowhere is no folder of runs"),
        (["serve", "--think", "-1"], "--think is a number above 0, at most 3,600, not -1"),
        (["referee", "x", "--speed", "-5"], "--speed is a number"),
        (["referee", "x", "--speed", "inf"], "--speed is a number"),
        (["replay", "x", "--gif", "a.png"], "name a file that ends in .gif"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_flags_are_told_in_the_words_of_the_user(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert complaint in err


def test_what_to_type_next_can_be_typed(tmp_path: Path) -> None:
    """After `make demo` the command lies in .venv/bin, where no shell looks for it."""
    script = tmp_path / ".venv" / "bin" / "tilesage"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!{sys.executable}\nfrom tilesage.cli import command\nraise SystemExit(command())\n")
    script.chmod(0o755)
    places = {"/nowhere": ".venv/bin/tilesage", str(script.parent): "tilesage"}
    for number, (path, typed) in enumerate(places.items()):
        words = [".venv/bin/tilesage", "train", "--network", "012", "--games", "5", "--quiet", "--out", str(number)]
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert f"next: {typed} evaluate" in done.stdout, done.stderr


def test_records_through_a_pipe() -> None:
    """`--save -` is standard output, `referee -` standard input."""
    command = [sys.executable, "-m", "tilesage"]
    played = subprocess.run(
        [*command, "evaluate", "--agent", "random", "--games", "20", "--save", "-"], capture_output=True, check=False
    )
    assert played.returncode == 0
    assert b"20 games of 2048" in played.stderr
    judged = subprocess.run(
        [*command, "referee", "-", "--json", "-"], input=played.stdout, capture_output=True, check=False
    )
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["games"] == 20


def test_records_through_a_socket(tmp_path: Path) -> None:
    """Where standard input has no name that could be opened."""
    words = ["evaluate", "--agent", "random", "--games", "5", "--quiet", "--save", str(tmp_path / "records.txt")]
    assert main(words) == 0
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.sendall((tmp_path / "records.txt").read_bytes())
        mine.shutdown(socket.SHUT_WR)
        judged = subprocess.run([sys.executable, "-m", "tilesage", "referee", "-"], stdin=theirs, check=False)
    assert judged.returncode == 0


FULL_AFTER = """
import sys
from tilesage import cli
from tilesage.records import record

class Full:
    def __init__(self, file, room):
        self.file, self.room = file, room
    def write(self, data):
        if not self.room:
            raise OSError(28, "No space left on device")
        done = self.file.write(data[:self.room])
        self.room -= done
        return done
    def __getattr__(self, name):
        return getattr(self.file, name)

begin = record.Saving.__init__
record.Saving.__init__ = lambda saving, file, path: begin(saving, Full(file, 5000), path)
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_full_disk_costs_nothing_that_was_played(tmp_path: Path) -> None:
    """All games are played and counted, what was written stays, and only whole games of it."""
    path = tmp_path / "records.txt"
    path.write_text("older")
    words = ["evaluate", "--agent", "random", "--games", "40", "--save", str(path)]
    done = subprocess.run([sys.executable, "-c", FULL_AFTER, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "40 games of 2048" in done.stdout
    kept = len(path.read_text().splitlines())
    assert 1 < kept < 40
    complaint = f"cannot write on to {path}: No space left on device; it holds {kept} games, the rest was not kept"
    assert complaint in done.stderr
    assert main(["referee", str(path)]) == 0


def test_every_table_says_who_played_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for style in ("ours", "course", "demo"):
        words = ["evaluate", "--agent", "random", "--four-rate", "0.2", "--games", "3", "--seed", "9", "--quiet"]
        assert main([*words, "--style", style]) == 0
        assert capsys.readouterr().out.splitlines()[0] == "random plays 2048:0.2, seed 9"


def test_a_game_is_named_and_numbered_as_people_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", "--agent", "random", "--games", "3", "--quiet", "--save", "r.txt"]
    assert main(words) == 0
    for guess in (["2"], ["--number", "2"], ["--game", "2"], ["2", "--game", "2048"], ["best"], ["--game", "best"]):
        assert main(["replay", "r.txt", *guess, "--svg", "a.svg"]) == 0
        assert "best" in guess or "game 2, move" in capsys.readouterr().out
    assert main(["replay", "r.txt", "--game", "chess"]) == 2
    assert "unknown game 'chess'" in capsys.readouterr().err


def test_the_steps_of_a_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "reproduce", "D2", "--list", "--only", "group0-0.1", "--json", "-")
    assert status == 0
    steps = json.loads(out)["steps"]
    assert steps
    assert all(step["step"].startswith("group0-0.1") and not step["done"] for step in steps)
    assert run(capsys, "reproduce", "D2", "--list", "--only", "nope")[0] == 2


def test_results_go_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "out").symlink_to("/proc/self/fd/1")
    for name in ("link.json", "out"):
        words = [sys.executable, "-m", "tilesage", "games", "--json", str(tmp_path / name)]
        with (tmp_path / "printed").open("w") as printed:
            assert subprocess.run(words, stdout=printed, check=False).returncode == 0
    assert json.loads((tmp_path / "real.json").read_text())["games"]
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "out").is_symlink()
    text = (tmp_path / "printed").read_text()
    assert "one cell a slide" in text.replace(text[text.index("{") : text.rindex("}") + 1], "")
    assert json.loads(text[text.index("{") : text.rindex("}") + 1])["games"]


def test_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for name in cli.COMMANDS:
        assert f"\n  {name} " in out
    assert "examples:" in out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_there_and_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name in cli.COMMANDS
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code in (0, None)
    out = capsys.readouterr().out
    assert "usage:" in out
    assert f"tilesage {name}" in out


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_help_of_train_shows_its_flags_in_groups(encoding: str) -> None:
    """Every flag once, whatever the terminal can draw; what may be left out is shown by what it takes."""
    words = [sys.executable, "-m", "tilesage", "train", "--help"]
    out = subprocess.run(words, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": encoding})
    text = out.stdout.decode()
    titles = [line.strip(" ╭─╮") for line in text.splitlines() if re.match(r"╭| [a-z][\w ]*$", line)]
    assert titles == ["positional arguments", "options", "learning options", "cluster options"]
    learning = (f"--{field.name.replace('_', '-')}" for field in fields(TrainConfig))
    for flag in ("--help", "--recipe", "--out", "--json", *learning, "--on", "--ray-address"):
        assert len(re.findall(rf"^[│ ] (-h, )?{flag}\b(?!-)", text, re.MULTILINE)) == 1, flag
    assert "{None}" not in text
    assert "--out PATH" in text
    assert len({len(line) for line in text.splitlines() if line[:1] in tuple("╭│╰")}) <= 1, (
        "all frames have one width"
    )


def test_help_and_import_load_nothing_heavy() -> None:
    check = (
        "import sys, tilesage, tilesage.cli; tilesage.cli.main(['--help']);"
        "sys.exit(any(name in sys.modules for name in ('numba', 'numpy', 'rich', 'matplotlib', 'tyro')))"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0


def test_the_help_of_every_command_loads_nothing_heavy() -> None:
    """One process asks for the help of every command, and tells which one was the first to bring something along."""
    check = """
import contextlib, io, json, sys
from tilesage import cli

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
        (
            ("evaluate", "--agent", "random", "--game", "threes", "--four-rate", "0.5"),
            "threes has no parameter four_rate",
        ),
        (("watch", "--agent", "random", "--game", "2048", "--two-rate=0.5"), "it takes: four_rate"),
        (
            ("play", "--game", "fibonacci", "--two-rate", "2"),
            "share of twos among the new tiles, a number from 0 to 1",
        ),
        (("train", "threes", "--four-rate", "0.2"), "threes has no parameter four_rate"),
        (
            ("hint", "--four-rate", "many", "--agent", "random", "1.../..../..../...1"),
            "'four_rate=many' is no parameter",
        ),
        (("referee", "x.txt", "--for-rate", "0.2"), "--for-rate"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    assert part in err
    assert err.startswith("tilesage: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("game", "flag", "rate"), [("2048", "--four-rate", "1"), ("fibonacci", "--two-rate", "0")])
def test_parameters_of_a_game_are_flags(
    game: str, flag: str, rate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one kind of new tiles, which the referee calls unfair unless it is told."""
    file = str(tmp_path / f"{game}.txt")
    words = ("--game", game, "--agent", "random", "--games", "5", "--save", file, "--quiet")
    assert run(capsys, "evaluate", *words, flag, rate)[0] == 0
    assert run(capsys, "referee", file, f"{flag}={rate}")[0] == 0
    assert run(capsys, "referee", file, "--parameters", f"{flag[2:]}={rate}")[0] == 0
    status, out, _ = run(capsys, "referee", file)
    assert (status, "UNFAIR  tiles" in out) == (1, True)


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
    assert [game["name"] for game in json.loads(out)["games"]] == ["2048", "threes", "threes-phone", "fibonacci"]


@pytest.mark.parametrize("module", ["tilesage", "tilesage.games", "tilesage.networks", "tilesage.learning"])
def test_public_names_are_the_documented_ones(module: str) -> None:
    public = importlib.import_module(module)
    for name in public.__all__:
        assert getattr(public, name) is not None
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
        public.nonsense  # noqa: B018


def test_the_names_of_the_library_are_these() -> None:
    """What is added here is promised; what is taken away breaks somebody's program."""
    classes = ["Afterstate", "Agent", "Game", "Model", "Player", "Run", "State"]
    functions = ["agent", "evaluate", "game", "load_model", "save_model", "train"]
    others = ["AgentError", "InputError", "__version__", "batch_value", "compiled_value"]
    assert sorted(tilesage.__all__) == sorted(classes + functions + others)
    assert dir(tilesage) == sorted(tilesage.__all__)


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
    assert len(figures) == len(out.splitlines()) == len(names()) + 3
    for name, found in figures.items():
        assert name in out
        assert min(found["moves_per_second"], found["on_2_threads"]) > 1000


@contextlib.contextmanager
def ctrl_c_while_games_are_played() -> Iterator[None]:
    """One Ctrl-C, as soon as an evaluation answers it in its own way."""
    usual, over = signal.getsignal(signal.SIGINT), threading.Event()

    def press() -> None:
        while signal.getsignal(signal.SIGINT) is usual:
            if over.wait(0.001):
                return
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    finger.start()
    try:
        yield
    finally:
        over.set()
        finger.join()


def test_ctrl_c_ends_bench(capsys: pytest.CaptureFixture[str]) -> None:
    with ctrl_c_while_games_are_played():
        status, text, err = run(capsys, "bench", "--seconds", "2", "--threads", "1")
    assert (status, text, err) == (130, "", "stopped\n")


def test_a_full_disk_leaves_the_page_of_a_report_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    words = ("reproduce", "D2", "--out", str(tmp_path / "D2"), "--page", str(page), "--write")
    page.write_text("what was there before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        status, out, err = run(capsys, *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (status, out, err) == (2, "", f"tilesage: cannot write {page}: File too large\n")
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    assert page.read_text() == "what was there before"
    assert run(capsys, *words)[0] == 0
    assert page.read_text().startswith("# D2")


def test_warm_gives_every_command_a_small_task(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it runs are commands that are understood; here they are only read."""
    from tilesage.cli import warm

    asked: list[list[str]] = []

    def read(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        asked.append(words[3:])
        return subprocess.CompletedProcess(words, 0 if len(asked) > 1 else 2, "", "tilesage: no room\n")

    monkeypatch.setattr(warm.subprocess, "run", read)
    status, out, _ = run(capsys, "warm")
    assert status == 0
    assert [words[0] for words in asked] == ["hint", "evaluate", "train"] * 3
    lines = out.splitlines()
    assert len(lines) == len(asked)
    assert lines[0].endswith("tilesage: no room")
    for name, *words in asked:
        module = importlib.import_module(f"tilesage.cli.{name}")
        assert parse(module.Command, name, list(words))
