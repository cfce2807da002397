"""D2: the ablation of rates and tuples, on afterstates and on states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilesage.reports.drawings import learning_curve
from tilesage.reports.page import NOT_RUN, Reported, mean_of, reach_of, side_by_side, table
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Done, Experiment, Step

BEST = Reported(
    96_935, 223_156, {2048: 93, 4096: 83.1, 8192: 45, 16384: 0.2}, {2048: 9.9, 4096: 38.1, 8192: 44.8, 16384: 0.2}
)
TILES = (2048, 4096, 8192, 16384)
STATES = "states"


@dataclass(frozen=True)
class Row:
    """A line of the ablation table."""

    rate: str
    network: str
    mean: int
    best: int
    reach: float  # of 2048, in percent

    @property
    def name(self) -> str:
        """The network and the rate."""
        return f"{self.network}-{self.rate}"


ROWS = (
    Row("0.1", "group0", 94_786, 200_632, 91.7),
    Row("0.05", "group0", 86_249, 196_788, 92.6),
    Row("0.01", "group0", 41_503, 103_156, 78.2),
    Row("0.0025", "group0", 21_858, 67_784, 37.4),
    Row("0.1", "group1", 56_037, 146_168, 90.6),
    Row("0.1", "group2", 55_827, 130_980, 89.1),
    Row("0.1", "group0+1", 96_087, 188_532, 96.3),
)
ABOUT = """
Both learners: V(afterstate), move by argmax r + V(s'), target r_next + V(s'_next); and V(state), move by argmax r +
E[V(next)]. TD(0), forward, 500,000 games a row, for four rates and four sets of tuples. A rate is for V: a weight
moves by rate/m, m the number of entries read for one board.

The report tested each network ten times on 1,000 games and shows the test with the best 2048 rate. Ours is one test
of 10,000 games after the last training game, with its standard error: nothing was picked. (Of ten tests of 1,000
games at a true rate of 88 %, the best shows about 90 %.)
"""


def steps(scale: Scale) -> Sequence[Step]:
    """Learn and test once for every row of the ablation, and once with values of states."""
    found: list[Step] = []
    games = scale.pick(1000, 500_000)
    for row in ROWS:
        found += _learn_and_test(scale, row.name, row, games, scale.pick(200, 10_000), ())
    found += _learn_and_test(
        scale, STATES, ROWS[0], scale.pick(100, 500_000), scale.pick(20, 1000), ("--of", "states")
    )
    return found


def _learn_and_test(
    scale: Scale, name: str, row: Row, games: str, tests: str, more: tuple[str, ...]
) -> tuple[Step, Step]:
    network = f"train 2048 --recipe plain --network {row.network}".split()
    learn = (*network, *more, "--rule", "td", "--rate", row.rate)
    test = ("evaluate", f"{{run}}/{name}/last.safetensors", "--games", tests, "--seed", str(scale.seed))
    return (
        Step(f"{name}.learn", (*learn, *scale.training(games), "--out", f"{{run}}/{name}"), name),
        Step(f"{name}.test", (*test, "--workers", str(scale.threads)), slims=name),
    )


def results(experiment: Experiment, folder: Path) -> str:
    """The ablation beside the one reported, with drawings."""
    done = experiment.done
    tests = {row.name: done.get(f"{row.name}.test") for row in ROWS}
    lines = [_line(row, tests[row.name]) for row in ROWS]
    head = ["rate", "tuples", "reported mean", "our mean", "reported max", "our max", "reported 2048", "our 2048"]
    parts = ["### The ablation, values of afterstates", table(head, lines)]
    learners = {"ours, afterstates": tests[ROWS[0].name], "ours, states": done.get(f"{STATES}.test")}
    parts += ["### Rate 0.1, group 0", side_by_side(BEST, learners, TILES)]
    parts += ["### Curves", *_curves(experiment, folder)]
    return "\n\n".join(parts)


def _line(row: Row, test: Done | None) -> list[str]:
    ours = [f"{test.figures['max']:,}", f"{reach_of(test, 2048):.1f} %"] if test else [NOT_RUN, NOT_RUN]
    words = [row.rate, row.network, f"{row.mean:,}", mean_of(test), f"{row.best:,}", ours[0]]
    return [*words, f"{row.reach:.1f} %", ours[1]]


def _curves(experiment: Experiment, folder: Path) -> list[str]:
    """Mean, max and 2048 rate: one plot each for the rates and for the groups."""
    rates = {f"rate {row.rate}": experiment.folder / row.name for row in ROWS if row.network == "group0"}
    groups = {row.network: experiment.folder / row.name for row in ROWS if row.rate == "0.1"}
    both = {"afterstates": experiment.folder / ROWS[0].name, "states": experiment.folder / STATES}
    found = []
    for what, runs in (("rates", rates), ("groups", groups), ("learners", both)):
        for field, label in (("mean", "mean score"), ("max", "max score"), ("2048", "games with 2048, %")):
            found.append(learning_curve(folder / f"D2-{what}-{field}.png", runs, field, label))
    return [line for line in found if line]


REPORT = Report("D2", "2048, TD(0) on states and on afterstates, an ablation", ABOUT, steps, results)
