"""Somebody's own player, in plain Python, goes the whole way: games, records, advice, terminal, page."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import itertools
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from evaluation_support import figures
from small_models import tiny_model
from terminal_support import PseudoTerminal, at_terminal
from web_support import LETTERS, serving, talk, visiting

import tilesage as package
from tilesage import games
from tilesage.app import live
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.evaluation.advice import advise
from tilesage.evaluation.evaluate import Evaluation, evaluate
from tilesage.evaluation.playing import Playing
from tilesage.games import State
from tilesage.games.state import start_from
from tilesage.networks.files import save_model
from tilesage.records.record import Record, format_record
from tilesage.search import specs
from tilesage.search.agents import Agent, agent, make_agent
from tilesage.search.python_players import AgentError

PLUGINS = Path(__file__).parents[1] / "plugins"
BOARD = "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"
FILE = "corner_agents.py"


@pytest.fixture(autouse=True)
def beside_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the plug-in is where we are, and where imports look."""
    monkeypatch.chdir(PLUGINS)
    monkeypatch.syspath_prepend(str(PLUGINS))


def plugin() -> Any:
    import corner_agents

    return corner_agents


def recorded(player: Any, games: int, workers: int = 1, **more: Any) -> tuple[Evaluation, list[str]]:
    """The evaluation, and its games without their times."""
    kept: list[Record] = []
    result = evaluate(player, games, 4, workers, keep=kept.append, **more)
    return result, [format_record(replace(record, start_ms=0, end_ms=0)) for record in kept]


# --- the same games, however they are played ----------------------------------------------------------------------


@pytest.mark.parametrize("name", games.names())
def test_the_games_are_those_of_states_played_one_move_at_a_time(name: str) -> None:
    result, _ = recorded(plugin().corner, 3, game=name)
    game, scores, moves = games.get(name), [], 0
    for number in range(3):
        state = start_from(game, np.uint64(seed_of(np.uint64(4), np.uint64(number))))
        while not state.over:
            state, moves = state.play(plugin().corner(state)), moves + 1
        scores.append(state.score)
    found = result.statistics
    assert (found.games, found.total, found.best, found.slides) == (3, sum(scores), max(scores), moves)


def test_one_and_two_workers_play_the_same_games() -> None:
    (one, lines), (two, same) = (recorded(plugin().corner, 60, workers) for workers in (1, 2))
    assert (one.workers, two.workers, two.worker_kind) == (1, 2, "processes")
    assert figures(one) == figures(two)
    assert lines == same
    assert len(lines) == 60


@pytest.mark.parametrize("name", ["corner_in_words", "corner_of_numpy", "Corner", "Caller"])
def test_a_move_can_be_said_and_a_player_written_in_many_ways(name: str) -> None:
    assert figures(evaluate(f"corner_agents:{name}", 5)) == figures(evaluate(plugin().corner, 5))


def test_a_game_that_no_other_process_finds_is_played_in_this_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILESAGE_QUIET", raising=False)
    changed = replace(games.get("2048"), rules=games.get("2048", four_rate=0.9).rules)
    two = evaluate("corner_agents:corner", 10, workers=2, game=changed)
    assert figures(two) == figures(evaluate("corner_agents:corner", 10, game=changed))
    assert figures(two) != figures(evaluate("corner_agents:corner", 10))
    assert "this Game('2048', four_rate=0.1) cannot be imported elsewhere" in capsys.readouterr().err


def test_what_cannot_be_imported_plays_in_this_process_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TILESAGE_QUIET")
    result = evaluate(lambda state: plugin().corner(state), 10, workers=2)
    assert (result.workers, figures(result)) == (1, figures(evaluate(plugin().corner, 10)))
    assert capsys.readouterr().err.splitlines()[-1] == (
        "<lambda> cannot be imported elsewhere: all games are played in this process"
    )
    assert evaluate(plugin().Corner(), 4, workers=2).workers == 1
    assert evaluate(plugin().Corner().choose, 4, workers=2).workers == 1


def test_a_script_needs_no_guard_and_its_prints_disturb_nothing(tmp_path: Path) -> None:
    """The workers import the player's module, and never the script, which would start evaluations without end."""
    (tmp_path / "talkative.py").write_text("def play(state):\n    print('hm')\n    return state.legal[0]\n")
    (tmp_path / "script.py").write_text(
        "import tilesage, talkative\n"
        "print(tilesage.evaluate(talkative.play, 3, workers=2).statistics.games, 'games')\n"
    )
    found = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout == "3 games\n"
    assert "hm" in found.stderr


def test_nobody_foresees_what_chance_will_do() -> None:
    """The position that a player sees has another generator: tiles come elsewhere than it makes out."""
    seen = list[tuple[State, State]]()

    def look(state: State) -> int:
        seen.append((state, state.play(state.legal[0])))
        return state.legal[0]

    evaluate(look, 1)
    foreseen = [told.board == after.board for (_, told), (after, _) in itertools.pairwise(seen)]
    assert len(foreseen) > 50
    assert sum(foreseen) < len(foreseen) / 2


def test_a_watched_game_is_the_one_of_single_moves() -> None:
    player, state = agent("corner_agents:peeking"), games.get("2048").new(7)
    before, after, actions = Playing(player).go_on(state, 20, 60.0)
    for action in actions:
        assert player.choose(state) == action
        last, state = state, state.play(action)
    assert (last, state) == (before, after)
    assert len(actions) == 20


def test_advice_is_the_move_and_the_opinion_of_the_player() -> None:
    player, state = agent(plugin().Corner()), games.get("2048").parse(f"{BOARD} score=100")
    advice = advise(player, state, playouts=3)
    assert advice.best == 3
    assert [move.expected for move in advice.moves] == [None, None, 100.0, 100.0]
    assert [move.played is None for move in advice.moves] == [True, True, False, False]
    over = games.get("2048").parse("1212/2121/1212/2121")
    assert (player.think(over).action, player.values(over)) == (-1, [None] * 4)


@pytest.mark.parametrize("said", [[1, 2, 3], "four", 5, [1, 2, 3, "x"]])
def test_an_opinion_is_four_numbers(said: object) -> None:
    class Odd(plugin().Corner):  # type: ignore[misc]
        def values(self, state: State) -> object:
            return said

    with pytest.raises(AgentError, match=r"test_python_players\.py:\d+: .*Odd answered .*four numbers"):
        agent(Odd()).values(games.get("2048").new(1))


# --- players that fail --------------------------------------------------------------------------------------------

WRONG = {
    "divides": "corner_agents:divides raised ZeroDivisionError",
    "talks": "corner_agents:talks answered 'banana': a move is 0, 1, 2, 3, or up, right, down, left",
    "pushes": "corner_agents:pushes answered up, which moves nothing; legal: ",
    "leaves": "corner_agents:leaves raised SystemExit: 3",
}


def line_of(name: str) -> int:
    """Where the function stands; of one that raises, the line that does."""
    lines = (PLUGINS / FILE).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
    inside = {"divides": "// 0", "leaves": "raise"}.get(name)
    return 1 + next(i for i in range(start, len(lines)) if inside is None or inside in lines[i])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", WRONG)
def test_the_games_before_a_failure_count(name: str, workers: int) -> None:
    with pytest.raises(AgentError) as caught:
        evaluate(f"corner_agents:{name}", 300, 4, workers)
    assert str(caught.value).startswith(f"{FILE}:{line_of(name)}: {WRONG[name]}")
    assert issubclass(AgentError, InputError)
    cause = caught.value.__cause__
    assert type(cause) is {"divides": ZeroDivisionError, "leaves": SystemExit}.get(name, type(None))
    played = caught.value.evaluation
    assert played is not None
    assert not played.complete
    assert played.statistics.games == (0 if name in ("pushes", "leaves") else games_before_3500())


def games_before_3500() -> int:
    """Until the first game of the first legal move in which the player would be asked with more than 3500 points."""
    number, asked = 0, list[int]()

    def first(state: State) -> int:
        asked.append(state.score)
        return state.legal[0]

    while True:
        asked.clear()
        game = games.get("2048")
        state = start_from(game, np.uint64(seed_of(np.uint64(4), np.uint64(number))))
        while not state.over:
            state = state.play(first(state))
        if max(asked) > 3500:
            return number
        number += 1


@pytest.mark.parametrize("name", WRONG)
def test_one_line_status_two_and_the_records_of_what_was_played(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.txt"
    words = ("--games", "300", "--seed", "4", "--workers", "1", "--save", str(file), "--quiet")
    assert main(["evaluate", "--agent", f"corner_agents:{name}", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.partition(" ")[2].startswith(f"{FILE}:{line_of(name)}: ")
    wanted = 0 if name in ("pushes", "leaves") else games_before_3500()
    assert len(file.read_text().splitlines()) == wanted
    assert ("no games" if not wanted else f"{wanted} games of 2048") in captured.out


def test_a_process_that_ends_at_once_is_told() -> None:
    (PLUGINS / "ends.py").write_text("import os\n\n\ndef play(state):\n    os._exit(7)\n")
    try:
        with pytest.raises(AgentError, match="ends:play: a process that played with it ended at once, status 7"):
            evaluate("ends:play", 10, workers=2)
    finally:
        (PLUGINS / "ends.py").unlink()


def test_an_edited_player_plays_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    means = []
    for legal in ("state.legal[0]", "state.legal[-1]"):
        (tmp_path / "edited.py").write_text(f"def play(state):\n    return {legal}  # {'x' * len(means)}\n")
        sys.modules.pop("edited", None)
        means.append(evaluate("edited:play", 20, workers=2).statistics.mean)
    assert means == [evaluate(lambda state, at=at: state.legal[at], 20).statistics.mean for at in (0, -1)]
    assert means[0] != means[1]


@pytest.mark.usefixtures("plain_ctrl_c")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_the_games_before_it(workers: int) -> None:
    pressed = list[int]()

    def press(statistics: Any, seconds: float) -> None:
        if statistics.games and not pressed:
            pressed.append(statistics.games)
            signal.raise_signal(signal.SIGINT)

    stopped = evaluate("corner_agents:corner", 1_000_000, 5, workers, progress=press)
    assert not stopped.complete
    assert pressed[0] <= stopped.statistics.games < 1_000_000
    few = min(stopped.statistics.games, 40)
    assert stopped.statistics.scores & evaluate("corner_agents:corner", few, 5).statistics.scores == (
        evaluate("corner_agents:corner", few, 5).statistics.scores
    )


# --- what can be handed in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nowhere:play", "there is no module 'nowhere' for the player nowhere:play, neither here nor installed"),
        ("expectimx:deep", "there is no module 'expectimx'"),
        ("corner_agents.py:corner", "not by a file: write corner_agents:corner"),
        ("corner_agents:missing", "has no 'missing' for the player corner_agents:missing; it has "),
        ("corner_agents:not_a_player", "is no player"),
        ("corner_agents:Nameless", "is no player"),
        ("corner", "or my_module:my_agent"),
        ("./corner_agents.py:corner", "without its path and .py"),
        ("corner_agents:corner,depth=3", "or my_module:my_agent"),
    ],
)
def test_what_is_no_player_is_told(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        agent(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import nothing_of_the_kind\n", "broken.py, line 1: ModuleNotFoundError"),
        ("x = 1\ny = x / 0\n", "broken.py, line 2: ZeroDivisionError"),
        ("def play(state:\n", "broken.py, line 1: SyntaxError"),
        (
            "class Player:\n    def __init__(self):\n        raise OSError('no file')\n    choose = 1\n",
            "broken.py:3: ",
        ),
    ],
)
def test_a_module_that_fails_names_its_line(
    source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("broken", None)
    with pytest.raises(InputError) as caught:
        agent("broken:Player")
    assert str(caught.value).startswith(says)
    assert caught.value.__cause__ is not None


def test_failures_travel_between_processes() -> None:
    class Unreadable(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    for cause in (ZeroDivisionError("by zero"), Unreadable(1, 2), None):
        error = AgentError("here.py:3: it failed")
        error.__cause__ = cause
        there = pickle.loads(pickle.dumps(error))
        assert str(there) == str(error)
        if cause is None:
            assert there.__cause__ is None
        else:
            assert str(cause) in str(there.__cause__)
            assert "worker process" in there.__cause__.__notes__[0]


def test_texts_functions_objects_and_agents_become_agents() -> None:
    model = tiny_model("2048")
    assert agent("mcts:20", "threes").game.name == "threes"
    assert agent("greedy", None, model).model is model
    assert repr(agent("greedy", None, model)) == "Agent('greedy', game='2048', model='unnamed')"
    ours = agent("random")
    assert agent(ours) is ours
    assert repr(agent(plugin().corner)) == "Agent('corner_agents:corner', game='2048')"
    with pytest.raises(InputError, match="was made for 2048"):
        agent(ours, "threes")
    with pytest.raises(InputError, match="plays 2048, not threes"):
        agent("greedy", "threes", model)
    with pytest.raises(InputError, match="is no player"):
        agent(7)  # type: ignore[arg-type]
    assert repr(evaluate(plugin().corner, 3)).startswith("Evaluation('corner_agents:corner', 2048: 3 games, mean ")
    assert {"agent", "evaluate", "Player", "AgentError"} <= set(package.__all__)


@pytest.mark.parametrize("player", ["random", "rollouts:2", "mcts:2", "corner_agents:corner"])
def test_a_model_that_nobody_would_read_is_refused(player: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = save_model(tiny_model("2048"), tmp_path / "tiny.safetensors")
    with pytest.raises(InputError, match="reads no model"):
        agent(player, None, tiny_model("2048"))
    assert main(["evaluate", str(file), "--agent", player, "--games", "1"]) == 2
    assert main(["hint", BOARD, "--model", str(file), "--agent", player]) == 2
    assert capsys.readouterr().err.count("reads no model") == 2


def test_players_that_packages_bring_along(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    point = importlib.metadata.EntryPoint("from-the-corner", "corner_agents:corner", specs.GROUP)
    found = importlib.metadata.EntryPoints([point])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: found.select(group=group))
    here, there = (evaluate("from-the-corner", 4, workers=workers) for workers in (1, 2))
    assert (here.agent.spec, there.workers) == ("from-the-corner", 2)
    assert figures(here) == figures(there) == figures(evaluate(plugin().corner, 4))
    assert main(["agents"]) == 0
    assert "from-the-corner" in capsys.readouterr().out


def test_make_agent_imports_nothing() -> None:
    with pytest.raises(InputError, match="unknown agent"):
        make_agent("corner_agents:corner", games.get("2048"))


@pytest.mark.parametrize("module", ["search.agents", "evaluation.evaluate", "app.web.players"])
def test_examples_are_true(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"{package.__name__}.{module}"))
    assert found.attempted
    assert found.failed == 0


# --- the commands -------------------------------------------------------------------------------------------------


def test_records_that_the_referee_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in games.names():
        file = tmp_path / f"{name}.txt"
        words = ("--games", "40", "--workers", "2", "--save", str(file), "--quiet")
        assert main(["evaluate", "--agent", "corner_agents:corner", "--game", name, *words]) == 0
        assert "on 2 processes" in capsys.readouterr().out
        assert main(["referee", str(file)]) == 0
        assert "40 games" in capsys.readouterr().out
        assert file.read_text().startswith("corner_agents-corner:")


def test_the_command_finds_players_in_the_current_folder(tmp_path: Path) -> None:
    """As a stranger types it: a file beside him, the command as a process of its own."""
    (tmp_path / "mine.py").write_text("def play(state):\n    return state.legal[-1]\n")
    start = "import sys; from tilesage.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-P", "-c", start, "evaluate", "--agent", "mine:play", "--games", "4", "--json", "-"]
    source = str(Path(package.__file__).parent.parent)
    found = subprocess.run(
        words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout)["agent"] == "mine:play"


def test_hints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hint", BOARD, "--agent", "corner_agents:Corner", "--playouts", "2", "--json", "-"]) == 0
    advice = json.loads(capsys.readouterr().out)
    assert (advice["best"], advice["agent"]) == ("left", "corner_agents:Corner")
    assert [move["expected"] for move in advice["moves"]] == [None, None, 0.0, 0.0]
    assert main(["hint", BOARD, "--agent", "corner_agents:pushes"]) == 2
    assert capsys.readouterr().err.partition(" ")[2].startswith(f"{FILE}:{line_of('pushes')}: ")


def test_watching_and_asking(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["watch", "--agent", "corner_agents:corner", "--seed", "3"]) == 0
    lines, state = capsys.readouterr().out.splitlines(), games.get("2048").new(3)
    for line in lines[1:-1]:
        action = plugin().corner(state)
        state = state.play(action)
        assert line.split()[1] == ("up", "right", "down", "left")[action]
        assert line.endswith(state.text)
    assert state.over
    session = live.Session(games.get("2048").parse(BOARD), lambda: state, live.Adviser(agent("corner_agents:Corner")))
    session.press("hint")
    assert session.opinion is not None
    assert (session.message, session.opinion.values[3]) == ("the agent corner_agents:Corner would go left", 0.0)
    session = live.Session(games.get("2048").parse(BOARD), lambda: state, live.Adviser(agent(plugin().pushes)))
    session.press("hint")
    assert "moves nothing" in session.message, "advice that fails does not end the game"


def test_watching_on_a_screen(terminal: PseudoTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_terminal(terminal, monkeypatch):
        last = live.watch(games.get("2048").new(5), agent("corner_agents:Corner"), 0.0)
    assert last.over
    assert terminal.shows("corner_agents:Corner")
    assert terminal.as_found


def test_agents_are_listed_from_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["agents"]
    assert main(["agents"]) == 0
    shown = capsys.readouterr().out
    for row in rows:
        assert re.search(rf"^{row['name']} ", shown, re.MULTILINE)
        for example in row["examples"]:
            assert isinstance(agent(example, "2048"), Agent)
        for option in row["options"]:
            assert option["meaning"] in shown


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_page_offers_players_that_the_server_was_given(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    given = ("--agent", "corner_agents:Corner", "corner_agents:pushes")
    with serving(tmp_path / "runs", *given) as address, httpx.Client(base_url=address) as web:
        offered = [row["spec"] for row in web.get("/api/games").json()["agents"]]
        assert offered[-2:] == ["corner_agents:Corner", "corner_agents:pushes"]
        ask = {"game": "2048", "board": BOARD, "model": "any"}
        told = web.post("/api/hint", json={**ask, "agent": "corner_agents:Corner"}).json()
        assert (told["action"], told["model"], told["values"]) == ("left", "", [None, None, 0.0, 0.0])
        failed = web.post("/api/hint", json={**ask, "agent": "corner_agents:pushes"})
        assert (failed.status_code, failed.json()) == (
            422,
            {"error": "the agent stumbled; the server's log says why"},
        )
        start = games.get("2048").new(3)
        first = plugin().corner(start)
        with visiting(address) as visitor:
            talk(visitor, "watch.start", game="2048", agent="corner_agents:Corner", seed=3, speed=1, paused=True)
            visitor.send(json.dumps({"id": 2, "do": "watch.step"}))
            while not (pushed := json.loads(visitor.recv(timeout=60))).get("letters"):
                pass
            assert (pushed["best"], pushed["line"]) == (first, start.play(first).line)
            talk(visitor, "watch.start", game="2048", agent="corner_agents:Corner", seed=3, speed=0, paused=False)
            while json.loads(visitor.recv(timeout=60)).get("games", 0) == 0:
                visitor.send(json.dumps({"id": 3, "do": "watch.seen", "frame": 10**6}))
            lines = f"{start.line}\n{start.play(first).line}"
            fields = {"game": "2048", "lines": lines, "actions": LETTERS[first], "agent": "corner_agents:Corner"}
            assert talk(visitor, "judge", **fields)["losses"] == [0.0], "no mistake by its own account"
        for text in ("corner_agents:corner", "os:getcwd", "corner_agents"):
            refused = web.post("/api/hint", json={**ask, "agent": text})
            assert refused.status_code == 422
            assert "unknown agent" in refused.json()["error"]
    assert f"{FILE}:{line_of('pushes')}" in (tmp_path / "serve.log").read_text()


def test_a_server_is_told_at_once_of_a_player_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", "--agent", "nowhere:play"]) == 2
    assert "there is no module 'nowhere' for" in capsys.readouterr().err


class Silent:
    def choose(self):
        return 0


@pytest.mark.parametrize("player", [lambda: 0, lambda state, other: 0, Silent()], ids=["none", "two", "method"])
def test_a_player_of_other_arguments_is_refused_before_the_first_game(player: object) -> None:
    with pytest.raises(AgentError, match=r"test_python_players.py:\d+: .* a player takes one thing, the position"):
        agent(player, "2048")
