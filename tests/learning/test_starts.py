"""Where games begin, and which of them count: afresh, or ahead, followed turn by turn in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tilesage.learning import Tally, TrainConfig
from tilesage.learning.ahead import make_ahead
from tilesage.learning.cpu import CpuTrainer
from tilesage.learning.thread_state import SLOTS

NO_LIMIT = 1 << 40
Note = tuple[int, int, int]  # board, aux, score


class SlowStarts:
    """What `--start` says in plain Python: told of every end, it says where the next game begins, and counts."""

    def __init__(self, trainer: CpuTrainer) -> None:
        self.game, self.config = trainer.game, trainer.config
        self.ahead = make_ahead(trainer.game, trainer.network.stages)
        self.known = Tally()
        self.given = [0] * SLOTS
        self.here = [self.begin(g, trainer.threads[0].rng[g])[0] for g in range(SLOTS)]

    def ended(self, g: int) -> None:
        board, _, score = self.here[g]
        if self.given[g]:
            self.known.replays += 1
            return
        self.known.games += 1
        self.known.points += score
        self.known.best = max(self.known.best, score)
        self.known.tiles[max(board >> 4 * cell & 15 for cell in range(16))] += 1

    def begin(self, g: int, rng: np.uint64) -> tuple[Note, np.uint64]:
        """Where the next game of this slot begins, and its generator then."""
        if self.config.start == "ahead":
            *found, self.given[g] = self.ahead(self.game.rows, rng)
        else:
            found = list(self.game.rules.start(self.game.rows, rng))
        board, aux, rng = (np.uint64(word) for word in found)
        points = self.game.rules.value_of_board(board, aux) if self.game.score_is_value else 0
        return (int(board), int(aux), int(points)), rng


@pytest.mark.parametrize(("game", "start"), [("threes", "fresh"), ("2048", "ahead"), ("threes-phone", "ahead")])
def test_games_begin_where_they_should_and_count_if_they_began_afresh(game: str, start: str) -> None:
    stages = "" if start == "fresh" else "1024" if game == "2048" else "384"
    trainer = CpuTrainer(TrainConfig(game=game, network="tiny", start=start, stages=stages, threads=1, games=1))
    thread, total, slow = trainer.threads[0], Tally(), SlowStarts(trainer)
    for _ in range(4000):
        rngs, lengths = thread.rng.copy(), np.maximum(thread.length, 0)
        total.add(trainer.advance(1, NO_LIMIT, 1.0))
        for g in range(SLOTS):
            now = int(thread.board[g]), int(thread.aux[g]), int(thread.score[g])
            if thread.length[g] != lengths[g] + 1:
                slow.ended(g)
                begun, rng = slow.begin(g, rngs[g])
                assert thread.origin[g] == slow.given[g]
                if thread.length[g] == 0:
                    assert (now, thread.rng[g]) == (begun, rng)
            slow.here[g] = now
    for name in ("games", "replays", "points", "best"):
        assert getattr(total, name) == getattr(slow.known, name)
    assert total.tiles.tolist() == slow.known.tiles.tolist()
    assert total.games > 10
    assert (total.replays > 10) == (start == "ahead")
