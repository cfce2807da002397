"""Where games begin: again from the middle of the last one, or where a large tile was just made (carousel)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterstate.games.chance import below, draw
from afterstate.learning import Tally, TrainConfig
from afterstate.learning.cpu import CpuTrainer
from afterstate.learning.seat import SLOTS

NO_LIMIT = 1 << 40
SHORTEST = 10  # moves: a shorter game is not begun again
LEVELS, PLACES = 18, 64  # tiles that the carousel turns through, and how many positions it keeps of each
Note = tuple[int, int, int]  # board, aux, score


class SlowStarts:
    """What `--start` says in plain Python: told of every move and every end, it says where the next game begins."""

    def __init__(self, trainer: CpuTrainer, start: str) -> None:
        self.trainer, self.game, self.start = trainer, trainer.game, start
        self.past: list[list[Note]] = [[] for _ in range(SLOTS)]  # positions of this game that were moved from
        self.summit = [0] * SLOTS
        self.pool: dict[int, list[Note]] = {tile: [] for tile in range(LEVELS)}
        self.turn = 0
        self.known = Tally()
        self.origins = [0] * SLOTS
        self.counts = {"fresh": 0, "restart": 0, "carousel": 0}
        seat = trainer.seats[0]
        self.here = [self.begin(g, seat.rng[g])[0] for g in range(SLOTS)]

    def largest(self, note: Note) -> int:
        return max(note[0] >> 4 * cell & 15 for cell in range(16))

    def moved(self, g: int, note: Note) -> None:
        self.past[g].append(note)
        tile = self.largest(note)
        if tile > self.summit[g] and tile >= self.game.goal - 1:
            self.pool[tile].append(note)
        self.summit[g] = tile

    def ended(self, g: int, note: Note) -> None:
        if self.origins[g]:
            self.known.replays += 1
        else:
            self.known.games += 1
            self.known.points += note[2]
            self.known.best = max(self.known.best, note[2])
            self.known.tiles[self.largest(note)] += 1

    def begin(self, g: int, rng: np.uint64) -> tuple[Note, np.uint64]:
        """Where the next game of this slot begins, and its generator then."""
        chosen, past = None, self.past[g]
        if self.start == "restart" and len(past) >= SHORTEST:
            chosen = past[len(past) // 2]
        if self.start == "carousel":
            tile, self.turn = self.turn % LEVELS, self.turn + 1
            while tile and not self.pool[tile]:
                tile, self.turn = self.turn % LEVELS, self.turn + 1
            if tile:
                bits, rng = draw(np.uint64(rng))
                notes = self.pool[tile]
                k = int(below(np.uint64(bits), np.uint64(min(len(notes), PLACES))))
                newest = len(notes) - 1  # a ring: the newest take the places of the oldest
                chosen = notes[newest - (newest - k) % PLACES]
        self.origins[g] = int(chosen is not None)
        self.counts[self.start if chosen else "fresh"] += 1
        if chosen is None:
            board, aux, rng = self.game.rules.start(self.game.rows, rng)
            points = self.game.rules.value_of_board(board, aux) if self.game.score_is_value else 0
            chosen = int(board), int(aux), int(points)
        self.past[g], self.summit[g] = [], self.largest(chosen)
        return chosen, np.uint64(rng)


def watched(start: str, game: str, turns: int, practice: int = 0) -> tuple[CpuTrainer, SlowStarts]:
    """A trainer that moves one turn at a time; every game begins where the plain Python says."""
    config = TrainConfig(game=game, network="tiny", decay=0.5, start=start, threads=1, games=1)
    trainer = CpuTrainer(config)
    if practice:
        fresh = CpuTrainer(replace(config, start="fresh"))
        fresh.advance(NO_LIMIT, practice, 1.0)
        np.copyto(trainer.state()["weights"], fresh.weights())
    seat, total = trainer.seats[0], Tally()
    slow = SlowStarts(trainer, start)
    for _ in range(turns):
        rngs, lengths = seat.rng.copy(), np.maximum(seat.length, 0)
        total.add(trainer.advance(1, NO_LIMIT, 1.0))
        for g in range(SLOTS):
            now = int(seat.board[g]), int(seat.aux[g]), int(seat.score[g])
            if seat.length[g] != lengths[g] + 1:
                slow.ended(g, slow.here[g])
                begun, rng = slow.begin(g, rngs[g])
                assert seat.origin[g] == slow.origins[g]
                if seat.length[g] == 0:
                    assert now == begun
                    assert seat.rng[g] == rng
                    slow.here[g] = now
                    continue
                slow.here[g] = begun  # both games were over at once: there was another turn
            assert seat.length[g] == len(slow.past[g]) + 1
            slow.moved(g, slow.here[g])
            slow.here[g] = now
    for name in ("games", "replays", "points", "best"):
        assert getattr(total, name) == getattr(slow.known, name)
    assert total.tiles.tolist() == slow.known.tiles.tolist()
    return trainer, slow


@pytest.mark.parametrize("game", ["2048", "threes"])
def test_restart_goes_on_from_the_middle_of_the_last_game(game: str) -> None:
    _, slow = watched("restart", game, 3000)
    assert slow.counts["restart"] > 20
    assert slow.counts["fresh"] > SLOTS + 3  # a game that lasted less than ten moves is followed by a new one


@pytest.mark.parametrize("game", ["threes", "threes-phone"])
def test_the_carousel_turns_through_positions_in_which_a_tile_was_just_made(game: str) -> None:
    trainer, slow = watched("carousel", game, 25_000, practice=1000)
    seat, kept = trainer.seats[0], 0
    for tile, notes in slow.pool.items():
        assert seat.pool_count[tile] == len(notes)
        for k, note in enumerate(notes[:PLACES]):
            if k + PLACES >= len(notes):  # not yet overwritten
                place = seat.pool_boards[tile, k], seat.pool_auxes[tile, k], seat.pool_scores[tile, k]
                assert tuple(map(int, place)) == note
                kept += 1
    assert kept > 50
    assert max(map(len, slow.pool.values())) > PLACES  # the oldest have given way
    assert slow.counts["carousel"] > 10
    assert slow.counts["fresh"] > 10


def test_fresh_games_begin_afresh() -> None:
    _, slow = watched("fresh", "threes", 1000)
    assert slow.counts["fresh"] > 5
    assert slow.known.replays == 0
