"""`tilesage serve`: the page to play, watch, replay and learn."""

from __future__ import annotations

import socket
import sys
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tilesage import games
from tilesage.cli.flags import MaybeWhole
from tilesage.cli.players import find_agent
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from uvicorn import Server


@dataclass
class Command:
    """Open the page: play, watch agents, replay games, follow and start trainings.

    examples:
      tilesage serve
      tilesage serve --agent my_module:my_agent
      tilesage serve --port 8000 --runs experiments --models downloads
      tilesage serve --host 0.0.0.0 --name lab.example.org --think 0.5
    """

    # Address to listen on; the default is reached from this machine only.
    host: str = "127.0.0.1"
    # Port to listen on; 0 takes any free one.
    port: int = 2048
    # Folder of the trainings that are shown and started.
    runs: Path = Path("runs")
    # Further players that the page offers, such as my_module:my_agent; no visitor can name others.
    agent: list[str] = field(default_factory=list)
    # Further folders with model files.
    models: list[Path] = field(default_factory=list)
    # Further games, in files of your own: my_module:my_game.
    game: list[str] = field(default_factory=list)
    # Further host names by which the page may be opened, when it is served to others.
    name: list[str] = field(default_factory=list)
    # How many trainings may run at once from the page; by default 1, and 0 when others can open it.
    trainings: MaybeWhole = None
    # Seconds that an agent may think about a move.
    think: float = 2.0
    # How many may be connected at once.
    visitors: int = 256
    # Open the page in the browser.
    open: bool = False


def run(command: Command) -> int:
    """Serve until Ctrl-C."""
    try:
        from tilesage.app.web.app import make_server
        from tilesage.app.web.settings import Settings
    except ModuleNotFoundError as missing:
        raise InputError(f"the page needs {missing.name}: pip install '.[web]'") from None
    for game in command.game:
        games.get(game)
    for folder in command.models:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder of models")
    for text in command.agent:
        find_agent(text, None, None)
    if not 0 <= command.port < 65536:
        raise InputError(f"a port is a number from 0 to 65535, not {command.port}")
    if not 0 < command.think <= 3600 or command.visitors < 1:
        raise InputError("--think is a number of seconds above 0, at most 3600, and --visitors at least 1")
    settings = Settings(
        host=command.host,
        port=command.port,
        runs=command.runs,
        agents=tuple(command.agent),
        models=tuple(command.models),
        hosts=tuple(command.name),
        trainings=_trainings(command),
        think_seconds=command.think,
        visitors=command.visitors,
    )
    return _serve(make_server(settings), _listen(command.host, command.port), command.open)


def _trainings(command: Command) -> int:
    if command.trainings is None:
        return 1 if command.host in ("127.0.0.1", "localhost", "::1") else 0
    return max(0, command.trainings)


def _listen(host: str, port: int) -> socket.socket:
    """The socket, taken before anything is promised."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)
    except UnicodeError:
        raise InputError(
            f"{host[:80]!r} is no name of a host: write an address such as 127.0.0.1, or 0.0.0.0"
        ) from None
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port} ({error.strerror}): choose another with --port") from None
    return listener


def _serve(server: Server, listener: socket.socket, show: bool) -> int:
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(f"tilesage is at {address}   (Ctrl-C stops it)", flush=True)
    if host not in ("127.0.0.1", "::1"):
        print("tilesage: others on your network can open this page", file=sys.stderr, flush=True)
    if show:
        webbrowser.open(address)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    return 0
