"""D1: UCT with random rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilesage.reports.drawings import reach_bars
from tilesage.reports.page import Reported, side_by_side, verdict
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Experiment, Step

REPORTED = Reported(10_086.7, None, {1024: 100, 2048: 93}, moves=767)
TILES = (512, 1024, 2048, 4096, 8192)
PLAYERS = {"limits": "mcts:d1", "laptop": "mcts:70", "more": "mcts:4000"}
LABELS = {
    "limits": "ours, D1's limits (400 iterations)",
    "laptop": "ours, 70 iterations",
    "more": "ours, 4,000 iterations",
}
ABOUT = """
UCT with random rollouts to the end of the game, a new tree for every move, c = Q/N of the node instead of a constant,
at most 400 iterations and one second a move, two seconds past 7,000 points; the answer is the child with the largest
Q/N (`search/uct.py`). The report's laptop managed 40–70 iterations a move early in a game and 100–400 late; here 400
take a millisecond or two, so the limits of time never bind. The second column plays with 70 iterations, about what
that laptop had at the start of a game; the third spends ten times as much thought, on twenty games.

The reported figures do not fit together: a 2048 tile takes about 930 moves and 20,000 points, so games of which 93 %
have one cannot average 10,087 points and 767 moves. What the method gives under the usual rules stands beside them.

`tilesage reproduce D1 --watch` shows a game of it first, one move a second.
"""


def steps(scale: Scale) -> Sequence[Step]:
    """Play the games of each player, and let the referee judge one file of them."""
    games = {"limits": scale.pick(4, 100), "laptop": scale.pick(8, 100), "more": scale.pick(1, 20)}
    found = []
    for name, agent in PLAYERS.items():
        words = ("evaluate", "--agent", agent, "--games", games[name], "--seed", str(scale.seed))
        records = f"{name}.txt"
        save = ("--workers", str(scale.threads), "--save", f"{{run}}/{records}")
        found.append(Step(name, words + save, records))
    found.append(Step("judge", ("referee", "{run}/limits.txt")))
    return found


def results(experiment: Experiment, folder: Path) -> str:
    """The figures beside those reported, with drawings."""
    ours = {LABELS[name]: experiment.done.get(name) for name in PLAYERS}
    words = side_by_side(REPORTED, ours, TILES)
    pace = [
        f"- {LABELS[name]}: {done.figures['moves_per_second']:,.0f} moves/s on {done.figures['workers']} threads"
        for name in PLAYERS
        if (done := experiment.done.get(name))
    ]
    picture = reach_bars(folder / "D1-tiles.png", REPORTED, ours, TILES)
    return "\n\n".join([words, picture, "\n".join(pace), verdict(experiment.done.get("judge"))])


REPORT = Report("D1", "2048, Monte Carlo tree search with random rollouts", ABOUT, steps, results)
