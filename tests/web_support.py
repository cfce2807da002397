"""A real server in a process of its own, and a real browser, for the tests of the page."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect

from tilesage import games
from tilesage.games import State
from tilesage.networks.files import Model, save_model, size_of
from tilesage.networks.patterns import parse_network

LETTERS = "URDL"
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def serving(runs: Path, *flags: str, port: int = 0) -> Iterator[str]:
    """The address of `tilesage serve`, started for the test and stopped with Ctrl-C."""
    words = [sys.executable, "-m", "tilesage", "serve", "--port", str(port), "--runs", str(runs), *flags]
    log = runs.parent / "serve.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("tilesage is at http://"), line + log.read_text()
            yield line.split()[3]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, log.read_text()
    # What goes wrong inside is in the log: nothing may.
    assert "Traceback" not in log.read_text(), log.read_text()


def save_small_models(folder: Path) -> None:
    """A model for every game that has learnt nothing yet: its greedy player takes the largest reward."""
    folder.mkdir(parents=True)
    network = parse_network("8x4")
    for name in games.names():
        model = Model(games.get(name), network, np.zeros(size_of(network), np.float32))
        save_model(model, folder / f"small-{name}.safetensors")


def find_chromium() -> str | None:
    """Debian's chromium, a Chrome, or what `playwright install` brought; None means playwright's own choice."""
    named = os.environ.get("TILESAGE_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return named or next((path for path in map(shutil.which, names) if path), None)


def launch(playwright: Any) -> Any:
    return playwright.chromium.launch(executable_path=find_chromium(), args=BROWSER_FLAGS)


def play_letters(state: State, letters: str) -> State:
    for letter in letters:
        state = state.play(LETTERS.index(letter))
    return state


def some_legal_letters(state: State, how_many: int) -> str:
    """The first letters of a game: always the first legal action in the order left, down, right, up."""
    letters = ""
    while len(letters) < how_many and not state.over:
        action = next(action for action in (3, 2, 1, 0) if action in state.legal)
        letters += LETTERS[action]
        state = state.play(action)
    return letters


def talk(visitor: ClientConnection, what: str, **fields: Any) -> dict[str, Any]:
    """Ask and wait for the answer, past what the server pushes."""
    visitor.send(json.dumps({"id": 1, "do": what, **fields}))
    while True:
        answer: dict[str, Any] = json.loads(visitor.recv(timeout=60))
        if "push" not in answer:
            return answer


def visiting(address: str, **options: Any) -> ClientConnection:
    return connect(address.replace("http", "ws") + "/ws", **options)
