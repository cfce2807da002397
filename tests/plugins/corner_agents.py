"""Players as somebody outside the package writes them: functions and classes, good ones and broken ones."""

from __future__ import annotations

import numpy as np


def corner(state):
    """Left and down as long as they go."""
    return next(action for action in (3, 2, 0, 1) if action in state.legal)


def corner_in_words(state):
    return ("up", "right", "down", "left")[corner(state)]


def corner_of_numpy(state):
    return np.int64(corner(state))


class Corner:
    """With an opinion: what the move itself brings."""

    def choose(self, state):
        return corner(state)

    def values(self, state):
        return [None if after is None else state.score + after.reward for after in state.slides]


class Caller:
    def __call__(self, state):
        return corner(state)


def peeking(state):
    """Plays where chance would be kind, if it could be foreseen."""
    return max(state.legal, key=lambda action: len(state.play(action).legal))


def divides(state):
    if state.score > 3500:
        return state.score // 0
    return state.legal[0]


def talks(state):
    if state.score > 3500:
        return "banana"
    return state.legal[0]


def pushes(state):
    """A move that is illegal sooner or later."""
    return 0


def leaves(state):
    raise SystemExit(3)


class Nameless:
    """Nothing that could play."""


not_a_player = 7
