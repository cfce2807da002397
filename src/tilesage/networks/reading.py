"""The numbers of a model: what positions are worth, many at once, and the table entries that make up a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.games import Afterstate, State
from tilesage.games.board import unpack
from tilesage.games.game import Game
from tilesage.networks.boards import FULL, boards_of
from tilesage.networks.functions import Notes, compiled_network, make_weigh, network_function
from tilesage.networks.layout import Table, images
from tilesage.networks.patterns import Network, Pattern, parse_pattern, write_pattern

if TYPE_CHECKING:
    from tilesage.networks.files import Model

Boards = Array | Sequence[State | Afterstate]


@dataclass(frozen=True)
class Entry:
    """One entry of a table: what tiles on the cells of a pattern are worth."""

    pattern: str  # as the network writes it; "age" for the table of ages
    tiles: tuple[int, ...]  # the numbers on the pattern's cells, in its order
    index: int  # in `model.weights`
    value: float


def values_of(model: Model, boards: Boards, aux: Array | None, of: str | None) -> Array:
    """See `Model.values`."""
    if not isinstance(boards, np.ndarray) and len(boards) and isinstance(boards[0], State | Afterstate):
        return _of_positions(model, boards)
    given, asked = np.asarray(boards), of or model.of
    if asked not in ("afterstates", "states"):
        raise InputError(f"values are of afterstates or of states, not of {asked!r}")
    if given.ndim == 3:
        if aux is None:
            given, aux = boards_of(model.game, given)
            _needs_no_hint(model, asked)
        else:
            given = boards_of(model.game, given)[0]
    if given.ndim != 1 or (given.dtype != np.uint64 and given.size):
        raise InputError(
            f"boards are uint64 [n], numbers of tiles [n, 4, 4], or states, not {given.dtype} {list(given.shape)}"
        )
    if aux is None:
        _needs_no_hint(model, asked)
        aux = np.zeros(given.size)
    return _read(model, given, np.broadcast_to(np.asarray(aux, np.uint64), given.shape), asked)


def _of_positions(model: Model, positions: Any) -> Array:
    """Those of states and those of afterstates, each in its place."""
    found = np.empty(len(positions))
    for position in positions:
        check(model, position)
    for kind, asked in ((State, "states"), (Afterstate, "afterstates")):
        places = [i for i, position in enumerate(positions) if isinstance(position, kind)]
        if places:
            words = [(positions[i].board, positions[i].aux) for i in places]
            boards, aux = np.array(words, np.uint64).T
            found[places] = _read(model, boards, aux, asked)
    return found


def check(model: Model, position: Any) -> None:
    """Refuse what is no position of the model's game."""
    if not isinstance(position, State | Afterstate):
        raise InputError(f"a position is a State or an Afterstate, not {type(position).__name__}")
    game = position.game if isinstance(position, State) else position.before.game
    if game.name != model.game.name:
        raise InputError(f"{model.name} plays {model.game.name}, not {game.name}")


def _needs_no_hint(model: Model, asked: str) -> None:
    averaged = asked == "afterstates" and model.of == "states" and model.game.max_draws > 1
    if model.network.by_hint or averaged:
        raise InputError(f"what {model.name} says depends on the hint: give the aux of these boards, or give states")


def _read(model: Model, boards: Array, aux: Array, asked: str) -> Array:
    out = np.empty(boards.size)
    read = reader(model.game, model.network, model.of, asked)
    notes = network_function(model).new_notes()
    read(
        model.game.rows, model.weights, notes, np.ascontiguousarray(boards, np.uint64), np.ascontiguousarray(aux), out
    )
    return out


@cache
def reader(game: Game, network: Network, of: str, asked: str) -> Callable[..., Any]:
    """The loop over boards that are `asked`, states or afterstates, with a network of either."""
    function = compiled_network(game, network, of)
    after_value, weigh = function.after_value, make_weigh(game, function)
    title = f"the values of {network.name} for {game.title}"

    @compiled(title=title)
    def of_afterstates(rows: Array, weights: Array, notes: Notes, boards: Array, aux: Array, out: Array) -> None:
        for i in range(boards.size):
            out[i] = after_value(weights, notes, boards[i], aux[i])

    @compiled(title=title)
    def of_best_move(rows: Array, weights: Array, notes: Notes, boards: Array, aux: Array, out: Array) -> None:
        moves = np.zeros(4)
        for i in range(boards.size):
            weigh(rows, weights, notes, boards[i], aux[i], moves)
            out[i] = moves.max() if moves.max() > -np.inf else 0.0

    if asked == "afterstates":
        return of_afterstates
    return of_best_move if of == "afterstates" else reader(game, network, "afterstates", "afterstates")


# --- entries ------------------------------------------------------------------------------------------------------


def entry_of(model: Model, pattern: str, tiles: Sequence[int], tables: int) -> Entry:
    """See `Model.entry`."""
    table, evaluator = _table(model, parse_pattern(pattern)), model.evaluator
    known = model.game.tiles
    wrong = [tile for tile in tiles if tile not in known]
    if len(tiles) != len(table.pattern) or wrong:
        problem = f"{wrong[0]} is no tile of {model.game.title}" if wrong else f"{len(tiles)} tiles do not fit"
        raise InputError(
            f"{problem}: pattern {pattern} takes {len(table.pattern)} numbers of tiles, 0 for an empty cell"
        )
    if not 0 <= tables < model.network.sets:
        raise InputError(f"{model.name} has {model.network.sets} sets of tables, so tables={tables} is none")
    return _entry(model, table, tables * evaluator.entries, [min(known.index(tile), FULL) for tile in tiles])


def entries_of(model: Model, position: State | Afterstate) -> list[Entry]:
    """See `Model.entries`."""
    evaluator, wanted = model.evaluator, State if model.of == "states" else Afterstate
    check(model, position)
    if not isinstance(position, wanted):
        example = "state" if wanted is State else "state.slide('left')"
        raise InputError(f"{model.name} has values of {model.of}: give one, such as {example}")
    board, aux, found = position.board, position.aux, []
    if evaluator.age is not None:
        index = int(evaluator.age(board, aux))
        found.append(Entry("age", (), index, float(model.weights[index])))
    cells, first = unpack(np.uint64(evaluator.seen(board, aux))), int(evaluator.offset(board, aux))
    for table in evaluator.layout.tables:
        for image in images(table.pattern, model.network.symmetries):
            found.append(_entry(model, table, first, [cells[cell] for cell in image]))
    return found


def _entry(model: Model, table: Table, first: int, indices: Sequence[int]) -> Entry:
    plain = np.array([sum(index << 4 * k for k, index in enumerate(indices))], np.uint64)
    index = first + int(table.places(plain)[0])
    tiles = tuple(model.game.tiles[index] for index in indices)
    return Entry(write_pattern(table.pattern), tiles, index, float(model.weights[index]))


def _table(model: Model, pattern: Pattern) -> Table:
    tables = model.evaluator.layout.tables
    found = next((table for table in tables if table.pattern == pattern), None)
    if found is None:
        known = ", ".join(write_pattern(table.pattern) for table in tables)
        raise InputError(f"{model.name} has no pattern {write_pattern(pattern)}; it has {known}")
    return found
