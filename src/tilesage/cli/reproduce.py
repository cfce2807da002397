"""`tilesage reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from tilesage.cli.flags import JsonFile, Limits, MaybePath, MaybeWhole, say, write_json
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.core.processors import processors
from tilesage.reports import NAMES, find_report
from tilesage.reports.page import all_cells, page_of
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Done, Experiment, Step, is_wanted


@dataclass
class Command:
    """Do one of the five reports again: train, test, judge, and write a page with every figure beside the reported.

    What is finished is skipped and what was interrupted goes on, so the command can be stopped and given again. At
    full scale it goes on from the figures in docs/results/data.

    examples:
      tilesage reproduce D1
      tilesage reproduce D4 --scale full
      tilesage reproduce D1 --watch
      tilesage reproduce D2 --scale full --only group0-0.1
      tilesage reproduce all --scale full --write
    """

    # D0, D1, D2, D3 or D4, or all.
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="REPORT")]
    # quick: two minutes for everything; full: the report's number of games.
    scale: Literal["quick", "full"] = "quick"
    # The folder for networks and records; by default runs/NAME-SCALE.
    out: MaybePath = None
    # The folder for figures; by default docs/results/data/NAME at full scale, that of --out at quick scale.
    data: MaybePath = None
    # The page to write; by default docs/results/NAME.md at full scale, NAME.md in the folder at quick scale.
    page: MaybePath = None
    # cuda: also the rows that learn on a GPU.
    device: Literal["cpu", "cuda"] = "cpu"
    # How many threads learn and play.
    threads: Annotated[int, Limits(1)] = processors()
    # Only this seed; by default all that a row has.
    seed: MaybeWhole = None
    # Run only the steps whose names begin with one of these words; --list shows the names.
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="STEP")] = ()
    # Show the steps and what is done of them, and run nothing.
    list: bool = False
    # Write the page from what is done, and run nothing.
    write: bool = False
    # Remove the weights of a run once its row is done.
    slim: bool = False
    # D1: first see a game, one move a second (q goes on).
    watch: bool = False
    # The commit to name on the page where the source is no git checkout.
    commit: str = ""
    json: JsonFile = None


def run(command: Command) -> int:
    """Do the steps that are not done yet, and write the page."""
    if command.name.lower() == "all":
        if command.out or command.data or command.page or command.only or command.watch:
            raise InputError("all: leave out --out, --data, --page, --only and --watch, which are for one report")
        found = [(report, _one(command, report)) for report in map(find_report, NAMES)]
        if not command.list and command.scale == "full":
            with written(Path("docs/results/cells.md"), text=True) as file:
                file.write(all_cells(found))
        figures = {f"{report.name}/{name}": one.__dict__ for report, done in found for name, one in done.items()}
    else:
        report = find_report(command.name)
        if command.watch and report.name != "D1":
            raise InputError("--watch goes with D1; for the others: tilesage watch RUN")
        figures = {name: one.__dict__ for name, one in _one(command, report).items()}
    if not command.list:
        write_json(figures, command.json)
    return 0


def _one(command: Command, report: Report) -> dict[str, Done]:
    """Run what is missing of one report, and write its page."""
    from tilesage.cli import main

    scale = Scale(command.scale, command.threads, command.seed, command.device == "cuda")
    folder = command.out or Path("runs") / f"{report.name}-{scale.name}"
    kept = Path("docs/results/data") / report.name if scale.name == "full" else folder
    steps = report.steps(scale)
    experiment = Experiment(folder, command.data or kept, main, _tell(command), command.commit, command.slim)
    experiment.look(steps)
    _check_names(command.only, [step.name for step in steps])
    if command.list:
        show(command, steps, experiment)
        return experiment.done
    if command.watch:
        main(["watch", "--agent", "mcts:d1", "--seed", str(command.seed or 1)])
    if not command.write:
        experiment.perform(steps, command.only)
    every = report.steps(replace(scale, cuda=True, seed=None))  # what others ran on a GPU stands on the page, too
    experiment.look(every)
    page = command.page or (Path("docs/results") if scale.name == "full" else folder) / f"{report.name}.md"
    text = page_of(report, experiment, scale, page.parent)
    page.parent.mkdir(parents=True, exist_ok=True)
    with written(page, text=True) as file:
        file.write(text)
    _tell(command)(f"{page}: {len(experiment.done)} of {len(every)} steps are done")
    return experiment.done


def show(command: Command, steps: Sequence[Step], experiment: Experiment) -> None:
    """The steps, and which of them are done."""
    found = [
        {"step": step.name, "done": step.name in experiment.done, "command": experiment.command(step)}
        for step in steps
        if is_wanted(step.name, command.only)
    ]
    if write_json({"steps": found}, command.json):
        for step in found:
            say(f"{'done ' if step['done'] else 'to do'} {step['step']}: {step['command']}")


def _tell(command: Command) -> Callable[[str], None]:
    return lambda text: say(text, to_stderr=command.json == "-")


def _check_names(only: tuple[str, ...], known: list[str]) -> None:
    for word in only:
        if not any(name.startswith(word) for name in known):
            raise InputError(f"no step begins with {word!r}: write one of {', '.join(known)}")
