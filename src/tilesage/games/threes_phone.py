"""Threes! as on the phone: a deck of twelve, bonus tiles, and a hint that may leave some doubt.

What differs from the course variant (community reconstructions, not official):

- the deck holds four each of 1, 2, 3 and is filled again when it is empty;
- a new tile enters only a line that moved;
- once the largest tile is 48 or more, each new tile is a bonus with probability 1/21: one of 6 … largest/8, not taken
  from the deck. The hint then shows a window of at most three consecutive values, every window equally likely, and
  the tile is any of them with equal chance;
- 6144 + 6144 makes 12288 (index 15), and with it the game is over.

`aux` of a position:      bits 0-3 the smallest index of the hint · bits 4-5 how many values the hint leaves open
                          bits 16-24 three bits each: how many 1, 2, 3 are left in the deck
`aux` of an afterstate:   also bits 8-9 the direction of the slide · bits 10-13 the lines that moved
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.core.errors import InputError
from tilesage.core.random import below, chance_of, draw, low_half
from tilesage.games.board import (
    DOWN,
    NIBBLE,
    ONE,
    ROW,
    S4,
    S8,
    S16,
    S32,
    UP,
    ZERO,
    Board,
    Whole,
    count,
    empty_cells,
    largest_nibble,
    nth_cell,
    turn,
    turn_back,
)
from tilesage.games.game import Game, Hint, Rules
from tilesage.games.legal import has_full_nibble
from tilesage.games.threes import (
    STARTING_TILES,
    entry_side,
    largest,
    merged,
    row_table,
    slide_left,
    starts_of,
    sum_of_tiles,
    value_of_board,
    value_of_index,
)
from tilesage.games.threes import TILES as COURSE_TILES

TILES = (*COURSE_TILES, 12288)
HIGHEST = 15  # 12288
THREE, S10, S19, S22 = (np.uint64(n) for n in (3, 10, 19, 22))
DECK = np.uint64(0x1FF_0000)
FULL_DECK = np.uint64(0o444 << 16)
COUNT = np.uint64(7)
SIX, FORTY_EIGHT = np.uint64(4), np.uint64(7)  # the indices of those tiles
BONUS_RATE = 1 / 21
BONUS = chance_of(BONUS_RATE)
ONE_ROW, ONE_COLUMN = np.uint64(0x1111), np.uint64(0x0001_0001_0001_0001)


@compiled
def slide(rows: Array, board: Board, aux: np.uint64, action: Whole) -> tuple[Board, np.uint64, Whole]:
    """The afterstate and the value gained. The move is legal if the board changed."""
    if has_full_nibble(board):  # a 12288
        return board, aux, np.int64(0)
    turned = turn(board, action)
    slid, reward = slide_left(rows, turned)
    lines = ZERO
    for line in range(4):
        if ((turned ^ slid) >> np.uint64(16 * line)) & ROW:
            lines |= ONE << np.uint64(line)
    return turn_back(slid, action), aux | (np.uint64(action) << S8) | (lines << S10), reward


@compiled
def entry_cells(after: Board, aux: np.uint64) -> np.uint64:
    """The empty cells on the entry side of the lines that moved."""
    action = np.int64((aux >> S8) & THREE)
    cells = ZERO
    for line in range(4):
        if (aux >> (S10 + np.uint64(line))) & ONE:
            if action == UP or action == DOWN:
                cells |= ONE_COLUMN << np.uint64(4 * line)
            else:
                cells |= ONE_ROW << np.uint64(16 * line)
    return cells & entry_side(action) & empty_cells(after)


@compiled
def cards_left(aux: np.uint64) -> np.uint64:
    """How many cards are left in the deck."""
    return ((aux >> S16) & COUNT) + ((aux >> S19) & COUNT) + ((aux >> S22) & COUNT)


@compiled
def window_of(smallest: np.uint64, size: np.uint64) -> np.uint64:
    """A hint: `size` consecutive indices from `smallest` on."""
    return smallest | (size << S4)


@compiled
def bonus_windows(board: Board) -> tuple[np.uint64, np.uint64]:
    """How many values a bonus hint shows, and how many such windows there are; (0, 0) while there is no bonus."""
    highest = largest_nibble(board)
    if highest < FORTY_EIGHT:
        return ZERO, ZERO
    values = highest - np.uint64(6)  # 6 … largest / 8
    size = min(values, THREE)
    return size, values - size + ONE


@compiled
def take_card(deck: np.uint64, tile: int) -> np.uint64:
    """The hint that this card of the deck makes, and the deck, filled again when that was its last card."""
    rest = deck - (ONE << np.uint64(13 + 3 * tile))
    return window_of(np.uint64(tile), ONE) | (FULL_DECK if rest == ZERO else rest)


@compiled
def cards_of(deck: np.uint64, tile: int) -> np.uint64:
    """How many cards of this tile (1, 2 or 3) are left in the deck."""
    return (deck >> np.uint64(13 + 3 * tile)) & COUNT


@compiled
def draw_hint(board: Board, aux: np.uint64, rng: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Draw the next hint: a bonus window, or a card of the deck."""
    deck = aux & DECK
    bits, rng = draw(rng)
    size, windows = bonus_windows(board)
    if windows > ZERO and low_half(bits) < BONUS:
        return window_of(SIX + below(bits, windows), size) | deck, rng
    card, tile = below(bits, cards_left(deck)), 1
    while card >= cards_of(deck, tile):
        card -= cards_of(deck, tile)
        tile += 1
    return take_card(deck, tile), rng


@compiled
def spawn(after: Board, aux: np.uint64, rng: np.uint64) -> tuple[Board, np.uint64, Whole, np.uint64]:
    """A tile of the hint's window lands on a random entry cell, and the next hint is drawn."""
    cells = entry_cells(after, aux)
    bits, rng = draw(rng)
    tile = (aux & NIBBLE) + ((low_half(bits) * ((aux >> S4) & THREE)) >> S32)
    board = after | (nth_cell(cells, below(bits, count(cells))) * tile)
    aux, rng = draw_hint(board, aux, rng)
    return board, aux, value_of_index(tile), rng


start, deal = starts_of(draw_hint, FULL_DECK, NIBBLE)


@compiled
def placements(after: Board, aux: np.uint64, boards: Array, auxes: Array, probabilities: Array) -> int:
    """Every value of the hint's window on every cell it may land on."""
    cells, n = entry_cells(after, aux), 0
    size = np.int64((aux >> S4) & THREE)
    share = 1.0 / (float(count(cells)) * float(size))
    while cells != ZERO:
        cell = cells & (ZERO - cells)
        cells ^= cell
        for k in range(size):
            tile = (aux & NIBBLE) + np.uint64(k)
            boards[n], auxes[n], probabilities[n] = after | (cell * tile), aux & DECK, share
            n += 1
    return n


@compiled
def draws(board: Board, aux: np.uint64, auxes: Array, probabilities: Array) -> int:
    """Every kind of card in the deck, and every bonus window, as the next hint."""
    deck, n, rest = aux & DECK, 0, 1.0
    size, windows = bonus_windows(board)
    if windows > ZERO:
        rest = 1.0 - BONUS_RATE
    for tile in range(1, 4):
        if cards_of(deck, tile):
            auxes[n] = take_card(deck, tile)
            probabilities[n] = rest * float(cards_of(deck, tile)) / float(cards_left(deck))
            n += 1
    for k in range(np.int64(windows)):
        auxes[n] = window_of(SIX + np.uint64(k), size) | deck
        probabilities[n] = BONUS_RATE / float(windows)
        n += 1
    return n


@cache
def game() -> Game:
    """Threes! as it is on the phone, with its deck and its bonus tiles."""
    return Game(
        name="threes-phone",
        key="threes-phone",
        title="Threes! (phone)",
        summary="Threes! as on the phone: a deck of twelve, bonus tiles, a hint that may leave doubt",
        tiles=TILES,
        goal=TILES.index(384),
        rows=row_table(HIGHEST),
        rules=Rules(start, deal, slide, spawn, placements, draws, value_of_board, largest, sum_of_tiles),
        starting_tiles=STARTING_TILES,
        score_is_value=True,
        max_placements=12,
        max_draws=10,  # three cards, seven windows beside a 12288
        write=write,
        read=read,
        merged=lambda one, other: merged(one, other, HIGHEST),
        slides_far=False,
        hint=Hint(bits=4, values=3, copies=4),
        scales=True,
    )


def write(board: Board, aux: np.uint64) -> tuple[list[int], dict[str, str]]:
    """Indices of the sixteen tiles, the hint's values, and how many 1, 2, 3 are left in the deck."""
    smallest, size = int(aux) & 15, int(aux) >> 4 & 3
    hint = "+".join(str(TILES[i]) for i in range(smallest, smallest + size))
    deck = ",".join(str(int(aux) >> (13 + 3 * tile) & 7) for tile in (1, 2, 3))
    return [int(board) >> 4 * i & 15 for i in range(16)], {"hint": hint, "deck": deck}


def read(cells: list[int], fields: dict[str, str]) -> tuple[Board, np.uint64]:
    """Board and aux of these indices, a hint, and what is in the deck; an InputError where they do not fit."""
    try:
        window = [TILES.index(int(tile)) for tile in fields.get("hint", "").split("+")]
    except ValueError:
        window = [0]
    smallest, size = window[0], len(window)
    longest = 3 if smallest >= SIX else 1  # only a bonus leaves doubt
    if smallest == 0 or size > longest or window != list(range(smallest, smallest + size)):
        raise InputError("Threes! needs the next tile: add hint=1, 2 or 3, or a bonus such as hint=6+12+24")
    counts = fields.get("deck", "4,4,4").split(",")
    if len(counts) != 3 or any(count not in ("0", "1", "2", "3", "4") for count in counts) or set(counts) == {"0"}:
        raise InputError(
            "a deck is three counts from 0 to 4, the 1s, 2s, 3s that are left, not all 0, such as deck=4,3,2"
        )
    board = sum(tile << 4 * i for i, tile in enumerate(cells))
    deck = sum(int(count) << (16 + 3 * k) for k, count in enumerate(counts))
    return np.uint64(board), np.uint64(smallest | size << 4 | deck)
