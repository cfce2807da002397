"""Solved endgames against the rules spelled out, against games that are really played, and in a player's hands."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from reference import g2048
from small_models import tiny_model

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games import State
from tilesage.games.board import pack, symmetry, unpack
from tilesage.search import players
from tilesage.search.agents import make_agent
from tilesage.search.game_2048 import solving
from tilesage.search.game_2048.endgames import BLOCK, SNAKE, Chain, Endgames, make_best_slides, make_overrule
from tilesage.search.game_2048.solving import CLOSE, lay_out, least_of, solve
from tilesage.search.specs import parse_spec

GAME = games.get("2048")
LEAST = least_of(SNAKE)
Cells = tuple[int, ...]


@cache
def tables(*wanted: tuple[int, int], shape: Chain = SNAKE) -> Endgames:
    """The endgames with so many links and so large a target."""
    return solve(GAME, [(shape[:links], target) for links, target in wanted], threads=2)


def board_of(links: int, target: int, small: dict[int, int], step: int = 1, shape: Chain = SNAKE) -> list[int]:
    """A chain that falls by `step` down to the target, and small tiles by their cells."""
    cells = [0] * 16
    for i, cell in enumerate(shape[:links]):
        cells[cell] = 14 - i if shape == BLOCK and i < 3 else target + step * (links - 1 - i)
    for cell, tile in small.items():
        cells[cell] = tile
    return cells


def slides_by_table(solved: Endgames, cells: Any) -> list[int]:
    """The best slides by the tables: none where they do not know the board or see little hope."""
    slides = int(make_best_slides()(solved, np.uint64(pack(list(cells)))))
    return [action for action in range(4) if slides >> action & 1]


class Reference:
    """The chances of slides, from the rules: exact, slow, with nothing of the package in it."""

    def __init__(self, links: int, target: int, shape: Chain = SNAKE) -> None:
        self.links, self.target, self.limit = shape[:links], target, 2**target + 64
        self.chance = cache(self._chance)

    def outcome(self, before: Cells, after: Cells) -> float | None:
        """1 if the last link is merged in its place, a mean over new tiles if all links are in place, else None."""
        if all(after[cell] == before[cell] for cell in self.links):
            beside = [tile for cell, tile in enumerate(after) if cell not in self.links]
            return 0.0 if max(beside) > self.target else self.mean(after, self.chance)
        others = all(after[cell] == before[cell] for cell in self.links[:-1])
        return 1.0 if others and after[self.links[-1]] == self.target + 1 else None

    def mean(self, after: Cells, of: Callable[[Cells], float]) -> float:
        """The mean over new tiles."""
        empty, total = [cell for cell in range(16) if not after[cell]], 0.0
        for cell in empty:
            for tile, share in ((1, Fraction(9, 10)), (2, Fraction(1, 10))):
                total += float(share / len(empty)) * of((*after[:cell], tile, *after[cell + 1 :]))
        return total

    def slides(self, cells: Cells) -> dict[int, float]:
        """The chance of each slide that counts: those that keep the links, or else those that can be taken back."""
        found = {}
        moves = {action: tuple(g2048.slide(cells, action)[0]) for action in range(4)}
        moves = {action: after for action, after in moves.items() if after != cells}
        for action, after in moves.items():
            if (chance := self.outcome(cells, after)) is not None:
                found[action] = chance
        if not found:
            for action, after in moves.items():
                found[action] = self.mean(after, partial(self.taken_back, cells, (action + 2) % 4))
        return found

    def taken_back(self, before: Cells, action: int, cells: Cells) -> float:
        return self.outcome(before, tuple(g2048.slide(cells, action)[0])) or 0.0

    def _chance(self, cells: Cells) -> float:
        small = sum(2**tile for cell, tile in enumerate(cells) if tile and cell not in self.links)
        return max(self.slides(cells).values(), default=0.0) if small <= self.limit else 0.0


def crowded(links: int, target: int, number: int, least: float, most: float, shape: Chain = SNAKE) -> list[Cells]:
    """Positions with at most two empty cells (so that the reference comes to an end) and chances in this range."""
    random, found, chance = np.random.default_rng(1), [], Reference(links, target, shape).chance
    free = [cell for cell in range(16) if cell not in shape[:links]]
    while len(found) < number:
        taken = random.permutation(free)[random.integers(0, 3) :]
        small = {int(cell): int(random.integers(1, target + 1)) for cell in taken}
        cells = board_of(links, target, small, shape=shape)
        if least <= chance(tuple(cells)) <= most:
            found.append(tuple(cells))
    return found


@pytest.mark.parametrize("shape", [SNAKE, BLOCK])
@pytest.mark.parametrize(("links", "target"), [(6, 2), (5, 2), (6, 3), (5, 3)])
def test_best_slides_are_those_of_the_rules(links: int, target: int, shape: Chain) -> None:
    solved, reference, played = tables((links, target), shape=shape), Reference(links, target, shape), set()
    number, least = 30 if target == 2 else 12, least_of(shape)
    some = crowded(links, target, number, least, 0.999, shape) + crowded(links, target, number, 0.0, 1.0, shape)
    for cells in some:
        chances, slides = reference.slides(cells), slides_by_table(solved, cells)
        best = max(chances.values(), default=0.0)
        if abs(best - least) > 1e-3:
            assert bool(slides) == (best > least)
        for action, chance in chances.items():
            if slides and abs(best - chance - CLOSE) > 2e-4:
                assert (action in slides) == (chance > best - CLOSE)
        played |= set(slides)
    assert len(played) >= 3


def won(solved: Endgames, start: Cells, target: int, seed: int, reference: Reference) -> float:
    """1 if the last link is merged when the table plays; what the rules give where it leaves the board to others."""
    state, chain = (
        State(GAME, pack(list(start)), np.uint64(0), 0, 0, np.uint64(seed)),
        [start[cell] for cell in SNAKE],
    )
    while True:
        cells = unpack(state.board)
        links = [cells[cell] for cell in SNAKE]
        if links == [*chain[:-1], target + 1]:
            return 1.0
        slides = slides_by_table(solved, cells)
        if links != chain or not slides:
            return reference.chance(tuple(cells)) if links == chain else 0.0
        action = slides[0]
        state = state.play(action)
        moved = [unpack(state.board)[cell] for cell in SNAKE]
        if moved not in (chain, [*chain[:-1], target + 1]):  # a link was moved: the opposite slide takes it back
            if (action + 2) % 4 not in state.legal:
                return 0.0
            state = state.play((action + 2) % 4)


def test_so_many_games_are_won_as_the_rules_say() -> None:
    number, (start,), reference = 300, crowded(6, 3, 1, 0.65, 0.8), Reference(6, 3)
    found = [won(tables((6, 3)), start, 3, seed + 1, reference) for seed in range(number)]
    assert np.std(found) > 0.1
    assert abs(np.mean(found) - reference.chance(start)) < 4 * np.std(found) / math.sqrt(number)


def test_a_table_serves_every_chain_above_its_target() -> None:
    solved = tables((6, 3))
    for cells in crowded(6, 3, 5, LEAST + 0.01, 0.99):
        small = {cell: tile for cell, tile in enumerate(cells) if cell not in SNAKE}
        assert slides_by_table(solved, board_of(6, 3, small, step=2)) == slides_by_table(solved, cells) != []


def overruled(solved: Endgames, board: Any, values: list[float]) -> list[float]:
    out = np.array(values)
    make_overrule()(solved, np.uint64(board), out)
    return [float(value) for value in out]


def test_the_table_decides_whichever_way_the_board_is_turned() -> None:
    solved, (first,) = tables((6, 2)), crowded(6, 2, 1, LEAST + 0.01, 0.9)
    cells, slides = list(first), slides_by_table(solved, first)
    assert 0 < len(slides) < 3
    values = [1000.0 if action in slides else 5000.0 for action in range(4)]  # the search would play another one
    assert overruled(solved, pack(cells), values) == [1000.0 if action in slides else 999.0 for action in range(4)]
    illegal = [math.nan if action not in slides else 1000.0 for action in range(4)]
    assert np.array_equal(overruled(solved, pack(cells), illegal), illegal, equal_nan=True)
    unknown = [math.nan if action in slides else 1000.0 for action in range(4)]  # the search knows only other ones
    assert np.nanargmax(overruled(solved, pack(cells), unknown)) in slides
    for k in range(8):
        turned = np.uint64(symmetry(pack(cells), k))
        found = {int(slid(turned, action)) for action in slides_by_table(solved, unpack(turned))}
        assert found == {int(symmetry(slid(pack(cells), action), k)) for action in slides}


def slid(board: Any, action: int) -> Any:
    return np.uint64(GAME.rules.slide(GAME.rows, np.uint64(board), np.uint64(0), action)[0])


def test_what_no_table_has_is_left_alone() -> None:
    solved, values = tables((6, 3)), [1.0, 2.0, 9.0, 4.0]
    known, no_chain = board_of(6, 3, {4: 1, 8: 2}), board_of(6, 3, {4: 1, 8: 2})
    no_chain[0], no_chain[1] = no_chain[1], no_chain[0]
    other_target, too_large = board_of(6, 4, {4: 1, 8: 2}), board_of(6, 3, {4: 5, 8: 2})
    hopeless = board_of(6, 3, {4: 3, 5: 1, 8: 2, 9: 3, 10: 2, 11: 1, 12: 1, 13: 2, 14: 1, 15: 2})
    assert Reference(6, 3).chance(tuple(hopeless)) < LEAST
    for cells in (no_chain, other_target, too_large, hopeless):
        assert overruled(solved, pack(cells), values) == values
    assert overruled(solved, pack(known), values) != values


def test_of_two_tables_the_one_with_fewer_links_decides() -> None:
    both, five, six = tables((5, 3), (6, 2)), tables((5, 3)), tables((6, 2))
    differ = 0
    for cells in crowded(6, 2, 60, LEAST + 0.01, 1.0):
        wide = slides_by_table(five, cells)
        assert slides_by_table(both, cells) == (wide or slides_by_table(six, cells))
        differ += wide not in ([], slides_by_table(six, cells))
    assert differ > 0


def test_every_position_has_a_place_of_its_own() -> None:
    known, (layout,), size = lay_out([(SNAKE, 4)])
    limit, sums = 2**4 + 64, layout.high_sums
    low = np.array([sum(2**t for t in unpack(b) if t) for b in layout.low_boards])
    assert (np.diff(low) >= 0).all()
    ends, counted = np.append(known.offsets[1:], 2 * size), 0
    for high in range(0, sums.size, 97):
        inside = int((low <= limit - sums[high]).sum())
        assert ends[high] - known.offsets[high] == inside + inside % 2  # the next one begins with a byte
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
    with pytest.raises(InputError, match=words):
        make_agent(spec, games.get(game), tiny_model(game))


def test_a_block_is_looked_up_where_it_was_built_on_purpose() -> None:
    solved = tables((6, 3), shape=BLOCK)
    known = crowded(6, 3, 1, 0.2, 0.9, BLOCK)[0]
    other = [tile - 1 if tile > 11 else tile for tile in known]
    assert slides_by_table(solved, known) != []
    assert slides_by_table(solved, other) == []  # the same small tiles, with 8192, 4096, 2048 in the row


def test_which_tables_are_meant() -> None:
    def wanted(spec: str) -> list[tuple[int, int]]:
        tables = players.tables_wanted(parse_spec(spec), GAME)
        assert all(chain in (SNAKE[: len(chain)], BLOCK[: len(chain)]) for chain, _ in tables)
        return [(len(chain) if chain[0] == 0 else -len(chain), target) for chain, target in tables]

    assert wanted("expectimax:deep") == []
    assert wanted("expectimax:deep,endgames=512") == [(6, 7), (6, 8), (6, 9)]
    assert wanted("expectimax:deep,wide=256,endgames=128") == [(6, 7), (5, 7), (5, 8)]
    assert wanted("expectimax:deep,wide=128,endgames=128,block=x") == [(6, 7), (-6, 7), (5, 7), (-5, 7)]


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "memory_of_this_machine", lambda: 1 << 20)
    with pytest.raises(InputError, match=r"0\.\d GB of memory"):
        solve(GAME, [(SNAKE, 5)])
