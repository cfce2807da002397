"""The friendly layer: positions as immutable objects, for people, notebooks and tests.

>>> from tilesage import games
>>> state = games.get("2048").new(seed=1)
>>> while not state.over:
...     state = state.play(state.legal[0])
>>> state.score > 0
True
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError, check_seed
from tilesage.core.random import seed_of
from tilesage.games.board import ACTIONS
from tilesage.games.game import Game
from tilesage.games.legal import legal_moves

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEGAL = tuple(tuple(action for action in range(4) if bits >> action & 1) for bits in range(16))  # by four bits
FIELDS = ("score", "moves", "seed", "rng")  # of a state, besides what its game writes
FEW_ACTIONS = "up, right, down or left (or 0, 1, 2, 3)"


def action_of(action: int | str) -> int:
    """The number of an action given as a number, a name or its first letter."""
    text = str(action).strip().lower()
    for number, name in enumerate(ACTIONS):
        if text in (str(number), name, name[0]):
            return number
    over = ", which players answer when the game is over" if text == "-1" else ""
    raise InputError(f"unknown action {action!r}{over}: write {FEW_ACTIONS}")


@dataclass(frozen=True)
class Afterstate:
    """The board after the move and before chance."""

    before: State
    action: int
    board: np.uint64
    aux: np.uint64
    reward: int

    def outcomes(self) -> list[tuple[float, State]]:
        """Every position that chance may make of this, with its probability."""
        game, found = self.before.game, []
        boards, auxes, shares = outcome_room(game.max_placements)
        _, draws, draw_shares = outcome_room(game.max_draws)
        for i in range(game.rules.placements(self.board, self.aux, boards, auxes, shares)):
            board = np.uint64(boards[i])
            gained = self.reward + _placed_value(game, self.board, board)
            for k in range(game.rules.draws(board, np.uint64(auxes[i]), draws, draw_shares)):
                state = self.before._next(board, np.uint64(draws[k]), gained, self.before.rng)
                found.append((float(shares[i] * draw_shares[k]), state))
        return [(share, state) for share, state in found if share > 0]

    def spawn(self) -> State:
        """What chance makes of this, by the generator of the position before."""
        board, aux, reward, rng = self.before.game.rules.spawn(self.board, self.aux, self.before.rng)
        return self.before._next(np.uint64(board), np.uint64(aux), self.reward + int(reward), np.uint64(rng))

    def __str__(self) -> str:
        return grid(self.before.game, self.board, self.aux)

    def __repr__(self) -> str:
        board = text_of(self.before.game, self.board, self.aux)
        return f"Afterstate({self.before.game.key!r}, {board!r}, {ACTIONS[self.action]}, reward={self.reward})"


@dataclass(frozen=True)
class State:
    """A position, with the score, the number of moves and the generator of what comes next."""

    game: Game
    board: np.uint64
    aux: np.uint64
    score: int = 0
    moves: int = 0
    rng: np.uint64 = field(default=np.uint64(0), repr=False)

    @cached_property
    def slides(self) -> tuple[Afterstate | None, ...]:
        """The four afterstates in the order of the actions; None where the move is illegal."""
        found: list[Afterstate | None] = []
        for action in range(4):
            after, aux, reward = self.game.rules.slide(self.game.rows, self.board, self.aux, action)
            legal = after != self.board
            found.append(Afterstate(self, action, np.uint64(after), np.uint64(aux), int(reward)) if legal else None)
        return tuple(found)

    @cached_property
    def legal(self) -> tuple[int, ...]:
        """The legal actions, ascending, as numbers: `3 in state.legal` asks for left, and a word is never in it."""
        return LEGAL[legal_moves(self.game, self.board, self.aux)]

    @property
    def over(self) -> bool:
        """Is no move legal?"""
        return not self.legal

    def slide(self, action: int | str) -> Afterstate:
        """The afterstate of a legal action."""
        number = action_of(action)
        after = self.slides[number]
        if after is None:
            legal = ", ".join(ACTIONS[a] for a in self.legal) or "none, the game is over"
            raise InputError(f"{ACTIONS[number]} moves nothing here; legal: {legal}")
        return after

    def play(self, action: int | str) -> State:
        """Slide, then let chance answer."""
        return self.slide(action).spawn()

    def _next(self, board: np.uint64, aux: np.uint64, gained: int, rng: np.uint64) -> State:
        return State(self.game, board, aux, self.score + gained, self.moves + 1, rng)

    @property
    def indices(self) -> list[int]:
        """The sixteen tile indices, row by row."""
        return self.game.write(self.board, self.aux)[0]

    @property
    def cells(self) -> list[int]:
        """The sixteen tile numbers, row by row."""
        return [self.game.tiles[index] for index in self.indices]

    @property
    def largest(self) -> int:
        """The largest tile number."""
        return max(self.cells)

    @property
    def hint(self) -> tuple[int, ...]:
        """The tile numbers that may come next, () in a game without hints."""
        shown = self.game.write(self.board, self.aux)[1].get("hint", "")
        return tuple(int(tile) for tile in shown.split("+") if tile)

    @property
    def text(self) -> str:
        """The board in one line that `game.parse` reads back: the rows as indices, then hint, bag or deck.

        Score and moves are not in it; `line` has all of a state.

        >>> from tilesage import games
        >>> state = games.get("2048").new(seed=1).play("left")
        >>> state.text, state.game.parse(state.line) == state
        ('..../2.../.1../....', True)
        """
        return text_of(self.game, self.board, self.aux)

    @property
    def line(self) -> str:
        """`text` with score, moves and generator: `game.parse` makes this very state of it, and its future."""
        return f"{self.text} score={self.score} moves={self.moves} rng={int(self.rng):x}"

    def __str__(self) -> str:
        return grid(self.game, self.board, self.aux)

    def __repr__(self) -> str:
        return f"State({self.game.key!r}, '{self.text} score={self.score} moves={self.moves}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (self.game, self.board, self.aux, self.score, self.moves, self.rng)


def text_of(game: Game, board: np.uint64, aux: np.uint64) -> str:
    """A position in one line: the rows as indices, then hint, bag or deck."""
    indices, fields = game.write(board, aux)
    digits = "".join(DIGITS[index] if index else "." for index in indices)
    rows = "/".join(digits[i : i + 4] for i in range(0, 16, 4))
    return " ".join([rows, *(f"{name}={value}" for name, value in fields.items())])


def outcome_room(size: int) -> tuple[Array, Array, Array]:
    """Room for the boards, auxes and probabilities of so many chance outcomes."""
    return np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size, np.float64)


def _placed_value(game: Game, after: np.uint64, board: np.uint64) -> int:
    """What a placed tile adds to the score: nothing in 2048, its value in Threes!."""
    if not game.score_is_value:
        return 0
    value = game.rules.value_of_board
    return int(value(board, np.uint64(0))) - int(value(after, np.uint64(0)))


def new_state(game: Game, seed: int) -> State:
    """The start of the game with this seed."""
    check_seed(seed)
    return start_from(game, np.uint64(seed_of(np.uint64(seed), np.uint64(0))))


def start_from(game: Game, rng: np.uint64) -> State:
    """The game that this generator starts."""
    board, aux, rng = (np.uint64(x) for x in game.rules.start(game.rows, rng))
    score = int(game.rules.value_of_board(board, aux)) if game.score_is_value else 0
    return State(game, board, aux, score, 0, rng)


def grid(game: Game, board: np.uint64, aux: np.uint64) -> str:
    """The board as people draw it, with the hint below where there is one."""
    indices, fields = game.write(board, aux)
    cells = [str(game.tiles[index]) if index else "·" for index in indices]
    width = max(5, max(len(cell) for cell in cells) + 1)
    lines = ["".join(cell.rjust(width) for cell in cells[i : i + 4]) for i in range(0, 16, 4)]
    if fields:
        lines.append("  ".join(f"{name} {value}" for name, value in fields.items()).rjust(4 * width))
    return "\n".join(lines)


def parse_state(game: Game, text: str) -> State:
    """Read the compact form, or sixteen tile numbers; then `hint=`, `bag=`, `deck=`, and those of FIELDS."""
    if not isinstance(text, str):
        raise InputError(f"a position is a text such as '..1./..2./.3../1...', not {type(text).__name__}")
    words = text.replace("|", " ").split()
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    board = " ".join(word for word in words if "=" not in word)
    state = State(game, *game.read(_cells_of(game, board), fields))
    known = [*game.write(state.board, state.aux)[1], *FIELDS]
    unknown = sorted(set(fields) - set(known))
    if unknown:
        words_known = ", ".join(f"{name}=" for name in known)
        raise InputError(f"unknown word {unknown[0]}= in a position of {game.title}: write {words_known}")
    if game.score_is_value:
        state = replace(state, score=int(game.rules.value_of_board(state.board, state.aux)))
    score, moves, seed = (_whole(fields, name) for name in ("score", "moves", "seed"))
    if score is not None:
        state = replace(state, score=score)
    if not re.fullmatch("[0-9a-f]{1,16}", fields.get("rng", "0")):
        raise InputError(f"rng={fields['rng'][:40]} is no generator: copy it from the line of a state, or give seed=")
    rng = int(fields["rng"], 16) if "rng" in fields else seed_of(np.uint64(seed or 0), np.uint64(1))
    return replace(state, moves=moves or 0, rng=np.uint64(rng))


def _whole(fields: dict[str, str], name: str) -> int | None:
    if name not in fields:
        return None
    if not re.fullmatch(r"\d{1,18}", fields[name]):
        raise InputError(f"{name}={fields[name][:40]} is no whole number")
    return int(fields[name])


def _cells_of(game: Game, board: str) -> list[int]:
    compact = re.sub(r"[\s/]", "", board)
    numbers = [word for word in re.split(r"[\s,/]+", board.strip(" ,/")) if word]
    if len(numbers) == 16 and all(re.fullmatch(r"\d{1,9}|\.|·|-", word) for word in numbers):
        tiles = [int(word) if word.isdigit() else 0 for word in numbers]
        wrong = next((tile for tile in tiles if tile not in game.tiles), None)
        if wrong is not None:
            raise InputError(f"{wrong} is no tile of {game.title}: its tiles are {_few(game.tiles[1:])}")
        return [game.tiles.index(tile) for tile in tiles]
    if re.fullmatch(r"[0-9A-Za-z.]{16}", compact):
        indices = [0 if digit == "." else DIGITS.index(digit.upper()) for digit in compact]
        if max(indices) >= len(game.tiles):
            wrong_digit = DIGITS[max(indices)]
            raise InputError(
                f"index {wrong_digit} is past the largest tile of {game.title}, {DIGITS[len(game.tiles) - 1]}"
            )
        return indices
    shown = board if len(board) <= 60 else board[:57] + "…"
    raise InputError(
        f"{shown!r} is no board: write sixteen tile numbers, or four rows of indices such as ..1./..2./.3../...1"
    )


def _few(tiles: tuple[int, ...]) -> str:
    return ", ".join(map(str, tiles[:4])) + f", … {tiles[-1]}"
