"""The interface for programs, and access to it: strangers, nonsense and floods are refused; nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from web_support import LETTERS, play_letters, save_small_models, serving, some_legal_letters, talk, visiting
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tilesage import cli, games
from tilesage.app.web import learner
from tilesage.app.web.fields import read
from tilesage.app.web.library import MOST_RUNS, Library, read_metrics
from tilesage.app.web.limits import VisitorQueue, WorkerPool
from tilesage.app.web.settings import Settings
from tilesage.app.web.training import TRAINING, Trainings
from tilesage.core.errors import InputError
from tilesage.learning.folders import held

BOARD = "2 4 8 16 0 0 2 4 0 0 0 2 0 0 0 0"
SECRET = "kept-elsewhere"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs and models as they lie on a machine, and a folder beside them that nobody was told of."""
    home = tmp_path_factory.mktemp("home-of-the-server")
    save_small_models(home / "models")
    for name in ("first", "second"):
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "run.toml").write_text(
            f'game = "2048"\nnetwork = "4x6"\nparameters = "{home}/runs"\n'
        )
    lines = [{"games": 1000 * i, "mean": 10.0 * i, "reach": {"2048": 0.5}} for i in range(1, 4)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (home / "runs" / "first" / "metrics.jsonl").write_text(text + '{"games": NaN}\nbroken\n{"games": 4')
    (home / SECRET).mkdir()
    (home / SECRET / "metrics.jsonl").write_text('{"games": 666}\n')
    (home / "runs" / "link").symlink_to(home / SECRET)
    return home


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    with serving(home / "runs", "--models", str(home / "models"), "--trainings", "0", "--visitors", "40") as address:
        yield address


@pytest.fixture
def web(address: str, home: Path) -> Iterator[httpx.Client]:
    def nothing_leaks(response: httpx.Response) -> None:
        response.read()
        assert response.status_code < 500, response.text
        assert str(home) not in response.text
        assert "Traceback" not in response.text

    with httpx.Client(base_url=address, timeout=60, event_hooks={"response": [nothing_leaks]}) as client:
        yield client


def test_the_models_are_listed_by_name(web: httpx.Client) -> None:
    models = {model["name"]: model for model in web.get("/api/models").json()["models"]}
    assert {"models/small-2048", "models/small-threes", "models/small-threes-phone"} <= set(models)
    assert models["models/small-2048"]["network"] == "8x4"


def test_a_hint(web: httpx.Client) -> None:
    asked = {"game": "2048", "board": BOARD, "agent": "greedy", "model": "models/small-2048"}
    hint = web.post("/api/hint", json=asked).json()
    state = games.get("2048").parse(BOARD)
    assert [value is not None for value in hint["values"]] == [action in state.legal for action in range(4)]
    assert hint["values"][hint["best"]] == max(value for value in hint["values"] if value is not None)
    assert hint["action"] == ("up", "right", "down", "left")[hint["best"]]


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"game": "chess"}, 422, "must be one of 2048"),
        ({"board": "1 2 3"}, 422, "sixteen tile numbers"),
        ({"board": "2 4 2 4 4 2 4 2 2 4 2 4 4 2 4 2"}, 422, "the game is over"),
        ({"agent": "oracle"}, 422, "unknown agent"),
        ({"agent": "mcts:60s"}, 422, "up to 2 s"),
        ({"agent": "expectimax:2,table=30"}, 422, "may be set here"),
        ({"agent": "expectimax:9"}, 422, "at most 4"),
        ({"agent": "expectimax:deep,prune=0"}, 422, "without width and prune"),
        ({"model": "../../etc/passwd"}, 422, "no model of this name"),
        ({"model": "models/small-threes"}, 422, "plays threes, not 2048"),
        ({"board": ["2"] * 16}, 422, "board must be a text"),
        ({"board": "2 " * 4000}, 422, "too long"),
        ({"board": "2 " * 40000}, 413, "too long"),
    ],
)
def test_a_wrong_question_is_answered_by_what_would_be_right(
    web: httpx.Client, wrong: dict[str, Any], status: int, said: str
) -> None:
    asked = {"game": "2048", "board": BOARD, "agent": "greedy", "model": "models/small-2048"} | wrong
    answer = web.post("/api/hint", json=asked)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_what_is_no_json_or_no_address(web: httpx.Client) -> None:
    for body in (b"", b"{", b"\xff\xfe", b"[" * 20000, b'{"game": 1e999}'):
        assert web.post("/api/hint", content=body).status_code in (400, 422)
    assert web.get("/nowhere").status_code == 404
    assert web.get("/api/hint").status_code == 405
    assert web.delete("/api/runs").status_code == 405


def test_runs_and_their_curves(web: httpx.Client) -> None:
    told = web.get("/api/runs").json()
    assert [run["name"] for run in told["runs"]] == ["first", "second"], "a link that leads elsewhere is no run"
    assert told["runs"][0]["settings"] == {"game": "2048", "network": "4x6"}, "places on the machine are not told"
    first = web.get("/api/runs/first").json()
    assert [point.get("games") for point in first["points"]] == [1000, 2000, 3000, None]
    again = web.get("/api/runs/first", params={"after": first["next"]}).json()
    assert again["points"] == []
    assert web.get("/api/runs/first", params={"after": 10**9}).json()["restarted"] is True
    assert web.get("/api/runs/first", params={"after": "x"}).status_code == 422


def test_of_very_many_runs_the_newest_are_shown(tmp_path: Path) -> None:
    names = [f"run-{i:03}" for i in range(MOST_RUNS + 2)]
    for age, name in enumerate(reversed(names)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").touch()
        os.utime(tmp_path / name, (10**9 - age, 10**9 - age))
    (tmp_path / "0-leads-nowhere").symlink_to(tmp_path / "gone")
    library = Library(Settings(runs=tmp_path))
    assert [run.name for run in library.runs()] == names[2:]


@pytest.mark.parametrize("name", ["link", f"..%2f{SECRET}", SECRET, "first%00", "%2fetc", "first%2f..%2f.."])
def test_no_name_leads_out_of_the_runs(web: httpx.Client, name: str) -> None:
    answer = web.get(f"/api/runs/{name}")
    assert answer.status_code in (404, 422)
    assert "666" not in answer.text


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_no_path_leads_out_of_the_page(address: str, path: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:  # by hand: clients tidy paths up
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"import" not in answer


def test_trainings_can_be_forbidden(web: httpx.Client) -> None:
    assert web.get("/api/games").json()["training"]["allowed"] is False
    answer = web.post("/api/trainings", json={"name": "mine"})
    assert answer.status_code == 403
    assert "lets nobody start" in answer.json()["error"]
    for answer in (web.post("/api/runs/first/stop"), web.delete("/api/runs/first")):
        assert answer.status_code == 403


def wanted(name: str, **more: Any) -> dict[str, Any]:
    return read(TRAINING, {"name": name, "network": "tiny", "seconds": 600} | more)


def ended(trainings: Trainings, name: str) -> dict[str, Any]:
    """The run as it is told once nothing is at work on it."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        told = trainings.told()
        found = [run for run in told["runs"] if run["name"] == name]
        if name not in told["starting"] and (not found or found[0]["state"] in ("done", "stopped")):
            return found[0] if found else told["failed"]
        time.sleep(0.05)
    raise AssertionError(f"{name} does not end")


def settled(trainings: Trainings, name: str, state: str = "learning") -> None:
    """Wait until the run is in this state."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if any(run["name"] == name and run["state"] == state and run["last"] for run in trainings.told()["runs"]):
            return
        time.sleep(0.05)
    raise AssertionError(f"{name} is never {state}")


@pytest.fixture
def trainings(tmp_path: Path) -> Iterator[Trainings]:
    settings = Settings(runs=tmp_path / "runs", trainings=2)
    found = Trainings(settings, Library(settings))
    yield found
    for job in list(found.jobs.values()):
        job.process.send_signal(signal.SIGINT)
        job.process.wait(60)
    found.close()


def test_a_training_outlives_its_server_and_is_stopped_by_the_next(trainings: Trainings) -> None:
    assert trainings.change(Trainings.start, wanted("one")) == {"name": "one"}
    with pytest.raises(InputError, match="a run called one already"):
        trainings.change(Trainings.start, wanted("one"))
    settled(trainings, "one")
    trainings.close()
    following = Trainings(trainings.settings, trainings.library)
    settled(following, "one")
    with pytest.raises(InputError, match="one is at work"):
        following.change(Trainings.delete, {"name": "one"})
    following.change(Trainings.stop, {"name": "one"})
    run = ended(following, "one")
    following.close()
    assert run["state"] == "stopped"
    assert run["model"]
    assert 0 < run["done"] < 1
    assert run["bytes"] > 1000


def test_a_training_of_the_command_is_seen_and_stopped(trainings: Trainings, tmp_path: Path) -> None:
    words = ["train", "--network", "tiny", "--seconds", "600", "--threads", "1", "--out", str(tmp_path / "runs/mine")]
    with subprocess.Popen([sys.executable, "-m", "tilesage", *words, "--quiet"]) as command:
        settled(trainings, "mine")
        trainings.change(Trainings.stop, {"name": "mine"})
        assert command.wait(60) in (0, 130)
    assert ended(trainings, "mine")["state"] == "stopped"


def test_a_run_is_evaluated_and_deleted(trainings: Trainings, tmp_path: Path) -> None:
    trainings.change(Trainings.start, wanted("short", seconds=1))
    assert ended(trainings, "short")["state"] == "done"
    trainings.change(Trainings.evaluate, {"name": "short", "agent": "greedy", "games": 20})
    settled(trainings, "short", "playing")
    evaluation = ended(trainings, "short")["evaluation"]
    assert (evaluation["games"], evaluation["agent"]) == (20, "greedy")
    assert evaluation["mean"] > 500
    assert trainings.change(Trainings.delete, {"name": "short"}) == {"name": "short"}
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_training_that_is_refused_says_why_and_leaves_its_name_free(trainings: Trainings, tmp_path: Path) -> None:
    too_large = wanted("large", network="8x7", stages="1024,2048,4096,8192,16384,32768")
    trainings.change(Trainings.start, too_large)
    assert "memory" in ended(trainings, "large")["large"]
    assert list((tmp_path / "runs").iterdir()) == []
    trainings.change(Trainings.delete, {"name": "large"})
    assert trainings.told()["failed"] == {}
    trainings.change(Trainings.start, wanted("large", seconds=1))
    ended(trainings, "large")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "../up"}, "a name is made of letters"),
        ({"name": "-x"}, "a name is made of letters"),
        ({"network": "8x9"}, "neither a network"),
        ({"decay": 2}, "decay must be a number from 0 to 1"),
        ({"phases": "my_module:rule:1:1"}, "phases: "),
        ({"rule": "my_module:rule"}, "rule must be one of"),
        ({"phases": "os:1:1"}, "a rule is one of"),
        ({"fold": "8191"}, "fold takes a tile of 2048"),
        ({"decay": 1}, "decay 1 waits for the end of the game: add direction backward"),
        ({"game": "my_module:game"}, "game must be one of"),
    ],
)
def test_a_training_that_makes_no_sense_is_refused_at_once(
    trainings: Trainings, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        trainings.change(Trainings.start, wanted("mine", **wrong) if "name" not in wrong else wanted(**wrong))
    assert trainings.jobs == {}


def test_odd_folders_are_named_and_skipped(tmp_path: Path) -> None:
    good = '{"games": 10, "mean": 5.0, "reach": {}}\n'
    odd = {"inf": "seconds = inf", "wrong": "game = 7", "not-toml": "[[[", "good": 'game = "2048"'}
    for name, text in odd.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.toml").write_text(text)
        (tmp_path / name / "metrics.jsonl").write_text(good + '{"games": 1e999}\n' + "[" * 5000 + "\n")
    nameless = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(nameless)
    with open(nameless + b"/metrics.jsonl", "w") as file:
        file.write(good)
    library = Library(Settings(runs=tmp_path))
    runs, skipped = library.described()
    assert [run["name"] for run in runs] == ["good", "inf"]
    assert {bad["name"] for bad in skipped} == {"wrong", "not-toml", "\ufffd"}
    json.dumps([runs, skipped, library.models()], allow_nan=False).encode("utf-8")
    assert str(tmp_path) not in str(skipped)
    assert read_metrics(library.run("good"), 0)["points"][0]["games"] == 10


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({}, 1),
        ({"hosts": ("lab.example.org",)}, 0),
        ({"host": "0.0.0.0"}, 0),
        ({"host": "192.168.1.4"}, 0),
        ({"hosts": ("lab.example.org",), "trainings": 2}, 2),
        ({"trainings": 0}, 0),
    ],
)
def test_strangers_start_no_trainings(settings: dict[str, Any], most: int) -> None:
    assert Settings(**settings).most_trainings == most


def test_by_another_name_no_training_starts(tmp_path: Path) -> None:
    with serving(tmp_path / "runs", "--name", "lab.example.org") as address:
        headers = {"host": "lab.example.org", "origin": "http://lab.example.org"}
        answer = httpx.post(f"{address}/api/trainings", json={"name": "x", "threads": 64}, headers=headers)
    assert answer.status_code == 403
    assert not (tmp_path / "runs").exists()


def test_every_address_that_is_printed_opens_the_page(tmp_path: Path) -> None:
    with serving(tmp_path / "runs", "--host", "0.0.0.0") as address:
        assert httpx.get(address).status_code == 200  # by then all has been said
        said = (tmp_path / "serve.log").read_text()
        found = re.findall(r"http://[0-9.:]+", said)
        for opened in (address, *found):
            assert "0.0.0.0" not in opened
            assert httpx.get(opened).status_code == 200
        assert "others can open this page" in said


def test_folders_are_checked_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for words, said in (
        (["--runs", str(tmp_path / "file")], "is no folder: name the folder of your trainings"),
        (["--runs", str(tmp_path / "file" / "deeper")], "no training can be written"),
        (["--models", str(tmp_path / "none")], "is no folder of models"),
    ):
        assert cli.main(["serve", "--port", "0", *words]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_strangers_are_refused(web: httpx.Client, headers: dict[str, str]) -> None:
    answer = web.post("/api/hint", json={"game": "2048", "board": BOARD}, headers=headers)
    assert answer.status_code in (400, 403)


def test_our_own_page_is_not_a_stranger(web: httpx.Client, address: str) -> None:
    answer = web.post("/api/position", json={"game": "2048", "board": BOARD}, headers={"origin": address})
    assert answer.status_code == 200
    page = web.get("/", headers={"sec-fetch-site": "cross-site"})
    assert page.status_code == 200, "a link to the page may be followed"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "file://"])
def test_foreign_websockets_are_refused(address: str, origin: str) -> None:
    with pytest.raises((InvalidStatus, ConnectionClosed)), visiting(address, origin=origin) as visitor:
        talk(visitor, "game.open", game="2048")


def test_a_game_is_played_by_its_lines_and_is_the_engines(address: str) -> None:
    state = games.get("threes").new(2)
    letters = some_legal_letters(state, 30)
    with visiting(address) as visitor:
        line = talk(visitor, "game.open", game="threes", seed=2)["positions"][0]["line"]
        for letter in letters:
            answer = talk(visitor, "game.step", game="threes", line=line, action=LETTERS.index(letter))
            line = answer["line"]
        end = play_letters(state, letters)
        assert (line, answer["legal"]) == (end.line, list(end.legal))
        refused = talk(visitor, "game.step", game="2048", line="1212/2121/1212/2121", action=0)
        assert "the game is over" in refused["error"]


def test_a_long_game_is_brought_back_with_all_its_positions(address: str) -> None:
    state, letters, random = games.get("2048").new(8), "", Random(0)
    lines = [state.line]
    while not state.over:
        letters += LETTERS[random.choice(state.legal)]
        state = state.play(LETTERS.index(letters[-1]))
        lines.append(state.line)
    with visiting(address) as visitor:
        told = talk(visitor, "game.open", game="2048", seed=8, actions=letters)["positions"]
        assert [position["line"] for position in told] == lines
        assert "".join(position["action"] for position in told[1:]) == letters
        assert all(position["motions"] for position in told[1:]), "every move of a real game can be shown"
        assert "not legal" in talk(visitor, "game.open", game="2048", seed=8, actions=letters + "U")["error"]


def test_chance_by_hand_is_what_chance_can_do(address: str) -> None:
    state = games.get("2048").new(8)
    action = state.legal[0]
    slid = state.slide(action)
    possible = {outcome.text for _, outcome in slid.outcomes()}
    with visiting(address) as visitor:
        asked = {"game": "2048", "line": state.line, "action": action}
        for cell in range(16):
            answer = talk(visitor, "game.place", **asked, cell=cell)
            free = not (int(slid.board) >> 4 * cell) & 15
            assert ("line" in answer) == free, cell
            if free:
                again = talk(visitor, "game.place", **asked, cell=cell, now=answer["line"])
                texts = {one["line"].split()[0] for one in (answer, again)}
                assert len(texts) == 2, "a two first, then a four"
                assert texts <= possible


def test_moves_are_judged_as_many_as_come(address: str) -> None:
    state = games.get("2048").new(3)
    letters = some_legal_letters(state, 40)
    lines = [state.line]
    for letter in letters:
        state = state.play(LETTERS.index(letter))
        lines.append(state.line)
    with visiting(address) as visitor:
        fields = {"game": "2048", "agent": "greedy", "model": "models/small-2048", "actions": letters}
        judged = talk(visitor, "judge", **fields, lines="\n".join(lines))
        assert 0 < len(judged["values"]) == len(judged["losses"]) == len(judged["best"]) <= 40
        assert min(judged["losses"]) >= 0
        for loss, best, made in zip(judged["losses"], judged["best"], letters):
            assert loss == 0 or best != made
        assert judged["figure"] == "score plus the network's value"
        assert "a letter" in talk(visitor, "judge", **fields, lines=lines[0])["error"]


@pytest.mark.parametrize("game", games.names())
def test_a_game_is_saved_as_record_film_and_picture(web: httpx.Client, game: str) -> None:
    state = games.get(game).new(3)
    letters = some_legal_letters(state, 12)
    lines = [state.line]
    for letter in letters:
        state = state.play(LETTERS.index(letter))
        lines.append(state.line)
    fields = {"game": game, "actions": letters, "lines": "\n".join(lines)}
    record = web.post("/api/save", json={**fields, "kind": "record"}).text
    told = web.post("/api/replay", json={"record": record}).json()["positions"]
    assert [one["line"].split(" moves=")[0] for one in told] == [line.split(" moves=")[0] for line in lines]
    assert web.post("/api/save", json={**fields, "kind": "gif", "theme": "dark"}).content[:6] == b"GIF89a"
    assert web.post("/api/save", json={**fields, "kind": "png"}).content[:4] == b"\x89PNG"
    skipped = {**fields, "lines": "\n".join([lines[0], *lines[2:], lines[-1]]), "kind": "record"}
    assert web.post("/api/save", json=skipped).status_code == 422


def nonsense(random: Random) -> str | bytes:
    """A message that no page sends: noise, JSON of the wrong kind, or a right message with something wrong in it."""
    dos = ["game.open", "game.step", "game.place", "game.read", "advice", "judge", "ping", "watch.start"]
    dos += ["watch.control", "watch.step", "watch.seen", "no.such", 7]
    junk: list[Any] = [
        None,
        True,
        -1,
        2**70,
        1.5,
        1e300,
        "",
        "x" * 500,
        "../../etc/passwd",
        [],
        {},
        [[[[]]]],
        "\x00",
        "🂡",
    ]
    names = [
        "game",
        "seed",
        "board",
        "actions",
        "action",
        "agent",
        "model",
        "speed",
        "paused",
        "frame",
        "record",
        "line",
        "lines",
        "cell",
        "now",
        "id",
    ]
    kind = random.randrange(4)
    if kind == 0:
        return random.randbytes(random.randrange(60))
    if kind == 1:
        return random.choice(["", "{", "null", "[]", '"', "NaN", "{}", "[" * 3000, '{"id": 1, "id": {}}'])
    fields: dict[str, Any] = {"id": random.choice([1, 2, *junk]), "do": random.choice(dos)}
    right = {
        "game": "2048",
        "seed": 1,
        "agent": "random",
        "speed": 60,
        "paused": False,
        "action": 1,
        "actions": "LLLL",
        "line": ".1../..../..../...1",
        "lines": ".1../..../..../...1",
        "cell": 3,
    }
    fields |= {name: value for name, value in right.items() if random.random() < 0.7}
    fields |= {name: random.choice(junk) for name in random.sample(names, random.randrange(5))}
    return json.dumps(fields)


def test_nonsense_on_the_websocket_hurts_nobody(address: str, home: Path) -> None:
    random, said = Random(5), 0
    with visiting(address) as polite:
        talk(polite, "game.open", game="2048", seed=1)
        for _ in range(16):
            with visiting(address) as rude:
                for _ in range(40):
                    rude.send(nonsense(random))
                rude.send(json.dumps({"id": 99, "do": "game.open", "game": "2048"}))
                answer: dict[str, Any] = {}
                while answer.get("id") != 99:
                    text = str(rude.recv(timeout=60))
                    answer = json.loads(text)
                    said += 1
                    assert "Traceback" not in text
                    assert str(home) not in text
                    assert "stumbled" not in text
            assert talk(polite, "ping") == {"id": 1}
    assert said > 400


def test_who_sends_nothing_but_nonsense_is_disconnected(address: str) -> None:
    with visiting(address) as rude:
        for _ in range(60):
            rude.send("[]")
        with pytest.raises(ConnectionClosed, match="too many wrong messages"):
            list(rude)


def test_a_message_too_long_ends_the_visit_only(address: str) -> None:
    with visiting(address) as visitor:
        visitor.send("x" * 400_000)
        with pytest.raises(ConnectionClosed):
            visitor.recv(timeout=30)
    with visiting(address) as visitor:
        assert len(talk(visitor, "game.open", game="2048")["positions"]) == 1


def test_floods_and_sleepers_are_not_felt_by_others(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    sleepers = [socket.create_connection((host, int(port))) for _ in range(20)]
    with (
        visiting(address, close_timeout=1) as flood,
        visiting(address, close_timeout=1) as sleeper,
        visiting(address) as polite,
    ):
        watch = {"do": "watch.start", "game": "2048", "agent": "random", "speed": 0, "paused": False}
        for fields in ({"do": "game.open", "game": "2048", "seed": 1}, watch):
            flood.send(json.dumps(fields))
            sleeper.send(json.dumps(fields))  # and never looks at a frame
        for _ in range(400):
            flood.send(json.dumps({"do": "advice", "game": "2048", "line": ".1../..../..../...1", "agent": "random"}))
        state = games.get("2048").new(3)
        line = talk(polite, "game.open", game="2048", seed=3)["positions"][0]["line"]
        letters = some_legal_letters(state, 20)
        for letter in letters:
            line = talk(polite, "game.step", game="2048", line=line, action=LETTERS.index(letter))["line"]
        assert line == play_letters(state, letters).line
    for line in sleepers:
        line.close()


def test_who_asks_anew_waits_behind_their_own_thought_and_others_do_not() -> None:
    async def asking() -> None:
        pool, queue = WorkerPool(3, "test", each=2), VisitorQueue("here")
        inside, done, order = threading.Semaphore(0), threading.Event(), []

        def long_thought() -> None:
            inside.release()
            done.wait()
            order.append("long")

        def short(who: str) -> Callable[[], None]:
            return lambda: order.append(who)

        try:
            first = asyncio.create_task(pool.run(queue, long_thought))
            other_tab = asyncio.create_task(pool.run(VisitorQueue("here"), long_thought))
            for _ in range(2):
                await asyncio.to_thread(inside.acquire)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first  # while its thread still thinks
            more = [pool.run(place, short("here")) for place in (queue, VisitorQueue("here"), VisitorQueue("here"))]
            waiting = [asyncio.create_task(job) for job in more]
            await asyncio.sleep(0)
            await pool.run(VisitorQueue("elsewhere"), short("elsewhere"))
            done.set()
            await asyncio.gather(other_tab, *waiting)
        finally:
            done.set()
            pool.close()
        assert order[:2] == ["elsewhere", "long"]
        assert sorted(order[2:]) == ["here", "here", "here", "long"], "each waits for one of the long ones"
        assert queue.waiting == 0

    asyncio.run(asking())


def test_connections_that_say_nothing_are_closed(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    begun = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    lines = [socket.create_connection((host, int(port)), timeout=60) for _ in begun]
    for line, words in zip(lines, begun):
        line.sendall(words)
    for line in lines:
        with line:
            assert line.recv(4096) == b"", "the server hangs up without a word"


def test_one_address_fills_half_of_the_server_and_two_fill_it(address: str) -> None:
    def enter(inside: contextlib.ExitStack, home: str) -> None:
        visitor = inside.enter_context(visiting(address, source_address=(home, 0)))
        talk(visitor, "game.open", game="2048")

    with contextlib.ExitStack() as inside:
        for home in ("127.0.0.2", "127.0.0.3"):
            for _ in range(15):  # some of those before may be on their way out
                enter(inside, home)
            with pytest.raises(InvalidStatus):  # noqa: PT012
                for _ in range(6):
                    enter(inside, home)
        with pytest.raises(InvalidStatus):  # noqa: PT012
            for _ in range(11):
                enter(inside, "127.0.0.1")


def test_a_made_up_address_is_not_believed(address: str) -> None:
    """Each of these thoughts takes a while: behind the first twelve of an address all others are too many."""
    asked = {"game": "2048", "board": BOARD, "agent": "mcts:1s"}

    def ask(number: int) -> int:
        headers = {"x-forwarded-for": f"10.0.0.{number}"}
        return httpx.post(f"{address}/api/hint", json=asked, headers=headers, timeout=120).status_code

    with ThreadPoolExecutor(20) as pool:
        assert 429 in list(pool.map(ask, range(20)))


def test_text_that_is_no_utf8_leaves_no_trace_in_the_log(tmp_path: Path) -> None:
    with serving(tmp_path / "runs") as address:  # which looks for traces when it ends
        host, port = address.removeprefix("http://").split(":")
        key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        key += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        for frame in (b"\x81\x82\0\0\0\0\xff\xfe", b"\xf1\x80\0\0\0\0", b"\x88\x81\0\0\0\0\x01"):
            with socket.create_connection((host, int(port)), timeout=30) as line:
                line.sendall(f"GET /ws HTTP/1.1\r\nHost: {host}\r\n{key}\r\n".encode())
                assert b"101 Switching" in line.recv(4096)
                line.sendall(frame)
                line.recv(4096)
        assert httpx.get(address).status_code == 200


def test_the_description_lists_every_address(web: httpx.Client) -> None:
    described = web.get("/openapi.json").json()["paths"]
    assert {"/api/models", "/api/hint", "/api/runs/{name}", "/api/replay"} <= set(described)
    assert "API for programs" in web.get("/api").text


def test_the_interface_keeps_its_description(address: str, home: Path) -> None:
    """Generated requests, right and wrong: no failure inside, and answers as described."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, settings

    described = schemathesis.openapi.from_url(f"{address}/openapi.json")
    wanted = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
    wanted += ("negative_data_rejection", "unsupported_method", "not_a_server_error")
    checks, counted = [schemathesis.checks.CHECKS.get_one(name) for name in wanted], 0
    for found in described.get_all_operations():
        operation = found.ok()

        def ask(case: Any) -> None:
            nonlocal counted
            counted += 1
            response = case.call(base_url=address, timeout=60)
            assert response.status_code < 500, response.text
            assert str(home) not in response.text
            case.validate_response(response, checks=checks)

        quick = settings(
            max_examples=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        test = quick(_given(operation)(ask))
        test()
    assert counted > 60


def _given(operation: Any) -> Any:
    from hypothesis import given

    return given(case=operation.as_strategy())


@pytest.mark.parametrize("told", ["[]", '{"agent": "greedy", "reach": []}', "5", '{"reach": {}}'])
def test_figures_of_an_evaluation_that_make_no_sense_hide_no_runs(home: Path, told: str) -> None:
    place = home / "runs" / "second" / "evaluation.json"
    place.write_text(told)
    try:
        good, _ = Library(Settings(runs=home / "runs")).described()
    finally:
        place.unlink()
    assert {run["name"] for run in good} == {"first", "second"}


def test_a_training_that_is_refused_leaves_the_lock_of_another_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with held(folder):  # another process begins a run here, and has not written its settings yet
        with pytest.raises(InputError, match="another process"):
            learner.train(folder, {"network": "tiny", "games": 10})
        assert (folder / "run.lock").exists()
