"""Is chance fair? Bets against it, whose stakes hardly ever grow if it is.

This module sees counts, no boards. Whoever doubts the dice begins with a stake of
1. Before every throw the whole stake is laid on the possible outcomes, in other shares q than their fair
probabilities p, and what is laid on the one that comes is paid back at fair odds: the stake becomes q/p times as
large. Under fair chance no way of laying it gains on average, so the stake ever reaches 1/p with probability p at
most (Ville 1939; an e-value), whenever games end and however few of them are in the file. 1/stake is the p-value
here. It is a careful one: under fair chance it is nearly always 1.

    >>> [round(stake_on_habits([Group([tails, 100 - tails], [0.5, 0.5])]), 2) for tails in (50, 60, 70)]
    [0.79, 1.39, 116.93]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log

import numpy as np

from tilesage.records.rulebooks import Chance, Question

CAUTION = (10.0, 100.0, 1e3, 1e4, 1e5)  # fair throws that a player imagines before the first real one
FACTORS = tuple(exp(sign * bias) for bias in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0) for sign in (-1, 1))
LARGEST = 700.0  # the logarithm of the largest stake that is told
COUNTS = np.array([bits.bit_count() for bits in range(1 << 16)])
ROWS, COLUMNS = [0xF << 4 * row for row in range(4)], [0x1111 << column for column in range(4)]
CORNERS, MIDDLE = 0x9009, 0x0660
PLACES = (*(1 << cell for cell in range(16)), *ROWS, *COLUMNS, CORNERS, MIDDLE)


@dataclass(frozen=True)
class Test:
    """One question put to what chance did, and how much whoever doubts the answer would have won."""

    name: str
    question: str
    observations: int
    stake: float  # after the last throw, of 1 before the first

    @property
    def p(self) -> float:
        """The probability of such a stake under fair chance, at most."""
        return min(1.0, 1 / self.stake)


@dataclass
class Group:
    """Throws under one and the same fair distribution: how often each choice came, and how often it should."""

    observed: Sequence[int]
    probabilities: Sequence[float]


def asked(name: str, question: str, groups: Sequence[Group]) -> Test | None:
    """Does what came often come again more often than it should? None where there was nothing to choose."""
    groups = [group for group in groups if len(group.observed) > 1]
    observations = sum(sum(group.observed) for group in groups)
    return Test(name, question, observations, stake_on_habits(groups)) if observations else None


def stake_on_habits(groups: Sequence[Group]) -> float:
    """The stake of players who lay it as often as each choice has come so far, starting from some fair throws.

    The product of all q is a Dirichlet-multinomial probability, in which the order of the throws does not matter.
    """
    return _mean([fsum(_gain(group, caution) for group in groups) for caution in CAUTION])


def _gain(group: Group, caution: float) -> float:
    """The logarithm of the factor that the throws of one group bring."""
    gain = lgamma(caution) - lgamma(caution + sum(group.observed))
    for times, p in zip(group.observed, group.probabilities):
        if times:
            gain += lgamma(caution * p + times) - lgamma(caution * p) - times * log(p)
    return gain


def _mean(logarithms: Sequence[float]) -> float:
    """The mean of stakes given by their logarithms: each player had an equal part of the 1."""
    top = max(logarithms)
    return exp(min(LARGEST, top + log(sum(exp(x - top) for x in logarithms) / len(logarithms))))


def examined(questions: Iterable[Question], chance: Chance) -> list[Test]:
    """Every test for which chance had something to choose."""
    alike = "each of n candidate cells equally likely, for each n"
    tests = [asked("cells", alike, groups_by_rank(chance.landings)), bet_on_places(chance.landings)]
    counts: dict[str, dict[tuple[int, ...], dict[int, int]]] = {}
    for (kind, situation, choice), times in chance.choices.items():
        counts.setdefault(kind, {}).setdefault(situation, {})[choice] = times
    for question in questions:
        groups = []
        for situation, found in counts.get(question.kind, {}).items():
            fair = question.fair(situation)
            groups.append(Group([found.get(choice, 0) for choice in fair], list(fair.values())))
        tests.append(asked(question.name, question.text, groups))
    return [test for test in tests if test]


def groups_by_rank(landings: Mapping[int, int]) -> list[Group]:
    """For each n, which of n candidates it was, counted row by row. A key is `candidates << 4 | cell`: the cells on
    which the tile could land, bit i for cell i, and the cell on which it did."""
    by_number: dict[int, list[int]] = {}
    for key, times in landings.items():
        candidates, cell = key >> 4, key & 15
        n = candidates.bit_count()
        rank = (candidates & ((1 << cell) - 1)).bit_count()
        by_number.setdefault(n, [0] * n)[rank] += times
    return [Group(observed, [1 / n] * n) for n, observed in sorted(by_number.items())]


def bet_on_places(landings: Mapping[int, int]) -> Test | None:
    """Does any place of the board (a cell, a row, a column, the corners, the middle) get more or less than its share?

    Whoever bets on a place takes each of its cells for `factor` times as likely as the others.
    """
    if not landings:
        return None
    keys, times = np.array([*landings]), np.array([*landings.values()], float)
    candidates, cells = keys >> 4, keys & 15
    numbers, found = COUNTS[candidates], []
    for place in PLACES:
        inside = COUNTS[candidates & place]
        hits = float(times @ (place >> cells & 1))
        often = np.bincount(17 * numbers + inside, times)
        (cases,) = often.nonzero()
        n, m = cases // 17, cases % 17
        found += [hits * log(factor) - float(often[cases] @ np.log(1 + (factor - 1) * m / n)) for factor in FACTORS]
    question = "each place of the board as likely as its turns as a candidate say"
    return Test("places", question, int(times.sum()), _mean(found))
