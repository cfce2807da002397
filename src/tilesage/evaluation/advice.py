"""Advice for one position: what each move is worth to a player, and how games go on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.evaluation.forecast import opinion_of
from tilesage.evaluation.playing import LARGEST, SCORE, Playing, row_of
from tilesage.games import State
from tilesage.games.board import ACTIONS
from tilesage.search.agents import Agent, Memory
from tilesage.search.kinds import NO_MOVE


@dataclass(frozen=True)
class MoveAdvice:
    """One of the four moves."""

    action: int
    legal: bool
    reward: int | None = None
    expected: float | None = None  # the player's figure, which `Advice.figure` names
    loss: float | None = None  # what it is less than that of the best move
    played: float | None = None  # the mean score of games that the player really finished from here
    reach: float | None = None  # the share of those that reached the next tile

    def summary(self) -> dict[str, Any]:
        """The figures of this move in `--json`."""
        found = {
            "action": ACTIONS[self.action],
            "legal": self.legal,
            "reward": self.reward,
            "expected": self.expected,
            "loss": self.loss,
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
    figure: str  # what the figures of the moves are

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
            "figure": self.figure,
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
    opinion = opinion_of(agent, state, agent.think(state, memory))
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
        moves.append(
            MoveAdvice(
                action,
                True,
                after.reward,
                opinion.values[action],
                opinion.losses[action],
                played,
                reach if next_tile else None,
            )
        )
    return Advice(state, agent, tuple(moves), opinion.best, next_tile, opinion.name)


def check_possible(state: State) -> None:
    """Refuse positions that no game leads to, as far as that is easily told."""
    held = sorted((index for index in state.indices if index), reverse=True)
    if not held:
        raise InputError("an empty board is no position: a game starts with tiles on it")
    game = state.game
    if game.highest_in is None:
        return
    if len(held) == 1:
        raise InputError(
            f"a board with a single tile cannot be: a game of {game.title} starts with two, and every move adds one"
        )
    for rank, index in enumerate(held):
        highest = game.highest_in(16 - rank)  # the cells not taken by larger tiles cannot make more than this
        if index > highest:
            raise InputError(
                f"this board cannot be: a {game.tiles[index]} would need more than the {16 - rank} cells beside the "
                f"larger tiles, which make at most {game.tiles[highest]}"
            )


def _play_on(
    agent: Agent, memory: Memory, state: State, action: int, games: int, target: int, tell: Callable[[], None]
) -> tuple[float, float]:
    """Mean final score and share of games that reach tile index `target`, after this move."""
    after = state.slide(action)
    rngs = [np.uint64(seed_of(state.rng, np.uint64(i + 2))) for i in range(games)]
    playing, scores, reached = Playing(agent, memory), np.zeros(games, np.int64), 0
    for i, rng in enumerate(rngs):  # one at a time: between them Ctrl-C is heard
        begun = replace(after, before=replace(state, rng=rng)).spawn()
        places = row_of(begun).reshape(1, -1)
        playing.finish(places, np.zeros(0, np.uint8), np.zeros(1, np.int64))
        scores[i], reached = places[0, SCORE], reached + int(places[0, LARGEST] >= target)
        tell()
    return float(scores.mean()), reached / games
