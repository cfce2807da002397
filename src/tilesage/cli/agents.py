"""`tilesage agents`."""

from __future__ import annotations

from dataclasses import dataclass

from tilesage.cli.flags import JsonFile, say, write_json


@dataclass
class Command:
    """The players that --agent takes, their budgets and options; and those that installed packages bring along.

    A player of your own is a function from a position to a move, in a file here: --agent my_module:my_agent

    examples:
      tilesage agents
      tilesage agents --json -
    """

    json: JsonFile = None


def run(command: Command) -> int:
    """List the players."""
    from tilesage.search.registry import ROWS
    from tilesage.search.specs import plugins

    brought = plugins()
    if not write_json({"agents": [row.described() for row in ROWS], "from_packages": brought}, command.json):
        return 0
    for row in ROWS:
        budget = [f"{'':12s}takes {row.budget.meaning}"] if row.budget else []
        options = [f"{'':14s}{one.name + '=…':14s}{one.meaning} (default: {one.default})" for one in row.options]
        say("\n".join([f"{row.name:12s}{row.summary}", *budget, *options, ""]))
    for name, reference in brought.items():
        say(f"{name:12s}{reference}, from a package")
    say("your own    my_module:my_agent, a function from a position to a move in my_module.py")
    return 0
