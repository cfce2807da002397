"""The page of an experiment: Markdown made from figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilesage.reports.steps import Done

NOT_RUN = "not run"


@dataclass(frozen=True)
class Reported:
    """The figures of a report; shares in percent, `end` where it gives one."""

    mean: float
    best: int | None = None
    reach: Mapping[int, float] = field(default_factory=dict)
    end: Mapping[int, float] = field(default_factory=dict)
    moves: float | None = None
    ops: float | None = None


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def mean_of(done: Done | None) -> str:
    """The mean with its standard error."""
    if done is None:
        return NOT_RUN
    error = done.figures.get("stderr")
    return f"**{done.figures['mean']:,.0f}**" + (f" ± {error:,.0f}" if error is not None else "")


def reach_of(done: Done | None, tile: int) -> float:
    """Share of games whose largest tile is at least this one, in percent."""
    shares = done.figures["tiles"] if done else {}
    above = [float(share["end"]) for number, share in shares.items() if int(number) >= tile]
    return 100 * sum(above)


def end_of(done: Done | None, tile: int) -> float:
    """Share of games that ended with exactly this tile as the largest, in percent."""
    return 100 * float(done.figures["tiles"].get(str(tile), {"end": 0.0})["end"]) if done else 0.0


def side_by_side(reported: Reported, ours: Mapping[str, Done | None], tiles: Sequence[int]) -> str:
    """One column as reported, then one for each of our players."""
    found = {label: done for label, done in ours.items() if done is not None}
    rows = [
        ["mean score", f"{reported.mean:,.0f}", *(mean_of(done) for done in found.values())],
        ["games", "", *(f"{done.figures['games']:,}" for done in found.values())],
        ["max score", _number(reported.best), *(f"{done.figures['max']:,}" for done in found.values())],
    ]
    if reported.moves is not None:
        moves = [f"{done.figures['moves'] / done.figures['games']:,.0f}" for done in found.values()]
        rows.append(["moves a game", _number(reported.moves), *moves])
    for tile in tiles:
        said = _share(reported.reach.get(tile), reported.end.get(tile))
        rows.append([f"{tile}", said, *(_share(reach_of(done, tile), end_of(done, tile)) for done in found.values())])
    missing = [label for label, done in ours.items() if done is None]
    note = f"\n\nNot run: {', '.join(missing)}." if missing else ""
    return table(["", "reported", *found], rows) + note


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _share(reach: float | None, end: float | None) -> str:
    if reach is None:
        return ""
    return f"{reach:.1f} %" + (f" ({end:.1f} %)" if end else "")


def verdict(done: Done | None) -> str:
    """What the referee said of the recorded games."""
    if done is None:
        return "The games were not judged."
    said = done.figures
    if not said["ok"]:
        return f"**The referee found a fault:** {said['fault'] or 'unfair chance'}."
    smallest = min((test["p"] for test in said["fairness"]), default=1.0)
    return (
        f"The referee replayed all {said['games']:,} games with rules of its own: every action legal, every game "
        f"played to its end, chance fair (smallest of {len(said['fairness'])} p-values {smallest:.3f})."
    )


def speed(done: Done | None, reported: float) -> str:
    """Actions of both sides a second, by the times in the records."""
    if done is None:
        return f"Reported: {reported:,.0f} actions/s."
    return f"Speed: **{done.figures['ops']:,.0f} actions/s** on one core; reported: {reported:,.0f}."


def points(done: Done | None, reported: float) -> str:
    """The course's points for its second project."""
    found = done.figures["points"] if done else None
    return f"Points: **{found['project 2']}** of 100; reported: {reported}." if found else ""


def how_it_was_made(done: Mapping[str, Done]) -> str:
    """Every step with its command, commit, machine and time."""
    if not done:
        return "Nothing has been run yet."
    rows = [
        [name, one.date, f"`{one.commit}`", one.machine, _seed(one.command), duration(one.whole_time)]
        for name, one in done.items()
    ]
    commands = "\n".join(one.command for one in done.values())
    total = duration(sum(one.whole_time for one in done.values()))
    head = ["step", "date", "commit", "machine", "seed", "time"]
    return f"{table(head, rows)}\n\nAll of it: {total}.\n\n```\n{commands}\n```"


def _seed(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("--seed") + 1] if "--seed" in words else ""


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(7.3), duration(95), duration(7265)
    ('7 s', '1 min 35 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
