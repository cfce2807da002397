"""Values from outside the package: searches take any function that says what boards are worth.

`compiled_value(function)`   a function compiled by Numba, `(board, aux) -> float`: as quick as our own
`batch_value(function)`      a Python function of many boards at once: NumPy arrays in, numbers out

The value of an afterstate is what is still won from there on, without the points that the move itself earns. With
`of="states"` it is that of a position, and searches average over what chance may make of an afterstate.

A Python function cannot be called by compiled code. So the compiled search runs with an empty table of answers: a
board that is not in it counts as 0 and is noted as a question. The questions are put all at once, and the search runs
again, until there are none. What a search looks at does not depend on values while it follows all moves: then one
round of questions is all, and the values of the moves are those of the same search on a compiled function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.core.random import mix
from tilesage.games.board import ONE, ZERO, Board
from tilesage.games.game import Game
from tilesage.networks.boards import tiles_of
from tilesage.networks.functions import ValueFunction, function_of, network_function, plain_function

if TYPE_CHECKING:
    from tilesage.networks.files import Model

WHAT = ("afterstates", "states")
TOGETHER = 1 << 16  # boards that a Python function is asked for at once, at most
FIRST_PLACES, MOST_PLACES = 1 << 16, 1 << 23  # of a table of answers
PLACES, USED, OPEN = 0, 1, 2  # fields of its `meter`: how many places count, are taken, and are questions


@dataclass(frozen=True, eq=False)
class OutsideValue:
    """A value function that is not a network of ours."""

    function: Callable[..., Any]
    of: str = "afterstates"
    reads_hint: bool = True  # games with a hint: False says that the value does not depend on it, which is quicker
    tiles: bool = False  # a Python function that wants numbers of tiles

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"a value is a function of boards, not {self.function!r}")
        if self.of not in WHAT:
            raise InputError(f"values are of {' or of '.join(WHAT)}, not of {self.of!r}")

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: values of {self.of})"


class CompiledValue(OutsideValue):
    """Made by `compiled_value`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            inspect.signature(getattr(self.function, "py_func", self.function)).bind(ZERO, ZERO)
        except TypeError as error:
            raise InputError(f"{self.name} takes a board and its aux, def {self.name}(board, aux): {error}") from None


class BatchValue(OutsideValue):
    """Made by `batch_value`."""

    def of_boards(self, game: Game, boards: Array, auxes: Array) -> Array:
        """[n] what the function says of each board, asked in parts."""
        found = np.empty(boards.size)
        for i in range(0, boards.size, TOGETHER):
            part = slice(i, i + TOGETHER)
            asked = (tiles_of(game, boards[part], auxes[part]),) if self.tiles else (boards[part], auxes[part])
            answer, wanted = self.function(*asked), len(asked[0])
            try:
                said = np.asarray(answer, np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{self.name} gave no numbers, but a {type(answer).__name__}") from None
            if said.shape not in ((wanted,), (wanted, 1)):
                raise InputError(f"{self.name} gave numbers of shape {said.shape} for {wanted} boards: one for each")
            found[part] = said.reshape(-1)
        if not np.isfinite(found).all():
            raise InputError(f"{self.name} gave a value that is infinite or no number")
        return found


def compiled_value(function: Callable[..., Any], of: str = "afterstates", reads_hint: bool = True) -> CompiledValue:
    """A compiled function of a board and its aux as a value, wherever a model is taken.

    Searches are compiled around it, which takes some seconds once, and again when it was edited.

    >>> import numba
    >>> from tilesage import agent, game
    >>> @numba.njit
    ... def corner(board, aux):  # the index of the tile in the top left corner
    ...     return 100.0 * (board & 15)
    >>> state = game("2048").parse("3.../..../..../...1")
    >>> agent("expectimax:1", state.game, compiled_value(corner)).values(state)
    [300.0, 0.0, 0.0, 300.0]
    """
    return CompiledValue(function, of, reads_hint)


def batch_value(
    function: Callable[..., Any], of: str = "afterstates", reads_hint: bool = True, tiles: bool = False
) -> BatchValue:
    """A Python function of many boards as a value, wherever a model is taken; a PyTorch module will do.

    It gets uint64 boards [n] and what else is known of them, aux [n]; or with `tiles=True` the numbers on the tiles
    alone, int64 [n, 4, 4], 0 where a cell is empty. It gives n numbers. It is asked for 65,536 boards at a time or
    fewer, as a rule for each of them once a move. In games with a hint, a function that does not look at it should
    say so: `reads_hint=False`.

    >>> import numpy as np
    >>> from tilesage import agent, game
    >>> room = batch_value(lambda tiles: 10.0 * (tiles == 0).sum(axis=(1, 2)), tiles=True)
    >>> state = game("2048").parse("11../..../..../....")
    >>> agent("greedy", state.game, room).values(state)
    [None, 154.0, 140.0, 154.0]
    """
    return BatchValue(function, of, reads_hint and not tiles, tiles)


def value_function(source: Model | OutsideValue, game: Game) -> ValueFunction:
    """What searches read: the values of a model, or of a function from outside."""
    if not isinstance(source, OutsideValue):
        return network_function(source)
    hint = source.reads_hint and game.max_draws > 1
    if isinstance(source, BatchValue):
        return function_of(game, _asked(game, hint), source.of)
    function = source.function

    @compiled
    def value(weights: Any, board: Board, aux: np.uint64) -> Any:
        return function(board, aux)

    return plain_function(game, value, np.zeros(1), source.of, hint, source.name)


def adapted(source: OutsideValue | Callable[..., Any]) -> OutsideValue:
    """A function of the user as a value, if nobody has wrapped it yet."""
    if isinstance(source, OutsideValue):
        return source
    return compiled_value(source) if hasattr(source, "py_func") else batch_value(source)


# --- asking -------------------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """What a Python function has said of boards, and what it is still to be asked: a table with open addressing.

    The arrays are as long as the table may ever get; the system gives memory to the places that are used.
    """

    boards: Array  # [places] uint64
    auxes: Array  # [places] uint64
    values: Array  # [places] float64, 0 for questions
    taken: Array  # [places] uint8
    questions: Array  # [places / 2] int64, places
    meter: Array  # [3] int64: places that count, places taken, questions

    def clear(self, places: int = 0) -> None:
        """Forget everything; with so many places from now on."""
        self.taken[: self.meter[PLACES]] = 0
        self.meter[:] = places or self.meter[PLACES], 0, 0

    def settle(self, function: Callable[[Array, Array], Array]) -> bool:
        """Ask what is open; False if nothing is. Where questions did not find room, they are looked for again."""
        if self.meter[USED] > self.meter[PLACES] // 2:
            if self.meter[PLACES] == MOST_PLACES:
                raise InputError(
                    f"a move would ask the value of more than {MOST_PLACES // 2:,} boards: take fewer layers, or a "
                    "search that follows fewer moves, such as expectimax:deep"
                )
            self.clear(min(4 * int(self.meter[PLACES]), MOST_PLACES))
            return True
        places = self.questions[: self.meter[OPEN]]
        if places.size:
            self.values[places] = function(self.boards[places], self.auxes[places])
        self.meter[OPEN] = 0
        return bool(places.size)


def new_answers() -> Answers:
    """An empty table of answers."""
    boards, auxes = np.zeros(MOST_PLACES, np.uint64), np.zeros(MOST_PLACES, np.uint64)
    values, taken = np.zeros(MOST_PLACES), np.zeros(MOST_PLACES, np.uint8)
    questions = np.zeros(MOST_PLACES // 2, np.int64)
    return Answers(boards, auxes, values, taken, questions, np.array([FIRST_PLACES, 0, 0], np.int64))


def answers_in(memory: Any) -> Answers:
    """The answers somewhere in the memory of a player."""
    found = _answers_in(memory)
    assert found is not None
    return found


def _answers_in(memory: Any) -> Answers | None:
    if isinstance(memory, Answers) or not isinstance(memory, tuple):
        return memory if isinstance(memory, Answers) else None
    return next((found for part in memory if (found := _answers_in(part)) is not None), None)


@compiled
def answer(answers: Answers, board: Board, aux: np.uint64) -> Any:
    """What is known of this board; 0 if it has to be asked for."""
    last = np.uint64(answers.meter[PLACES] - 1)
    place = mix(board ^ mix(aux)) & last
    while answers.taken[place]:
        if answers.boards[place] == board and answers.auxes[place] == aux:
            return answers.values[place]
        place = (place + ONE) & last
    if answers.meter[USED] <= answers.meter[PLACES] // 2:
        answers.meter[USED] += 1
    if answers.meter[USED] <= answers.meter[PLACES] // 2:
        answers.boards[place], answers.auxes[place], answers.values[place] = board, aux, 0.0
        answers.taken[place] = 1
        answers.questions[answers.meter[OPEN]] = np.int64(place)
        answers.meter[OPEN] += 1
    return 0.0


@cache
def _asked(game: Game, reads_hint: bool) -> ValueFunction:
    """The same compiled code for all Python functions; what they say lies in the notes."""
    keeps_aux = reads_hint or game.max_draws == 1  # elsewhere aux is the hint alone, which nobody looks at

    @compiled
    def after_value(weights: Any, notes: Answers, after: Board, aux: np.uint64) -> Any:
        return answer(notes, after, aux if keeps_aux else ZERO)

    return ValueFunction("a Python function", after_value, np.zeros(1), new_answers, reads_hint)
