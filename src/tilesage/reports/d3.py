"""D3: Threes!, TD learning inside an expectimax search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilesage.reports.drawings import learning_curve, reach_bars
from tilesage.reports.page import Reported, side_by_side, speed, verdict
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Experiment, Step

REPORTED = Reported(277_576, 711_885, {1536: 100, 3072: 99.9, 6144: 6.6}, {3072: 93.3, 6144: 6.6}, ops=88_307)
TILES = (768, 1536, 3072, 6144)
GAMES = {"cpu": 1_000_000, "cuda": 5_000_000}  # the report does not say how many it used
ABOUT = """
The course variant of Threes!. Four 6-tuples in eight symmetries, trained by TD(0) on afterstates, with a rate that
falls from 0.1 to 0.01. The player then looks one layer deeper: argmax of r + E[r' + V(s'')], the expectation over
the border cells on which the known hint tile can land, and the best reply to each: `expectimax:2`. The games are
played by one thread, recorded, and judged with the report's speed as the one to reach.
"""


def steps(scale: Scale) -> Sequence[Step]:
    """Learn, play the test games with search and without, and let the referee judge them."""
    learn = ("train", "threes", "--recipe", "plain", "--network", "4x6", "--rule", "td", "--rate", "0.1>0.01")
    how = (*scale.training(scale.pick(3000, GAMES[scale.device])), "--out", "{run}/learn")
    games, seed = scale.pick(20, 1000), str(scale.seed)
    alone = ("--games", games, "--seed", seed, "--workers", "1")
    search = (
        "evaluate",
        "{run}/learn/last.safetensors",
        "--agent",
        "expectimax:2",
        *alone,
        "--save",
        "{run}/records.txt",
    )
    greedy = ("evaluate", "{run}/learn/last.safetensors", *alone)
    return [
        Step("learn", (*learn, *how), "learn"),
        Step("search", search, "records.txt"),
        Step("greedy", greedy),
        Step("judge", ("referee", "{run}/records.txt", "--speed", "88307"), slims="learn"),
    ]


def results(experiment: Experiment, folder: Path) -> str:
    """The figures beside those reported, with drawings."""
    done = experiment.done
    ours = {"ours, expectimax:2": done.get("search"), "ours, greedy": done.get("greedy")}
    curve = learning_curve(
        folder / "D3-curve.png", {"ours": experiment.folder / "learn"}, "mean", "mean score while learning, greedy"
    )
    bars = reach_bars(folder / "D3-tiles.png", REPORTED, ours, TILES)
    words = [speed(done.get("judge"), 88_307), verdict(done.get("judge"))]
    return "\n\n".join([side_by_side(REPORTED, ours, TILES), *words, bars, curve])


REPORT = Report("D3", "Threes!, TD learning inside an expectimax search", ABOUT, steps, results)
