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
from afterstate.search.endgames import (
    APART,
    BLOCK,
    CLOSE,
    KEPT,
    LEAST,
    SHAPES,
    SNAKE,
    WHOLE,
    Endgames,
    Shape,
    Table,
    by_high_half,
    known_shapes,
    lay_out,
    make_best_slides,
    make_overrule,
    solve,
    solve_table,
)
from afterstate.search.specs import parse_spec

GAME = games.get("2048")
ONE_SNAKE, ONE_BLOCK, BOTH = (SNAKE,), (BLOCK,), (SNAKE, BLOCK)
AROUND = (SNAKE, *SHAPES[1:4])
BUILT = (SNAKE, BLOCK, SNAKE[:5], BLOCK[:5])
OTHER = 20
Cells = tuple[int, ...]
LEFT = 8  # what new tiles may add until a table ends


@cache
def tables(*wanted: Table) -> Endgames:
    return solve(GAME, wanted, threads=2)


def beside(*shapes: Shape, target: int, walls: int = 6) -> Table:
    return Table(target, tuple(shape[:walls] for shape in shapes))


def board_of(walls: int, target: int, small: dict[int, int], step: int = 1, shape: Shape = SNAKE) -> list[int]:
    """Walls that fall by `step` down to the target, and small tiles by their cells."""
    cells = [0] * 16
    for i, cell in enumerate(shape[:walls]):
        cells[cell] = 14 - i if shape != SNAKE and i < 3 else target + step * (walls - 1 - i)
    for cell, tile in small.items():
        cells[cell] = tile
    return cells


def slides_by_table(solved: Endgames, cells: Any) -> list[int]:
    """The best slides by the tables: none where they do not know the board or see little hope."""
    slides = int(make_best_slides()(solved, np.uint64(pack(list(cells)))))
    return [action for action in range(4) if slides >> action & 1]


def all_ways(shape: Shape) -> dict[frozenset[int], int]:
    """The cells of a shape, turned and mirrored, and where the last of them lies then."""
    found, cells = {}, [(cell // 4, cell % 4) for cell in shape]
    for _ in range(4):
        cells = [(column, 3 - row) for row, column in cells]
        for turned in ([4 * row + column for row, column in cells], [4 * row + 3 - column for row, column in cells]):
            found[frozenset(turned)] = turned[-1]
    return found


class Reference:
    """The chances of slides, from the rules: exact, slow, with nothing of the package in it."""

    def __init__(self, table: Table) -> None:
        self.target, self.limit = table.target, 2**table.target + 64
        self.shapes = {cells: last for shape in table.shapes for cells, last in all_ways(shape).items()}
        self.built = {cells for shape in BUILT for cells in all_ways(shape)}
        self.chance = cache(self._chance)

    def seen(self, cells: Cells) -> Cells:
        """The smallest wall, which is like the target, under another name: no tile is like it any more."""
        return cells if OTHER in cells else tuple(OTHER if tile == self.target else tile for tile in cells)

    def walls(self, cells: Cells) -> frozenset[int]:
        return frozenset(cell for cell, tile in enumerate(self.seen(cells)) if tile > self.target)

    def outcome(self, after: Cells) -> float | None:
        """1 if the target is made beside its like, a mean over new tiles if the shape is known, else None."""
        walls = self.walls(after)
        if self.target in after:
            row, column = divmod(self.shapes[walls], 4) if walls in self.built & set(self.shapes) else (-9, -9)
            new = [divmod(cell, 4) for cell, tile in enumerate(after) if tile == self.target]
            return 1.0 if any(abs(r - row) + abs(c - column) == 1 for r, c in new) else float(APART)
        return self.mean(after, self.chance) if walls in self.shapes else None

    def mean(self, after: Cells, of: Callable[[Cells], float]) -> float:
        """The mean over new tiles."""
        empty, total = [cell for cell in range(16) if not after[cell]], 0.0
        for cell in empty:
            for tile, share in ((1, Fraction(9, 10)), (2, Fraction(1, 10))):
                total += float(share / len(empty)) * of((*after[:cell], tile, *after[cell + 1 :]))
        return total

    def slides(self, cells: Cells) -> dict[int, float]:
        """The chance of each slide that counts: to known shapes, and to others where all walls must move."""
        cells = self.seen(cells)
        moves = {action: tuple(g2048.slide(cells, action)[0]) for action in range(4)}
        moves = {action: after for action, after in moves.items() if after != cells}
        found = {action: self.outcome(after) for action, after in moves.items()}
        if all(self.walls(after) != self.walls(cells) for after in moves.values()):
            for action in [action for action, chance in found.items() if chance is None]:
                found[action] = self.mean(moves[action], self.brought_back)
        return {action: chance for action, chance in found.items() if chance is not None}

    def after(self, cells: Cells, action: int) -> float | None:
        return self.outcome(tuple(g2048.slide(self.seen(cells), action)[0]))

    def brought_back(self, cells: Cells) -> float:
        moves = {tuple(g2048.slide(cells, action)[0]) for action in range(4)} - {cells}
        return max((self.outcome(after) or 0.0 for after in moves), default=0.0) if self.small(cells) else 0.0

    def small(self, cells: Cells) -> bool:
        """Is this still in the table?"""
        return sum(2**tile for tile in cells if 0 < tile < self.target) <= self.limit

    def _chance(self, cells: Cells) -> float:
        return max(self.slides(cells).values(), default=0.0) if self.small(cells) else 0.0


@cache
def by_the_rules(table: Table) -> Reference:
    """What it has found out once is known."""
    return Reference(table)


def crowded(table: Table, number: int, least: float, most: float) -> list[Cells]:
    """Positions with chances in this range, crowded and near the end of the table: the reference ends, too."""
    random, found, chance = np.random.default_rng(1), [], by_the_rules(table).chance
    while len(found) < number:
        shape = table.shapes[int(random.integers(len(table.shapes)))]
        free = [cell for cell in range(16) if cell not in shape]
        taken = random.permutation(free)[random.integers(0, 3) :]
        small = {int(cell): int(random.integers(1, table.target)) for cell in taken}
        cells = tuple(board_of(table.walls, table.target, small, shape=shape))
        left = 2**table.target + 64 - sum(2**tile for tile in small.values())
        if 0 <= left <= LEFT and least <= chance(cells) <= most:
            found.append(cells)
    return found


@pytest.mark.parametrize("shapes", [ONE_SNAKE, ONE_BLOCK, AROUND])
@pytest.mark.parametrize(("walls", "target"), [(6, 5), (5, 5)])
def test_best_slides_are_those_of_the_rules(walls: int, target: int, shapes: tuple[Shape, ...]) -> None:
    table = beside(*shapes[: None if walls == 6 else 1], target=target, walls=walls)
    solved, reference, played = tables(table), by_the_rules(table), set()
    for cells in crowded(table, 12, 0.0, 0.999) + crowded(table, 12, 0.3, 0.999):
        least = LEAST[0 if reference.walls(cells) in all_ways(SNAKE[:walls]) else 1]
        chances, slides = reference.slides(cells), slides_by_table(solved, cells)
        best = max(chances.values(), default=0.0)
        if abs(best - least) > 1e-3:
            assert bool(slides) == (best > least)
        for action, chance in chances.items():
            if slides and abs(best - chance - CLOSE) > 2e-4:
                assert (action in slides) == (chance > best - CLOSE)
        played |= set(slides)
    assert len(played) >= 3


def chances_at_the_start(table: Table) -> Any:
    """[positions] of the first shape with small tiles that add up to 4."""
    known, (layout,), size = lay_out([table])
    chances = solve_table(GAME, known._replace(slides=np.zeros(size, np.uint8)), table, layout, 2)
    return chances.positions[4 // 2 % KEPT, 0, : by_high_half(layout, 4)[1]] / WHOLE


def test_walls_that_may_move_give_more_chances() -> None:
    fixed, free = (chances_at_the_start(beside(*SHAPES[1:end], target=5)) for end in (2, 6))
    assert (free > fixed - 1e-3).all()
    assert (free > fixed + 1e-3).any()


def won(solved: Endgames, start: Cells, seed: int, reference: Reference) -> float:
    """1 if the target is made when the table plays; what the rules give where it leaves the board to others."""
    state = State(GAME, pack(list(start)), np.uint64(0), 0, 0, np.uint64(seed))
    while True:
        cells = tuple(unpack(state.board))
        if not state.legal:
            return 0.0
        if reference.walls(cells) in reference.shapes:
            slides = slides_by_table(solved, cells)
            if not slides:
                return reference.chance(cells)
            action = slides[0]
        else:
            action = max(state.legal, key=lambda action: reference.after(cells, action) or 0.0)
        if reference.target in g2048.slide(reference.seen(cells), action)[0]:
            return reference.after(cells, action) or 0.0
        state = state.play(action)


@pytest.mark.parametrize("shapes", [ONE_SNAKE, SHAPES[1:4]])
def test_so_many_games_are_won_as_the_rules_say(shapes: tuple[Shape, ...]) -> None:
    table = beside(*shapes, target=5)
    number, (start,), reference = 300, crowded(table, 1, 0.6, 0.85), by_the_rules(table)
    found = [won(tables(table), start, seed + 1, reference) for seed in range(number)]
    assert np.std(found) > 0.1
    assert abs(np.mean(found) - reference.chance(start)) < 4 * np.std(found) / math.sqrt(number)


def test_a_table_serves_all_walls_above_its_target_whichever_lies_where() -> None:
    table = beside(SNAKE, target=5)
    solved, random, differ = tables(table), np.random.default_rng(1), 0
    for cells in crowded(table, 8, LEAST[0] + 0.01, 0.99):
        other, places = list(cells), random.permutation(SNAKE[:5])
        for cell, tile in zip(places, (7, 9, 10, 11, 13)):
            other[int(cell)] = tile
        assert slides_by_table(solved, other) == slides_by_table(solved, cells) != []
        differ += slides_by_table(solved, cells) != [0, 1, 2, 3]
    assert differ > 0


def overruled(solved: Endgames, board: Any, values: list[float]) -> list[float]:
    out = np.array(values)
    make_overrule()(solved, np.uint64(board), out)
    return [float(value) for value in out]


def test_the_table_decides_whichever_way_the_board_is_turned() -> None:
    table = beside(SNAKE, target=5)
    solved = tables(table)
    some = [list(cells) for cells in crowded(table, 20, LEAST[0] + 0.01, 0.95)]
    cells, slides = next((cells, slides) for cells in some if len(slides := slides_by_table(solved, cells)) < 3)
    assert slides
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
    table, values = beside(SNAKE, target=5), [1.0, 2.0, 9.0, 4.0]
    known, other_shape = board_of(6, 5, {4: 1, 8: 2}), board_of(6, 5, {4: 1, 8: 2})
    other_shape[6], other_shape[5] = 0, other_shape[6]
    last_elsewhere = board_of(6, 5, {4: 1, 8: 2})
    last_elsewhere[6], last_elsewhere[7] = last_elsewhere[7], last_elsewhere[6]
    other_target, two_alike = board_of(6, 6, {4: 1, 8: 2}), board_of(6, 5, {4: 5, 8: 2})
    full = board_of(6, 5, {4: 4, 5: 1, 8: 2, 9: 3, 10: 1, 11: 2, 12: 4, 13: 1, 14: 2, 15: 4})
    assert by_the_rules(table).chance(tuple(full)) < LEAST[0]
    for cells in (other_shape, last_elsewhere, other_target, two_alike, full):
        assert overruled(tables(table), pack(cells), values) == values
    assert overruled(tables(table), pack(known), values) != values


def test_of_two_tables_the_one_with_fewer_walls_decides() -> None:
    five, six = beside(SNAKE, target=5, walls=5), beside(SNAKE, target=4)
    random, differ = np.random.default_rng(1), 0
    for _ in range(200):
        small = {cell: int(tile) for cell, tile in enumerate(random.integers(0, 4, 16)) if cell not in SNAKE}
        cells = board_of(6, 4, small)
        wide, narrow = slides_by_table(tables(five), cells), slides_by_table(tables(six), cells)
        assert slides_by_table(tables(five, six), cells) == (wide or narrow)
        differ += wide not in ([], narrow)
    assert differ > 0


def test_every_position_has_a_place_of_its_own() -> None:
    table = beside(SNAKE, BLOCK, target=5)
    known, (layout,), size = lay_out([table])
    limit, sums = 2**5 + 64, layout.high_sums
    for shape in range(2):
        low = np.array([sum(2**t for t in unpack(b) if t) for b in layout.low_boards[shape]])
        assert (np.diff(low) >= 0).all()
    begins = known.starts[:, 5]
    assert begins.tolist() == [0, size]
    ends, counted = np.append(known.offsets[1:], size), 0
    for high in range(0, sums.size, 97):
        inside = int((low <= limit - sums[high]).sum())
        assert ends[high] - known.offsets[high] == inside + inside % 2  # the next one begins with a byte
        counted += inside
    assert counted > 1000


def test_shapes_are_known_whichever_way_they_lie() -> None:
    known = known_shapes(SHAPES)
    for number, shape in enumerate(SHAPES):
        for cells in all_ways(shape):
            found, k = known[sum(1 << cell for cell in cells)]
            turned = unpack(symmetry(pack([int(cell in cells) for cell in range(16)]), int(k)))
            assert found == number
            assert {cell for cell in range(16) if turned[cell]} == set(shape)
    assert (known[:, 0] >= 0).sum() == sum(len(all_ways(shape)) for shape in SHAPES), "a shape is there twice"


def test_a_player_with_endgames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same search, overruled where a table has the board."""
    monkeypatch.setattr(players, "ENDGAME_TILES", ("16",))
    model = tiny_model("2048")
    plain, solved = (make_agent(spec, GAME, model) for spec in ("expectimax:2", "expectimax:2,endgames=16"))
    differ = 0
    for seed in range(40):
        tiles = np.random.default_rng(seed).integers(0, 4, 7)
        small = {cell: int(tile) for cell, tile in zip((4, 5, 8, 9, 10, 12, 13), tiles)}
        state = State(GAME, pack(board_of(6, 4, small)), np.uint64(0), 0, 0, np.uint64(seed))
        if not state.legal:
            continue
        values = [math.nan if value is None else value for value in plain.values(state)]
        expected = overruled(tables(beside(SNAKE, target=4)), state.board, values)
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
        ("2048", "expectimax:2,shapes=3", "add endgames=512"),
        ("2048", "expectimax:2,endgames=128,shapes=99", f"from 1 to {len(SHAPES)}"),
        ("threes", "expectimax:2,endgames=128", "are for 2048"),
        ("2048", "greedy,endgames=128", "unknown option"),
    ],
)
def test_wrong_words(game: str, spec: str, words: str) -> None:
    with pytest.raises(Mistake, match=words):
        make_agent(spec, games.get(game), tiny_model(game))


def test_a_block_is_looked_up_where_it_was_built_on_purpose() -> None:
    table = beside(BLOCK, target=5)
    known = crowded(table, 1, 0.2, 0.9)[0]
    other = [tile - 1 if tile > 11 else tile for tile in known]
    assert slides_by_table(tables(table), known) != []
    assert slides_by_table(tables(table), other) == []  # the same small tiles, with 8192, 4096, 2048 in the row


def test_which_tables_are_meant() -> None:
    def wanted(spec: str) -> list[Table]:
        return players.tables_wanted(parse_spec(spec), GAME)

    five = tuple(shape[:5] for shape in BOTH)
    assert wanted("expectimax:deep") == []
    assert wanted("expectimax:deep,endgames=512") == [Table(target, ONE_SNAKE) for target in (7, 8, 9)]
    assert wanted("expectimax:deep,wide=256,endgames=128") == [
        Table(7, ONE_SNAKE),
        *(Table(target, five[:1]) for target in (7, 8)),
    ]
    assert wanted("expectimax:deep,wide=128,endgames=128,block=x") == [Table(7, BOTH), Table(7, five)]
    assert wanted("expectimax:deep,wide=128,endgames=128,shapes=5") == [Table(7, SHAPES[:5]), Table(7, five)]


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endgames, "memory_of_this_machine", lambda: 1 << 20)
    with pytest.raises(Mistake, match=r"0\.\d GB of memory"):
        solve(GAME, [beside(SNAKE, target=6)])
