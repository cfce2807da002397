"""Searches in plain Python, written from their descriptions: the slow twins of the compiled ones.

They play with states, and draw from the same generator as the compiled ones in the same order, so that whole trees
can be compared number by number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from tilesage.core.random import draw, seed_of
from tilesage.games import Afterstate, State
from tilesage.networks.files import Model
from tilesage.search.agents import CHOICE

MOVES = range(4)
CONSTANT = 0.5  # of PUCT


@dataclass
class Dice:
    """The generator of a search: its own choices and the chance that it imagines draw from it."""

    rng: np.uint64

    def bits(self) -> int:
        bits, rng = draw(self.rng)
        self.rng = np.uint64(rng)
        return int(bits)

    def below(self, n: int) -> int:
        return (self.bits() >> 32) * n >> 32

    def answer(self, after: Afterstate) -> State:
        """What chance makes of an afterstate."""
        state = replace(after, before=replace(after.before, rng=self.rng)).spawn()
        self.rng = state.rng
        return state


def dice_of(state: State) -> Dice:
    """What an agent draws from when it is asked for a move."""
    return Dice(np.uint64(seed_of(state.rng, np.uint64(1))))


# --- random games -------------------------------------------------------------------------------------------------


def choose_at_random(state: State, dice: Dice) -> int | None:
    """The random player: directions are drawn until one is legal; None when all four were tried in vain."""
    tried: set[int] = set()
    while len(tried) < len(MOVES):
        action = dice.below(len(MOVES))
        if state.slides[action] is not None:
            return action
        tried.add(action)
    return None


def rollout(state: State, dice: Dice) -> int:
    """The score that random moves gain until the end; sixteen directions are cut from one draw."""
    gained, tried, directions = 0, set(), []
    while len(tried) < len(MOVES):
        if not directions:
            upper = dice.bits() >> 32
            directions = [upper >> 2 * i & 3 for i in range(16)]
        action = directions.pop(0)
        if action in tried:
            continue
        after = state.slides[action]
        if after is None:
            tried.add(action)
            continue
        answer = dice.answer(after)
        gained += answer.score - state.score
        state, tried = answer, set()
    return gained


def flat(state: State, dice: Dice, games: int) -> list[float | None]:
    """The mean score gained by each move in so many random games, all moves in turn; None where illegal."""
    totals = [None if after is None else 0 for after in state.slides]
    for _ in range(games):
        for action in state.legal:
            answer = dice.answer(state.slides[action])
            totals[action] += answer.score - state.score + rollout(answer, dice)
    return [None if total is None else total / games for total in totals]


def played_on(state: State, action: int, games: int, target: int) -> tuple[float, float]:
    """Games of the random player after a move: their mean score, and the share that reached the tile `target`.

    Game i has its own generator for chance, and the player has dice of its own.
    """
    scores, reached = [], 0
    for i in range(games):
        chance = Dice(np.uint64(seed_of(state.rng, np.uint64(i + 2))))
        now = chance.answer(state.slides[action])
        dice = Dice(np.uint64(seed_of(chance.rng, CHOICE)))
        while (chosen := choose_at_random(now, dice)) is not None:
            now = chance.answer(now.slides[chosen])
        scores.append(now.score)
        reached += max(now.indices) >= target
    return sum(scores) / games, reached / games


# --- UCT on random rollouts ---------------------------------------------------------------------------------------


@dataclass
class Node:
    """A sequence of moves: how often it was walked, the sum of the scores gained since the root, what follows."""

    visits: int = 0
    total: int = 0
    children: dict[int, Node] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return self.total / self.visits

    def bound(self, action: int, c: float) -> float:
        """Q/N + c' sqrt(2 ln N_parent / N), c' being c times the mean of this node, which chooses."""
        child = self.children[action]
        return child.mean + c * self.mean * math.sqrt(2.0 * math.log(self.visits) / child.visits)


def uct(
    state: State,
    dice: Dice,
    iterations: int,
    c: float = 1.0,
    room: float = math.inf,
    below: str = "legal",
    gain: str = "root",
) -> Node:
    """The tree of `mcts:iterations`; once it has `room` nodes it only goes on collecting rollouts.

    With below="all" a node below the root has four actions, and one that moves nothing leaves the position alone.
    """
    root, size = Node(), 1
    for _ in range(iterations):
        now, path, untried = state, [root], []
        while not untried and not now.over:
            node = path[-1]
            actions = MOVES if below == "all" and node is not root else now.legal
            untried = [action for action in actions if action not in node.children]
            if untried and size == room:
                break
            if untried:
                action = untried[dice.below(len(untried))]
                node.children[action] = Node()
                size += 1
            else:
                action = max(actions, key=lambda action, node=node: node.bound(action, c))
            if now.slides[action] is not None:
                now = dice.answer(now.slides[action])
            path.append(node.children[action])
        gained = rollout(now, dice) + (now.score - state.score if gain == "root" else 0)
        for node in path:
            node.visits += 1
            node.total += gained
    return root


# --- Monte Carlo tree search on network leaves --------------------------------------------------------------------


@dataclass
class Position:
    """A position in the tree, what is known of its four moves, and the outcomes of each that came up."""

    state: State
    firsts: list[float | None]  # r + V by the network
    visits: int = 0
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    totals: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    outcomes: list[dict[tuple[int, int], Position]] = field(default_factory=lambda: [{}, {}, {}, {}])

    def mean(self, action: int) -> float:
        """The mean of the returns and of the network's word, which counts as one visit."""
        return (self.totals[action] + self.firsts[action]) / (self.counts[action] + 1.0)

    def all_below(self) -> Iterator[Position]:
        """This position and all that are below it."""
        yield self
        for outcomes in self.outcomes:
            for child in outcomes.values():
                yield from child.all_below()


def place_of(state: State) -> tuple[int, int]:
    return int(state.board), int(state.aux)


@dataclass
class ValueTree:
    """The tree of `mcts:…,leaf=value`, one for every move; once it holds `room` positions, new ones are not kept."""

    model: Model
    room: float = math.inf
    c: float = CONSTANT

    def search(self, state: State, dice: Dice, iterations: int) -> None:
        self.size, self.scale = 0, 0.0
        self.root = self.add(state)
        for _ in range(iterations):
            self.iterate(dice)

    def add(self, state: State) -> Position:
        """A new position. `scale` is the running median of what moves give away, by the network's word."""
        firsts = [
            None if after is None else after.reward + max(leaf(self.model, after), 0.0) for after in state.slides
        ]
        words = [first for first in firsts if first is not None]
        for gap in (max(words) - first for first in words):
            if gap > 0:
                self.scale = gap if self.scale == 0 else self.scale * 1.05 if gap > self.scale else self.scale / 1.05
        self.size += 1
        return Position(state, firsts)

    def iterate(self, dice: Dice) -> None:
        """Walk down to a position that is new, then carry the best r + V and the rewards on the way back up."""
        position, walked, value, new = self.root, [], 0.0, False
        while not new and position.state.legal:
            action = max(position.state.legal, key=lambda action, at=position: self.bound(at, action))
            answer = dice.answer(position.state.slides[action])
            walked.append((position, action, answer.score - position.state.score))
            outcomes, place = position.outcomes[action], place_of(answer)
            new = place not in outcomes
            if new:
                full = self.size == self.room
                position = self.add(answer)
                value = max((first for first in position.firsts if first is not None), default=0.0)
                if full:  # it counts, but is not kept
                    self.size -= 1
                else:
                    outcomes[place] = position
            else:
                position = outcomes[place]
        for position, action, gained in reversed(walked):
            value += gained
            position.visits += 1
            position.counts[action] += 1
            position.totals[action] += value

    def bound(self, position: Position, action: int) -> float:
        """PUCT with equal priors."""
        explore = self.c * self.scale * math.sqrt(position.visits + 1.0)
        return position.mean(action) + explore / (1.0 + position.counts[action])

    @property
    def most_visited(self) -> int:
        """The better one of equals."""
        root = self.root
        return max(root.state.legal, key=lambda action: (root.counts[action], root.mean(action)))


# --- expectimax ---------------------------------------------------------------------------------------------------


class OutOfBudget(Exception):
    """A round of deepening has used up what was left."""


def leaf(model: Model, after: Afterstate) -> float:
    """What the network says of an afterstate; for a network of states, the mean over what chance makes of it."""
    value = model.evaluator.value
    if model.of == "afterstates":
        return float(value(model.weights, after.board, after.aux))
    return sum(
        p * (placed(after, state) + float(value(model.weights, state.board, state.aux)))
        for p, state in after.outcomes()
    )


def placed(after: Afterstate, state: State) -> int:
    """What the new tile is worth: 0 in 2048."""
    return state.score - after.before.score - after.reward


@dataclass
class Definition:
    """Expectimax by the formulas of its module.

    Below the root the `width` moves that the network likes best are followed. What has a probability below `prune`,
    counted from the root, is left to the network. Afterstates that are looked into are counted as `nodes`.
    """

    model: Model
    width: int = 4
    prune: float = 0.0
    budget: float = math.inf
    nodes: int = 0

    def values(self, state: State, layers: int) -> list[float | None]:
        """What each move gains from here on; None where illegal."""
        return [
            None if after is None else after.reward + max(self.of_afterstate(after, layers - 1), 0.0)
            for after in state.slides
        ]

    def of_afterstate(self, after: Afterstate, layers: int, share: float = 1.0) -> float:
        """Its value with so many layers of moves below it, reached with probability `share`."""
        if layers == 0 or share < self.prune:
            return leaf(self.model, after)
        self.nodes += 1
        outcomes = after.outcomes()
        value = sum(p * (placed(after, state) + self.of_position(state, layers, share * p)) for p, state in outcomes)
        if self.nodes >= self.budget and layers > 1 and share * likeliest_landing(outcomes) >= self.prune:
            raise OutOfBudget
        return value

    def of_position(self, state: State, layers: int, share: float) -> float:
        moves = [after for after in state.slides if after is not None]
        if layers > 1 and self.width < len(MOVES):
            moves = sorted(moves, key=lambda after: -after.reward - leaf(self.model, after))[: self.width]
        below = ((after, self.of_afterstate(after, layers - 1, share)) for after in moves)
        return max((after.reward + max(value, 0.0) + 1 for after, value in below), default=0.0)


def likeliest_landing(outcomes: list[tuple[float, State]]) -> float:
    """The probability of the likeliest board, whatever the hint after it."""
    boards: dict[int, float] = {}
    for p, state in outcomes:
        boards[int(state.board)] = boards.get(int(state.board), 0.0) + p
    return max(boards.values())


def by_definition(model: Model, state: State, layers: int, width: int = 4, prune: float = 0.0) -> list[float | None]:
    """The expected final score of each move, by the formulas of the module."""
    return final(state, Definition(model, width, prune).values(state, layers))


def final(state: State, values: list[float | None]) -> list[float | None]:
    """Final scores instead of what is still gained."""
    return [None if value is None else state.score + value for value in values]


def deepened(
    model: Model, state: State, nodes: int, width: int, prune: float = 0.0
) -> tuple[int, list[float | None]]:
    """Iterative deepening: how many rounds were finished within so many nodes, and the values of the last one.

    The rounds look 1, 2, 3 … layers ahead. A narrow search goes by probability from the third on: a round that may
    cost four times the one before follows paths a fifth as likely; the last one those that the rest will pay for.
    """
    rounds, spent, least, used = 0, 0.0, 1.0, 0
    found: list[float | None] = []
    while True:
        by_likelihood = width < len(MOVES) and rounds >= 2
        search = Definition(model, width, least if by_likelihood else prune, nodes, used)
        try:
            values = search.values(state, 12 if by_likelihood else rounds + 1)
        except OutOfBudget:
            return rounds, found
        rounds, found, used = rounds + 1, final(state, values), search.nodes
        cost, spent = used / nodes - spent, used / nodes
        left = 1.0 - spent
        if width == len(MOVES):
            if 2.0 * cost > left or rounds == 12:
                return rounds, found
            continue
        factor = 0.2 if 4.0 * cost <= left else (cost / (0.8 * left)) ** 1.25 if left > 0.0 else 1.0
        if factor > 0.8 or (by_likelihood and least <= max(prune, 1e-7)):
            return rounds, found
        least = max(prune, least * factor) if rounds >= 2 else 1.0
