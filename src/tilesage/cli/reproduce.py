"""`tilesage reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tilesage.cli.flags import MaybePath, MaybeText, say, write_json
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.core.processors import processors
from tilesage.reports import find_report
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Experiment, Step, is_wanted


@dataclass
class Command:
    """Do one of the five reports again: train, test, judge, and write a page with our figures beside the reported.

    What is finished is skipped and what was interrupted goes on, so the command can be stopped and given again.

    examples:
      tilesage reproduce D1
      tilesage reproduce D4 --scale full
      tilesage reproduce D1 --watch
      tilesage reproduce D2 --scale full --only group0-0.1
    """

    # D0, D1, D2, D3 or D4.
    name: tyro.conf.Positional[str]
    # quick: minutes for everything; full: the report's number of games.
    scale: Literal["quick", "full"] = "quick"
    # The folder of the experiment; by default runs/NAME-SCALE.
    out: MaybePath = None
    # The page to write; by default docs/results/NAME.md at full scale, NAME.md in the folder at quick scale.
    page: MaybePath = None
    # Where networks learn.
    device: Literal["cpu", "cuda"] = "cpu"
    # How many threads learn and play.
    threads: int = processors()
    # The seed of all steps.
    seed: int = 1
    # Run only the steps whose names begin with one of these words; --list shows the names.
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="STEP")] = ()
    # Show the steps and what is done of them, and run nothing.
    list: bool = False
    # Write the page from what is done, and run nothing.
    write: bool = False
    # Run the steps and write no page (it can be written later, elsewhere, with --write).
    steps_only: bool = False
    # Remove the weights of a run once its test is done (D2 at full scale makes eight runs).
    slim: bool = False
    # D1: first see a game, one move a second (q goes on).
    watch: bool = False
    # The commit to name on the page where the source is no git checkout.
    commit: str = ""
    # Write the figures of all steps as JSON to this file (- for standard output).
    json: MaybeText = None


def run(command: Command) -> int:
    """Do the steps that are not done yet, and write the page."""
    from tilesage.cli import main

    report = find_report(command.name)
    if command.threads < 1:
        raise InputError("--threads is a whole number from 1 on")
    if command.watch and report.name != "D1":
        raise InputError("--watch goes with D1; for the others: tilesage watch RUN")
    scale = Scale(command.scale, command.device, command.threads, command.seed)
    folder = command.out or Path("runs") / f"{report.name}-{scale.name}"
    steps = report.steps(scale)
    experiment = Experiment(folder, main, _tell(command), command.commit, command.device, command.slim)
    experiment.look(steps)
    _check_names(command.only, [step.name for step in steps])
    if command.list:
        return show(command, steps, experiment)
    if command.watch:
        main(["watch", "--agent", "mcts:d1", "--seed", str(command.seed)])
    if not command.write:
        experiment.perform(steps, command.only)
    write_json({name: done.__dict__ for name, done in experiment.done.items()}, command.json)
    where = folder if command.steps_only else write_page(command, report, experiment, scale)
    _tell(command)(f"{where}: {len(experiment.done)} of {len(steps)} steps are done")
    return 0


def show(command: Command, steps: Sequence[Step], experiment: Experiment) -> int:
    """The steps, and which of them are done."""
    chosen = [step for step in steps if is_wanted(step.name, command.only)]
    found = [
        {"step": step.name, "done": step.name in experiment.done, "command": experiment.command(step)}
        for step in chosen
    ]
    if write_json({"steps": found}, command.json):
        for step in chosen:
            say(f"{'done   ' if step.name in experiment.done else 'missing'} {step.name}: {experiment.command(step)}")
    return 0


def write_page(command: Command, report: Report, experiment: Experiment, scale: Scale) -> Path:
    """Write the page about the experiment; returns its path."""
    page = command.page or (Path("docs/results") if scale.full else experiment.folder) / f"{report.name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    text = report.page(experiment, scale, page.parent)
    with written(page, text=True) as file:
        file.write(text)
    return page


def _tell(command: Command) -> Callable[[str], None]:
    return lambda text: say(text, to_stderr=command.json == "-")


def _check_names(only: tuple[str, ...], known: list[str]) -> None:
    for word in only:
        if not any(name.startswith(word) for name in known):
            raise InputError(f"no step begins with {word!r}: write one of {', '.join(known)}")
