"""How true the forecasts of the final score are: finished games, what was expected on the way, what they made.

    python benchmarks/calibration.py play 2048 --seconds 120 --processes 16 --out games-2048.npz
    python benchmarks/calibration.py fit games-2048.npz games-threes.npz          writes models/forecasts.json
    python benchmarks/calibration.py check games-2048.npz games-threes.npz --plot docs/images/calibration.png

`play` lets the player `best` of a built-in model finish games and notes positions on the way, far apart: the score,
the largest tile, the points that the network promises. `check` judges each game by a forecast that was fitted to four
fifths of the games, this one not among them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np

from tilesage.evaluation.forecast import FILE, Forecast
from tilesage.evaluation.playing import Playing
from tilesage.networks.files import load_model
from tilesage.search.agents import agent

COLUMNS = ("game", "score", "tile", "promised", "final", "reached")
GAME, SCORE, TILE, PROMISED, FINAL, REACHED = range(6)
FEWEST = 60  # positions with one largest tile, below which the line of the next smaller tile serves
KNOTS = 24  # of the curve over all lines
FOLDS, CHECKED = 5, 1000


def play_for(words: tuple[str, str, int, int, float]) -> list[list[float]]:
    """One process: games until the time is over; the last one is finished, so that long games count as often."""
    name, spec, first, apart, end = words
    model = load_model(name)
    playing, found, seed = Playing(agent(spec, model.game, model)), [], first
    while time.time() < end:
        state, seen, random = model.game.new(seed), [], np.random.default_rng(seed)
        while not state.over:
            seen.append([seed, state.score, max(state.indices), 0.0])
            seen[-1][PROMISED] = model.value(state)
            state = playing.go_on(state, int(random.integers(1, 2 * apart)), 1e9)[1]
        found += [[*row, state.score, max(state.indices)] for row in seen]
        seed += 1
    return found


def play(options: argparse.Namespace) -> None:
    """Many processes; each has seeds of its own."""
    model = load_model(options.model)
    warm = Playing(agent(options.agent, model.game, model))
    length = 0
    for seed in range(3):  # compiles, and tells how far apart positions are noted
        state = warm.go_on(model.game.new(seed), 1 << 17, 8.0)[1]
        length += state.moves // 3
    model.value(model.game.new(1))
    end, apart = time.time() + options.seconds, max(1, length // 20)
    words = [(options.model, options.agent, 10**6 * (1 + i), apart, end) for i in range(options.processes)]
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        rows = np.array([row for found in pool.map(play_for, words, 1) for row in found])
    np.savez_compressed(options.out, rows=rows, model=options.model, agent=options.agent)
    told = rows[np.unique(rows[:, GAME], return_index=True)[1]]
    print(f"{options.model} by {options.agent}: {len(told):,} games, {len(rows):,} positions, mean", end=" ")
    print(f"{told[:, FINAL].mean():,.0f} ± {told[:, FINAL].std() / len(told) ** 0.5:,.0f}", flush=True)


def line_through(rows: np.ndarray, promised: bool) -> tuple[float, float, float]:
    """Least squares of the points to come; a slope below 0 would let a worse promise count as better."""
    parts = [np.ones(len(rows)), rows[:, PROMISED] * promised, rows[:, SCORE]]
    level, slope, by_score = np.linalg.lstsq(np.array(parts).T, rows[:, FINAL] - rows[:, SCORE])[0]
    return line_through(rows, False) if promised and slope < 0 else (float(level), float(slope), float(by_score))


def rising(values: np.ndarray) -> list[float]:
    """The rising numbers nearest to these: neighbours that fall are averaged."""
    blocks: list[list[float]] = []  # sum, how many
    for value in values:
        blocks.append([float(value), 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + count]
    return [total / count for total, count in blocks for _ in range(int(count))]


def fitted(rows: np.ndarray, promised: bool = True) -> Forecast:
    """Lines by the largest tile, then the curve over them; without `promised` the guess from score and tile alone."""
    tiles = [tile for tile in range(40) if (rows[:, TILE] == tile).sum() >= FEWEST]
    lines = {tile: line_through(rows[rows[:, TILE] == tile], promised) for tile in tiles}
    plain = Forecast(lines, [-1e9, 1e9], [-1e9, 1e9])
    told = plain.points_to_come(rows[:, TILE], rows[:, PROMISED], rows[:, SCORE])
    order = np.argsort(told)
    made = rows[order, FINAL] - rows[order, SCORE]
    parts = np.array_split(np.arange(len(order)), KNOTS)
    xs = np.array([told[order][part].mean() for part in parts])
    ys = rising(np.array([made[part].mean() for part in parts]))
    return Forecast(lines, [round(x, 1) for x in np.maximum.accumulate(xs + np.arange(KNOTS) * 1e-3)], ys)


def judged(rows: np.ndarray, promised: bool = True) -> np.ndarray:
    """The expected final score of every position, by a forecast that has not seen its game."""
    fold = np.unique(rows[:, GAME], return_inverse=True)[1] % FOLDS
    found = np.zeros(len(rows))
    for i in range(FOLDS):
        part = rows[fold == i]
        forecast = fitted(rows[fold != i], promised)
        found[fold == i] = part[:, SCORE] + forecast.points_to_come(part[:, TILE], part[:, PROMISED], part[:, SCORE])
    return found


def some_positions(rows: np.ndarray) -> np.ndarray:
    """The numbers of CHECKED positions, all equally likely.

    One a game would not do: a position of a short game would be taken more often just because the game ends soon.
    """
    return np.random.default_rng(1).permutation(len(rows))[:CHECKED]


def deciles(expected: np.ndarray, made: np.ndarray) -> list[tuple[float, float, float]]:
    """By tenths of the expected score: the mean expected, the mean made, its standard error."""
    parts = np.array_split(np.argsort(expected), 10)
    return [(expected[p].mean(), made[p].mean(), made[p].std(ddof=1) / len(p) ** 0.5) for p in parts]


def read(path: Path) -> tuple[str, np.ndarray]:
    """The model and the positions of a file that `play` wrote."""
    with np.load(path) as file:
        return str(file["model"]), file["rows"]


def fit(options: argparse.Namespace) -> None:
    """Write the forecasts of these games beside those that are there."""
    known: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    for path in options.games:
        model, rows = read(path)
        known[model] = fitted(rows).written()
        print(f"{model}: {len(np.unique(rows[:, GAME])):,} games, {len(rows):,} positions", flush=True)
    rounded = json.loads(json.dumps(known), parse_float=lambda text: float(f"{float(text):.6g}"))
    FILE.write_text(json.dumps(rounded, separators=(",", ":")) + "\n", "utf-8")


def check(options: argparse.Namespace) -> None:
    """Print the deciles, and draw them."""
    tables = {}
    for path in options.games:
        model, rows = read(path)
        chosen = some_positions(rows)
        expected, guess = judged(rows)[chosen], judged(rows, promised=False)[chosen]
        made = rows[chosen, FINAL]
        tables[model] = deciles(expected, made)
        count, of = len(np.unique(rows[:, GAME])), len(np.unique(rows[chosen, GAME]))
        print(f"\n{model}: {count:,} games, {len(chosen):,} positions of {of:,}")
        print("  expected       made        ±   off")
        for told, got, error in tables[model]:
            print(f"{told:10,.0f} {got:10,.0f} {error:8,.0f}  {100 * (told / got - 1):+.1f} %")
        for name, values in (("forecast", expected), ("score and largest tile alone", guess)):
            print(f"root mean squared error of the {name}: {((values - made) ** 2).mean() ** 0.5:,.0f}")
    if options.plot:
        draw(tables, options.plot)


def draw(tables: dict[str, list[tuple[float, float, float]]], path: Path) -> None:
    """Expected against made, a panel a model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(tables), figsize=(4.6 * len(tables), 4.4), layout="constrained", squeeze=False
    )
    for axis, (model, table) in zip(axes[0], tables.items()):
        told, made, error = np.array(table).T / 1000
        most = 1.08 * max(told.max(), made.max())
        axis.plot([0, most], [0, most], color="#8496a1", linewidth=1)
        axis.errorbar(told, made, 2 * error, fmt="o", color="#0b6f68", capsize=3)
        axis.set(xlim=(0, most), ylim=(0, most), aspect="equal", title=model)
        axis.set(xlabel="expected final score (thousands)", ylabel="what the games made (thousands)")
        axis.grid(color="#d9dee2", linewidth=0.7)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    playing = commands.add_parser("play")
    playing.add_argument("model")
    playing.add_argument("--agent", default="best")
    playing.add_argument("--seconds", type=float, default=60)
    playing.add_argument("--processes", type=int, default=2)
    playing.add_argument("--out", type=Path, required=True)
    playing.set_defaults(run=play)
    for name, run in (("fit", fit), ("check", check)):
        command = commands.add_parser(name)
        command.add_argument("games", type=Path, nargs="+")
        command.set_defaults(run=run)
        if run is check:
            command.add_argument("--plot", type=Path)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
