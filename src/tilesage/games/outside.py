"""Games that are not in this package: in a file of one's own, or in a package that offers them (core/plugins.py).

`my_module:my_game` is a `Game`, or a function that makes one of its parameters. A package offers its games as entry
points of the group `GROUP`. What a model or a record says of its game is only looked up among those that are known by
then (`check_known`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from tilesage.core.errors import InputError
from tilesage.core.plugins import PLACE, Blamed, load, offered_by_packages

if TYPE_CHECKING:
    from tilesage.games.game import Game
    from tilesage.games.state import State

Maker = Callable[..., "Game"]
GROUP = "tilesage.games"
found: dict[str, Maker] = {}  # by name, those that this process has asked for


@cache
def offered() -> dict[str, str]:
    """The games that installed packages offer, by name, with their places."""
    return offered_by_packages(GROUP)


def names() -> list[str]:
    """The games from outside that are known: those that packages offer, and those asked for so far."""
    return list(dict.fromkeys([*offered(), *found]))


def check_known(name: str, where: object) -> None:
    """Refuse a game that a file names and nobody has asked for."""
    if ":" in name and name not in found:
        raise InputError(
            f"{where} is of the game {name!r}, which is not known here: if you trust it, add --game {name} "
            f"(in Python game={name!r})"
        )


def maker(name: str) -> Maker | None:
    """What makes the game of this name, None when there is none."""
    place = offered().get(name, name)
    if not PLACE.fullmatch(place):
        return None
    if name not in found:
        found[name] = _load(name, place)
    return found[name]


def _load(name: str, place: str) -> Maker:
    thing, file = load(place, f"the game {name}")

    @cache
    def make(**parameters: float) -> Game:
        from tilesage.games.game import Game

        with Blamed(file):
            game = thing(**parameters) if callable(thing) else thing
            if not isinstance(game, Game):
                what = f"{place.partition(':')[2]} is a {type(game).__name__}"
                raise InputError(f"{what}, not a Game or a function that makes one")
            chosen = [f"{parameter}={value:g}" for parameter, value in parameters.items()]
            game = replace(game, name=name, key=" ".join([name, *chosen]))
            check(game)
        return game

    make()
    return make


# Which results of a rule are 64-bit words: of boards, of aux, of random numbers.
WORDS = {"start": (0, 1, 2), "deal": (0, 1, 2), "slide": (0, 1), "spawn": (0, 1, 3)}


def try_plain(game: Game) -> None:
    """The rules that move, in plain Python: where the compiler only says what it does not know, this has a line."""
    import numpy as np

    start, slide, spawn = (
        getattr(rule, "py_func", rule) for rule in (game.rules.start, game.rules.slide, game.rules.spawn)
    )
    board, aux, rng = (np.uint64(int(word) % 2**64) for word in start(game.rows, np.uint64(1)))
    for action in range(4):
        after, after_aux, _ = slide(game.rows, board, aux, action)
        spawn(np.uint64(int(after) % 2**64), np.uint64(int(after_aux) % 2**64), rng)


def check_words(game: Game) -> None:
    """Compiled, words stay words: a signed one shows only where something else is compiled around it, in pages."""
    for name, places in WORDS.items():
        rule = getattr(game.rules, name)
        for overload in getattr(rule, "overloads", {}).values():
            given, kinds = overload.signature.args[:3], overload.signature.return_type
            unsigned = not any(str(kind).startswith("int") for kind in given)
            if unsigned and any(str(kinds.types[k]) != "uint64" for k in places):
                raise InputError(
                    f"line {rule.py_func.__code__.co_firstlineno}: {name} gives {kinds}, where boards, aux and "
                    "random numbers are uint64: a plain number beside one makes it signed, so write np.uint64(15)"
                )


def check(game: Game) -> None:
    """Play a game and ask for everything that the rules must answer, so that errors show at once."""
    import numpy as np
    from numba.core.errors import NumbaError

    try:
        ask_everything(game)
    except NumbaError:
        with np.errstate(all="ignore"):
            try_plain(game)
        raise
    check_words(game)


def ask_everything(game: Game) -> None:
    """One game, of a few moves."""
    import numpy as np

    from tilesage.games.board import CELLS

    if game.rows.shape != (1 << 16,) or game.tiles[0] != 0 or not 0 < game.goal < len(game.tiles):
        raise InputError(
            "rows has 65536 entries, tiles begins with 0 for an empty cell, and goal is the index of a tile"
        )
    state = game.new(0)
    if sum(map(bool, state.indices)) != game.starting_tiles or len(state.indices) != CELLS:
        raise InputError(
            f"start lays {sum(map(bool, state.indices))} tiles, and starting_tiles says {game.starting_tiles}"
        )
    for _ in range(3):
        if state.over:
            break
        after = state.slide(state.legal[0])
        if abs(sum(share for share, _ in after.outcomes()) - 1) > 1e-6:
            raise InputError("the probabilities of placements and draws do not add up to 1")
        state = after.spawn()
    game.rules.deal(np.uint64(0), np.uint64(0), state.rng)
    for ask in (game.rules.largest, game.rules.sum_of_tiles, game.rules.value_of_board):
        ask(state.board, state.aux)
    check_merges(state)
    if game.parse(state.text).indices != state.indices:
        raise InputError("read does not read what write wrote")


def check_merges(state: State) -> None:
    """Refuse a game whose slides and `merged` do not say the same of two tiles side by side at an edge."""
    import numpy as np

    from tilesage.games.board import CELLS, LEFT

    game, fields = state.game, state.game.write(state.board, state.aux)[1]
    for one, other in product(range(1, len(game.tiles)), repeat=2):
        board, aux = game.read([one, other, *[0] * (CELLS - 2)], fields)
        after, after_aux, _ = game.rules.slide(game.rows, board, aux, LEFT)
        made = game.merged(one, other)
        slid = game.write(np.uint64(after), np.uint64(after_aux))[0]
        if slid[:2] != ([made, 0] if made else [one, other]):
            raise InputError(
                f"merged says that the indices {one} and {other} make {made or 'nothing'}, "
                f"and a slide of them gives {slid[:2]}"
            )
