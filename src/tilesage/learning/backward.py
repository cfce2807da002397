"""Learning after the game, from its end back to its beginning, so that one pass carries the outcome all the way."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tilesage.core.compiler import compiled
from tilesage.games.game import Game
from tilesage.learning.rules import UpdateRule
from tilesage.learning.states import expectation
from tilesage.learning.steps import NONE, Shared, Steps, Train, greedy_choice, loop_of, steps_for
from tilesage.learning.thread_state import NO_GAME, ThreadState
from tilesage.learning.traces import backward_target
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import Network


class LearnBackward(Protocol):
    """Learn along the path of slot g, from its end, of which `target` is what it turned out to be worth."""

    def __call__(self, shared: Shared, thread: ThreadState, g: int, length: int, target: np.float32) -> None: ...


def backward_pass(steps: Steps, rule: UpdateRule) -> LearnBackward:
    find_entries, value_of, promote, update = steps.find_entries, steps.value_of, steps.promote, rule.update

    @compiled
    def learn_backward(shared: Shared, thread: ThreadState, g: int, length: int, target: np.float32) -> None:
        _, weights, memory, rate, decay = shared
        boards, auxes, rewards = thread.path_boards[g], thread.path_auxes[g], thread.path_rewards[g]
        if length > 0:
            find_entries(weights, boards[length - 1], auxes[length - 1], thread.ring[g, (length - 1) % 2])
        for t in range(length - 1, -1, -1):
            entries = thread.ring[g, t % 2]
            if t > 0:  # ask for the next ones while these are used
                find_entries(weights, boards[t - 1], auxes[t - 1], thread.ring[g, (t - 1) % 2])
            error = target - value_of(weights, entries)
            promote(weights, entries)
            update(weights, memory, entries, error, rate)
            thread.worst[0] = max(thread.worst[0], abs(error))
            target = backward_target(rewards[t], target, value_of(weights, entries), decay)

    return learn_backward


RING = 2  # places that `backward_pass` needs


def backward(
    game: Game, network: Network, rule: UpdateRule, of_states: bool, ahead: bool, learn_end: bool = True
) -> Train:
    """The backward loop, on values of afterstates or of states; `learn_end`: of the last state, too."""
    steps = steps_for(game, evaluator(game, network), ahead)
    learn_backward = backward_pass(steps, rule)
    what = "states" if of_states else "afterstates"
    choose_move = greedy_choice(expectation(game, network, steps) if of_states else steps.value_of_move)
    find_moves, begin_episode, end_episode = steps.find_moves, steps.begin_episode, steps.end_episode
    play_move, learn_last = steps.play_move, of_states and learn_end

    @compiled(inline=True)
    def turn(shared: Shared, thread: ThreadState, g: int) -> None:
        rows, weights, _, _, _ = shared
        n, t = thread.legal[g], thread.length[g]
        if of_states and t != NO_GAME:
            thread.path_boards[g, t], thread.path_auxes[g, t] = thread.board[g], thread.aux[g]
            thread.path_rewards[g, t] = np.float32(thread.gain[g])
        if n:
            best, _, _ = choose_move(weights, thread, g)
            if not of_states:
                thread.path_boards[g, t] = thread.afters[g, best]
                thread.path_auxes[g, t] = thread.auxes[g, best]
                thread.path_rewards[g, t] = np.float32(thread.gain[g] + thread.rewards[g, best])
            placed = play_move(thread, g, best)
            thread.gain[g] = thread.rewards[g, best] + placed if of_states else placed
        else:
            if t != NO_GAME:
                last = NONE if learn_last else np.float32(thread.gain[g])
                learn_backward(shared, thread, g, t + 1 if learn_last else t, last)
                end_episode(thread, g)
            begin_episode(rows, thread, g)
        find_moves(rows, weights, thread, g)

    return loop_of(turn, f"the {network.name} trainer for {game.name}, {what}, backward")
