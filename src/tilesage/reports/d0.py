"""D0: values of states on six 6-tuples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilesage.reports.drawings import learning_curve, reach_bars
from tilesage.reports.page import Reported, side_by_side
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Experiment, Step

REPORTED = Reported(129_996, 314_072, {2048: 98.2, 4096: 88.1, 8192: 66.7, 16384: 5.1}, {8192: 61.6})
TILES = (2048, 4096, 8192, 16384)
ABOUT = """
V is the value of the board **before** the move. A move is chosen by argmax r + E[V(next)], the expectation over
every empty cell, 0.9 for a 2 and 0.1 for a 4. Six 6-tuples (the classic four, a T and an arrow), each in its eight
rotations and reflections, which share a table. After each game the values are learnt backwards from its end, V(S_T)
→ 0, V(S_t) → r_t + V(S_t+1), with a rate that falls linearly from 0.5 to 0.01 over the run. The report shows at
least 100,000 games and does not say how many its network had learnt from; ours learns from 300,000.
"""


def steps(scale: Scale) -> Sequence[Step]:
    """Learn, and play the test games."""
    learn = ("train", "2048", "--recipe", "plain", "--network", "6x6", "--of", "states", "--rule", "td")
    length = scale.training(scale.pick(300, 300_000))
    how = ("--direction", "backward", "--rate", "0.5>0.01", *length, "--out", "{run}/learn")
    test = ("evaluate", "{run}/learn/last.safetensors", "--games", scale.pick(100, 1000), "--seed", str(scale.seed))
    return [
        Step("learn", (*learn, *how), "learn"),
        Step("test", (*test, "--workers", str(scale.threads)), slims="learn"),
    ]


def results(experiment: Experiment, folder: Path) -> str:
    """The figures beside those reported, with drawings."""
    ours = {"ours": experiment.done.get("test")}
    curve = learning_curve(
        folder / "D0-curve.png", {"ours": experiment.folder / "learn"}, "mean", "mean score of 1,000 training games"
    )
    bars = reach_bars(folder / "D0-tiles.png", REPORTED, ours, TILES)
    return "\n\n".join([side_by_side(REPORTED, ours, TILES), curve, bars])


REPORT = Report("D0", "2048, TD(0) on the values of states, six 6-tuples", ABOUT, steps, results)
