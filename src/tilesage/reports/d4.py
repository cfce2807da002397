"""D4: Threes!, learning as the game goes, two networks, and the judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilesage.reports.drawings import learning_curve, reach_bars
from tilesage.reports.page import Reported, points, side_by_side, speed, verdict
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Experiment, Step

REPORTED = Reported(83_538, 258_513, {384: 93.2, 768: 83.6, 1536: 55.5, 3072: 25.2}, ops=559_798)
TILES = (384, 768, 1536, 3072, 6144)
# The report's rates are for a weight: 0.1/32, then 0.001 down to 0.0001. Ours are for V, m times that: m = 32 for
# four 6-tuples, 64 for eight 4-tuples, in eight symmetries each.
RATES = {"4x6": "0.1,0.032>0.0032@0.5", "8x4": "0.2,0.064>0.0064@0.5"}
ABOUT = """
The course variant of Threes!, greedy play on values of afterstates. Forward learning: after each move the previous
afterstate moves toward r + V(next afterstate), the last one toward 0. Eight 4-tuples, and four 6-tuples. The report
gives rates for a weight, 0.1/32 and then 0.001 falling to 0.0001; ours are for V, so they are m times as large (m =
32 for 4x6, 64 for 8x4), each half of the 500,000 games. The test games are played by one thread, recorded, and
judged: every action legal, the speed at least the report's, and the course's points, 100 · reach(384)².
"""


def steps(scale: Scale) -> Sequence[Step]:
    """Learn, play and judge, once for each network."""
    found: list[Step] = []
    for network, rate in RATES.items():
        learn = f"train threes --recipe plain --network {network} --rule td --rate {rate}".split()
        how = (*scale.training(scale.pick(5000, 500_000)), "--out", f"{{run}}/{network}")
        test = (
            "evaluate",
            f"{{run}}/{network}/last.safetensors",
            "--games",
            "1000",
            "--seed",
            str(scale.seed),
            "--workers",
            "1",
        )
        found += [
            Step(f"{network}.learn", (*learn, *how), network),
            Step(f"{network}.test", (*test, "--save", f"{{run}}/{network}.txt"), f"{network}.txt"),
            Step(f"{network}.judge", ("referee", f"{{run}}/{network}.txt", "--speed", "559798"), slims=network),
        ]
    return found


def results(experiment: Experiment, folder: Path) -> str:
    """The figures beside those reported, with drawings."""
    done = experiment.done
    ours = {f"ours, {network}": done.get(f"{network}.test") for network in RATES}
    curve = learning_curve(
        folder / "D4-curve.png",
        {network: experiment.folder / network for network in RATES},
        "mean",
        "mean score while learning",
    )
    bars = reach_bars(folder / "D4-tiles.png", REPORTED, ours, TILES)
    parts = [side_by_side(REPORTED, ours, TILES)]
    for network in RATES:
        judged = done.get(f"{network}.judge")
        parts.append(f"**{network}.** {speed(judged, 559_798)} {verdict(judged)} {points(judged, 86.9)}")
    return "\n\n".join([*parts, bars, curve])


REPORT = Report("D4", "Threes!, TD(0) as the game goes, two networks, a judge", ABOUT, steps, results)
