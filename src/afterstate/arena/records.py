"""Game records: one line a game, the format of the course's framework (docs/records.md).

A `Record` is neutral data: names, times and a list of slides and placements. `format_record` and
`parse_record` turn it into a line and back; `read_records` streams a file of any size.

    >>> line = "me:chance@1000|0151#L[4]32(1)|chance@1003"
    >>> record = parse_record(line)
    >>> record.game, record.actions[2], record.actions[3]
    ('2048', Slide(action=3, reward=4, ms=0), Place(cell=3, tile=2, hint=(), reward=0, ms=1))
    >>> format_record(record) == line
    True

Reading checks the form only. Whether the game was played by the rules is the referee's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from os import PathLike
from pathlib import Path
from random import Random
from typing import IO, NamedTuple, TextIO, TypeAlias

from afterstate.games.errors import Mistake

SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SLIDES = "URDL"  # letters of the actions 0-3
START_TILES = {"2048": 2, "threes": 9, "threes-phone": 9}
PLACEMENT_WIDTH = {"2048": 2, "threes": 3, "threes-phone": 4}  # characters of a placement

# 2048 ends after at most about a million moves of 22 characters: no game has a longer line.
LONGEST_LINE = 32 * 2**20

NAME = r"[^|:@\x00-\x1f]{0,200}"
HEAD = re.compile(rf"({NAME}):({NAME})@([0-9]{{1,18}})\|")
TAIL = re.compile(rf"({NAME})@([0-9]{{1,18}})")
MARKS = r"(?:\[([0-9]{1,12})\])?(?:\(([0-9]{1,12})\))?"
ACTION = re.compile(rf"#(.){MARKS}|([0-9A-Z]+){MARKS}")


class Slide(NamedTuple):
    """The player's action: 0 up, 1 right, 2 down, 3 left."""

    action: int
    reward: int = 0
    ms: int = 0


class Place(NamedTuple):
    """Chance's action: a tile (its index) lands on a cell, and the next hint is shown."""

    cell: int
    tile: int
    hint: tuple[int, ...] = ()  # 2048: (); Threes!: the next tile; on the phone a bonus is a window of up to three
    reward: int = 0
    ms: int = 0


Action: TypeAlias = Slide | Place


@dataclass(frozen=True)
class Record:
    """One game, as recorded. It ends when the slider is stuck, so the placer wins."""

    game: str
    actions: list[Action] = field(repr=False)
    slider: str = "afterstate"
    placer: str = "chance"
    start_ms: int = 0
    end_ms: int = 0


class Line(NamedTuple):
    """One line of a file; `text` is None when the line is longer than any game."""

    number: int
    text: str | None


def guess_game(moves: str) -> str:
    """Which game the moves of a record are from: by the characters before the first slide.

    Two placements of two characters are 2048, nine of three Threes!, nine of four Threes! as on the phone;
    a damaged start goes to the nearest.
    """
    first = moves[:2000].split("#", 1)[0]
    width = len(re.sub(r"\[[^\]]*\]|\([^)]*\)", "", first))
    if width <= 12:
        return "2048"
    return "threes" if width < 32 else "threes-phone"


def _marks(reward: int, ms: int) -> str:
    return (f"[{reward}]" if reward else "") + (f"({ms})" if ms else "")


def format_action(game: str, action: Action) -> str:
    """One action as text.

    >>> format_action("threes", Place(3, 3, (1,), 3)), format_action("threes-phone", Place(15, 1, (4, 5, 6)))
    ('331[3]', 'F146')
    """
    if isinstance(action, Slide):
        return f"#{SLIDES[action.action]}{_marks(action.reward, action.ms)}"
    text = SYMBOLS[action.cell] + SYMBOLS[action.tile]
    if game == "threes":
        text += SYMBOLS[action.hint[0]]
    elif game == "threes-phone":
        text += SYMBOLS[action.hint[0]] + SYMBOLS[action.hint[-1]]
    return text + _marks(action.reward, action.ms)


def format_record(record: Record) -> str:
    """The line of a game, without the line break."""
    for name in (record.slider, record.placer):
        if not re.fullmatch(NAME, name):
            raise Mistake(f"the name {name!r} cannot stand in a record: leave out ':', '@', '|' and line breaks")
    moves = "".join(format_action(record.game, action) for action in record.actions)
    return (
        f"{record.slider}:{record.placer}@{record.start_ms}|{moves}|{record.placer}@{record.end_ms}"
    )


def _parse_place(game: str, text: str, reward: int, ms: int) -> Place:
    indices = [SYMBOLS.index(symbol) for symbol in text]
    hint = tuple(indices[2:])
    if game == "threes-phone":
        hint = tuple(range(indices[2], indices[3] + 1))
    return Place(indices[0], indices[1], hint, reward, ms)


def parse_moves(game: str, text: str) -> Iterator[Action]:
    """The actions of the middle part of a record."""
    width = PLACEMENT_WIDTH[game]
    at = 0
    while at < len(text):
        found = ACTION.match(text, at)
        if not found:
            raise Mistake(f"unreadable action at {text[at : at + 12]!r}")
        letter, reward, ms, places, place_reward, place_ms = found.groups()
        at = found.end()
        if letter is not None:
            if letter not in SLIDES:
                raise Mistake(f"unknown slide '#{letter}': write #U, #R, #D or #L")
            yield Slide(SLIDES.index(letter), int(reward or 0), int(ms or 0))
            continue
        if len(places) % width:
            raise Mistake(f"placements of {game} have {width} characters, found {places[:40]!r}")
        for i in range(0, len(places) - width, width):
            yield _parse_place(game, places[i : i + width], 0, 0)
        yield _parse_place(game, places[-width:], int(place_reward or 0), int(place_ms or 0))


def parse_record(line: str, game: str = "auto") -> Record:
    """The game of a line; a Mistake says what is wrong with its form."""
    head = HEAD.match(line)
    if not head:
        raise Mistake(f"no game record: {line[:40]!r} does not begin with SLIDER:PLACER@MILLISECONDS|")
    moves, bar, rest = line[head.end() :].partition("|")
    tail = TAIL.fullmatch(rest.rstrip("\r\n"))
    if not bar or not tail:
        raise Mistake("the record is cut off: it must end with |WINNER@MILLISECONDS")
    game = guess_game(moves) if game == "auto" else game
    if game not in START_TILES:
        raise Mistake(f"no record format for the game {game!r}: write one of {', '.join(START_TILES)} or auto")
    slider, placer, start = head.groups()
    return Record(game, list(parse_moves(game, moves)), slider, placer, int(start), int(tail.group(2)))


def read_lines(stream: IO[bytes]) -> Iterator[Line]:
    """The lines of a file up to the first empty one, never more than one in memory."""
    number = 0
    while raw := stream.readline(LONGEST_LINE + 2):
        number += 1
        raw = raw.rstrip(b"\r\n")
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            yield Line(number, None)
            return
        yield Line(number, raw.decode("utf-8", "surrogateescape"))


def read_records(source: str | PathLike[str] | bytes, game: str = "auto") -> Iterator[Record]:
    """Stream the games of a file (or of the bytes of one), in order, up to the first empty line."""
    with BytesIO(source) if isinstance(source, bytes) else open_records(source) as stream:
        for line in read_lines(stream):
            if line.text is None:
                raise Mistake(f"line {line.number} is longer than any game can be")
            try:
                record = parse_record(line.text, game)
            except Mistake as mistake:
                raise Mistake(f"line {line.number}: {mistake}") from None
            game = record.game
            yield record


def open_records(path: str | PathLike[str]) -> IO[bytes]:
    """Open a file of records for reading; a Mistake when it cannot be."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from None


def write_records(target: str | PathLike[str] | TextIO, records: Iterable[Record]) -> int:
    """Write games one a line as they come; returns how many."""
    if isinstance(target, (str, PathLike)):
        try:
            stream = Path(target).open("w", encoding="utf-8", errors="surrogateescape", newline="\n")
        except OSError as error:
            raise Mistake(f"cannot write {target}: {error.strerror}") from None
        with stream:
            return write_records(stream, records)
    count = 0
    for count, record in enumerate(records, 1):
        target.write(format_record(record) + "\n")
    return count


def start_actions(game: str, cells: Iterable[int], hint: tuple[int, ...], random: Random) -> list[Action]:
    """Placements that lead to a start position, of which only the board and the hint are known.

    Their order is lost on the board, and matters: hints announce tiles and, in `threes`, every three tiles in a
    row are a whole bag. One of the possible orders is chosen at random, all equally likely, as they were.
    """
    placed = [(cell, tile) for cell, tile in enumerate(cells) if tile]
    random.shuffle(placed)
    if game == "threes":
        placed = _in_bags(placed, random)
    if game == "2048":
        return [Place(cell, tile) for cell, tile in placed]
    hints = [(tile,) for _, tile in placed[1:]] + [hint]
    return [Place(cell, tile, h, 3 if tile == 3 else 0) for (cell, tile), h in zip(placed, hints)]


def _in_bags(placed: list[tuple[int, int]], random: Random) -> list[tuple[int, int]]:
    """Three times one each of 1, 2, 3, in random order."""
    columns = [[place for place in placed if place[1] == tile] for tile in (1, 2, 3)]
    ordered = []
    for bag in zip(*columns):
        ordered += random.sample(bag, 3)
    return ordered
