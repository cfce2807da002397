"""What a set of games amounts to: mean, error, largest tiles, and the three tables people know.

Everything is kept as Python integers (number, sum, sum of squares, counts), so the figures do not depend on
the order in which games finish or on the number of workers, and two halves merge into exactly the whole.

    >>> stats = Statistics("2048", tiles=(0, 2, 4, 8, 16))
    >>> for score, largest in ((100, 4), (60, 3)):
    ...     stats.add(score, largest)
    >>> stats.mean, stats.best, stats.reach(16), stats.end(8)
    (80.0, 100, 0.5, 0.5)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf, nan, sqrt

from tilesage import games

SUMS = ("slides", "placements", "ms", "slide_ms", "placement_ms")


def counted(number: int, what: str) -> str:
    """A number with its noun: 1 game, 1,000 games."""
    return f"{number:,} {what}{'s' * (number != 1)}"


@dataclass
class Statistics:
    """Sums over games. `add` one game, `add_games` many, `merge` another set."""

    game: str
    tiles: tuple[int, ...] = ()  # index -> tile number
    slides: int = 0  # actions of the player
    placements: int = 0  # actions of chance
    ms: int = 0  # time of the games, in milliseconds
    slide_ms: int = 0  # the player's part of it
    placement_ms: int = 0
    timed_apart: bool = True  # slides and placements each had a clock
    scores: Counter[int] = field(default_factory=Counter)  # score -> games
    ends: Counter[int] = field(default_factory=Counter)  # index of the largest tile -> games

    def __post_init__(self) -> None:
        self.tiles = self.tiles or games.get(self.game).tiles

    def __repr__(self) -> str:
        return f"Statistics({self.game}: {self.told}, max {self.best:,})"

    @property
    def told(self) -> str:
        """In a few words: 1,000 games, mean 12,345 ± 67."""
        mean = f", mean {self.mean:,.0f}" if self.games else ""
        return counted(self.games, "game") + mean + (f" ± {self.stderr:,.0f}" if self.games > 1 else "")

    def add(self, score: int, largest: int, slides: int = 0, placements: int = 0, **times: int) -> None:
        """Count one game; `largest` is the index of its largest tile, `times` are its milliseconds."""
        self.scores[score] += 1
        self.ends[largest] += 1
        for name, amount in (("slides", slides), ("placements", placements), *times.items()):
            setattr(self, name, getattr(self, name) + amount)

    def add_games(self, scores: Iterable[int], largest: Iterable[int], slides: Iterable[int]) -> None:
        """Count many games, for instance from three arrays of one length."""
        for score, tile, moves in zip(scores, largest, slides, strict=True):
            self.add(int(score), int(tile), int(moves))

    def merge(self, other: Statistics) -> None:
        """Add the games of another set."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.timed_apart = self.timed_apart and other.timed_apart
        self.scores.update(other.scores)
        self.ends.update(other.ends)

    @property
    def games(self) -> int:
        """How many."""
        return self.ends.total()

    @property
    def best(self) -> int:
        """The highest score."""
        return max(self.scores, default=0)

    @property
    def total(self) -> int:
        """The sum of all scores."""
        return sum(score * times for score, times in self.scores.items())

    @property
    def mean(self) -> float:
        """The mean score; nan without games."""
        return self.total / self.games if self.games else nan

    @property
    def stderr(self) -> float:
        """Standard error of the mean, from the unbiased variance; nan for fewer than two games."""
        n = self.games
        if n < 2:
            return nan
        squares = sum(score * score * times for score, times in self.scores.items())
        return sqrt((n * squares - self.total**2) / (n * n * (n - 1)))

    @property
    def median(self) -> float:
        """The middle score, or the mean of the two in the middle."""
        if not self.games:
            return nan
        ordered = sorted(self.scores)
        upto = list(accumulate(self.scores[score] for score in ordered))
        return sum(ordered[bisect_right(upto, place // 2)] for place in (self.games - 1, self.games)) / 2

    def reach(self, tile: int) -> float:
        """Share of games whose largest tile is at least this tile number."""
        return self._share(lambda number: number >= tile)

    def end(self, tile: int) -> float:
        """Share of games that ended with exactly this tile as the largest."""
        return self._share(lambda number: number == tile)

    def _share(self, counts: Callable[[int], bool]) -> float:
        games = sum(n for index, n in self.ends.items() if counts(self.tiles[index]))
        return games / self.games if self.games else nan

    @property
    def tile_shares(self) -> dict[str, dict[str, float]]:
        """Per tile, up to the largest that was made: reach and end, as in `--json`."""
        numbers = self.tiles[1 : max(self.ends, default=0) + 1]
        return {str(tile): {"reach": self.reach(tile), "end": self.end(tile)} for tile in numbers}

    @property
    def ops(self) -> float:
        """Actions of both sides a second."""
        return _rate(self.slides + self.placements, self.ms)

    def summary(self) -> dict[str, object]:
        """The figures for `--json`."""
        figures: dict[str, object] = {
            "games": self.games,
            "mean": self.mean,
            "stderr": self.stderr,
            "median": self.median,
            "max": self.best,
            "moves": self.slides,
            "tiles": self.tile_shares,
        }
        return {key: None if value != value else value for key, value in figures.items()}


def _rate(actions: int, ms: int) -> float:
    """Actions a second; like the course's program, inf for no time at all and nan for nothing in no time."""
    if ms:
        return actions * 1000.0 / ms
    return inf if actions else nan


def _tile_lines(stats: Statistics) -> list[str]:
    """`⇥2048⇥93.5%⇥(9.9%)`, one line a largest tile, ascending."""
    made = [stats.tiles[index] for index in sorted(stats.ends)]
    return [f"\t{tile}\t{100 * stats.reach(tile):g}%\t({100 * stats.end(tile):g}%)" for tile in made]


def course_table(stats: Statistics) -> str:
    """The table of the course's framework."""
    if not stats.games:
        return "0"
    slider = _rate(stats.slides, stats.slide_ms) if stats.timed_apart else stats.ops
    placer = _rate(stats.placements, stats.placement_ms) if stats.timed_apart else stats.ops
    head = (
        f"{stats.games}\tavg = {stats.total // stats.games}, max = {stats.best}, "
        f"ops = {stats.ops:.0f} ({slider:.0f}|{placer:.0f})"
    )
    return "\n".join([head, *_tile_lines(stats)])


def demo_table(stats: Statistics) -> str:
    """The table of the demo program."""
    if not stats.games:
        return "0"
    head = f"{stats.games}\tavg = {stats.mean:g}\tmax = {stats.best}"
    return "\n".join([head, *_tile_lines(stats)])


def our_table(stats: Statistics) -> str:
    """Plain lines: the mean with its error, then the largest tiles, from the one that matters downwards."""
    if not stats.games:
        return "no games"
    error = f" ± {stats.stderr:,.1f}" if stats.games > 1 else ""
    lines = [
        f"{counted(stats.games, 'game')} of {stats.game}",
        f"  mean    {stats.mean:,.1f}{error}",
        f"  median  {stats.median:,.1f}",
        f"  max     {stats.best:,}",
    ]
    if stats.slides:
        lines.append(f"  moves   {stats.slides:,} ({stats.slides / stats.games:,.1f} a game)")
    lines.append(f"  {'tile':>6}  {'reach':>8}  {'end':>8}")
    for tile in (stats.tiles[index] for index in sorted(stats.ends)):
        lines.append(f"  {tile:>6}  {100 * stats.reach(tile):>6.2f} %  {100 * stats.end(tile):>6.2f} %")
    return "\n".join(lines)


TABLES: dict[str, Callable[[Statistics], str]] = {
    "ours": our_table,
    "course": course_table,
    "demo": demo_table,
}
