"""Learning as the game goes: each visited position learns from the errors of the moves that follow it."""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import compiled
from tilesage.games.game import Game
from tilesage.learning.rules import UpdateRule, age_update
from tilesage.learning.steps import Shared, Train, far_reads, greedy_choice, loop_of, steps_for
from tilesage.learning.thread_state import NO_GAME, ThreadState
from tilesage.learning.traces import delayed_error
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import Network
from tilesage.networks.vector_words import prefetch

NO_AGE = np.uint64(0)


def forward_afterstates(game: Game, network: Network, rule: UpdateRule, history: int, ahead: bool) -> Train:
    """The loop on values of afterstates: V(afterstate) moves toward r + V(next afterstate).

    Looking at the moves of one game asks the memory for all entries it will need; while they arrive, the other game
    chooses, learns and moves.
    """
    found = evaluator(game, network)
    steps, far = steps_for(game, found, ahead), far_reads(found)
    choose_move, find_moves, value_of = greedy_choice(steps.value_of_move), steps.find_moves, steps.value_of
    promote, copy_entries, play_move = steps.promote, steps.copy_entries_of_move, steps.play_move
    begin_episode, end_episode = steps.begin_episode, steps.end_episode
    update, note, remembered = rule.update, rule.note, np.uint64(len(rule.memory))
    age, by_age = found.age or found.offset, network.by_age  # without ages none is asked for

    @compiled(inline=True)
    def turn(shared: Shared, thread: ThreadState, g: int) -> None:
        rows, weights, memory, rate, decay = shared
        n, t, ring, errors = thread.legal[g], thread.length[g], thread.ring[g], thread.errors[g]
        best, value, _ = choose_move(weights, thread, g)
        value += np.float32(thread.gain[g])
        now = age(thread.board[g], thread.aux[g]) if by_age else NO_AGE
        if by_age and n:
            value += weights[now]
        if t > 0:
            before = value_of(weights, ring[(t - 1) % history])
            if by_age:
                before += weights[thread.age[g]]
                age_update(weights, thread.age[g], value - before, rate)
                note(memory, np.int64(thread.age[g]), value - before)
            errors[(t - 1) % history] = value - before
            ripe = t - history
            for q in range(max(ripe, 0), ripe + 1 if n else t):
                error = delayed_error(errors, history, q, t, decay)
                promote(weights, ring[q % history])
                update(weights, memory, ring[q % history], error, rate)
                thread.worst[0] = max(thread.worst[0], abs(error))
        if n:
            chosen = ring[t % history]
            copy_entries(thread, g, best, chosen)
            thread.age[g] = now
            if remembered:
                for j in range(len(far)):
                    prefetch(memory, np.uint64(chosen[far[j]]) * remembered)
            thread.gain[g] = play_move(thread, g, best)
        else:
            if t != NO_GAME:
                end_episode(thread, g)
            begin_episode(rows, thread, g)
        find_moves(rows, weights, thread, g)

    return loop_of(turn, f"the {network.name} trainer for {game.name}")
