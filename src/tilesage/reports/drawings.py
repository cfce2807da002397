"""Pictures of the pages: small, readable in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilesage.reports import cells
from tilesage.reports.report import Report
from tilesage.reports.steps import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#9a9a9a", "#d9772b", "#2f7fb8", "#4c9a4a", "#8a5fb0", "#b5475b", "#3f9c9c")
SIZE, DOTS = (7.0, 3.4), 110


def pictures_of(report: Report, experiment: Experiment, folder: Path) -> list[str]:
    """Draw what the report has figures for; returns the lines of Markdown that show it."""
    done = experiment.done
    found = []
    for curve in report.data.get("curves", ()):
        lines = {}
        for row in curve["rows"]:
            learnt = done.get(f"{row}-1.learn") or next(
                (one for name, one in done.items() if name.startswith(f"{row}-") and name.endswith(".learn")), None
            )
            if learnt and len(learnt.figures.get("curve", ())) > 1:
                lines[report.rows[row]["label"]] = learnt.figures["curve"]
        if lines:
            found.append(learning_curve(folder / f"{curve['file']}.png", lines, curve["field"], curve["label"]))
    bars = reach_bars(folder / f"{report.name}-tiles.png", report, cells.judged_row(report, done), experiment)
    return [*found, bars]


def reach_bars(path: Path, report: Report, row: str, experiment: Experiment) -> str:
    """A pair of bars a tile: the share of games that reached it."""
    shown = [cell for cell in cells.cells_of(report, row, experiment.done) if cell.ours and cell.name.isdigit()]
    if not shown:
        return ""
    axes = _canvas("share of games, %")
    for k, (label, shares) in enumerate(
        (("reported", [cell.reported.value for cell in shown]), ("ours", [c.ours.value for c in shown if c.ours]))
    ):
        axes.bar([i + 0.4 * k - 0.2 for i in range(len(shown))], shares, 0.37, label=label, color=COLOURS[k])
    axes.set_xticks(range(len(shown)), [cell.name for cell in shown])
    axes.set_xlabel("largest tile at least")
    axes.legend(frameon=False, fontsize=8)
    return _save(axes, path, "How many games reach each tile")


def learning_curve(path: Path, lines: Mapping[str, Sequence[Mapping[str, Any]]], field: str, label: str) -> str:
    """One line a row: mean, max, or the share of games that reached a tile, against training games."""
    axes = _canvas(label)
    for k, (name, points) in enumerate(lines.items()):
        values = [100 * p["reach"].get(field, 0.0) if field.isdigit() else p[field] for p in points]
        colour = COLOURS[(k + 1) % len(COLOURS)]
        axes.plot([p["games"] for p in points], values, label=name, color=colour, linewidth=1.3)
    axes.set_xlabel("training games")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=8)
    return _save(axes, path, label.capitalize())


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
