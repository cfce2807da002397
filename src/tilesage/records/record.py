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

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from io import BytesIO
from os import PathLike
from pathlib import Path
from random import Random
from typing import IO, NamedTuple, TypeAlias

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.games import Game, State
from tilesage.games.board import Board
from tilesage.records.notation import (
    ACTION,
    HEAD,
    NAME,
    SLIDES,
    SYMBOLS,
    TAIL,
    Line,
    earned,
    guess_game,
    notation_of,
    open_records,
    read_lines,
)

LONGEST_NUMBER = 18  # digits


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
    slider: str = "tilesage"
    placer: str = "chance"
    start_ms: int = 0
    end_ms: int = 0


def format_action(width: int, action: Action) -> str:
    """One action as text; a placement has so many characters.

    >>> format_action(3, Place(3, 3, (1,), 3)), format_action(4, Place(15, 1, (4, 5, 6)))
    ('331[3]', 'F146')
    """
    marks = (f"[{action.reward}]" if action.reward else "") + (f"({action.ms})" if action.ms else "")
    if isinstance(action, Slide):
        return f"#{SLIDES[action.action]}{marks}"
    shown = (action.cell, action.tile, *action.hint[:1], *action.hint[-1:])[:width]
    return "".join(SYMBOLS[index] for index in shown) + marks


def format_record(record: Record) -> str:
    """The line of a game, without the line break."""
    for name in (record.slider, record.placer):
        if not re.fullmatch(NAME, name):
            raise InputError(f"the name {name!r} cannot stand in a record: leave out ':', '@', '|' and line breaks")
    width = notation_of(record.game).width
    moves = "".join(format_action(width, action) for action in record.actions)
    return f"{record.slider}:{record.placer}@{record.start_ms}|{moves}|{record.placer}@{record.end_ms}"


def _parse_place(text: str, reward: int, ms: int) -> Place:
    cell, tile, *hint = [SYMBOLS.index(symbol) for symbol in text]
    window = range(hint[0], hint[-1] + 1) if hint else ()
    return Place(cell, tile, tuple(window), reward, ms)


def parse_moves(game: str, text: str) -> Iterator[Action]:
    """The actions of the middle part of a record."""
    width = notation_of(game).width
    at = 0
    while at < len(text):
        found = ACTION.match(text, at)
        if not found:
            raise InputError(f"unreadable action at {text[at : at + 12]!r}")
        letter, reward, ms, places, place_reward, place_ms = found.groups()
        at = found.end()
        if letter is not None:
            if letter not in SLIDES:
                raise InputError(f"unknown slide '#{letter}': write #U, #R, #D or #L")
            yield Slide(SLIDES.index(letter), int(reward or 0), int(ms or 0))
            continue
        if len(places) % width:
            raise InputError(f"placements of {game} have {width} characters, found {places[:40]!r}")
        for i in range(0, len(places) - width, width):
            yield _parse_place(places[i : i + width], 0, 0)
        yield _parse_place(places[-width:], int(place_reward or 0), int(place_ms or 0))


def parse_record(line: str, game: str = "auto") -> Record:
    """The game of a line; an InputError says what is wrong with its form."""
    head = HEAD.match(line)
    if not head:
        raise InputError(f"no game record: {line[:40]!r} does not begin with SLIDER:PLACER@MILLISECONDS|")
    moves, bar, rest = line[head.end() :].partition("|")
    tail = TAIL.fullmatch(rest.rstrip("\r\n"))
    if not bar or not tail:
        raise InputError("the record is cut off: it must end with |WINNER@MILLISECONDS")
    slider, placer, start = head.groups()
    game = guess_game(moves, placer) if game == "auto" else game
    return Record(game, list(parse_moves(game, moves)), slider, placer, int(start), int(tail.group(2)))


def read_records(source: str | PathLike[str] | bytes, game: str = "auto") -> Iterator[Record]:
    """Stream the games of a file (or of the bytes of one), in order, up to the first empty line."""
    with BytesIO(source) if isinstance(source, bytes) else open_records(source) as stream:
        for line in read_lines(stream):
            record = _record_in(line, game)
            game = record.game
            yield record


def _record_in(line: Line, game: str) -> Record:
    try:
        if not line.whole:
            raise InputError("it is longer than any game can be")
        return parse_record(line.text, game)
    except InputError as mistake:
        raise InputError(f"line {line.number}: {mistake}") from None


def find_record(source: str | PathLike[str], wanted: str, game: str = "auto") -> tuple[Record, int]:
    """The game of this number, from 1, or the best one by what its record says was earned; and its number."""
    if wanted != "best" and not (wanted.isdecimal() and 0 < len(wanted.lstrip("0")) <= LONGEST_NUMBER):
        raise InputError(f"{wanted[:40]} is no number of a game: write 1, 2, 3, … or best")
    last, found, most = 0, None, -1
    with open_records(source) as stream:
        for line in read_lines(stream):
            last = line.number
            score = earned(line.text) if wanted == "best" else 0
            if score > most if wanted == "best" else last == int(wanted):
                found, most = line, score
    if found is None:
        raise InputError(f"there is no game {wanted} in {source}: it holds {last:,}")
    return _record_in(found, game), found.number


class Saving:
    """Records on their way to a file. On a full disk the rest is left out, and what is there stays."""

    def __init__(self, file: IO[bytes], path: object) -> None:
        self.file, self.path = file, path
        self.games = self.size = 0  # written so far
        self.failure: InputError | None = None

    def keep(self, record: Record) -> None:
        """Write one game."""
        if self.failure:
            return
        rest = line = (format_record(record) + "\n").encode("utf-8", "surrogateescape")
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            held = f"it holds {self.games:,} games, the rest was not kept"
            self.failure = InputError(f"cannot write on to {self.path}: {error.strerror}; {held}")
            with contextlib.suppress(OSError):  # a pipe keeps the half of a line
                self.file.truncate(self.size)
            return
        self.games, self.size = self.games + 1, self.size + len(line)


@contextlib.contextmanager
def saved(path: str | PathLike[str]) -> Iterator[Saving]:
    """A file of records, or standard output for `-`, under its name when the block has ended."""
    if str(path) == "-":
        yield Saving(sys.stdout.buffer, "standard output")
    else:
        with written(Path(path), buffering=0) as file:
            yield Saving(file, path)


def write_records(target: str | PathLike[str], records: Iterable[Record]) -> int:
    """Write games one a line as they come; returns how many."""
    with saved(target) as file:
        for record in records:
            file.keep(record)
    if file.failure:
        raise file.failure
    return file.games


def start_actions(game: Game, cells: Iterable[int], hint: tuple[int, ...], random: Random) -> list[Action]:
    """Placements that lead to a start position, of which only the board and the hint are known.

    Their order is lost on the board, and matters: hints announce tiles and, with one of each in the bag, every three
    tiles in a row are a whole bag. One of the possible orders is chosen at random, all equally likely, as they were.
    """
    placed = [(cell, tile) for cell, tile in enumerate(cells) if tile]
    whole_bags = sorted(tile for _, tile in placed) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    in_bags = game.hint is not None and game.hint.copies == 1
    if len(placed) != game.starting_tiles or (in_bags and not whole_bags):
        raise InputError(f"a record begins with the start of a game: {game.starting_tiles} tiles in {game.name}")
    random.shuffle(placed)
    if game.hint is None:
        return [Place(cell, tile, (), worth(game, tile)) for cell, tile in placed]
    if in_bags:
        placed = _in_bags(placed, random)
    hints = [(tile,) for _, tile in placed[1:]] + [hint]
    return [Place(cell, tile, h, worth(game, tile)) for (cell, tile), h in zip(placed, hints)]


@cache
def worth(game: Game, tile: int) -> int:
    """What a new tile adds to the score."""
    return int(game.rules.value_of_board(np.uint64(tile), np.uint64(0))) if game.score_is_value else 0


def hint_of(game: Game, board: np.uint64, aux: np.uint64) -> tuple[int, ...]:
    """The hint of a position as indices, () in a game without one."""
    if game.hint is None:
        return ()
    shown = game.write(board, aux)[1]["hint"]
    return tuple(game.tiles.index(int(tile)) for tile in shown.split("+"))


def _in_bags(placed: list[tuple[int, int]], random: Random) -> list[tuple[int, int]]:
    """Three times one each of 1, 2, 3, in random order."""
    columns = [[place for place in placed if place[1] == tile] for tile in (1, 2, 3)]
    return [place for bag in zip(*columns) for place in random.sample(bag, 3)]


@lru_cache(1 << 16)
def place_of(game: Game, landed: int, aux: int) -> Place:
    """The tile that stands alone on the board `landed`, with the hint it led to."""
    cell = (landed.bit_length() - 1) // 4
    index = landed >> 4 * cell
    return Place(cell, index, hint_of(game, np.uint64(landed), np.uint64(aux)), worth(game, index))


def dealt(game: Game, rng: np.uint64) -> tuple[list[Action], np.uint64, np.uint64, np.uint64]:
    """The start that a generator deals: its placements in their order, board, aux and the generator after it."""
    board, aux, found = np.uint64(0), np.uint64(0), list[Action]()
    for _ in range(game.starting_tiles):
        before = int(board)
        board, aux, rng = map(np.uint64, game.rules.deal(board, aux, rng))
        found.append(place_of(game, int(board) ^ before, int(aux)))
    return found, board, aux, rng


@cache
def _player_again(game: Game) -> Callable[..., int]:
    """The loop that makes given moves, compiled."""
    slide, spawn = game.rules.slide, game.rules.spawn

    @compiled(title=f"the recorder of {game.title}")
    def play(
        rows: Array, board: Board, aux: Board, rng: Board, actions: Array, rewards: Array, landed: Array, auxes: Array
    ) -> int:
        """`rewards` [moves] of the slides, `landed` the new tiles alone, `auxes` what they led to; returns how many
        moves are legal."""
        for i in range(actions.size):
            after, after_aux, rewards[i] = slide(rows, board, aux, np.int64(actions[i]))
            if after == board:
                return i
            board, aux, _, rng = spawn(after, after_aux, rng)
            landed[i], auxes[i] = board ^ after, aux
        return int(actions.size)

    return play


def followed(game: Game, board: np.uint64, aux: np.uint64, rng: np.uint64, actions: Iterable[int]) -> list[Action]:
    """Slide and placement by turns, as the engine plays these actions from a position."""
    moves = np.array([*actions], np.uint8)
    rewards, landed, auxes = np.zeros(moves.size, np.int64), *np.zeros((2, moves.size), np.uint64)
    legal = _player_again(game)(game.rows, board, aux, rng, moves, rewards, landed, auxes)
    if legal < moves.size:
        raise InputError(f"move {legal + 1} of the game to record, {SLIDES[moves[legal]]}, is illegal")
    slides = map(Slide, moves.tolist(), rewards.tolist())
    places = (place_of(game, tile, after) for tile, after in zip(landed.tolist(), auxes.tolist()))
    return [action for turn in zip(slides, places) for action in turn]


def record_of(
    start: State,
    actions: Iterable[int],
    *,
    slider: str = "tilesage",
    placer: str | None = None,
    start_ms: int = 0,
    end_ms: int = 0,
    ms: int = 0,
) -> Record:
    """The record of a game that the engine played: its start and its actions are enough to play it again.

    `ms` is the player's thinking time in all; records have whole milliseconds for each action, so it is spread
    evenly over the slides.
    """
    game, board, aux = start.game, start.board, start.aux
    found = start_actions(game, start.indices, hint_of(game, board, aux), Random(int(start.rng)))
    played = followed(game, board, aux, start.rng, actions)
    for i in range(0, len(played), 2):
        played[i] = played[i]._replace(ms=ms * (i + 2) // len(played) - ms * i // len(played))
    return Record(game.name, found + played, slider, placer or notation_of(game.name).placer, start_ms, end_ms)
