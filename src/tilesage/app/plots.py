"""Learning curves: mean, max and the share of games that reach a tile, against games, moves or time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tilesage.core.errors import InputError

# Distinguishable by colour-blind readers (Okabe and Ito), in an order of contrast.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
AXES = {
    "games": ("games", "training games"),
    "moves": ("moves", "training moves"),
    "seconds": ("seconds", "training time"),
}
SMOOTH_TO = 150  # points a curve is averaged down to


@dataclass(frozen=True)
class Curve:
    """One run: its name and its lines of metrics."""

    name: str
    lines: Sequence[Mapping[str, Any]]

    def course(self, what: str, against: str) -> tuple[list[float], list[float]]:
        """x and y of one figure, neighbours averaged where there are very many."""
        field = AXES[against][0]
        xs = [float(line[field]) for line in self.lines]
        if what.startswith("reach:"):
            ys = [100 * float(line["reach"].get(what[6:], 0)) for line in self.lines]
        else:
            ys = [float(line[what]) for line in self.lines]
        step = max(1, len(xs) // SMOOTH_TO)
        groups = [slice(i, i + step) for i in range(0, len(xs), step)]
        mean = max if what == "max" else fmean
        return [max(xs[group]) for group in groups], [mean(ys[group]) for group in groups]


def plot_curves(
    curves: Sequence[Curve], paths: Sequence[Path], against: str = "games", tile: str = "2048"
) -> list[Path]:
    """Draw mean, max and reach of a tile for all runs, one panel each, into every path (PNG, SVG)."""
    drawn = [curve for curve in curves if curve.lines]
    if not drawn:
        raise InputError("nothing to plot: these runs have no finished block yet")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = (("mean", "mean score"), ("max", "best score"), (f"reach:{tile}", f"games that reach {tile} (%)"))
    figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    for axis, (what, title) in zip(axes, panels):
        for number, curve in enumerate(drawn):
            xs, ys = curve.course(what, against)
            colour, marker = COLOURS[number % len(COLOURS)], "o" if len(xs) < 4 else None
            axis.plot(xs, ys, color=colour, linewidth=1.8, marker=marker, label=curve.name)
        _dress(axis, title, against)
    if len(drawn) > 1:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    else:
        figure.suptitle(drawn[0].name, fontsize=12)
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return list(paths)


def _dress(axis: Any, title: str, against: str) -> None:
    axis.set_title(title, fontsize=12, loc="left")
    axis.set_xlabel(AXES[against][1] + (" (s)" if against == "seconds" else ""))
    axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)
    axis.grid(color="#d9dee2", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.yaxis.set_major_formatter(lambda value, _: _short(value))
    axis.xaxis.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    """A figure on an axis: 120k, 1.5M.

    >>> _short(120_000), _short(1_500_000), _short(40)
    ('120k', '1.5M', '40')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
