"""`tilesage sweep`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tilesage.app.plots import Curve, plot_curves
from tilesage.cli.flags import JsonFile, MaybePath, MaybeWhole, RayAddress, say, write_json
from tilesage.cli.train import watch_training
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.evaluation.sweep import Sweep

SHOWN = 8  # curves in the plot: the best ones


@dataclass
class Command:
    """Train many times with different settings: a grid, or random draws. Run it again to go on after a stop.

    examples:
      tilesage sweep rates.toml
      tilesage sweep rates.toml --on ray --workers 8 --out sweeps/rates
      tilesage sweep rates.toml --on ray --ray-address auto

    A small rates.toml:
      [train]
      games = 10000
      threads = 1
      [grid]
      rate = [0.1, 0.05, 0.01]
      network = ["4x6", "8x4"]
    """

    # A TOML file with [train], [grid] and [random] (docs/scale.md).
    grid: Annotated[Path, tyro.conf.Positional]
    # Where: one after another on this machine, or side by side on Ray (pip install '.[scale]').
    on: Literal["local", "ray"] = "local"
    # The folder of the sweep, with one run folder a trial; by default sweeps/ and the name of the file.
    out: MaybePath = None
    # On Ray without an address: how many processors of this machine to use.
    workers: MaybeWhole = None
    ray_address: RayAddress = None
    # No progress display.
    quiet: bool = False
    json: JsonFile = None


def run(command: Command) -> int:
    """Train what is not trained yet, and tell which settings were best."""
    from tilesage.evaluation.sweep import claim, read_sweep
    from tilesage.learning.config import TrainConfig
    from tilesage.learning.folders import promise

    if command.on == "local" and command.ray_address:
        raise InputError("--ray-address goes with --on ray")
    folder = (command.out or Path("sweeps") / command.grid.stem).resolve()
    sweep = read_sweep(command.grid, folder)
    claim(sweep, command.grid)
    note: Callable[[str], None] = (lambda text: None) if command.quiet else partial(say, to_stderr=True)
    note(f"{len(sweep.trials)} trials, {len(sweep.waiting())} to do, in {folder}")
    note(f"of each trial {promise(max((trial.config for trial in sweep.trials), key=TrainConfig.memory_needed))}")
    if command.on == "ray":
        from tilesage.cluster.trials import sweep_on_ray

        sweep_on_ray(sweep, command.ray_address, command.workers, note)
    else:
        for trial in sweep.waiting():
            title = f"{trial.config.the_game.title} · {trial.name}"
            if not trial.finish(partial(watch_training, title=title, quiet=command.quiet)):
                break
            note(trial.told)
    return report(sweep, command)


def report(sweep: Sweep, command: Command) -> int:
    """Write and print the results; returns the exit status."""
    results, waiting = sweep.summary(), len(sweep.waiting())
    whole = {"sweep": str(sweep.folder), "complete": not waiting, "trials": results}
    write_json(whole, str(sweep.folder / "summary.json"))
    pictures = draw(sweep, results)
    failed = [trial for trial in sweep.trials if trial.failure]
    if write_json(whole, command.json):
        say(table(sweep, results))
        for path in pictures:
            say(f"drawn: {path}")
        for trial in failed:
            say(f"{trial.told} (to try it again, remove {trial.folder}/failed.txt)")
        if waiting:
            say(f"not complete: run the same command again to go on ({waiting} to do)")
    return 130 if waiting else 1 if failed else 0


def table(sweep: Sweep, results: list[dict[str, Any]]) -> str:
    """Plain columns, the best trial first."""
    names, game = list(sweep.trials[0].settings), sweep.trials[0].config.the_game
    tile = str(game.tiles[game.goal])
    rows = [[*names, "mean", "±", "max", tile, "games", "trained", "state"]]
    for result in results:
        settings = [str(result["settings"][name]) for name in names]
        figures = [f"{result[name]:,.0f}" if result[name] is not None else "" for name in ("mean", "stderr", "max")]
        reach = f"{100 * result['reach'].get(tile, 0):.1f} %" if result["games"] else ""
        counts = [f"{result['games']:,}", f"{result['training_games']:,}"]
        rows.append([*settings, *figures, reach, *counts, result["state"]])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def draw(sweep: Sweep, results: list[dict[str, Any]]) -> list[Path]:
    """The learning curves of the best trials in one picture."""
    by_folder = {str(trial.folder): trial for trial in sweep.trials if trial.lines}
    best = [by_folder[result["run"]] for result in results if result["run"] in by_folder][:SHOWN]
    curves = [Curve(trial.name, trial.lines) for trial in best]
    if not curves:
        return []
    game = best[0].config.the_game
    return plot_curves(curves, [sweep.folder / "summary.png"], "games", str(game.tiles[game.goal]))
