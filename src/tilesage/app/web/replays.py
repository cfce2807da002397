"""A whole game for the page, what is thought of its moves, and the game as a file.

A game comes as a line of a records file, in which chance is written down; as a start and actions, from which the
engine draws the same chance again; or as the lines of its positions, which a page has.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tilesage import games
from tilesage.app.film import save_gif
from tilesage.app.web.fields import Values
from tilesage.app.web.limits import MOST_MOVES
from tilesage.app.web.players import Player
from tilesage.app.web.positions import LETTERS, moved, play_actions, start_state, told
from tilesage.core.errors import InputError
from tilesage.drawing.pictures import picture
from tilesage.games import State
from tilesage.records.notation import HEAD, earned, guess_game, notation_of
from tilesage.records.record import Record, Slide, format_record, hint_of, parse_record, place_of, start_actions
from tilesage.records.replay import Moment, moments_of

LISTED = 5000  # games of a file that are listed
JUDGED_SECONDS = 0.5  # after which the moves that were judged are told
KINDS = {"record": "text/plain; charset=utf-8", "gif": "image/gif", "png": "image/png"}
FILM_SPEED = 12.0  # frames a second


@dataclass(frozen=True)
class Replay:
    """Every position of a game and the actions between them."""

    game: str
    states: list[State]
    actions: str

    @classmethod
    def of(cls, fields: Values) -> Replay:
        """The game that a visitor sent."""
        if fields["record"] is not None:
            return from_record(parse_record(fields["record"].strip("\r\n")))
        game, actions = fields["game"], fields["actions"]
        if game is None or actions is None:
            raise InputError("send a record; or a game, its seed and its actions")
        return cls(game, play_actions(start_state(game, fields["seed"], fields["board"]), actions), actions)

    @classmethod
    def of_lines(cls, fields: Values) -> Replay:
        """The game whose positions a page sent, one a line, with the letters of its moves."""
        game, actions, lines = fields["game"], fields["actions"], fields["lines"].splitlines()
        if len(lines) != len(actions) + 1 or set(actions) - set(LETTERS):
            raise InputError("a game has a letter U, R, D or L between each line of lines and the next")
        return cls(game, [games.get(game).parse(line) for line in lines], actions)

    def told(self) -> dict[str, Any]:
        """The whole game as positions, each but the first with its move."""
        steps = zip(self.states, self.actions, self.states[1:])
        moves = [{"action": letter, **moved(one, LETTERS.index(letter), next_)} for one, letter, next_ in steps]
        return {"game": self.game, "positions": [told(self.states[0]), *moves]}

    def record(self, player: str) -> Record:
        """The game as a record; an InputError where it does not begin as games do, or chance did what it cannot."""
        rules, start = games.get(self.game), self.states[0]
        hint = hint_of(rules, start.board, start.aux)
        found = start_actions(rules, start.indices, hint, Random(int(start.rng)))
        for letter, (before, after) in zip(self.actions, pairwise(self.states)):
            slid = before.slide(LETTERS.index(letter))
            found.append(Slide(slid.action, slid.reward))
            place = place_of(rules, int(after.board) ^ int(slid.board), after.aux)
            if int(slid.board) | place.tile << 4 * place.cell != int(after.board) or not place.tile:
                raise InputError(f"position {after.text!r} does not follow from the one before it")
            found.append(place)
        return Record(self.game, found, player, notation_of(self.game).placer)

    def moments(self) -> list[Moment]:
        """As films need it."""
        new: list[int | None] = [None]
        for letter, (before, after) in zip(self.actions, pairwise(self.states)):
            landed = int(before.slide(LETTERS.index(letter)).board) ^ int(after.board)
            new.append((landed.bit_length() - 1) // 4 if landed else None)
        actions = [None, *map(LETTERS.index, self.actions)]
        return [Moment(*parts) for parts in zip(self.states, actions, new)]

    def file(self, kind: str, theme: str) -> bytes:
        """The game as a record or a film, or its last position as a picture."""
        if kind == "record":
            return f"{format_record(self.record('tilesage'))}\n".encode()
        if kind == "png":
            drawn = BytesIO()
            picture(self.states[-1], theme, 2.0).save(drawn, "PNG")
            return drawn.getvalue()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "game.gif"
            save_gif(path, self.moments(), None, FILM_SPEED, theme)
            return path.read_bytes()

    def judge(self, player: Player) -> dict[str, Any]:
        """What a player thinks of the moves from the first on: as many as come in a moment.

        `values` are what the positions are worth, `losses` what the moves that were made give away, `best` the
        letters of the moves that the player would have made; None where it has no opinion.
        """
        values: list[float | None] = []
        losses: list[float | None] = []
        best, name, began = "", "", time.perf_counter()
        for state, letter in zip(self.states, self.actions):
            if values and time.perf_counter() - began > JUDGED_SECONDS:
                break
            opinion, _ = player.think(state)
            values.append(opinion.value)
            losses.append(opinion.losses[LETTERS.index(letter)])
            best, name = best + LETTERS[opinion.best], opinion.name
        return {"values": values, "losses": losses, "best": best, "figure": name}


def from_record(record: Record) -> Replay:
    """Follow a record move by move; an InputError where it leaves the rules."""
    slides = [action.action for action in record.actions if isinstance(action, Slide)]
    if len(slides) > MOST_MOVES:
        raise InputError(f"a game has at most {MOST_MOVES} moves here")
    moments = moments_of(record)
    return Replay(record.game, [moment.state for moment in moments], "".join(LETTERS[slide] for slide in slides))


def list_records(text: str) -> dict[str, Any]:
    """The games of a file: who played, how far. What is left out is told: how many lines, the first of them, why."""
    found: list[dict[str, Any]] = []
    wrong, first_wrong, more = 0, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        head = HEAD.match(line)
        if not line.strip():
            continue
        if head is None or "|" not in line[head.end() :]:
            wrong, first_wrong = wrong + 1, first_wrong or f"line {number} is no game record"
            continue
        if len(found) >= LISTED:
            more += 1
            continue
        moves = line[head.end() :].partition("|")[0]
        gained = earned(moves)
        slides, game = moves.count("#"), guess_game(moves, head.group(2))
        found.append({"line": number, "game": game, "player": head.group(1), "score": gained, "moves": slides})
    if not found:
        raise InputError(first_wrong or "the file is empty")
    return {"games": found, "wrong": wrong, "first_wrong": first_wrong, "more": more}
