"""One visitor's game, and a position as the page is told of it.

A game is its start (a seed, or a board that was set up) and the actions since: that is what a session keeps and what
the page keeps, so either can bring the game back.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any

from tilesage import games
from tilesage.app.web.limits import MOST_MOVES
from tilesage.core.errors import InputError
from tilesage.drawing.motions import compact, motions
from tilesage.games import State

LETTERS = "URDL"
REMEMBERED = 512  # positions kept for undo; older ones are played again from the start


def start_state(game: str, seed: int, board: str | None) -> State:
    """A new game, or the set-up board with what comes next drawn from the seed."""
    rules = games.get(game)
    if board is None:
        return rules.new(seed)
    words = [word for word in board.split() if not word.startswith("seed=")]
    return rules.parse(" ".join([*words, f"seed={seed % 10**18}"]))


def play_actions(state: State, actions: str) -> list[State]:
    """Every position of the game that these letters play, the start first."""
    if len(actions) > MOST_MOVES:
        raise InputError(f"a game has at most {MOST_MOVES} moves here")
    states = [state]
    for number, letter in enumerate(actions, 1):
        action = LETTERS.find(letter)
        if action < 0:
            raise InputError(f"{letter!r} is no action: write U, R, D or L")
        if state.slides[action] is None:
            raise InputError(f"move {number}, {letter}, is not legal in this game")
        state = state.play(action)
        states.append(state)
    return states


def position(state: State) -> dict[str, Any]:
    """A position for the page."""
    text = state.text + (f" score={state.score}" if not state.game.score_is_value else "")
    return {
        "game": state.game.name,
        "cells": state.cells,
        "score": state.score,
        "moves": state.moves,
        "largest": state.largest,
        "legal": list(state.legal),
        "over": state.over,
        "hint": list(state.hint) or None,
        "text": text,
    }


class Session:
    """A visitor's own game on the Play tab."""

    def __init__(self) -> None:
        self.game, self.seed = games.DEFAULT_GAME, 0
        self.board: str | None = None
        self.actions: list[str] = []
        self.state: State | None = None
        self.before: deque[State] = deque(maxlen=REMEMBERED)

    def open(self, game: str, seed: int | None, board: str | None, actions: str = "") -> dict[str, Any]:
        """A new game, or one that goes on where these actions led."""
        seed = secrets.randbelow(10**6) if seed is None else seed
        states = play_actions(start_state(game, seed, board), actions)
        self.game, self.seed, self.board = game, seed, board
        self.actions, self.state = list(actions), states[-1]
        self.before = deque(states[:-1], maxlen=REMEMBERED)
        return self.told()

    def move(self, action: int) -> dict[str, Any]:
        """Make a move: the new position, and what the page needs to animate it."""
        old = self._now()
        if len(self.actions) >= MOST_MOVES:
            raise InputError(f"a game has at most {MOST_MOVES} moves here")
        new = old.play(action)
        self.before.append(old)
        self.actions.append(LETTERS[action])
        self.state = new
        told = self.told()
        told["motions"] = compact(motions(old, action, new))
        told["gained"] = new.score - old.score
        goal = new.game.tiles[new.game.goal]
        told["reached"] = new.largest if new.largest > old.largest and new.largest >= goal else None
        return told

    def undo(self) -> dict[str, Any]:
        """Take one move back."""
        if not self.actions:
            raise InputError("there is no move to take back")
        self.actions.pop()
        if not self.before:
            start = start_state(self.game, self.seed, self.board)
            self.before.extend(play_actions(start, "".join(self.actions)))
        self.state = self.before.pop()
        return self.told()

    def told(self) -> dict[str, Any]:
        """The position for the page, with the start from which the game can be played again."""
        return {**position(self._now()), "seed": str(self.seed), "board": self.board}

    def _now(self) -> State:
        if self.state is None:
            raise InputError("start a game first")
        return self.state
