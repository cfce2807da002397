"""Players in plain Python: a function from a position to a move, or an object with `choose(state)`.

    def corner(state):
        return "left" if 3 in state.legal else state.legal[0]

    class Careful:
        def choose(self, state): ...
        def values(self, state): ...     # if it has an opinion: four numbers, or None

What such a player gets to see is the position and nothing of what chance will do: `state.play` answers with tiles as
likely as any others, but not with those that the game will really bring.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import operator
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

import numpy as np

from tilesage.core.errors import InputError
from tilesage.core.plugins import load
from tilesage.core.random import seed_of
from tilesage.games import Game, State
from tilesage.games.board import ACTIONS
from tilesage.games.state import action_of
from tilesage.search.agents import CHOICE, Agent, Memory, Thought
from tilesage.search.kinds import NO_MOVE
from tilesage.search.specs import plugins

PACKAGE = str(Path(__file__).resolve().parent.parent)
MOVES = "a move is 0, 1, 2, 3, or up, right, down, left"


class Player(Protocol):
    """An object that plays. A plain function `state -> move` is a player too.

    An object may also have `values(state)`: the expected final score of each of the four moves, None for a move of
    which it has no opinion. It is shown beside the moves where there is room for it.
    """

    def choose(self, state: State) -> int | str:
        """A legal move: 0 up, 1 right, 2 down, 3 left, or one of these words. Only asked while a move is legal."""


class AgentError(InputError):
    """Somebody's player raised an exception, or what it said is no legal move. The message names its file and line.

    What it raised is the cause (`__cause__`); `evaluation` has the games that were finished before, if there were any
    to be played.
    """

    evaluation: Any = None  # an `Evaluation`

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (str(self), *_packed(self.__cause__))


def _packed(cause: BaseException | None) -> tuple[bytes, str]:
    """An exception on its way to another process, and its traceback, which cannot travel."""
    if cause is None:
        return b"", ""
    with contextlib.suppress(Exception):
        packed = pickle.dumps(cause)
        pickle.loads(packed)  # some exceptions cannot be read again
        return packed, "".join(traceback.format_exception(cause))
    return b"", "".join(traceback.format_exception(cause))


def _rebuilt(message: str, packed: bytes, trace: str) -> AgentError:
    error = AgentError(message)
    if trace:
        cause = pickle.loads(packed) if packed else RuntimeError(trace.splitlines()[-1])
        cause.add_note(f"in a worker process:\n{trace}")
        error.__cause__ = cause
    return error


@dataclass(frozen=True, repr=False, eq=False)
class PythonAgent(Agent):
    """A player in plain Python, checked: what it says is a legal move, or an `AgentError` tells what it was."""

    spec: str
    game: Game
    ask: Callable[[State], object]
    opinion: Callable[[State], object] | None
    reference: str | None  # module:name, where another process finds the same player

    def new_memory(self) -> Memory:
        return ()

    def think(self, state: State, memory: Memory | None = None) -> Thought:
        return Thought(self.choose(state), self.values(state))

    def choose(self, state: State, memory: Memory | None = None) -> int:
        self.check(state)
        return self.move(without_foresight(state)) if state.legal else NO_MOVE

    def move(self, state: State) -> int:
        """The answer of the player to a position that it may see."""
        try:
            said = self.ask(state)
        except (Exception, SystemExit) as error:
            raise self._raised(error, self.ask) from error
        return said if type(said) is int and said in state.legal else self._checked(said, state)

    def _checked(self, said: object, state: State) -> int:
        action = _action_of(said)
        if action is None:
            raise AgentError(f"{self._place(self.ask)} answered {_short(said)}: {MOVES}")
        if action not in state.legal:
            known = f"which moves nothing; legal: {', '.join(ACTIONS[one] for one in state.legal)}"
            raise AgentError(f"{self._place(self.ask)} answered {ACTIONS[action]}, {known}")
        return action

    def values(self, state: State, memory: Memory | None = None) -> list[float | None]:
        self.check(state)
        if self.opinion is None or not state.legal:
            return [None] * 4
        try:
            said = self.opinion(without_foresight(state))
        except (Exception, SystemExit) as error:
            raise self._raised(error, self.opinion) from error
        values = _numbers(said)
        if values is None:
            wanted = "values are four numbers, or None where it has no opinion"
            raise AgentError(f"{self._place(self.opinion)} answered {_short(said)}: {wanted}")
        return [value if action in state.legal else None for action, value in enumerate(values)]

    def _place(self, asked: Callable[..., object]) -> str:
        """Where the player is written, and its name."""
        code = _code_of(asked)
        return f"{_line(code.co_filename, code.co_firstlineno)}: {self.spec}" if code else self.spec

    def _raised(self, error: BaseException, asked: Callable[..., object]) -> AgentError:
        code = _code_of(asked)
        place = _place_of(error, code.co_filename if code else None)
        return AgentError(f"{f'{place}: {self.spec}' if place else self._place(asked)} {_in_short(error)}")


def without_foresight(state: State) -> State:
    """The position with a generator of its own: the tiles that will come are not to be seen."""
    return replace(state, rng=np.uint64(seed_of(state.rng, CHOICE)))


def _action_of(said: object) -> int | None:
    """The number of an action as a player may say it: a whole number of any kind, or a word."""
    if isinstance(said, (bool, np.bool_)):
        return None
    try:
        return action_of(said if isinstance(said, str) else operator.index(said))  # type: ignore[arg-type]
    except (InputError, TypeError):
        return None


def _numbers(said: object) -> list[float | None] | None:
    """Four numbers, of any kind; a number that is none (nan) is no opinion. None where it is something else."""
    if said is None:
        return [None] * 4
    try:
        four = [None if one is None else float(one) for one in said]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None
    return [None if one is None or math.isnan(one) else one for one in four] if len(four) == 4 else None


# --- what a user hands in -----------------------------------------------------------------------------------------


def python_agent(player: object, game: Game) -> PythonAgent:
    """The player behind a text (module:name, or a name that an installed package brings), a function or an object."""
    if isinstance(player, str):
        text = player.strip()
        found = plugins().get(text, text)
        return _agent_of(load(found, f"the player {text}")[0], game, text, found)
    reference = _reference_of(player)
    name = str(getattr(player, "__qualname__", type(player).__qualname__))
    return _agent_of(player, game, reference or name.rpartition("<locals>.")[2], reference)


def _agent_of(player: object, game: Game, spec: str, reference: str | None) -> PythonAgent:
    """A class is called once, without arguments, and plays as what it makes."""
    if isinstance(player, type):
        try:
            player = player()
        except (Exception, SystemExit) as error:
            place = _place_of(error, None)
            raise AgentError(f"{place + ': ' if place else ''}{spec} {_in_short(error)}") from error
    choose, values = getattr(player, "choose", player), getattr(player, "values", None)
    if not callable(choose):
        raise InputError(f"{spec} is no player: that is a function from a position to a move, or has choose(state)")
    agent = PythonAgent(spec, game, choose, values if callable(values) else None, _outside_main(reference))
    try:
        inspect.signature(choose).bind(None)
    except ValueError:  # some of C say nothing about their arguments
        return agent
    except TypeError as error:
        wrong = f"cannot be asked: {error}; a player takes one thing, the position: def player(state)"
        raise AgentError(f"{agent._place(choose)} {wrong}") from None
    return agent


def _reference_of(player: object) -> str | None:
    """module:name under which the very same object can be imported again."""
    module, path = getattr(player, "__module__", None), getattr(player, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    found: object = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return _outside_main(f"{module}:{path}") if found is player else None


def _outside_main(reference: str | None) -> str | None:
    """Another process has another main script: what lies in ours is not found there."""
    return None if reference is None or reference.startswith("__main__:") else reference


# --- where somebody's code is -------------------------------------------------------------------------------------


def _code_of(asked: object) -> CodeType | None:
    """The code of a function, a method, a partial, or an object that can be called."""
    while isinstance(asked, functools.partial):
        asked = asked.func
    asked = inspect.unwrap(asked) if callable(asked) else asked
    asked = getattr(asked, "__func__", asked)
    if not hasattr(asked, "__code__"):
        asked = vars(type(asked)).get("__call__")
    code = getattr(asked, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _place_of(error: BaseException, file: str | None) -> str:
    """file:line of the innermost line in the player's file; else of the innermost line that is not ours."""
    if isinstance(error, SyntaxError) and error.filename:
        return _line(error.filename, error.lineno or 1)
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    outside = [(name, line) for name, line in lines if not name.startswith((PACKAGE, "<frozen"))]
    places = [place for place in outside if place[0] == file] or outside
    return _line(*places[-1]) if places else ""


def _line(file: str, line: int) -> str:
    """Below the current folder the path from there, else the whole one."""
    with contextlib.suppress(ValueError, OSError):
        near = os.path.relpath(file)
        file = near if not near.startswith(os.pardir) and os.path.exists(file) else file
    return f"{file}:{line}"


def _in_short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"raised {type(error).__name__}: {text}" if text else f"raised {type(error).__name__}"


def _short(said: object) -> str:
    try:
        text = " ".join(repr(said).split())
    except Exception:
        text = type(said).__name__
    return text if len(text) <= 60 else text[:57] + "…"
