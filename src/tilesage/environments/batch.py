"""Many games in lockstep: one compiled call plays one move in each of them, for the Gymnasium environments.

Everything lives in arrays made once. `Positions` is where the games stand, `Seen` what a player is shown; a call
reads the actions, moves the positions on and writes what is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.random import seed_of
from tilesage.games import Game, State, get
from tilesage.games.board import LOW_NIBBLES, NIBBLE, S4, S8, S16, S32, TWO, ZERO, Board
from tilesage.games.legal import legal_of, moving_rows

LOW_32 = np.uint64(0xFFFF_FFFF)
PAIRS, QUADS = np.uint64(0x0000_FFFF_0000_FFFF), np.uint64(0x00FF_00FF_00FF_00FF)
FOUR_BYTES, LOW_BIT_OF_FOUR = np.uint64(0x0020_4081), np.uint64(0x0101_0101)
THREE, SEVEN = np.uint64(3), np.uint64(7)
NO_LIMIT = int(np.iinfo(np.int64).max)


class Positions(NamedTuple):
    """Where N games stand."""

    boards: Array  # [N] uint64
    auxes: Array  # [N] uint64
    rngs: Array  # [N] uint64
    scores: Array  # [N] int64
    steps: Array  # [N] int64, since the start of the game, illegal actions included
    done: Array  # [N] bool: the game is over, or was cut short


class Seen(NamedTuple):
    """What the players of N games are shown."""

    cells: Array  # [N, 2] uint64: sixteen bytes, the tile indices row by row
    extras: Array  # [N] uint64: eight bytes, from byte 0 the indices that may come next, from byte 4 the bag or deck
    masks: Array  # [N] uint32: four bytes, 1 where the action is legal
    rewards: Array  # [N] float64
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool
    illegal: Array  # [N] bool: the action was illegal and changed nothing


@compiled
def bytes_of(half: np.uint64) -> np.uint64:
    """Eight nibbles as eight bytes."""
    half = (half | (half << S16)) & PAIRS
    half = (half | (half << S8)) & QUADS
    return (half | (half << S4)) & LOW_NIBBLES


@compiled
def no_extras(aux: np.uint64) -> np.uint64:
    """For games whose observation is the board alone."""
    return ZERO


@compiled
def hint_and_bag(aux: np.uint64) -> np.uint64:
    """Threes!: the hint, and which of 1, 2, 3 are in the bag."""
    bag = (aux >> TWO) & SEVEN
    return (aux & THREE) | (((bag * FOUR_BYTES) & LOW_BIT_OF_FOUR) << S32)


@compiled
def window_and_deck(aux: np.uint64) -> np.uint64:
    """Phone Threes!: the one to three values of the hint, and how many 1, 2, 3 are in the deck."""
    smallest, size = aux & NIBBLE, (aux >> S4) & THREE
    shown = smallest
    for k in range(1, 3):
        if np.uint64(k) < size:
            shown |= (smallest + np.uint64(k)) << np.uint64(8 * k)
    for k in range(3):
        shown |= ((aux >> np.uint64(16 + 3 * k)) & SEVEN) << np.uint64(32 + 8 * k)
    return shown


class Extras(NamedTuple):
    """What a player sees beside the board."""

    of: Callable[..., Any]  # aux -> eight bytes
    hints: int  # how many values a hint may leave open
    copies: int  # how many of each of 1, 2, 3 the bag or deck holds


NO_EXTRAS = Extras(no_extras, 0, 0)
EXTRAS = {
    "threes": Extras(hint_and_bag, 1, 1),
    "threes-phone": Extras(window_and_deck, 3, 4),
}


@cache
def extras_in(game: Game) -> Extras:
    """What a player of this game sees beside the board: by a row above, or the hint that the lowest bits hold."""
    if game.name in EXTRAS or game.hint is None:
        return EXTRAS.get(game.name, NO_EXTRAS)
    lowest = np.uint64((1 << game.hint.bits) - 1)

    @compiled
    def hint_alone(aux: np.uint64) -> np.uint64:
        return aux & lowest

    return Extras(hint_alone, 1, 0)


@cache
def _view(game: Game) -> Callable[..., Any]:
    """A compiled function (rows, moving, board, aux) -> cells, cells, extras, legal moves."""
    legal, extras_of, indices = legal_of(game), extras_in(game).of, _eight_indices(game)

    @compiled
    def view(rows: Array, moving: Array, board: Board, aux: np.uint64) -> tuple[Any, Any, Any, Any]:
        return indices(board, aux, 0), indices(board, aux, 8), extras_of(aux), legal(rows, moving, board, aux)

    return view


def _eight_indices(game: Game) -> Callable[..., Any]:
    """`indices(board, aux, first)`: the tile indices of eight cells, as eight bytes."""
    index_at = game.index_at
    if index_at is None:

        @compiled
        def nibbles(board: Board, aux: np.uint64, first: int) -> np.uint64:
            return bytes_of((board >> np.uint64(4 * first)) & LOW_32)

        return nibbles

    @compiled
    def indices(board: Board, aux: np.uint64, first: int) -> np.uint64:
        if aux == ZERO:
            return bytes_of((board >> np.uint64(4 * first)) & LOW_32)
        found = ZERO
        for i in range(8):
            found |= np.uint64(index_at(board, aux, first + i)) << np.uint64(8 * i)
        return found

    return indices


@cache
def _begin(game: Game) -> Callable[..., None]:
    """A compiled function that starts a game in every chosen place, or only shows the positions that are there."""
    start, value_of_board, view = game.rules.start, game.rules.value_of_board, _view(game)
    score_is_value = game.score_is_value

    @compiled(title=f"the {game.title} environments")
    def begin(rows: Array, moving: Array, p: Positions, seen: Seen, chosen: Array, deal: bool) -> None:
        for i in range(len(chosen)):
            if not chosen[i]:
                continue
            if deal:
                board, aux, p.rngs[i] = start(rows, p.rngs[i])
                p.boards[i], p.auxes[i] = board, aux
                p.scores[i] = value_of_board(board, aux) if score_is_value else 0
            low, high, extras, moves = view(rows, moving, p.boards[i], p.auxes[i])
            seen.cells[i, 0], seen.cells[i, 1], seen.extras[i] = low, high, extras
            seen.masks[i] = np.uint32((moves * FOUR_BYTES) & LOW_BIT_OF_FOUR)
            seen.rewards[i], seen.terminated[i], seen.truncated[i] = 0.0, moves == ZERO, False
            p.steps[i], p.done[i], seen.illegal[i] = 0, moves == ZERO, False

    return begin


@cache
def _step(game: Game) -> Callable[..., None]:
    """A compiled function that plays one action in every game; those that are done stay, or start anew."""
    start, slide, spawn = game.rules.start, game.rules.slide, game.rules.spawn
    value_of_board, view = game.rules.value_of_board, _view(game)
    score_is_value = game.score_is_value

    @compiled(title=f"the {game.title} environments")
    def step(rows: Array, moving: Array, p: Positions, seen: Seen, actions: Array, limit: int, restart: bool) -> None:
        # Arrays are taken out of their tuples once: inside the loop that would count references.
        boards, auxes, rngs, scores, steps, done = p
        cells, extras, masks, rewards, terminated, truncated, illegal = seen
        for i in range(len(actions)):
            if done[i] and not restart:
                rewards[i], illegal[i] = 0.0, True
                continue
            board, aux, rng, gained = boards[i], auxes[i], rngs[i], np.int64(0)
            fresh, stuck = restart and done[i], False
            if fresh:
                board, aux, rng = start(rows, rng)
                scores[i] = value_of_board(board, aux) if score_is_value else 0
            else:
                after, after_aux, reward = slide(rows, board, aux, actions[i])
                stuck = after == board
                if not stuck:
                    board, aux, placed, rng = spawn(after, after_aux, rng)
                    gained = reward + placed
                    scores[i] += gained
            boards[i], auxes[i], rngs[i] = board, aux, rng
            cells[i, 0], cells[i, 1], extras[i], moves = view(rows, moving, board, aux)
            masks[i] = np.uint32((moves * FOUR_BYTES) & LOW_BIT_OF_FOUR)
            steps[i] = 0 if fresh else steps[i] + 1
            rewards[i], illegal[i] = gained, stuck
            terminated[i], truncated[i] = moves == ZERO, steps[i] >= limit
            done[i] = terminated[i] or truncated[i]

    return step


class Batch:
    """N games that are played in lockstep."""

    def __init__(self, game: Game, size: int, limit: int | None = None):
        self.game, self.size, self.limit = game, size, limit or NO_LIMIT
        self.positions = Positions(
            boards=np.zeros(size, np.uint64),
            auxes=np.zeros(size, np.uint64),
            rngs=np.zeros(size, np.uint64),
            scores=np.zeros(size, np.int64),
            steps=np.zeros(size, np.int64),
            done=np.zeros(size, np.bool_),
        )
        self.seen = Seen(
            cells=np.zeros((size, 2), np.uint64),
            extras=np.zeros(size, np.uint64),
            masks=np.zeros(size, np.uint32),
            rewards=np.zeros(size, np.float64),
            terminated=np.zeros(size, np.bool_),
            truncated=np.zeros(size, np.bool_),
            illegal=np.zeros(size, np.bool_),
        )
        extras = self.seen.extras.view(np.uint8).reshape(size, 8)
        self.boards = self.seen.cells.view(np.uint8).reshape(size, 4, 4)
        self.hints, self.decks = extras[:, : extras_in(game).hints], extras[:, 4:7]
        self.masks = self.seen.masks.view(np.int8).reshape(size, 4)
        self._tables = game.rows, moving_rows(game)
        self._begin, self._step = _begin(game), _step(game)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy (also in another process) finds its compiled code by the name of the game."""
        limit = self.limit if self.limit < NO_LIMIT else None
        copied = [tuple(array.copy() for array in arrays) for arrays in (self.positions, self.seen)]
        return _restored, (self.game.name, dict(self.game.parameters), self.size, limit, *copied)

    def seed(self, seed: int, chosen: Array | None = None) -> None:
        """Game i, or each of the chosen ones, is seeded by (seed, i), as everywhere in this package."""
        for i in range(self.size) if chosen is None else np.flatnonzero(chosen):
            self.positions.rngs[i] = seed_of(np.uint64(seed % 2**64), np.uint64(i))

    def begin(self, chosen: Array | None = None) -> None:
        """Start a new game in every place, or in the chosen ones, each with its own generator."""
        where = np.ones(self.size, np.bool_) if chosen is None else chosen
        self._begin(*self._tables, self.positions, self.seen, where, True)

    def put(self, i: int, state: State, its_chance: bool) -> None:
        """Set up a position in place i, with its own generator or the one that is there."""
        p = self.positions
        p.boards[i], p.auxes[i], p.scores[i] = state.board, state.aux, state.score
        if its_chance:
            p.rngs[i] = state.rng
        self._begin(*self._tables, p, self.seen, np.arange(self.size) == i, False)

    def step(self, actions: Array, restart: bool = False) -> None:
        """Play one action in every game; with `restart`, games that are done begin anew instead."""
        self._step(*self._tables, self.positions, self.seen, actions, self.limit, restart)

    def state(self, i: int) -> State:
        """The position of game i as an object."""
        p = self.positions
        return State(self.game, p.boards[i], p.auxes[i], int(p.scores[i]), int(p.steps[i]), p.rngs[i])


def _restored(
    name: str,
    parameters: dict[str, float],
    size: int,
    limit: int | None,
    positions: tuple[Array, ...],
    seen: tuple[Array, ...],
) -> Batch:
    batch = Batch(get(name, **parameters), size, limit)
    for mine, saved in zip((*batch.positions, *batch.seen), (*positions, *seen)):
        mine[...] = saved
    return batch
