"""A position as the page has it, and what may be done with one.

The server keeps nobody's game. A position is a line of text that holds everything, the generator of chance too, so
whoever has the line can go on from it: the page that was reloaded, a second tab, a server that was restarted.
"""

from __future__ import annotations

from typing import Any

from tilesage import games
from tilesage.app.web.limits import MOST_MOVES
from tilesage.core.errors import InputError
from tilesage.drawing.motions import compact, motions
from tilesage.games import State

LETTERS = "URDL"


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
        if not letter or letter not in LETTERS:
            raise InputError(f"{letter!r} is no action: write U, R, D or L")
        if state.slides[LETTERS.index(letter)] is None:
            raise InputError(f"move {number}, {letter}, is not legal in this game")
        state = state.play(LETTERS.index(letter))
        states.append(state)
    return states


def position(state: State) -> dict[str, Any]:
    """A position for programs."""
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


def told(state: State) -> dict[str, Any]:
    """A position for the page, which reads tiles, score and hint from the line."""
    return {"line": state.line, "legal": list(state.legal)}


def moved(before: State, action: int, after: State) -> dict[str, Any]:
    """A position with the move that led to it, and which tile went where."""
    return {**told(after), "motions": compact(motions(before, action, after))}


def placed(before: State, action: int, cell: int, now: State | None) -> dict[str, Any]:
    """The move with chance by hand: a tile on this cell, and where one lies there already, the next possible one."""
    after = before.slide(action)
    mask = 15 << 4 * cell
    possible = [state for _, state in after.outcomes() if int(state.board) & mask and not int(after.board) & mask]
    if not possible:
        raise InputError("chance puts no tile on this cell after this move")
    texts = [state.text for state in possible]
    number = texts.index(now.text) + 1 if now and now.text in texts else 0
    return moved(before, action, possible[number % len(possible)])
