"""`tilesage networks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from tilesage.cli.flags import JsonFile, say, write_json
from tilesage.networks.patterns import NAMES, NOTES, Network, drawing, parse_network, write_pattern

MEBIBYTE = 1 << 20
ACROSS = 6  # pictures in a row


@dataclass
class Command:
    """The n-tuple networks: the shapes of their patterns, entries and memory.

    examples:
      tilesage networks
      tilesage networks 8x6
      tilesage networks 012345,456789+small
    """

    # Only this one: a name, patterns, or a sum of both.
    network: Annotated[
        str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NETWORK]", help_behavior_hint="")
    ] = None
    json: JsonFile = None


def describe(network: Network) -> dict[str, Any]:
    """A network in `--json`."""
    from tilesage.networks.files import size_of

    entries = size_of(network)
    return {
        "name": network.name,
        "note": NOTES.get(network.name, ""),
        "patterns": [write_pattern(pattern) for pattern in network.patterns],
        "reads": network.reads,
        "entries": entries,
        "bytes": 4 * entries,
        "bytes_to_train": 16 * entries,  # a weight, two numbers of its coherence, and the mean of the weights
    }


def pictures(network: Network) -> str:
    """The shapes side by side, each under its cells."""
    rows = []
    for first in range(0, len(network.patterns), ACROSS):
        some = network.patterns[first : first + ACROSS]
        drawn = [[f"{write_pattern(pattern):7s}", *drawing(pattern).split("\n")] for pattern in some]
        rows += ["    ".join(line) for line in zip(*drawn)] + [""]
    return "\n".join(f"  {row}".rstrip() for row in rows)


def run(command: Command) -> int:
    """List the networks, or show one."""
    found = [parse_network(name) for name in ([command.network] if command.network else NAMES)]
    if not write_json({"networks": [describe(network) for network in found]}, command.json):
        return 0
    for network in found:
        figures = describe(network)
        note = f": {figures['note']}" if figures["note"] else ""
        say(f"{network.name}{note}")
        size, training = figures["bytes"] / MEBIBYTE, figures["bytes_to_train"] / MEBIBYTE
        entries = f"{figures['entries'] / 1e6:,.1f} M entries"
        say(f"  {len(network.patterns)} tables, {entries}, {network.reads} of them make a value")
        say(f"  {size:,.1f} MiB; {training:,.0f} MiB while it trains with coherence and the mean of its weights")
        say(pictures(network))
    say("Every pattern is read in all eight rotations and reflections, which share its table; after once:, in none.")
    return 0
