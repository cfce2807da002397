"""A recorded game as the Replay tab needs it, and its mistakes.

A game comes either as a line of a records file, in which chance is written down, or as a start and actions, from
which the engine draws the same chance again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from tilesage.app.web.fields import Values
from tilesage.app.web.limits import MOST_MOVES
from tilesage.app.web.players import Player
from tilesage.app.web.session import LETTERS, play_actions, start_state
from tilesage.core.errors import InputError
from tilesage.drawing.motions import compact, motions
from tilesage.games import State
from tilesage.games.state import DIGITS
from tilesage.records.notation import HEAD, earned, guess_game, read_lines
from tilesage.records.record import Record, Slide, parse_record
from tilesage.records.replay import moments_of

LISTED = 2000  # games of a file that are listed
WORST = 12  # mistakes that are told
SLICE_SECONDS = 0.05
DEMO_SECONDS = 3.0


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

    def told(self) -> dict[str, Any]:
        """The whole game, small enough to scrub through: a text of sixteen indices a position."""
        steps = zip(self.states, map(LETTERS.index, self.actions), self.states[1:])
        return {
            "game": self.game,
            "actions": self.actions,
            "positions": ["".join(DIGITS[index] for index in state.indices) for state in self.states],
            "motions": [compact(motions(before, action, after)) for before, action, after in steps],
            "scores": [state.score for state in self.states],
            "hints": [list(state.hint) for state in self.states] if self.states[0].hint else None,
            "fields": [state.text.partition(" ")[2] for state in self.states] if self.states[0].hint else None,
        }


def from_record(record: Record) -> Replay:
    """Follow a record move by move; an InputError where it leaves the rules."""
    slides = [action.action for action in record.actions if isinstance(action, Slide)]
    if len(slides) > MOST_MOVES:
        raise InputError(f"a game has at most {MOST_MOVES} moves here")
    moments = moments_of(record)
    return Replay(record.game, [moment.state for moment in moments], "".join(LETTERS[slide] for slide in slides))


def list_records(text: str) -> dict[str, Any]:
    """The games of a file: who played, how far. Lines that are no record are counted and skipped."""
    found: list[dict[str, Any]] = []
    wrong, first_wrong = 0, ""
    for line in read_lines(BytesIO(text.encode("utf-8", "replace"))):
        if len(found) >= LISTED:
            break
        head = HEAD.match(line.text or "")
        if head is None or "|" not in (line.text or "")[head.end() :]:
            wrong, first_wrong = wrong + 1, first_wrong or f"line {line.number} is no game record"
            continue
        moves = (line.text or "")[head.end() :].partition("|")[0]
        gained = earned(moves)
        slides, game = moves.count("#"), guess_game(moves, head.group(2))
        found.append({"line": line.number, "game": game, "player": head.group(1), "score": gained, "moves": slides})
    if not found:
        raise InputError(first_wrong or "the file is empty")
    return {"games": found, "wrong": wrong}


async def play_one(player: Player, game: str, run: Callable[[Callable[[], None]], Awaitable[None]]) -> dict[str, Any]:
    """A game by the agent, to be looked at: whole, or as far as it comes in a few seconds."""
    seed = secrets.randbelow(10**6)
    state, letters = start_state(game, seed, None), []

    def a_while() -> None:
        nonlocal state
        began = time.perf_counter()
        while not state.over and time.perf_counter() - began < SLICE_SECONDS:
            letters.append(LETTERS[player.choose(state)])
            state = state.play(LETTERS.index(letters[-1]))

    end = time.monotonic() + DEMO_SECONDS
    while not state.over and time.monotonic() < end and len(letters) < MOST_MOVES:
        await run(a_while)
    return {"game": game, "seed": str(seed), "board": None, "actions": "".join(letters)}


async def find_mistakes(
    replay: Replay,
    player: Player,
    run: Callable[[Callable[[], None]], Awaitable[None]],
    tell: Callable[[float], Awaitable[None]],
) -> list[dict[str, Any]]:
    """The moves that lost most, by the agent's own account: the best expected score minus that of the move made."""
    found: list[dict[str, Any]] = []
    at = 0

    def a_while() -> None:
        nonlocal at
        began = time.perf_counter()
        while at < len(replay.actions) and time.perf_counter() - began < SLICE_SECONDS:
            _judge(replay, player, at, found)
            at += 1

    said = time.monotonic()
    while at < len(replay.actions):
        await run(a_while)
        if time.monotonic() - said > 0.2:
            said = time.monotonic()
            await tell(at / len(replay.actions))
    return sorted(found, key=lambda mistake: -mistake["loss"])[:WORST]


def _judge(replay: Replay, player: Player, at: int, found: list[dict[str, Any]]) -> None:
    chosen = LETTERS.index(replay.actions[at])
    thought = player.think(replay.states[at])
    better, made = thought.values[thought.best], thought.values[chosen]
    if better is None or made is None or better - made <= 0:
        return
    found.append(
        {"move": at, "loss": better - made, "chosen": chosen, "best": thought.best, "values": thought.values}
    )
    if len(found) > 20 * WORST:
        found.sort(key=lambda mistake: -mistake["loss"])
        del found[WORST:]
