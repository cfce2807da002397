"""Which settings learn best in a minute, in ten: every candidate of every game, with its greedy games.

    python benchmarks/recipes.py measure --seconds 60 --seeds 1 2 3          two cores, one training after another
    python benchmarks/recipes.py measure --slots 8 --cores 2                 eight at once, two cores each
    python benchmarks/recipes.py show                                        the means, the best of each game first
    python benchmarks/recipes.py write                                       its winners into the package's table
    python benchmarks/recipes.py check                                       has docs/learning.md the table's rows?

Every measurement is a line of --results as soon as it is there; a second call goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from queue import Queue
from typing import Any

from tilesage.learning.recipes import Recipe, flags_of, recipes
from tilesage.reports.steps import machine_here

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src" / "tilesage" / "learning" / "recipes.toml"
PAGE = ROOT / "docs" / "learning.md"
HEAD = "| game | device | seconds | mean | flags |\n|---|---|---|---|---|\n"

SOFT = {"phases": "tc:1:0.5,soften:1:0.2,soften:1>0.05:0.3"}
SQUARES: dict[str, Any] = {"network": "4x6+squares"}
AGED: dict[str, Any] = SQUARES | {"by_age": True, "decay": 0.5}
HINTS: dict[str, Any] = {"by_hint": True, "turned": False, "decay": 0.5}
FIVES: dict[str, Any] = {"network": "small+01234,45678,01245,45689"} | HINTS
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "2048": [
        AGED | {"fold": "4096"},
        AGED | {"fold": "4096"} | SOFT,
        AGED | {"fold": "8192"},
        AGED | {"fold": "4096", "rate": "3>0.5"},
    ],
    "threes": [SQUARES, SQUARES | SOFT, SQUARES | {"rate": "3>0.5"}, SQUARES | {"rule": "td", "rate": "0.2>0.02"}],
    "threes-phone": [
        {"network": "17x4"} | HINTS,
        FIVES,
        FIVES | SOFT,
        SQUARES | HINTS,
        FIVES | SOFT | {"stages": "3072", "start": "ahead"},
    ],
    "fibonacci": [AGED, AGED | SOFT, SQUARES | {"decay": 0.5}, AGED | {"rate": "3>0.5"}],
}


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a measurement another one."""
    return row["game"], row["seconds"], row["cores"], row["seed"], flags_of(row["settings"])


def measured(results: Path) -> list[dict[str, Any]]:
    """All measurements so far; a line that was cut off is none."""
    found = []
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def wanted(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The measurements of the command line, all games in turn."""
    for seed in chosen.seeds:
        rounds = max(len(CANDIDATES[game]) for game in chosen.game)
        for number, game in product(range(rounds), chosen.game):
            if number in (chosen.only or range(len(CANDIDATES[game]))) and number < len(CANDIDATES[game]):
                settings = CANDIDATES[game][number]
                yield {
                    "game": game,
                    "seconds": chosen.seconds,
                    "cores": chosen.cores,
                    "seed": seed,
                    "settings": settings,
                }


def measure(chosen: argparse.Namespace) -> None:
    """Train and play whatever is not measured yet, in so many slots of so many cores each."""
    have = sorted(os.sched_getaffinity(0))
    if chosen.slots * chosen.cores > len(have):
        sys.exit(f"{chosen.slots} slots of {chosen.cores} cores are more than the {len(have)} cores here")
    done = {key(row) for row in measured(chosen.results)}
    free: Queue[list[int]] = Queue()
    for slot in range(chosen.slots):
        free.put(have[slot * chosen.cores : (slot + 1) * chosen.cores])
    end = time.monotonic() + 60 * chosen.minutes

    def one(row: dict[str, Any]) -> None:
        if time.monotonic() + row["seconds"] > end:
            return
        cores = free.get()
        try:
            row |= train_and_play(row, chosen.games, cores)
        except subprocess.CalledProcessError as error:
            print(f"{row['game']} {flags_of(row['settings'])}: {error.stderr[-300:]}", flush=True)
            return
        finally:
            free.put(cores)
        with chosen.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['game']:14}{row['mean']:10,.0f} ± {row['error']:<8,.0f}{flags_of(row['settings'])}", flush=True)

    with ThreadPoolExecutor(chosen.slots) as pool:
        list(pool.map(one, [row for row in wanted(chosen) if key(row) not in done]))


def train_and_play(row: dict[str, Any], games: int, cores: list[int]) -> dict[str, Any]:
    """One training and its greedy games, each a command on these cores."""
    with tempfile.TemporaryDirectory() as folder:
        flags = flags_of(row["settings"]).replace("'", "").split()
        budget = [
            "--seconds",
            row["seconds"],
            "--threads",
            row["cores"],
            "--seed",
            row["seed"],
            "--checkpoint",
            10_000,
        ]
        words = ["train", row["game"], "--recipe", "plain", *flags, *budget, "--quiet", "--out", f"{folder}/run"]
        learnt = command(cores, *words, "--json", f"{folder}/learnt.json")
        model = f"{folder}/run"
        played = command(
            cores, "evaluate", model, "--games", games, "--workers", row["cores"], "--quiet", "--json", "-"
        )
    figures = {"moves": learnt["moves"], "games": learnt["games"], "mean": played["mean"], "error": played["stderr"]}
    return figures | {"played": games, "machine": machine_here("cpu"), "python": platform.python_version()}


def command(cores: list[int], *words: object) -> dict[str, Any]:
    """The JSON of a command of ours on these cores."""
    line = [sys.executable, "-m", "tilesage", *map(str, words)]
    stay = partial(os.sched_setaffinity, 0, cores)
    done = subprocess.run(line, capture_output=True, text=True, check=True, preexec_fn=stay)
    where = str(words[words.index("--json") + 1])
    return json.loads(done.stdout if where == "-" else Path(where).read_text(encoding="utf-8"))


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The seeds of a candidate together: the mean of their means, the larger error of games and of seeds."""
    together: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        together[key(row | {"seed": 0})].append(row)
    found = []
    for group in together.values():
        mean = sum(row["mean"] for row in group) / len(group)
        of_games = math.hypot(*(row["error"] for row in group)) / len(group)
        spread = math.sqrt(sum((row["mean"] - mean) ** 2 for row in group) / max(1, len(group) - 1) / len(group))
        figures = {name: round(sum(row[name] for row in group) / len(group)) for name in ("moves", "games")}
        seeds = sorted(row["seed"] for row in group)
        found.append(group[0] | figures | {"mean": mean, "error": max(of_games, spread), "seeds": seeds})
    return sorted(found, key=lambda row: (row["game"], row["seconds"] * row["cores"], -row["mean"]))


def show(chosen: argparse.Namespace) -> None:
    """The means of all candidates."""
    for row in means(measured(chosen.results)):
        figures = f"{row['mean']:10,.0f} ± {row['error']:<7,.0f}{row['moves'] / 1e6:8,.0f} M moves"
        budget = f"{row['seconds']:g} s × {row['cores']}"
        print(f"{row['game']:14}{budget:>10}{figures}  seeds {row['seeds']}  {flags_of(row['settings'])}")


def write(chosen: argparse.Namespace) -> None:
    """The best candidate of each game and budget replaces the table's row of about that budget."""
    rows = [row.__dict__ for row in recipes()]
    best: dict[tuple[str, float], dict[str, Any]] = {}
    for row in means(measured(chosen.results)):
        best.setdefault((row["game"], row["seconds"] * row["cores"] / 2), row)
    for (game, seconds), row in best.items():
        names = ("moves", "games", "settings", "played")
        new = {"game": game, "device": "cpu", "seconds": seconds} | {name: row[name] for name in names}
        seeds = ", ".join(map(str, row["seeds"]))
        where = (
            f"{row['seconds']:g} s of {row['cores']} cores, {row['machine']}, seeds {seeds}, {time.strftime('%B %Y')}"
        )
        new |= {"mean": round(row["mean"]), "error": round(row["error"]), "measured": where}
        rows = [old for old in rows if not near(old, new)] + [new]
    rows.sort(key=lambda row: (list(CANDIDATES).index(row["game"]), row["device"], row["seconds"]))
    comment = TABLE.read_text(encoding="utf-8").partition("[[recipe]]")[0]
    TABLE.write_text(comment + "\n".join(map(as_toml, rows)), encoding="utf-8")
    recipes.cache_clear()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEAD)
    PAGE.write_text(before + table() + rest[rest.index("\n\n") + 1 :], encoding="utf-8")


def near(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Does one row take the other's place?"""
    same = (old["game"], old["device"]) == (new["game"], new["device"])
    return same and 0.4 < old["seconds"] / new["seconds"] < 2.5


def as_toml(row: dict[str, Any]) -> str:
    """A row of the file."""
    order = ["game", "device", "seconds", "moves", "games", "settings", "mean", "error", "played", "measured"]
    return "[[recipe]]\n" + "".join(f"{name} = {toml_value(row[name])}\n" for name in order)


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml_value(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return json.dumps(int(value) if isinstance(value, float) and value == int(value) else value, ensure_ascii=False)


def table() -> str:
    """The table of docs/learning.md."""

    def line(row: Recipe) -> str:
        reached = f"{row.mean:,.0f} ± {row.error:,.0f}"
        return f"| {row.game} | {row.device} | {row.seconds:,.0f} | {reached} | `{row.flags}` |\n"

    return HEAD + "".join(map(line, recipes()))


def check(chosen: argparse.Namespace) -> None:
    """Is the page's table that of the data?"""
    if table() + "\n" not in PAGE.read_text(encoding="utf-8"):
        sys.exit(f"{PAGE.name} should have\n{table()}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["measure", "show", "write", "check"])
    arguments.add_argument("--results", type=Path, default=Path("recipes.jsonl"))
    arguments.add_argument("--game", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    arguments.add_argument("--only", nargs="+", type=int, help="numbers of candidates, from 0 on")
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seeds", nargs="+", type=int, default=[1])
    arguments.add_argument("--games", type=int, default=1000, help="greedy games of each")
    arguments.add_argument("--cores", type=int, default=2)
    arguments.add_argument("--slots", type=int, default=1)
    arguments.add_argument("--minutes", type=float, default=math.inf, help="begin no training that would end later")
    chosen = arguments.parse_args()
    {"measure": measure, "show": show, "write": write, "check": check}[chosen.what](chosen)


if __name__ == "__main__":
    main()
