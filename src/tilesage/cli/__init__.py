"""The command `tilesage`: the first word picks a file beside this one, and only that file is imported.

A command file holds a dataclass `Command`, whose fields are the flags, each with its help above it, and
`run(command) -> int`, the exit status.
"""

from __future__ import annotations

import importlib
import io
import signal
import sys
from collections.abc import Sequence

COMMANDS = {
    "games": "the games and their rules",
    "networks": "the n-tuple networks, with pictures of their shapes",
    "agents": "the players, their budgets and options",
    "models": "the models on this machine, built-in ones included",
    "train": "learn to play: a run folder with a model, metrics and checkpoints",
    "evaluate": "play many games and tell how good a player is",
    "runs": "run folders: size, age and strength; makes them small, or deletes them",
    "plot": "learning curves of one or more runs",
    "watch": "see a player play, in the terminal",
    "play": "play yourself, with undo and advice",
    "serve": "the page: play, watch, replay, learn in the browser",
    "replay": "show a recorded game, or make a GIF of it",
    "referee": "judge recorded games with code of its own",
    "hint": "advice for a position",
    "convert": "weights from and to other programs",
    "reproduce": "the five reports, one command each",
    "sweep": "a grid of trainings",
    "warm": "compile now what the other commands need first",
    "demo": "one minute of learning, then a look at the result",
    "bench": "how fast this machine plays and learns",
}
EXAMPLES = """examples:
  tilesage train 2048 --seconds 60 --out runs/first
  tilesage evaluate runs/first --games 1000
  tilesage watch --agent expectimax:2
  tilesage hint "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"
"""


def overview() -> str:
    """The text of `tilesage --help`."""
    width = max(map(len, COMMANDS)) + 2
    rows = "\n".join(f"  {name.ljust(width)}{text}" for name, text in COMMANDS.items())
    return (
        "usage: tilesage COMMAND [flags]        tilesage COMMAND --help for each one\n\n"
        f"A laboratory for 2048-like games.\n\ncommands:\n{rows}\n\n{EXAMPLES}"
    )


def command() -> int:
    """The command as a process of its own: when it has ended, one more Ctrl-C does not disturb it on its way out."""
    try:
        return main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 0, 2 for a wrong one, 130 after Ctrl-C, or what the command says."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name may hold bytes that no terminal can show
            stream.reconfigure(errors="backslashreplace")
    from tilesage.core.errors import InputError

    try:
        status = run_command(*words)
        sys.stdout.flush()
        return status
    except InputError as mistake:
        return complain(str(mistake))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (OSError, MemoryError) as error:
        return complain(describe(error))


def run_command(name: str = "help", *words: str) -> int:
    """Run the command of this name with its flags."""
    if name in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if name in ("-V", "--version", "version"):
        from tilesage import __version__

        print(f"tilesage {__version__}")
        return 0
    if name not in COMMANDS:
        return complain(f"unknown command {name!r}: write one of {', '.join(COMMANDS)}")
    from tilesage.cli.flags import parse

    module = importlib.import_module(f".{name}", __package__)
    return int(module.run(parse(module.Command, name, list(words))))


def describe(error: Exception) -> str:
    """A failure of the machine in one line: a full disk, a missing folder, no permission, no memory."""
    if isinstance(error, MemoryError):
        return "not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def complain(message: str) -> int:
    """One line that says what is wrong; exit status 2."""
    from tilesage.core.errors import InputError

    print(f"tilesage: {' '.join(str(InputError(message)).split())}", file=sys.stderr)
    return 2
