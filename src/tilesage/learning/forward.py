"""Learning as the game goes: each visited position learns from the errors of the moves that follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.game import Game
from tilesage.learning.parts import chooser, far_reads, parts
from tilesage.learning.rules import UpdateRule, age_update
from tilesage.learning.seat import GAMES, MOVES, NO_GAME, SLOTS, Seat
from tilesage.learning.traces import delayed_error
from tilesage.networks.lanes import prefetch
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import Network

NO_AGE = np.uint64(0)


def forward_afterstates(
    game: Game, network: Network, rule: UpdateRule, history: int, ahead: bool
) -> Callable[..., Any]:
    """`train(rows, weights, memory, seat, rate, decay, moves, games)`: the loop that the records are set with.

    Two games are played in turn. Looking at the moves of one asks the memory for all entries it will need; while
    they arrive, the other game chooses, learns and moves.
    """
    found = evaluator(game, network)
    part, far = parts(game, found, ahead), far_reads(found)
    look, total_of, pick, own, choose = part.look, part.total_of, part.pick, part.own, chooser(part.total)
    open_episode, close, spawn = part.open, part.close, game.rules.spawn
    update, note, remembered = rule.update, rule.note, np.uint64(len(rule.memory))
    age, by_age = found.age or found.offset, network.by_age  # without ages none is asked for

    @compiled(title=f"the {network.name} trainer for {game.name}")
    def train(
        rows: Array,
        weights: Array,
        memory: Array,
        seat: Seat,
        rate: np.float32,
        decay: np.float32,
        moves: int,
        games: int,
    ) -> None:
        until, enough = seat.tally[MOVES] + moves, seat.tally[GAMES] + games
        while seat.tally[MOVES] < until and seat.tally[GAMES] < enough:
            for g in range(SLOTS):
                n, t, ring, errors = seat.legal[g], seat.length[g], seat.ring[g], seat.errors[g]
                best, value = choose(weights, seat, g)
                value += np.float32(seat.gain[g])
                now = age(seat.board[g], seat.aux[g]) if by_age else NO_AGE
                if by_age and n:
                    value += weights[now]
                if t > 0:
                    before = total_of(weights, ring[(t - 1) % history])
                    if by_age:
                        before += weights[seat.age[g]]
                        age_update(weights, seat.age[g], value - before, rate)
                        note(memory, np.int64(seat.age[g]), value - before)
                    errors[(t - 1) % history] = value - before
                    ripe = t - history
                    for q in range(max(ripe, 0), ripe + 1 if n else t):
                        error = delayed_error(errors, history, q, t, decay)
                        own(weights, ring[q % history])
                        update(weights, memory, ring[q % history], error, rate)
                        seat.worst[0] = max(seat.worst[0], abs(error))
                if n:
                    chosen = ring[t % history]
                    pick(seat, g, best, chosen)
                    seat.age[g] = now
                    if remembered:
                        for j in range(len(far)):
                            prefetch(memory, np.uint64(chosen[far[j]]) * remembered)
                    seat.board[g], seat.aux[g], seat.gain[g], seat.rng[g] = spawn(
                        seat.afters[g, best], seat.auxes[g, best], seat.rng[g]
                    )
                    seat.score[g] += seat.rewards[g, best] + seat.gain[g]
                    seat.length[g] = t + 1
                    seat.tally[MOVES] += 1
                else:
                    if t != NO_GAME:
                        close(seat, g)
                    open_episode(rows, seat, g)
                look(rows, weights, seat, g)

    return train
