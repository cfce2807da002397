"""`tilesage serve`: the page to play, watch, replay and learn."""

from __future__ import annotations

import contextlib
import socket
import sys
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilesage import games
from tilesage.cli.flags import Limits, MaybeWhole
from tilesage.cli.players import find_agent
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from uvicorn import Server

    from tilesage.app.web.settings import Settings


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
    port: Annotated[int, Limits(0, 65535)] = 2048
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
    think: Annotated[float, Limits(0, 3600, above=True)] = 2.0
    # How many may be connected at once.
    visitors: Annotated[int, Limits(1)] = 256
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
    for text in command.agent:
        find_agent(text, None, None)
    settings = Settings(
        host=command.host,
        port=command.port,
        runs=command.runs,
        agents=tuple(command.agent),
        models=tuple(command.models),
        hosts=tuple(command.name),
        trainings=None if command.trainings is None else max(0, command.trainings),
        think_seconds=command.think,
        visitors=command.visitors,
    )
    settings.check()
    return _serve(make_server(settings), _listen(command.host, command.port), settings, command.open)


def _listen(host: str, port: int) -> socket.socket:
    """The socket, taken before anything is promised."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=512)
    except UnicodeError:
        raise InputError(
            f"{host[:80]!r} is no name of a host: write an address such as 127.0.0.1, or 0.0.0.0"
        ) from None
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port} ({error.strerror}): choose another with --port") from None


def _addresses(host: str) -> list[str]:
    """Where the page is found; for 0.0.0.0 the addresses that another machine, such as a phone, can open."""
    if host not in ("0.0.0.0", "::"):
        return [host]
    found = {"127.0.0.1": None}
    for family, somewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect((somewhere, 9))  # nothing is sent: the system only says from where it would be
            found[way.getsockname()[0]] = None
    with contextlib.suppress(OSError):
        found |= {str(known[4][0]): None for known in socket.getaddrinfo(socket.gethostname(), None)}
    return [name for name in found if "%" not in name and (host == "::" or ":" not in name)]


def _serve(server: Server, listener: socket.socket, settings: Settings, show: bool) -> int:
    host, port = listener.getsockname()[:2]
    addresses = [f"http://{f'[{name}]' if ':' in name else name}:{port}" for name in _addresses(host)]
    print(f"tilesage is at {addresses[0]}   (Ctrl-C stops it)", flush=True)
    if not settings.is_private:
        others = ", ".join(addresses[1:])
        print("tilesage: others can open this page" + (f": {others}" if others else ""), file=sys.stderr, flush=True)
        if settings.most_trainings:
            print("tilesage: and start, stop and delete trainings (--trainings)", file=sys.stderr, flush=True)
    if show:
        webbrowser.open(addresses[0])
    with listener, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0
