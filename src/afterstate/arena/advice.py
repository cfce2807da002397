"""Advice for one position: what each move is worth to a player, and how games go on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from afterstate.games import Game, Mistake, State
from afterstate.games.board import ACTIONS
from afterstate.games.chance import seed_of
from afterstate.games.compiler import Array, compiled
from afterstate.search.agents import Agent, Memory
from afterstate.search.kinds import NO_MOVE

from .evaluate import LOOPS

LARGEST_EXPONENT = 17  # 131072


@dataclass(frozen=True)
class MoveAdvice:
    """One of the four moves."""

    action: int
    legal: bool
    reward: int | None = None
    expected: float | None = None  # the score at the end of the game, as the player sees it
    played: float | None = None  # the mean score of games that the player really finished from here
    reach: float | None = None  # the share of those that reached the next tile

    def summary(self) -> dict[str, Any]:
        found = {
            "action": ACTIONS[self.action],
            "legal": self.legal,
            "reward": self.reward,
            "expected": self.expected,
        }
        if self.played is not None:
            found |= {"played_mean": self.played, "reach_next_tile": self.reach}
        return found


@dataclass(frozen=True)
class Advice:
    """What a player says of a position."""

    state: State
    agent: Agent
    moves: tuple[MoveAdvice, ...]
    best: int  # NO_MOVE when the game is over
    next_tile: int | None  # the tile after the largest one

    def __repr__(self) -> str:
        best = ACTIONS[self.best] if self.best != NO_MOVE else "no move is legal"
        return f"Advice(by {self.agent.spec} on '{self.state.text}': {best})"

    def summary(self) -> dict[str, Any]:
        """The figures of `--json`."""
        return {
            "game": self.state.game.name,
            "board": self.state.text,
            "score": self.state.score,
            "agent": self.agent.spec,
            "model": getattr(self.agent.model, "name", None),
            "over": self.best == NO_MOVE,
            "best": ACTIONS[self.best] if self.best != NO_MOVE else None,
            "next_tile": self.next_tile,
            "moves": [move.summary() for move in self.moves],
        }


def advise(
    agent: Agent,
    state: State,
    playouts: int = 0,
    memory: Memory | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Advice:
    """What `agent` thinks of the moves; with `playouts`, how that many games went that it finished from each.

    `progress` hears of every game that is finished, and how many there will be.
    """
    check_possible(state)
    memory = agent.new_memory() if memory is None else memory
    values = agent.values(state, memory)
    best = agent.choose(state, memory)
    tiles, largest = state.game.tiles, max(state.indices)
    next_tile = tiles[largest + 1] if largest + 1 < len(tiles) else None
    moves, finished, games = [], count(1), playouts * len(state.legal)

    def tell() -> None:
        if progress:
            progress(next(finished), games)

    for action, after in enumerate(state.slides):
        if after is None:
            moves.append(MoveAdvice(action, False))
            continue
        played = reach = None
        if playouts:
            played, reach = _play_on(agent, memory, state, action, playouts, largest + 1, tell)
        moves.append(MoveAdvice(action, True, after.reward, values[action], played, reach if next_tile else None))
    return Advice(state, agent, tuple(moves), best, next_tile)


def check_possible(state: State) -> None:
    """Refuse positions that no game leads to, as far as that is easily told."""
    held = sorted((index for index in state.indices if index), reverse=True)
    if not held:
        raise Mistake("an empty board is no position: a game starts with tiles on it")
    if state.game.name != "2048":
        return
    if len(held) == 1:
        raise Mistake("a board with a single tile cannot be: a game of 2048 starts with two, and every move adds one")
    for rank, exponent in enumerate(held):
        highest = LARGEST_EXPONENT - rank  # the cells not taken by larger tiles cannot make more than this
        if exponent > highest:
            raise Mistake(
                f"this board cannot be: a {2**exponent} would need more than the {16 - rank} cells beside the larger "
                f"tiles, which make at most {2**highest}"
            )


def _play_on(
    agent: Agent, memory: Memory, state: State, action: int, games: int, target: int, tell: Callable[[], None]
) -> tuple[float, float]:
    """Mean final score and share of games that reach tile index `target`, after this move."""
    after = state.slide(action)
    rngs = np.array([seed_of(state.rng, np.uint64(i + 2)) for i in range(games)], np.uint64)
    results = np.zeros((games, 2), np.int64)
    loop = _make_play_on(agent.game, agent.decide, agent.spec)
    for i in range(games):  # one at a time: between them Ctrl-C is heard
        start = after.board, after.aux, state.score + after.reward
        loop(memory, state.game.rows, *start, rngs[i : i + 1], results[i : i + 1])
        tell()
    return float(results[:, 0].mean()), float((results[:, 1] >= target).mean())


@lru_cache(maxsize=LOOPS)  # machine code that was loaded is never given back, and questions may come without end
def _make_play_on(game: Game, decide: Callable[..., Any], spec: str) -> Callable[..., Any]:
    slide, spawn, largest = game.rules.slide, game.rules.spawn, game.rules.largest

    @compiled(title=f"games of {game.title} played on by {spec}")
    def play_on(
        memory: Memory, rows: Array, after: np.uint64, aux: np.uint64, score: int, rngs: Array, results: Array
    ) -> None:
        for i in range(rngs.size):
            board, hint, placed, rng = spawn(after, aux, rngs[i])
            total, thought = score + placed, rng
            while True:
                action, thought = decide(memory, board, hint, total, thought)
                if action < 0:
                    break
                slid, slid_aux, reward = slide(rows, board, hint, action)
                board, hint, placed, rng = spawn(slid, slid_aux, rng)
                total += reward + placed
            results[i, 0], results[i, 1] = total, largest(board, hint)

    return play_on
