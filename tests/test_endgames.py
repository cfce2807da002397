"""Solved endgames against the rules spelled out, against games that are really played, and in a player's hands."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from reference import g2048
from test_search import tiny_model

from afterstate import games
from afterstate.games import Mistake, State
from afterstate.games.board import pack, symmetry, unpack
from afterstate.search import endgames, players
from afterstate.search.agents import make_agent
from afterstate.search.endgames import CLOSE, LEAST, SNAKE, Endgames, lay_out, make_overrule, make_rules, solve
from afterstate.search.specs import parse_spec

GAME = games.get("2048")
Cells = tuple[int, ...]


@cache
def tables(*wanted: tuple[int, int]) -> Endgames:
    return solve(GAME, wanted, threads=2)


def board_of(links: int, target: int, small: dict[int, int], step: int = 1) -> list[int]:
    """A chain that falls by `step` down to the target, and small tiles by their cells."""
    cells = [0] * 16
    for i, cell in enumerate(SNAKE[:links]):
        cells[cell] = target + step * (links - 1 - i)
    for cell, tile in small.items():
        cells[cell] = tile
    return cells


def chances_by_table(solved: Endgames, board: Any, links: int) -> list[float]:
    """The chances after the four slides, -1 where one is illegal."""
    of_slide = make_rules(links, 0.1).of_slide
    return [float(of_slide(solved, GAME.rows, np.uint64(board), 0, action)) for action in range(4)]


def chance_by_table(solved: Endgames, cells: list[int], links: int) -> float:
    """The best of the four slides."""
    return max(0.0, *chances_by_table(solved, pack(cells), links))


def make_reference(links: int, target: int) -> Callable[[Cells], float]:
    """The chance of a position, from the rules: exact, slow, with nothing of the package in it."""
    cells_of_links, last = SNAKE[:links], SNAKE[links - 1]
    limit = 2**target + 64

    def outcome(before: Cells, after: Cells) -> float | None:
        """1 if the last link is merged in its place, a mean over new tiles if all links are in place, else None."""
        if all(after[cell] == before[cell] for cell in cells_of_links):
            beside = [tile for cell, tile in enumerate(after) if cell not in cells_of_links]
            return 0.0 if max(beside) > target else mean(after)
        others = all(after[cell] == before[cell] for cell in cells_of_links[:-1])
        return 1.0 if others and after[last] == target + 1 else None

    def spawned(after: Cells) -> list[tuple[Fraction, Cells]]:
        empty = [cell for cell in range(16) if not after[cell]]
        return [
            (share / len(empty), (*after[:cell], tile, *after[cell + 1 :]))
            for cell in empty
            for tile, share in ((1, Fraction(9, 10)), (2, Fraction(1, 10)))
        ]

    def mean(after: Cells) -> float:
        return sum(float(p) * chance(cells) for p, cells in spawned(after))

    @cache
    def chance(cells: Cells) -> float:
        small = sum(2**tile for cell, tile in enumerate(cells) if tile and cell not in cells_of_links)
        if small > limit:
            return 0.0
        best = 0.0
        for action in range(4):
            after, _, moved = g2048.slide(cells, action)
            if not any(moved):
                continue
            found = outcome(cells, tuple(after))
            if found is None:  # a link moved: the opposite slide may bring it back
                backs = [(p, g2048.slide(new, (action + 2) % 4)[0]) for p, new in spawned(tuple(after))]
                found = sum(float(p) * (outcome(cells, tuple(back)) or 0.0) for p, back in backs)
            best = max(best, found)
        return best

    return chance


def crowded(links: int, target: int, number: int, least: float, most: float) -> list[list[int]]:
    """Positions with at most two empty cells (so that the reference comes to an end) and chances in this range."""
    random, found, solved = np.random.default_rng(1), [], tables((links, target))
    free = [cell for cell in range(16) if cell not in SNAKE[:links]]
    while len(found) < number:
        taken = random.permutation(free)[random.integers(0, 3) :]
        cells = board_of(links, target, {int(cell): int(random.integers(1, target + 1)) for cell in taken})
        if least <= chance_by_table(solved, cells, links) <= most:
            found.append(cells)
    return found


@pytest.mark.parametrize(("links", "target"), [(6, 2), (5, 2), (6, 3), (5, 3)])
def test_chances_are_those_of_the_rules(links: int, target: int) -> None:
    solved, chance = tables((links, target)), make_reference(links, target)
    number = 6 if (links, target) == (5, 3) else 12
    for cells in (*crowded(links, target, number, 0.01, 0.99), *crowded(links, target, number, 0.0, 1.0)):
        assert chance_by_table(solved, cells, links) == pytest.approx(chance(tuple(cells)), abs=2e-4)


def won(solved: Endgames, start: list[int], target: int, seed: int) -> bool:
    """Is the last link merged, if the table plays? A slide that moves a link is followed by its opposite."""
    chain = [start[cell] for cell in SNAKE]
    merged = [*chain[:-1], target + 1]

    def links_of(board: Any) -> list[int]:
        return [unpack(board)[cell] for cell in SNAKE]

    state = State(GAME, pack(start), np.uint64(0), 0, 0, np.uint64(seed))
    while links_of(state.board) == chain and all(
        tile <= target for cell, tile in enumerate(unpack(state.board)) if cell not in SNAKE
    ):
        chances = chances_by_table(solved, state.board, links=6)
        if max(chances) <= 0:
            return False
        action = int(np.argmax(chances))
        moved = links_of(slid(state.board, action)) not in (chain, merged)
        state = state.play(action)
        if moved:
            if (action + 2) % 4 not in state.legal:
                return False
            state = state.play((action + 2) % 4)
    return links_of(state.board) == merged


def test_so_many_games_are_won_as_the_table_says() -> None:
    solved, number, (start,) = tables((6, 4)), 1000, crowded(6, 4, 1, 0.4, 0.7)
    expected = chance_by_table(solved, start, 6)
    found = sum(won(solved, start, 4, seed + 1) for seed in range(number)) / number
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / number)


def test_a_table_serves_every_chain_above_its_target() -> None:
    solved, small = tables((6, 3)), {4: 2, 5: 2, 8: 2, 9: 1, 10: 2, 11: 2, 12: 3, 13: 3, 14: 3, 15: 2}
    one, two = (chances_by_table(solved, pack(board_of(6, 3, small, step)), 6) for step in (1, 2))
    assert one == two


def overruled(solved: Endgames, board: Any, values: list[float]) -> list[float]:
    out = np.array(values)
    make_overrule(0.1)(solved, GAME.rows, np.uint64(board), out, np.zeros(4))
    return [float(value) for value in out]


def test_the_table_decides_whichever_way_the_board_is_turned() -> None:
    solved, cells = tables((6, 3)), board_of(6, 3, {4: 1, 8: 2, 12: 1, 13: 2})
    chances = chances_by_table(solved, pack(cells), 6)
    assert max(chances) > LEAST
    worst = min((c, a) for a, c in enumerate(chances) if c >= 0)[1]
    values = [1000.0 if c >= 0 else math.nan for c in chances]
    values[worst] = 5000.0  # what the search would have played
    found = overruled(solved, pack(cells), values)
    assert np.nanargmax(found) == np.argmax(chances)
    for action in range(4):
        if chances[action] >= 0 and action != np.argmax(chances):
            assert found[action] == pytest.approx(1000 * chances[action] / max(chances))
    for k in range(8):
        turned = np.uint64(symmetry(pack(cells), k))
        chosen = int(np.argmax(overruled(solved, turned, [1000.0] * 4)))
        assert slid(turned, chosen) == np.uint64(symmetry(slid(pack(cells), int(np.argmax(chances))), k))


def slid(board: Any, action: int) -> Any:
    return np.uint64(GAME.rules.slide(GAME.rows, np.uint64(board), np.uint64(0), action)[0])


def test_what_no_table_has_is_left_alone() -> None:
    solved, values = tables((6, 3)), [1.0, 2.0, 3.0, 4.0]
    no_chain = board_of(6, 3, {4: 1, 8: 2})
    no_chain[0], no_chain[1] = no_chain[1], no_chain[0]
    other_target, too_large = board_of(6, 4, {4: 1, 8: 2}), board_of(6, 3, {4: 5, 8: 2})
    hopeless = board_of(6, 3, {4: 3, 5: 1, 8: 2, 9: 3, 10: 2, 11: 1, 12: 1, 13: 2, 14: 1, 15: 2})
    assert chance_by_table(solved, hopeless, 6) < LEAST
    for cells in (no_chain, other_target, too_large, hopeless):
        assert overruled(solved, pack(cells), values) == values


def test_of_two_tables_the_one_with_fewer_links_decides() -> None:
    both, cells = tables((5, 3), (6, 2)), board_of(6, 2, {4: 1, 8: 2, 9: 1, 12: 1, 13: 1})
    chances = chances_by_table(both, pack(cells), 5)
    assert max(chances) > LEAST
    assert chances != chances_by_table(both, pack(cells), 6)
    equal = [chance >= max(chances) - CLOSE for chance in chances]
    lowered = [1.0 if near else chance / max(chances) for near, chance in zip(equal, chances)]
    values = [1000.0 if chance >= 0 else math.nan for chance in chances]
    assert overruled(both, pack(cells), values) == pytest.approx(
        [value * share for value, share in zip(values, lowered)], nan_ok=True
    )


def test_the_halves_of_a_table_leave_no_position_out() -> None:
    """Every position within the limit has a place of its own."""
    known, (layout,) = lay_out([(6, 4)])
    limit, counted = 2**4 + 64, 0
    sums = layout.high_sums
    low = np.array([sum(2**t for t in unpack(b) if t) for b in layout.low_boards])
    assert (np.diff(low) >= 0).all()
    for high in range(0, sums.size, 97):
        inside = int((low <= limit - sums[high]).sum())
        assert known.offsets[high + 1] - known.offsets[high] == inside
        counted += inside
    assert counted > 1000


def test_a_player_with_endgames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same search, overruled where a table has the board."""
    monkeypatch.setattr(players, "ENDGAME_TILES", ("8",))
    model = tiny_model("2048")
    plain, solved = (make_agent(spec, GAME, model) for spec in ("expectimax:2", "expectimax:2,endgames=8"))
    differ = 0
    for seed in range(40):
        tiles = np.random.default_rng(seed).integers(0, 4, 7)
        small = {cell: int(tile) for cell, tile in zip((4, 5, 8, 9, 10, 12, 13), tiles)}
        state = State(GAME, pack(board_of(6, 3, small)), np.uint64(0), 0, 0, np.uint64(seed))
        if not state.legal:
            continue
        values = [math.nan if value is None else value for value in plain.values(state)]
        expected = overruled(tables((6, 3)), state.board, values)
        assert np.allclose(expected, [math.nan if v is None else v for v in solved.values(state)], equal_nan=True)
        assert solved.choose(state) == np.nanargmax(expected)
        differ += solved.choose(state) != plain.choose(state)
    assert differ > 3


@pytest.mark.parametrize(
    ("game", "spec", "words"),
    [
        ("2048", "expectimax:2,endgames=100", "128, 256, 512, 1024"),
        ("2048", "expectimax:2,endgames=on", "128, 256, 512, 1024"),
        ("2048", "expectimax:2,wide=2048", "128, 256, 512, 1024"),
        ("threes", "expectimax:2,endgames=128", "are for 2048"),
        ("2048", "greedy,endgames=128", "unknown option"),
    ],
)
def test_wrong_words(game: str, spec: str, words: str) -> None:
    with pytest.raises(Mistake, match=words):
        make_agent(spec, games.get(game), tiny_model(game))


def test_which_tables_are_meant() -> None:
    def wanted(spec: str) -> list[tuple[int, int]]:
        return players.tables_wanted(parse_spec(spec), GAME)

    assert wanted("expectimax:deep") == []
    assert wanted("expectimax:deep,endgames=512") == [(6, 7), (6, 8), (6, 9)]
    assert wanted("expectimax:deep,endgames=128,wide=1024") == [(6, 7), (5, 10)]


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endgames, "memory_of_this_machine", lambda: 1 << 20)
    with pytest.raises(Mistake, match=r"0\.\d GB of memory"):
        solve(GAME, [(6, 5)])
