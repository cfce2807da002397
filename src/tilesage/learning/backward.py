"""Learning after the game, from its end back to its beginning, so that one pass carries the outcome all the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilesage.core.compiler import Array, compiled
from tilesage.games.game import Game
from tilesage.learning.parts import NONE, Parts, chooser, parts
from tilesage.learning.rules import UpdateRule
from tilesage.learning.seat import GAMES, MOVES, NO_GAME, SLOTS, Seat
from tilesage.learning.states import expectation
from tilesage.learning.traces import backward_target
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import Network


def sweep_back(part: Parts, rule: UpdateRule) -> Callable[..., Any]:
    """`sweep(weights, memory, seat, g, length, target, rate, decay)`: learn along a path, from its end."""
    locate, total_of, own, update = part.locate, part.total_of, part.own, rule.update

    @compiled
    def sweep(
        weights: Array,
        memory: Array,
        seat: Seat,
        g: int,
        length: int,
        target: np.float32,
        rate: np.float32,
        decay: np.float32,
    ) -> None:
        boards, auxes, rewards = seat.path_boards[g], seat.path_auxes[g], seat.path_rewards[g]
        if length > 0:
            locate(weights, boards[length - 1], auxes[length - 1], seat.ring[g, (length - 1) % 2])
        for t in range(length - 1, -1, -1):
            entries = seat.ring[g, t % 2]
            if t > 0:  # ask for the next ones while these are used
                locate(weights, boards[t - 1], auxes[t - 1], seat.ring[g, (t - 1) % 2])
            error = target - total_of(weights, entries)
            own(weights, entries)
            update(weights, memory, entries, error, rate)
            seat.worst[0] = max(seat.worst[0], abs(error))
            target = backward_target(rewards[t], target, total_of(weights, entries), decay)

    return sweep


RING = 2  # places that `sweep_back` needs


def backward(game: Game, network: Network, rule: UpdateRule, of_states: bool, ahead: bool) -> Callable[..., Any]:
    """The backward loop, on values of afterstates or of states."""
    part = parts(game, evaluator(game, network), ahead)
    sweep = sweep_back(part, rule)
    what = "states" if of_states else "afterstates"
    choose = chooser(expectation(game, network) if of_states else part.total)
    look, open_episode, close, spawn = part.look, part.open, part.close, game.rules.spawn

    @compiled(title=f"the {network.name} trainer for {game.name}, {what}, backward")
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
                n, t = seat.legal[g], seat.length[g]
                if of_states and t != NO_GAME:
                    seat.path_boards[g, t], seat.path_auxes[g, t] = seat.board[g], seat.aux[g]
                    seat.path_rewards[g, t] = np.float32(seat.gain[g])
                if n:
                    best, _ = choose(weights, seat, g)
                    if not of_states:
                        seat.path_boards[g, t], seat.path_auxes[g, t] = seat.afters[g, best], seat.auxes[g, best]
                        seat.path_rewards[g, t] = np.float32(seat.gain[g] + seat.rewards[g, best])
                    seat.board[g], seat.aux[g], placed, seat.rng[g] = spawn(
                        seat.afters[g, best], seat.auxes[g, best], seat.rng[g]
                    )
                    seat.gain[g] = seat.rewards[g, best] + placed if of_states else placed
                    seat.score[g] += seat.rewards[g, best] + placed
                    seat.length[g] = t + 1
                    seat.tally[MOVES] += 1
                else:
                    if t != NO_GAME:
                        last = NONE if of_states else np.float32(seat.gain[g])
                        sweep(weights, memory, seat, g, t + 1 if of_states else t, last, rate, decay)
                        close(seat, g)
                    open_episode(rows, seat, g)
                look(rows, weights, seat, g)

    return train
