"""`tilesage referee`: replay recorded games and say whether all is in order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tilesage.cli.flags import JsonFile, Limits, MaybeNumber, Parameters, say, write_json
from tilesage.games import parse_parameters


@dataclass
class Command:
    """Referee a file of game records: every move, every placement, the end, and the fairness of chance.

    Exit status: 0 all in order, 1 a faulty record or unfair chance, 2 a file that is no record.

    examples:
      tilesage referee records.txt
      tilesage referee records.txt --speed 100000 --json verdict.json
      tilesage referee fours.txt --game 2048 --four-rate 0.2
    """

    # Records, one game a line (docs/records.md); - reads them from standard input.
    file: tyro.conf.Positional[Path]
    # Whose rules to apply (tilesage games lists them); auto looks at the first line.
    game: str = "auto"
    parameters: Parameters = ""
    # Actions a second that the records must show; below it the course's points count 70 %.
    speed: Annotated[MaybeNumber, Limits(0, above=True)] = None
    # How the table looks.
    style: Literal["ours", "course", "demo"] = "course"
    # Call chance unfair when a p-value is below this.
    significance: float = 1e-6
    # Processes to use; 0 takes one, or one a core for a large file.
    workers: int = 0
    json: JsonFile = None


def run(command: Command) -> int:
    """Judge the records and print the verdict."""
    from tilesage.records.referee import judge

    verdict = judge(
        command.file,
        command.game,
        expected_ops=command.speed,
        significance=command.significance,
        workers=command.workers,
        **parse_parameters(command.parameters),
    )
    if command.json != "-":
        say(verdict.text(command.style))
    write_json(verdict.json(), command.json)
    return 0 if verdict.ok else 1
