"""Is chance fair? Chi-square tests of recorded placements, each with its p-value.

The referee hands over counts; this module knows nothing about boards. Under fair chance every p-value is
(nearly) uniform between 0 and 1; a tiny one says that chance would hardly ever be this lopsided.

    >>> round(chi_square_tail(3.841, 1), 3), round(chi_square_tail(18.307, 10), 3)
    (0.05, 0.05)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log

SMALLEST_EXPECTED = 5.0  # the usual rule for trusting the chi-square approximation


@dataclass(frozen=True)
class Test:
    """One question put to the placements, and how surprising the answer is if chance is fair."""

    name: str
    question: str
    observations: int
    statistic: float
    freedom: int
    p: float


@dataclass
class Group:
    """Draws under one and the same fair distribution: how often each choice came, and how often it should."""

    observed: Sequence[int]
    probabilities: Sequence[float]


def chi_square_tail(x: float, freedom: int) -> float:
    """Probability that a chi-square variable exceeds x: the upper regularised gamma function Q(k/2, x/2)."""
    if x <= 0:
        return 1.0
    a, z = freedom / 2, x / 2
    return 1.0 - _lower_series(a, z) if z < a + 1 else _upper_fraction(a, z)


def _scale(a: float, z: float) -> float:
    """z^a e^-z / Gamma(a); far out in the tail it is 0."""
    power = a * log(z) - z - lgamma(a)
    return exp(power) if power > -745 else 0.0


def _lower_series(a: float, z: float) -> float:
    """P(a, z) = z^a e^-z / Gamma(a) * sum of z^n / (a (a+1) ... (a+n)); good for z < a + 1."""
    term = total = 1 / a
    n = a
    while term > total * 1e-16:
        n += 1
        term *= z / n
        total += term
    return min(1.0, total * _scale(a, z))


def _upper_fraction(a: float, z: float) -> float:
    """Q(a, z) by Legendre's continued fraction, evaluated by Lentz's method; good for z > a + 1."""
    tiny = 1e-300
    b = z + 1 - a
    c = 1 / tiny
    d = 1 / b
    fraction = d
    for i in range(1, 100_000):
        step = -i * (i - a)
        b += 2
        d = step * d + b
        d = 1 / (d if abs(d) > tiny else tiny)
        c = b + step / c
        c = c if abs(c) > tiny else tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return min(1.0, max(0.0, fraction * _scale(a, z)))


def grouped_test(name: str, question: str, groups: Sequence[Group]) -> Test | None:
    """Pearson's chi-square summed over groups; None when no group has enough observations to say anything."""
    statistic, freedom, observations = 0.0, 0, 0
    for group in groups:
        n = sum(group.observed)
        expected = [n * p for p in group.probabilities]
        if len(expected) < 2 or min(expected) < SMALLEST_EXPECTED:
            continue
        statistic += sum((o - e) ** 2 / e for o, e in zip(group.observed, expected))
        freedom += len(expected) - 1
        observations += n
    if not freedom:
        return None
    return Test(name, question, observations, statistic, freedom, chi_square_tail(statistic, freedom))


def cell_tests(landings: Mapping[int, int]) -> list[Test]:
    """Both tests of where tiles land. A key is `candidates << 4 | cell`: the set of cells on which the tile
    could land, bit i for cell i, and the cell on which it did."""
    tests = (rank_test(landings), position_test(landings))
    return [test for test in tests if test]


def rank_test(landings: Mapping[int, int]) -> Test | None:
    """Of n candidates counted row by row, is each as likely as any other, for each n?"""
    by_number: dict[int, list[int]] = {}
    for key, times in landings.items():
        candidates, cell = key >> 4, key & 15
        n = candidates.bit_count()
        rank = (candidates & ((1 << cell) - 1)).bit_count()
        by_number.setdefault(n, [0] * n)[rank] += times
    groups = [Group(observed, [1 / n] * n) for n, observed in sorted(by_number.items())]
    return grouped_test("cells", "each of n candidate cells equally likely, for each n", groups)


def position_test(landings: Mapping[int, int]) -> Test | None:
    """Does any place of the board get more than its share?

    A score test: with O_c the tiles on cell c, E_c the sum of 1/n over the times c was one of n candidates,
    and V the covariance of O under fair chance, (O - E)' V^-1 (O - E) is chi-square distributed.
    """
    times_of: dict[int, int] = {}
    surplus = [0.0] * 16
    for key, times in landings.items():
        times_of[key >> 4] = times_of.get(key >> 4, 0) + times
        surplus[key & 15] += times
    covariance = [[0.0] * 16 for _ in range(16)]
    for candidates, times in times_of.items():
        cells = [c for c in range(16) if candidates >> c & 1]
        share = 1 / len(cells)
        for c in cells:
            surplus[c] -= times * share
            covariance[c][c] += times * share
            for other in cells:
                covariance[c][other] -= times * share * share
    if max(covariance[c][c] for c in range(16)) < SMALLEST_EXPECTED:
        return None
    statistic, freedom = _quadratic_form(covariance, surplus)
    p = chi_square_tail(statistic, freedom) if freedom else 1.0
    question = "each place of the board as likely as its turns as a candidate say"
    return Test("places", question, sum(times_of.values()), statistic, freedom, p)


def _quadratic_form(matrix: list[list[float]], vector: list[float]) -> tuple[float, int]:
    """x' M^+ x and the rank of M, for a positive semidefinite M, by elimination with the largest pivot first.

    Each step takes out the variable with the most variance left, as in a Cholesky factorisation; what
    remains below the noise is determined by the others (the sixteen surpluses sum to 0) and left out.
    """
    m = [row[:] for row in matrix]
    x = vector[:]
    left = set(range(len(x)))
    noise = max(m[i][i] for i in left) * 1e-9
    statistic, rank = 0.0, 0
    while left:
        pivot = max(left, key=lambda i: m[i][i])
        variance = m[pivot][pivot]
        if variance <= noise:
            break
        left.remove(pivot)
        statistic += x[pivot] ** 2 / variance
        rank += 1
        for i in left:
            factor = m[i][pivot] / variance
            x[i] -= factor * x[pivot]
            for j in left:
                m[i][j] -= factor * m[pivot][j]
    return statistic, rank
