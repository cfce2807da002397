"""The ladder of players: what does a player earn for its time, and which is beaten by a cheaper one?

    python benchmarks/ladder.py play threes --out docs/results/ladder      # minutes; run it again to go on
    python benchmarks/ladder.py show docs/results/ladder --picture docs/images/ladder.png

`play` lets every kind of player of a game play at growing budgets, the cheapest first, on the games of one seed, and
keeps each row in OUT/GAME.json as soon as it is played; a row that is there is not played again. How many games a row
gets is a matter of its time (`--row` seconds on all threads), at least one a thread and at most `--most`; all of them
are played to their ends. Time per move is processor time. `show` draws all files of a folder, prints a table, and
names every player that another beats by more than two standard errors in less time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import zip_longest
from math import hypot
from pathlib import Path
from typing import Any

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.core.processors import processors
from tilesage.evaluation.evaluate import Evaluating, Evaluation
from tilesage.reports.steps import commit_here, machine_here
from tilesage.search.agents import Agent, agent, needs_model

# Every kind of player at growing budgets, and why it is kept although others may earn more in less time.
KINDS = {
    "random": (["random"], "the player below all others"),
    "greedy": (["greedy"], "what the network knows by itself, and a thousandth of the time of a search"),
    "expectimax, full width": (
        ["expectimax:2", "expectimax:3", "expectimax:4"],
        "the textbook's search, of which the deep one is a short cut; its layers are what papers report",
    ),
    "expectimax, deep": (
        [f"expectimax:deep,prune={p}" for p in ("0.1", "0.03", "0.01", "0.003", "0.001")],
        "the strongest in its time on most budgets",
    ),
    "expectimax, by nodes": (
        ["expectimax:100nodes", "expectimax:1000nodes", "expectimax:10000nodes"],
        "the search under a time limit, counted in nodes: a person waits for a time, not for layers",
    ),
    "best": (["best"], "the deep search with all that comes with the package for the game"),
    "MCTS with a network": (
        ["mcts:10,leaf=value", "mcts:30,leaf=value", "mcts:100,leaf=value", "mcts:300,leaf=value"],
        "any number of iterations; the method of most other games",
    ),
    "MCTS, random games": (
        ["mcts:10", "mcts:100", "mcts:400", "mcts:1000"],
        "needs no network: what there is for a game that nobody has trained for",
    ),
    "MCTS as in D1": (["mcts:d1"], "the player of a report that is done again here"),
    "flat Monte Carlo": (
        ["rollouts:3", "rollouts:10", "rollouts:100"],
        "needs no network, and a reader understands it in a minute",
    ),
}
COLOURS = ("#7f7f7f", "black", "#56b4e9", "#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#8c510a", "#bdbd22")
FAR_TOO_SLOW = 4  # times the seconds of a row, after which its first games are given up
DOUBT = 2  # standard errors by which one player must be ahead of another
FEW = 10  # games, of which no error can be told
ABOUT = """# The ladder of players

Every kind of player of every game at growing budgets, on the same games (seed {seeds}), with the built-in models.
`python benchmarks/ladder.py play GAME` plays the rows that are missing in `docs/results/ladder/`, and
`python benchmarks/ladder.py show --page docs/results/ladder.md --picture docs/images/ladder.png` writes this page.
Time is processor time a move. ± is one standard error of the mean; a player is *beaten* by a cheaper one whose mean
is higher by more than two of them. Of fewer than ten games no error can be told, and nobody is beaten.

![Points over time per move](../images/ladder.png)
"""


def in_turn() -> Iterator[tuple[str, str]]:
    """Kind and player: the smallest budget of every kind, then the next."""
    for turn in zip_longest(*([(kind, spec) for spec in specs] for kind, (specs, _) in KINDS.items())):
        yield from filter(None, turn)


def played(player: Agent, count: int, seed: int, workers: int, limit: float) -> tuple[Evaluation, float]:
    """Games 0 … count - 1, and the processor seconds that they took; given up after `limit` seconds."""

    def look(statistics: Any, seconds: float) -> None:
        if seconds > limit:
            evaluating.stop[0] = 1

    evaluating = Evaluating(player, count, seed, min(workers, count), None, look)
    before = time.process_time()
    return evaluating.run(), time.process_time() - before


def row_of(player: Agent, seed: int, workers: int, seconds: float, most: int) -> dict[str, Any]:
    """A row of the ladder: as many games as fit into the time, found by a first game on each thread."""
    played(player, 1, seed, 1, 0.0)  # compiles
    found, taken = played(player, workers, seed, workers, FAR_TOO_SLOW * seconds)
    fitting = min(most, int(workers * seconds / found.seconds))
    if found.complete and fitting > workers:
        found, taken = played(player, fitting, seed, workers, float("inf"))
    result, model = found.statistics, player.model
    return {
        "game": player.game.name,
        "agent": player.spec,
        "model": model.name if model else None,
        "seed": seed,
        "games": result.games,
        "complete": found.complete,
        "mean": round(result.mean, 1) if result.games else None,
        "stderr": round(result.stderr, 1) if result.games > 1 else None,
        "moves": result.slides,
        "ms_per_move": taken * 1000 / result.slides if result.slides else None,
        "threads": found.workers,
        "machine": machine_here("cpu"),
        "commit": commit_here(),
        "date": date.today().isoformat(),
    }


def play(options: argparse.Namespace) -> None:
    """All rows of a game that are not there yet; none is begun after `--total` seconds."""
    path, begin = Path(options.out) / f"{options.game}.json", time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(path.read_text()) if path.exists() else []
    done = {(row["agent"], row["seed"]) for row in rows}
    for kind, spec in in_turn():
        if (spec, options.seed) in done or time.monotonic() - begin > options.total:
            continue
        try:
            player = agent(spec, options.game, options.model if needs_model(spec) else None)
        except InputError as wrong:
            print(f"{options.game} {spec}: not played: {wrong}", flush=True)
            continue
        rows.append({"kind": kind, **row_of(player, options.seed, options.workers, options.row, options.most)})
        with written(path, text=True) as file:
            json.dump(rows, file, indent=1)
        print(told(rows[-1]), flush=True)


def told(row: dict[str, Any]) -> str:
    """A row in one line."""
    if not row["complete"]:
        return f"{row['game']:13} {row['agent']:28} too slow: not all of the first games were finished"
    figures = f"{row['mean']:>11,.0f} ± {row['stderr'] or 0:>7,.0f} {row['games']:>6,} games"
    return f"{row['game']:13} {row['agent']:28} {figures} {row['ms_per_move']:>10.4f} ms a move"


def beaten(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The strongest player of the game that takes less time and is ahead beyond doubt, if there is one."""
    known = [other for other in rows if min(other["games"], row["games"]) >= FEW]
    cheaper = [other for other in known if other["ms_per_move"] < row["ms_per_move"]]
    ahead = [
        other for other in cheaper if other["mean"] - row["mean"] > DOUBT * hypot(other["stderr"], row["stderr"])
    ]
    return max(ahead, key=lambda other: float(other["mean"]), default=None)


def show(options: argparse.Namespace) -> None:
    """The table, who is beaten by whom, and the picture; as a page of the docs, if wanted."""
    found = [row for path in sorted(Path(options.out).glob("*.json")) for row in json.loads(path.read_text())]
    by_game = {name: [row for row in found if row["game"] == name and row["complete"]] for name in games.names()}
    by_game = {name: sorted(rows, key=lambda row: row["ms_per_move"]) for name, rows in by_game.items() if rows}
    page = [line for name, rows in by_game.items() for line in table(name, rows)]
    losers = {row["kind"] for rows in by_game.values() for row in rows if beaten(row, rows)}
    page += [f"- **{kind}** is kept: {why}." for kind, (_, why) in KINDS.items() if kind in losers]
    print("\n".join(page))
    if options.picture:
        draw(by_game, Path(options.picture))
    if options.page:
        machines = sorted({f"{row['machine']}, commit {row['commit']}, {row['date']}" for row in found})
        about = ABOUT.format(seeds=", ".join(map(str, sorted({row["seed"] for row in found}))))
        Path(options.page).write_text("\n".join([about, *page, "", *machines]) + "\n", encoding="utf-8")


def table(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The players of a game, the cheapest first, in lines."""
    yield f"## {name}\n\n| player | mean | ± | games | ms a move | beaten by |\n|---|---|---|---|---|---|"
    for row in rows:
        better = beaten(row, rows)
        by = f"`{better['agent']}`" if better else ""
        error = f"{row['stderr']:,.0f}" if row["stderr"] else ""
        figures = f"{row['mean']:,.0f} | {error} | {row['games']:,} | {row['ms_per_move']:.3g}"
        yield f"| `{row['agent']}` | {figures} | {by} |"
    yield ""


def draw(by_game: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Points over time per move with two standard errors, a panel a game; a line joins the budgets of a kind."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(by_game), figsize=(4.6 * len(by_game), 5), layout="constrained", squeeze=False
    )
    for axis, (name, rows) in zip(axes[0], by_game.items()):
        for kind, colour in zip(KINDS, COLOURS, strict=True):
            own = [row for row in rows if row["kind"] == kind]
            times, means = [row["ms_per_move"] for row in own], [row["mean"] for row in own]
            errors = [DOUBT * (row["stderr"] or 0) for row in own]
            axis.errorbar(times, means, errors, color=colour, marker="o", ms=4, lw=1, capsize=2, label=kind)
        axis.set(title=name, xlabel="processor time a move (ms)", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean score, ± 2 standard errors")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=min(5, 2 * len(by_game)),
        frameon=False,
    )
    figure.savefig(path, dpi=110)
    print(f"drawn: {path}")


def main() -> None:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play", help="play the rows of a game")
    playing.add_argument("game")
    playing.add_argument("--model", help="a model file or run folder; by default the built-in model of the game")
    playing.add_argument("--out", default="docs/results/ladder", help="the folder of the rows")
    playing.add_argument("--row", type=float, default=60, help="seconds for a row")
    playing.add_argument("--total", type=float, default=float("inf"), help="begin no row after so many seconds")
    playing.add_argument("--most", type=int, default=1000, help="games of a row")
    playing.add_argument("--seed", type=int, default=1)
    playing.add_argument("--workers", type=int, default=processors())
    showing = commands.add_parser("show", help="table, who is beaten, picture")
    showing.add_argument("out", nargs="?", default="docs/results/ladder")
    showing.add_argument("--picture", help="draw it into this file")
    showing.add_argument("--page", help="write this page of the docs")
    options = parser.parse_args()
    {"play": play, "show": show}[options.command](options)


if __name__ == "__main__":
    main()
