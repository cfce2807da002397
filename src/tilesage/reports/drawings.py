"""Pictures of the pages: small, readable in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilesage.reports.page import Reported, reach_of
from tilesage.reports.steps import Done

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#9a9a9a", "#d9772b", "#2f7fb8", "#4c9a4a", "#8a5fb0", "#b5475b", "#3f9c9c")
SIZE, DOTS = (7.0, 3.4), 110


def reach_bars(path: Path, reported: Reported, ours: Mapping[str, Done | None], tiles: Sequence[int]) -> str:
    """A group of bars a tile: the share of games that reached it. Returns the line of Markdown that shows it."""
    groups: dict[str, list[float]] = {"reported": [reported.reach.get(tile, 0.0) for tile in tiles]}
    groups |= {label: [reach_of(done, tile) for tile in tiles] for label, done in ours.items() if done is not None}
    axes = _canvas("share of games, %")
    width = 0.8 / len(groups)
    for k, (label, shares) in enumerate(groups.items()):
        places = [i + (k - (len(groups) - 1) / 2) * width for i in range(len(tiles))]
        axes.bar(places, shares, width * 0.92, label=label, color=COLOURS[k % len(COLOURS)])
    axes.set_xticks(range(len(tiles)), [str(tile) for tile in tiles])
    axes.set_xlabel("largest tile at least")
    axes.legend(frameon=False, fontsize=8)
    return _save(axes, path, "How many games reach each tile")


def learning_curve(path: Path, runs: Mapping[str, Path], field: str, label: str) -> str:
    """One line a run: `field` of its metrics (see `curve_of`) against training games. Empty when no run has begun."""
    curves = {name: curve_of(folder, field) for name, folder in runs.items()}
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    if not curves:
        return ""
    axes = _canvas(label)
    for k, (name, points) in enumerate(curves.items()):
        games, values = zip(*points, strict=True)
        axes.plot(games, values, label=name, color=COLOURS[(k + 1) % len(COLOURS)], linewidth=1.3)
    axes.set_xlabel("training games")
    axes.set_ylim(bottom=0)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=8)
    return _save(axes, path, label.capitalize())


def curve_of(folder: Path, field: str) -> list[tuple[float, float]]:
    """(games, value) pairs of a run: `mean`, `max`, or for a tile the percentage of games that reached it."""
    if not (folder / "metrics.jsonl").exists():
        return []
    from tilesage.learning.runs import read_metrics

    lines = read_metrics(folder)
    if field.isdigit():
        return [(line["games"], 100 * line["reach"].get(field, 0.0)) for line in lines]
    return [(line["games"], line[field]) for line in lines]


def _canvas(label: str) -> Axes:
    from matplotlib.figure import Figure

    axes = Figure(figsize=SIZE, dpi=DOTS, layout="constrained").subplots()
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return axes


def _save(axes: Axes, path: Path, what: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(path, metadata={"Software": None})
    return f"![{what}]({path.name})"
