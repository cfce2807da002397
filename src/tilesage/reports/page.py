"""The page of a report: Markdown drawn from its data and from the figures of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilesage.reports import cells, drawings
from tilesage.reports.cells import Cell, Figure
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Done, Experiment

NOT_RUN = "not run"
FIRST = ("1.learn", "1.test", "1.judge")  # of a row's first seed


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def page_of(report: Report, experiment: Experiment, scale: Scale, folder: Path) -> str:
    """The whole page; pictures go into `folder`."""
    size = "" if scale.name == "full" else "\n\n*This is the quick scale: minutes instead of the report's games.*"
    again = f"tilesage reproduce {report.name} --scale {scale.name}"
    parts = [
        f"# {report.name}: {report.data['title']}",
        report.data["about"].strip() + size,
        "## Reported and ours",
        *_first_table(report, experiment.done),
        *_ablation(report, experiment.done),
        *_more_tables(report, experiment.done),
        *drawings.pictures_of(report, experiment, folder),
        "## How it was made",
        f"`{again}` goes on from the figures in `{experiment.data.name}/`, one file a row; what is missing is run.",
        how_it_was_made(experiment.done),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_table(report: Report, done: Mapping[str, Done]) -> list[str]:
    """Every reported cell, ours, the verdict; end shares beside."""
    first, reported = report.data["first"], report.data["reported"]
    row = cells.judged_row(report, done)
    tests, half = cells.judged_tests(report, row, done), cells.is_half(report, row)
    lines = []
    for cell in cells.cells_of(report, row, done):
        tile = int(cell.name) if cell.name.isdigit() else None
        ends = cells.together([cells.end_in(test, tile) for test in tests]) if tile else None
        said = reported.get("end", {}).get(cell.name)
        end = ["" if said is None else f"{said} %", _percent(ends) if ends else ""]
        lines.append([cell.name, *_cell(cell), cell.verdict or NOT_RUN, *end])
    score = "max score (half)" if half else "max score"
    factor = 0.5 if half else 1.0
    best = f"{max(factor * test.figures['max'] for test in tests):,.0f}" if tests else ""
    lines.append([score, f"{reported['max']:,}" if "max" in reported else "", best, "", "", ""])
    if "moves" in reported:
        moves = cells.together([Figure(test.figures["moves"] / test.figures["games"]) for test in tests])
        lines.append(["moves a game", f"{reported['moves']:,}", f"{moves.value:,.0f}" if moves else "", "", "", ""])
    who = f"Ours is {report.rows[row]['label']}: {first['judged']}.\n{first.get('text', '')}".strip()
    head = ["", "reported", "ours", "verdict", "reported end", "our end"]
    return [who, table(head, lines), *_judge(report, row, done)]


def _judge(report: Report, row: str, done: Mapping[str, Done]) -> list[str]:
    """What the referee, who has rules of his own, said of the recorded games, of every seed."""
    judged = {name: one for name, one in done.items() if name.rsplit("-", 1)[0] == row and name.endswith(".judge")}
    reported, first = report.data["reported"], report.data["first"]
    found = [verdict(name.split(".")[0], one) for name, one in judged.items()]
    speeds = sorted(one.figures["ops"] for one in judged.values() if "ops" in one.figures)
    if speeds and "ops" in reported:
        words = f"{speeds[0]:,.0f}" + (f" to {speeds[-1]:,.0f}" if len(speeds) > 1 else "")
        found.append(f"Actions a second on one core: ours {words}; reported {reported['ops']:,}.")
        if expected := first.get("expected_ops"):
            word = "met" if speeds[0] >= expected else "below"
            found[-1] += f" The judge expected {expected:,}: {word}."
    if judged and "points" in reported:
        points = [one.figures["points"]["project 2"] for one in judged.values() if one.figures.get("points")]
        if points:
            each = ", ".join(f"{point}" for point in points)
            found.append(f"Points of 100, seed by seed: {each}; reported {reported['points']}.")
    return ["\n".join(f"- {line}" for line in found)] if found else []


def verdict(run: str, done: Done) -> str:
    """What the referee said of one file of games."""
    said = done.figures
    if not said["ok"]:
        return f"{run}: **the referee found a fault:** {said.get('fault') or 'unfair chance'}."
    smallest = min(said["fairness"], default=1.0)
    games = f"{said['games']:,} games, every action legal, each to its end"
    return f"{run}: {games}, chance fair (p at most {smallest:.3f})."


def _ablation(report: Report, done: Mapping[str, Done]) -> list[str]:
    """A line a row: its mean and its share of games, reported and ours, of the best test and over all of them."""
    ablation = report.data.get("ablation")
    if not ablation:
        return []
    lines, maxima, others = [], [], []
    for row in ablation["rows"]:
        reported, tests = report.rows[row]["reported"], cells.all_tests(row, done)
        found = cells.cells_of(report, row, done, reported)
        all_means = cells.together([cells.mean_in(test) for test in tests])
        all_shares = cells.together([cells.reach_in(test, ablation["tile"]) for test in tests])
        ours = [text for cell in found for text in (*_cell(cell), cell.verdict or NOT_RUN)]
        lines.append([report.rows[row]["label"], *ours, _score(all_means), _percent(all_shares)])
        best = f"{max(test.figures['max'] for test in tests):,}" if tests else NOT_RUN
        maxima.append([report.rows[row]["label"], f"{reported['max']:,}", best])
    for row in ablation["afterstates"]:
        tests = cells.all_tests(row, done)
        if tests:
            means = cells.together([cells.mean_in(test) for test in tests])
            shares = cells.together([cells.reach_in(test, ablation["tile"]) for test in tests])
            others.append([report.rows[row]["label"], _score(means), _percent(shares)])
    tile = ablation["tile"]
    head = ["row", "reported mean", "ours", "verdict", f"reported {tile}", f"our {tile}", "verdict"]
    parts = ["### The ablation", table([*head, "mean of ten", f"{tile}, mean of ten"], lines)]
    parts += ["### Maxima (shown, not judged)", table(["row", "reported", "ours"], maxima)]
    if others:
        parts += ["### Values of afterstates", table(["row", "mean of ten", f"{tile}, mean of ten"], others)]
    return parts


def _more_tables(report: Report, done: Mapping[str, Done]) -> list[str]:
    """Players side by side: what is ours besides."""
    parts = []
    for wanted in report.data.get("tables", ()):
        found = {row: tests for row in wanted["rows"] if (tests := cells.judged_tests(report, row, done))}
        if not found:
            continue
        tiles = sorted({int(tile) for tests in found.values() for test in tests for tile in test.figures["ends"]})
        tiles = tiles[-len(report.data["reported"]["reach"]) - 1 :]
        lines = [
            ["mean score", *(_mean(report, row, tests) for row, tests in found.items())],
            ["games", *(f"{sum(test.figures['games'] for test in tests):,}" for tests in found.values())],
            ["moves a game", *map(_moves, found.values())],
        ]
        for tile in tiles:
            shares = [cells.together([cells.reach_in(test, tile) for test in tests]) for tests in found.values()]
            lines.append([str(tile), *(_percent(share) for share in shares)])
        parts += [f"### {wanted['title']}", table(["", *(report.rows[row]["label"] for row in found)], lines)]
    return parts


def _mean(report: Report, row: str, tests: Sequence[Done]) -> str:
    return _score(cells.together([cells.mean_in(test, cells.is_half(report, row)) for test in tests]))


def _moves(tests: Sequence[Done]) -> str:
    return f"{sum(test.figures['moves'] for test in tests) / sum(test.figures['games'] for test in tests):,.0f}"


def _cell(cell: Cell) -> tuple[str, str]:
    if cell.name == "mean score":
        return f"{cell.reported.value:,.0f}", _score(cell.ours)
    return f"{cell.reported.value} %", _percent(cell.ours)


def _score(figure: Figure | None) -> str:
    return f"**{figure.value:,.0f}** ± {figure.error:,.0f}" if figure else NOT_RUN


def _percent(figure: Figure | None) -> str:
    return f"{figure.value:.2f} %" if figure else NOT_RUN


def all_cells(reports: Sequence[tuple[Report, Mapping[str, Done]]]) -> str:
    """One page with every judged cell of all reports."""
    lines: list[list[str]] = []
    counts: dict[str, int] = {}
    for report, done in reports:
        rows = [(cells.judged_row(report, done), cells.cells_of(report, cells.judged_row(report, done), done))]
        for row in report.data.get("ablation", {}).get("rows", ()):
            rows.append((row, cells.cells_of(report, row, done, report.rows[row]["reported"])))
        for row, found in rows:
            for cell in found:
                name = f"[{report.name}]({report.name}.md)"
                word = cell.verdict or NOT_RUN
                counts[word] = counts.get(word, 0) + 1
                lines.append([name, report.rows[row]["label"], cell.name, *_cell(cell), word])
    total = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    head = ["report", "row", "cell", "reported", "ours", "verdict"]
    intro = (cells.__doc__ or "").split("\n\n", 1)[1].strip()
    return f"# Every cell of the five reports\n\n{intro}\n\nAll: {total}.\n\n{table(head, lines)}\n"


def how_it_was_made(done: Mapping[str, Done]) -> str:
    """Every row with its commit, machine and time; the commands of the first seed and the first test."""
    if not done:
        return "Nothing has been run yet."
    rows: dict[str, list[Done]] = {}
    for name, one in done.items():
        rows.setdefault(name.rsplit(".", 1)[0], []).append(one)
    lines = [
        [
            row,
            steps[0].date,
            f"`{steps[0].commit}`",
            steps[0].machine,
            duration(sum(step.whole_time for step in steps)),
        ]
        for row, steps in rows.items()
    ]
    commands = "\n".join(one.command for name, one in done.items() if name.rsplit("-", 1)[1] in FIRST)
    total = duration(sum(one.whole_time for one in done.values()))
    head = ["row and seed", "date", "commit", "machine", "time"]
    first = "The commands of seed 1 (other seeds, and other tests, differ in `--seed` alone):"
    return f"{table(head, lines)}\n\nAll of it: {total}. {first}\n\n```\n{commands}\n```"


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
