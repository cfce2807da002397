"""The terminal: keys, screens, pipes, and a terminal that is given back as it was found."""

from __future__ import annotations

import io
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console
from terminal_support import at_terminal

from tilesage import cli, games
from tilesage.app import keyboard, live
from tilesage.app.analysis import Judged, accuracy, incidents
from tilesage.drawing.terminal import Scene, ansi, bars, board_text, draw, plain_lines
from tilesage.evaluation.forecast import Opinion
from tilesage.learning.metrics import read_metrics
from tilesage.records.record import record_of
from tilesage.records.replay import moments_of
from tilesage.search.agents import make_agent

HERE = Path(__file__).resolve().parents[2] / "src"


def typist(terminal, keys):
    """Type keys, each after the text that must be on the screen before it."""

    def work():
        for text, key in keys:
            assert terminal.shows(text), f"never saw {text!r}"
            terminal.type(key)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meaning"),
    [
        *[("\x1b[A", "up"), ("\x1b[C", "right"), ("\x1b[B", "down"), ("\x1b[D", "left"), ("\x1bOA", "up")],
        *[("w", "up"), ("d", "right"), ("S", "down"), ("a", "left"), ("K", "up"), ("l", "right"), ("j", "down")],
        *[("H", "left"), ("h", "hint"), ("u", "undo"), ("r", "restart"), ("q", "quit"), (" ", "pause")],
        *[("\x1b[5~", "back"), ("\x1b[H", "home"), ("+", "faster"), ("\x1b", "quit")],
    ],
)
def test_keys_have_names(terminal, typed, meaning):
    with keyboard.Keyboard(terminal.far) as keys:
        terminal.type(typed)
        assert keys.read(timeout=10) == meaning


def test_keys_that_mean_nothing_are_passed_over(terminal):
    with keyboard.Keyboard(terminal.far) as keys:
        terminal.type("xyz\x1b[15~9u")
        assert keys.read(timeout=10) == "undo"
        assert keys.read(timeout=0) == ""


def test_keys_typed_fast_are_all_read(terminal):
    with keyboard.Keyboard(terminal.far) as keys:
        terminal.type("\x1b[A\x1b[B\x1b[Cq")
        assert list(keys.presses()) == ["up", "down", "right"]


def test_the_terminal_is_given_back_after_an_error(terminal):
    def fail():
        with keyboard.Keyboard(terminal.far):
            assert not terminal.as_found
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.as_found


# --- what is drawn ------------------------------------------------------------------------------------------------


def lines_of(scene, **options):
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False, **options
    )
    console.print(draw(scene, console))
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("name", games.names())
def test_every_tile_stands_on_the_board_with_its_colours(name):
    game = games.get(name)
    cells = [*range(2, len(game.tiles)), 1][:16]
    board, aux = game.read(cells + [0] * (16 - len(cells)), {"hint": "1"} if game.hint else {})
    text = board_text(games.State(game, board, aux))
    for index in cells:
        assert f" {game.tiles[index]} " in text.plain
    assert len(text.plain.splitlines()) == 12
    assert all(len(line) == 37 for line in text.plain.splitlines())


@pytest.mark.parametrize(("width", "height"), [(100, 40), (80, 24), (60, 24), (40, 60)])
def test_the_scene_fits_the_terminal(width, height):
    state = games.get("threes").new(1)
    scene = Scene(
        state, values=(1.0, 2.0, None, 4.0), figures=(("speed", "1.0 moves/s"),), message="hm", keys="q quit"
    )
    lines = lines_of(scene, width=width, height=height)
    assert len(lines) <= max(height, 26)
    assert any("next" in line for line in lines)
    assert not any("…" in line for line in lines)


def test_a_long_name_does_not_push_the_board_away():
    scene = Scene(
        games.get("2048").new(1), title="2048 · " + "expectimax:3,stages=4" * 4, values=(1e9, 2e9, 3e9, 4e9)
    )
    for width in (72, 80, 100):
        lines = lines_of(scene, width=width, height=40)
        assert max(line.count("▄") for line in lines) in (32, 40)


def test_bars_are_longer_for_better_moves():
    lines = [line.plain for line in bars([100.0, None, 300.0, 200.0])]
    lengths = [line.count("▆") for line in lines]
    assert lengths[2] > lengths[3] > lengths[0] > lengths[1] == 0
    assert "·" in lines[1]
    assert bars([None] * 4) == []


def test_moves_that_are_nearly_equal_look_nearly_equal():
    lines = [line.plain for line in bars([210_630.0, 210_603.0, 200_000.0, None], 0, played=2)]
    lengths = [line.count("▆") for line in lines]
    assert lengths[0] == lengths[1] == 14
    assert 0 < lengths[2] < 4
    assert [line.split()[-1] for line in lines[:2]] == ["210,630", "−27"]
    assert lines[2].endswith("−10,630 played")


@pytest.mark.parametrize("name", games.names())
@pytest.mark.parametrize("keys", [live.WATCH_KEYS, live.PLAY_KEYS, live.REPLAY_KEYS])
def test_everything_that_matters_is_on_a_screen_of_40_by_12(name, keys):
    state = games.get(name).new(1)
    scene = Scene(state, values=(1e5, 2e5, None, 4e5), figures=(("speed", "1.0 moves/s"),), message="hm", keys=keys)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines_of(scene, width=40, height=12)]
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 40
    assert f"{state.score:,} points · 0 moves" in lines[0]
    assert all(str(tile) in lines[0] for tile in state.hint)
    assert re.findall(r"\d+", " ".join(lines[1:5])) == [str(tile) for tile in state.cells if tile]
    assert "400,000" in lines[8]
    assert [line.rstrip() for line in lines[-2:]] == ["hm", keys]


def test_no_color_means_plain_text(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    lines = lines_of(Scene(games.get("2048").new(1), message="100 → 200 − 3", keys="← → · q"), width=80, height=24)
    assert "\x1b" not in "\n".join(lines)
    assert "\n".join(lines).isascii()
    assert lines[-1].strip() == "< > . q"


def test_without_colours_the_scene_is_plain_text():
    state = games.get("2048").parse("2 4 8 16 0 0 0 0 0 0 0 0 0 0 0 131072 score=12")
    console = Console(file=io.StringIO(), color_system=None, width=80)
    console.print(draw(Scene(state, values=(1.0, None, 2.0, 3.0)), console))
    text = console.file.getvalue()
    assert text.isascii()
    assert "131072" in text
    assert "score 12" in text
    assert plain_lines(Scene(state))[0].startswith("2048")


def test_ansi_has_the_palettes_colours():
    state = games.get("2048").parse("2048 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
    assert "48;2;207;64;58" in ansi(state)  # #cf403a, the 2048 of the dark theme
    assert "48;2;204;59;52" in ansi(state, "light")


# --- playing ------------------------------------------------------------------------------------------------------


def session(position="2 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0", adviser=None):
    game = games.get("2048")
    return live.Session(game.parse(position), lambda: game.new(9), adviser)


def test_moves_undo_and_a_new_game():
    game = session()
    start = game.state
    game.press("left")
    assert (game.state.moves, game.state.score) == (1, 4)
    assert game.state.indices[game.new] in (1, 2)
    game.press("undo")
    assert game.state is start
    game.press("undo")
    assert game.message == "nothing to take back"
    game.press("up")
    assert game.message == "up moves nothing"
    game.press("restart")
    assert game.state == games.get("2048").new(9)
    assert game.best == 4


def test_the_goal_is_cheered_and_the_game_goes_on():
    game = session("1024 1024 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
    game.press("left")
    assert "2048!" in game.message
    game.press("down")
    assert game.state.moves == 2


def test_the_end_is_told():
    game = session("4 2 4 2 2 4 2 4 4 2 4 2 2 4 2 4")
    game.press("up")
    assert "game over" in game.message


def test_advice():
    agent = make_agent("random", games.get("2048"))
    game = session(adviser=live.Adviser(agent))
    game.press("hint")
    assert game.message.startswith("the agent random would go ")
    assert "nobody" in _pressed(session(), "hint").message


def _pressed(game, key):
    game.press(key)
    return game


def test_a_person_plays_at_the_terminal(terminal, monkeypatch):
    keys = [("q quit", "\x1b[D"), ("moves", "u"), ("q quit", "k"), ("moves nothing", "s"), ("q quit", "q")]
    with at_terminal(terminal, monkeypatch):
        typing = typist(terminal, keys)
        last = live.play(session())
        typing.join(10)
    assert last.moves == 1
    assert terminal.as_found
    assert terminal.shows("up moves nothing", 1)


def test_words_are_enough_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("left down\nundo hint\n\nright quit up"))
    assert cli.main(["play", "--agent", "random", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "random would go" in out
    assert "2 moves" in out.splitlines()[-1]
    assert "\x1b" not in out


def test_a_wrong_word_is_a_mistake(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("sideways"))
    assert cli.main(["play", "--agent", "random", "--seed", "1"]) == 2
    assert "unknown word 'sideways'" in capsys.readouterr().err


# --- watching -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", games.names())
def test_a_line_a_move_when_piped(name, capsys):
    assert cli.main(["watch", "--agent", "random", "--game", name, "--seed", "3"]) == 0
    first, *moves, last = capsys.readouterr().out.splitlines()
    state = games.get(name).new(3)
    assert first.split()[:2] == ["0", "start"]
    assert first.endswith(state.text)
    for line in moves:
        number, action, gained, score, text = line.split(maxsplit=4)
        before, state = state, state.play(action)
        assert (int(number), int(score), text) == (state.moves, state.score, state.text)
        assert int(gained) == state.score - before.score
    assert state.over
    assert last == f"game over: score {state.score}, largest tile {state.largest}, {state.moves} moves"


def test_watching_on_a_screen_to_the_end(terminal, monkeypatch):
    with at_terminal(terminal, monkeypatch):
        last = live.watch(games.get("threes").new(5), make_agent("random", games.get("threes")), 0.0)
    assert last.over
    assert terminal.shows("game over")
    assert terminal.as_found


def test_pause_step_and_leave(terminal, monkeypatch):
    with at_terminal(terminal, monkeypatch):
        typing = typist(terminal, [("q quit", " "), ("paused", "n"), ("moves", "n"), ("moves", "q")])
        last = live.watch(games.get("2048").new(5), make_agent("random", games.get("2048")), 600.0)
        typing.join(10)
    assert last.moves == 2
    assert terminal.as_found


@pytest.mark.parametrize("delay", ["-1", "nan", "99999"])
def test_a_wrong_delay_is_a_mistake(delay, capsys):
    assert cli.main(["watch", "--agent", "random", "--delay", delay]) == 2
    assert "--delay is a number from 0 on, at most 3,600" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["watch", "play"])
def test_a_wrong_game_is_a_mistake(command, capsys):
    assert cli.main([command, "--game", "chess"]) == 2
    assert "unknown game 'chess'" in capsys.readouterr().err


# --- looking again ------------------------------------------------------------------------------------------------


def recorded_moments():
    state, actions = games.get("threes").new(1), []
    start = state
    while not state.over:
        actions.append(state.legal[0])
        state = state.play(actions[-1])
    return moments_of(record_of(start, actions))


def test_a_recorded_game_forth_and_back(terminal, monkeypatch):
    moments = recorded_moments()
    last = len(moments) - 1
    keys = [("move 0 of", "\x1b[C"), ("move 1 of", "\x1b[C"), ("move 2 of", "\x1b[D")]
    keys += [("move 1 of", "\x1b[F"), (f"move {last} of", "q")]
    with at_terminal(terminal, monkeypatch):
        typing = typist(terminal, keys)
        live.show_replay(moments, None)
        typing.join(10)
    assert terminal.shows(f"move {last} of {last}", 1)
    assert terminal.as_found


def test_a_recorded_game_plays_to_its_end(terminal, monkeypatch):
    moments = recorded_moments()
    with at_terminal(terminal, monkeypatch):
        typing = typist(terminal, [(f"move {len(moments) - 1} of {len(moments) - 1} · space", "q")])
        live.show_replay(moments, 0.0)
        typing.join(10)
    assert terminal.as_found


def test_a_recorded_game_is_judged_and_its_mistakes_are_found(terminal, monkeypatch):
    moments = recorded_moments()
    agent = make_agent("rollouts:20", games.get("threes"))
    judged = [Judged(live.Adviser(agent).think(moment.state), after.action) for moment, after in pairwise(moments)]
    (first,) = incidents(judged)
    keys = [("e judge", "e"), (f"{accuracy(judged):.1f} %", "n"), (f"move {first} of", "n")]
    keys += [("no later mistake", "p"), ("no earlier mistake", "q")]
    with at_terminal(terminal, monkeypatch):
        typing = typist(terminal, keys)
        live.show_replay(moments, None, find_adviser=lambda: live.Adviser(agent))
        typing.join(10)
    assert terminal.shows("played", 1)
    assert terminal.shows("was better", 1)
    assert terminal.as_found


def test_neighbouring_mistakes_are_one_incident():
    def move(loss):
        return Judged(Opinion(0, [1000.0, 1000.0 - loss, None, None], [0.0, loss, None, None], "points"), 1)

    moves = [move(loss) for loss in [0, 30, 0, 60, 10, *[0] * 9, 4, 6, 0]]
    assert [moves[number].kind for number in (0, 1, 3, 4, 15)] == [
        "",
        "mistake",
        "blunder",
        "inaccuracy",
        "inaccuracy",
    ]
    assert incidents(moves) == [3, 15]
    assert accuracy(moves[:1]) == 100
    assert accuracy([move(20)]) == pytest.approx(100 * math.exp(-1))
    assert accuracy([Judged(Opinion(0, [None] * 4, [None] * 4, ""), 1)]) is None


def test_a_resized_terminal_is_drawn_anew(terminal):
    with program(terminal, "watch", "--agent", "random", "--delay", "30") as watching:
        assert terminal.shows("moves/s"), terminal.seen
        assert not terminal.shows(" points", 0)
        terminal.resize(12, 40)
        assert terminal.shows(" points", 30), "the head of the small layout"
        terminal.type("q")
        assert watching.wait(60) == 0


@pytest.mark.parametrize(
    ("key", "at"), [("left", 49), ("right", 51), ("back", 30), ("forth", 60), ("home", 0), ("end", 60), ("hint", 50)]
)
def test_where_keys_lead(key, at):
    assert live._moved(50, key, 60) == at


# --- the terminal is given back when the program is stopped ---------------------------------------------------


def program(terminal, *words, term="xterm-256color"):
    """The real command on the pseudo-terminal, which is its controlling terminal."""
    import fcntl
    import termios

    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    sizes = ("COLUMNS", "LINES")  # where they are set, a program believes them more than the terminal
    environment = {name: value for name, value in os.environ.items() if name not in sizes}
    environment |= {"TERM": term, "PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, "-m", "tilesage", *words],
        stdin=terminal.far,
        stdout=terminal.far,
        stderr=terminal.far,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )


@pytest.mark.parametrize("how", ["ctrl-c", "terminate"])
def test_a_stopped_program_gives_the_terminal_back(terminal, how):
    with program(terminal, "watch", "--agent", "random", "--delay", "30") as watching:
        assert terminal.shows("moves/s"), terminal.seen
        assert not terminal.as_found
        if how == "ctrl-c":
            terminal.type(b"\x03")
        else:
            watching.send_signal(signal.SIGTERM)
        assert watching.wait(60) == (130 if how == "ctrl-c" else -signal.SIGTERM)
    assert terminal.as_found
    assert terminal.shows("\x1b[?25h", 1)  # the cursor is back


def test_a_suspended_program_lends_the_terminal_out(terminal):
    with program(terminal, "watch", "--agent", "random", "--delay", "30") as watching:
        assert terminal.shows("moves/s"), terminal.seen
        terminal.type(b"\x1a")
        assert eventually(lambda: terminal.as_found)

        def awake():  # called once may be too early: the terminal is given back a moment before the program sleeps
            watching.send_signal(signal.SIGCONT)
            return not terminal.as_found

        assert eventually(awake)
        terminal.type("q")
        assert watching.wait(60) == 0
    assert terminal.as_found


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_dumb_terminal_gets_plain_text(terminal):
    with program(terminal, "play", "--agent", "random", "--seed", "1", term="dumb") as playing:
        assert terminal.shows("write up, right, down, left"), terminal.seen
        terminal.type("left\n")
        terminal.type("quit\n")
        assert playing.wait(60) == 0
    assert b"\x1b" not in terminal.seen
    assert terminal.as_found


# --- the demo ---------------------------------------------------------------------------------------------------


def test_the_demo_learns_plays_and_draws_its_curve(terminal, tmp_path):
    out = tmp_path / "demo"
    with program(terminal, "demo", "--seconds", "4", "--games", "30", "--threads", "2", "--out", str(out)) as showing:
        assert showing.wait(280) == 0
    for text in ("learning 2048 for 4 s", "moves/s", "largest", "30 games of 2048", "the curve:", "next, try:"):
        assert terminal.shows(text, 5), text
    shares = [line["reach"].get("1024", 0) for line in read_metrics(out)]
    assert shares[-1] > shares[0]  # it has learnt something
    with Image.open(out / "curve.png") as picture:
        assert min(picture.size) > 300
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 50
