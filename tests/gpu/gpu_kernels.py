"""The real kernels against the batch rule in plain Python, bit for bit.

Collected by name: in Numba's CUDA simulator (tests/gpu/test_gpu.py), or on a real GPU (`make test-gpu`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from slow_batch import BatchLearner

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.evaluation.evaluate import LocalWorker
from tilesage.evaluation.on_gpu import player_of
from tilesage.games.board import pack
from tilesage.gpu.arrange import Arrangement
from tilesage.gpu.endgames import solve_on_gpu
from tilesage.gpu.learner import GAMES_A_BLOCK, Learner
from tilesage.gpu.lesson import Lesson
from tilesage.gpu.machine import SIMULATED, cuda
from tilesage.gpu.play import Boards, GpuPlayer
from tilesage.gpu.search import POINT, GpuSearcher, Practised, Search
from tilesage.gpu.trainer import GpuTrainer
from tilesage.learning.ahead import make_ahead
from tilesage.learning.batch import BatchTrainer
from tilesage.learning.config import TrainConfig
from tilesage.learning.metrics import read_metrics
from tilesage.learning.runs import Run
from tilesage.learning.weights import fresh_weights
from tilesage.networks.files import Model, load_model, save_model
from tilesage.networks.functions import plain_function
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network
from tilesage.search import expectimax
from tilesage.search.agents import Agent, make_agent
from tilesage.search.expectimax import best_of
from tilesage.search.game_2048.endgames import SNAKE, Endgames, make_overrule
from tilesage.search.game_2048.practice import PARTS, Part
from tilesage.search.game_2048.solving import solve
from tilesage.search.kinds import NOWHERE

SMALL = "01,15,56"  # tables of 256 entries: the simulator is slow
NEARLY_OVER = pack([1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 2])  # one merge is left
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


def lesson_of(game: str = "2048", network: str = SMALL, **options: Any) -> Lesson:
    rules = games.get(game)
    shape = (
        options.pop("stages", ()),
        options.pop("by_hint", False),
        options.pop("fold", 0),
        options.pop("turned", True),
        options.pop("by_age", False),
    )
    return Lesson(rules, evaluator(rules, parse_network(network, *shape)), **options)


def fresh(lesson: Lesson) -> Any:
    e = lesson.evaluator
    weights = fresh_weights(e.size, e.network, e.entries, 100.0)
    if e.network.stages:
        weights[e.tables_size >> len(e.network.stages) : e.tables_size] = np.nan
    return weights


def both(lesson: Lesson, seed: int = 3, blocks: int = 1) -> tuple[Learner, BatchLearner]:
    """The same lesson on the GPU and in plain Python."""
    rate = 1.0 if lesson.coherence else 0.1
    learner = Learner(lesson, blocks * GAMES_A_BLOCK, seed, fresh(lesson))
    learner.set_rate(rate)
    reference = BatchLearner(
        lesson.game,
        lesson.evaluator,
        fresh(lesson),
        blocks * GAMES_A_BLOCK,
        seed,
        rate,
        coherence=lesson.coherence,
        of_states=lesson.of_states,
        history=lesson.history,
        decay=lesson.decay,
    )
    return learner, reference


def assert_same(learner: Learner, reference: BatchLearner) -> None:
    assert np.array_equal(learner.host_weights().view(np.uint32), reference.weights.view(np.uint32))
    boards = [int(slot.board) for slot in reference.slots]
    assert boards == learner.host_games()["boards"].tolist()
    assert [slot.score for slot in reference.slots] == learner.host_games()["scores"].tolist()
    assert learner.take_worst() == reference.worst
    reference.worst = np.float32(0)


LESSONS = {
    "td": (lesson_of(), 8),
    "tc": (lesson_of(coherence=True), 8),
    "stages": (lesson_of(stages=(2, 3)), 8),
    "one stage": (lesson_of(stages=(2,), coherence=True), 6),
    "states": (lesson_of(of_states=True), 3),
    "states of threes": (lesson_of("threes", of_states=True), 3),
    "threes": (lesson_of("threes", coherence=True), 6),
    "threes by hint": (lesson_of("threes", "01,5", coherence=True, by_hint=True), 5),
    "phone by hint, not turned": (lesson_of("threes-phone", "01,5", coherence=True, by_hint=True, turned=False), 5),
    "threes on the phone": (lesson_of("threes-phone"), 5),
    "td by age": (lesson_of(by_age=True), 8),
    "tc by age, with a stage": (lesson_of(stages=(2,), coherence=True, by_age=True), 6),
    "threes by age": (lesson_of("threes", coherence=True, by_age=True), 6),
    "td(λ)": (lesson_of(history=3, decay=0.5), 8),
    "tc(λ) by age": (lesson_of(coherence=True, by_age=True, history=4, decay=0.5), 8),
    "three steps of threes": (lesson_of("threes", coherence=True, history=3, decay=1.0), 6),
    "without symmetries": (lesson_of("threes", "once:01,04,be,f", coherence=True, history=2, decay=0.5), 5),
    "the block": (lesson_of("2048-block", coherence=True, history=2, decay=0.5), 6),
    "the walls": (lesson_of("2048-walls", coherence=True, history=2, decay=0.5), 6),
    "phone by hint, tc(λ)": (lesson_of("threes-phone", "01,5", by_hint=True, history=2, decay=0.3), 5),
}
BY_HINT = ("threes-phone", "01,5")
FOLDED = {
    "2048": lesson_of(coherence=True, fold=14),
    "2048, by age, tc(λ)": lesson_of(coherence=True, fold=14, by_age=True, history=2, decay=0.5),
    "phone, by hint": lesson_of(*BY_HINT, by_hint=True, fold=14, history=2, decay=0.5, coherence=True),
    "phone, by hint, not turned": lesson_of(*BY_HINT, by_hint=True, turned=False, fold=14, coherence=True),
}


@pytest.mark.parametrize("name", LESSONS)
def test_same_weights_as_plain_python(name: str) -> None:
    lesson, steps = LESSONS[name]
    learner, reference = both(lesson)
    learner.run(steps)
    for _ in range(steps):
        reference.step()
    assert_same(learner, reference)
    if lesson.coherence:
        memory = learner.host_memory()
        assert np.array_equal(memory[0::2], reference.errors)
        assert np.array_equal(memory[1::2], reference.absolutes)


PAST_32768 = [  # and one that gets there
    ((65536, 32768, 1024, 512), (4, 2, 8, 16), (2, 4, 0, 0), (0, 0, 0, 0)),
    ((131072, 65536, 32768, 16384), (2, 4, 8, 16), (4, 2, 0, 0), (2, 0, 0, 0)),
    ((32768, 32768, 16384, 8), (2, 4, 8, 16), (0, 0, 2, 0), (0, 0, 0, 4)),
    ((65536, 65536, 2, 8), (2, 0, 0, 0), (0, 0, 2, 0), (0, 0, 4, 4)),
]


@pytest.mark.parametrize("name", ["td", "tc(λ) by age", "states", "one stage"])
def test_several_blocks_and_tiles_past_32768(name: str) -> None:
    lesson, _ = LESSONS[name]
    learner, reference = both(lesson, blocks=3)
    found = learner.host_games()
    for g in range(0, len(reference.slots), 2):
        rows = PAST_32768[g // 2 % len(PAST_32768)]
        tiles = [0 if tile == 0 else tile.bit_length() - 1 for row in rows for tile in row]
        board, aux = lesson.game.read(tiles, {})
        found["boards"][g], found["auxes"][g] = board, aux
        slot = reference.slots[g]
        slot.board, slot.aux = np.uint64(board), np.uint64(aux)
    assert found["auxes"].any()
    learner.set_games(found)
    for _ in range(4):
        learner.run(1)
        reference.step()
    assert_same(learner, reference)
    assert learner.host_games()["auxes"].tolist() == [int(slot.aux) for slot in reference.slots]


@pytest.mark.skipif(SIMULATED, reason="the simulator would take hours")
@pytest.mark.parametrize("name", ["tc", "td(λ)", "states"])
def test_thousands_of_games_give_the_same_weights_twice(name: str) -> None:
    lesson, _ = LESSONS[name]
    found = []
    for _ in range(2):
        learner = Learner(lesson, 4096, 5, fresh(lesson))
        learner.set_rate(0.5)
        learner.run(2000)
        assert learner.take_stats()["games"] > 4096
        found.append((learner.host_weights().view(np.uint32), learner.host_games()["boards"]))
    assert all(np.array_equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize(
    "options", [{}, {"of_states": True}, {"by_age": True}, {"history": 3, "decay": 0.5}], ids=str
)
def test_finished_games_move_towards_zero_and_start_again(options: dict[str, Any]) -> None:
    learner, reference = both(lesson_of(**options))
    found = learner.host_games()
    found["boards"][:] = NEARLY_OVER
    learner.set_games(found)
    for slot in reference.slots:
        slot.board = NEARLY_OVER
    for _ in range(6):
        learner.run(1)
        reference.step()
    assert_same(learner, reference)
    stats = learner.take_stats()
    assert stats["idle"] == reference.idle >= stats["games"]
    assert stats["games"] == len(reference.finished) > 0
    assert stats["score"] == sum(reference.finished)
    assert sum(stats["tiles"]) == stats["games"]
    assert learner.take_stats()["games"] == 0


@pytest.mark.parametrize("name", FOLDED)
def test_large_boards_are_seen_at_the_scale_of_smaller_ones(name: str) -> None:
    lesson = FOLDED[name]
    learner, reference = both(lesson)
    found = learner.host_games()
    found["boards"][:] = pack([14, 12, 11, 10, 6, 7, 8, 9, 3, 2, 1, 0, 0, 0, 0, 0])
    learner.set_games(found)
    for slot in reference.slots:
        slot.board = np.uint64(found["boards"][0])
    learner.run(5)
    for _ in range(5):
        reference.step()
    assert_same(learner, reference)
    assert int(lesson.see(np.uint64(found["boards"][0]), np.uint64(0))) & 15 == 13


def test_games_begin_ahead_and_do_not_count() -> None:
    lesson = lesson_of(*BY_HINT, by_hint=True, turned=False, stages=(14,), ahead=True, coherence=True)
    learner = Learner(lesson, GAMES_A_BLOCK, seed=3, weights=fresh(lesson))
    learner.set_rate(1.0)
    found = learner.host_games()
    ahead, rows = make_ahead(lesson.game, (14,)), lesson.game.rows
    expected = [ahead(rows, np.uint64(seed_of(np.uint64(3), np.uint64(g)))) for g in range(GAMES_A_BLOCK)]
    assert found["boards"].tolist() == [int(board) for board, *_ in expected]
    assert found["given"].tolist() == [given for *_, given in expected]
    assert (found["scores"][found["given"] == 1] >= 3**12).all()
    found["boards"][:] = pack([1] * 16)  # nothing merges
    found["given"][:] = np.arange(GAMES_A_BLOCK) % 2
    learner.set_games(found)
    learner.run(1)
    stats = learner.take_stats()
    assert (stats["games"], stats["replays"]) == (GAMES_A_BLOCK // 2, GAMES_A_BLOCK // 2)


def test_the_same_seed_gives_the_same_weights_and_another_does_not() -> None:
    lesson = lesson_of(coherence=True)
    first, second, other = (both(lesson, seed)[0] for seed in (3, 3, 4))
    for learner in (first, second, other):
        learner.run(4)
    assert np.array_equal(first.host_weights(), second.host_weights())
    assert not np.array_equal(first.host_weights(), other.host_weights())


def test_a_learner_goes_on_exactly_where_another_stopped() -> None:
    lesson = lesson_of(coherence=True)
    learner, again = both(lesson)[0], Learner(lesson, GAMES_A_BLOCK, seed=99)
    learner.run(4)
    again.set_rate(1.0)
    again.set_weights(learner.host_weights())
    again.set_memory(learner.host_memory())
    again.set_games(learner.host_games())
    learner.run(3)
    again.run(3)
    assert np.array_equal(learner.host_weights(), again.host_weights())
    assert np.array_equal(learner.host_memory(), again.host_memory())


@pytest.mark.parametrize("first", ["td", "tc"])
def test_a_change_of_rule_keeps_weights_and_games_and_nothing_else(first: str) -> None:
    before, after = (lesson_of(coherence=coherence, by_age=True) for coherence in (first == "tc", first == "td"))
    learner = Learner(before, GAMES_A_BLOCK, 3, fresh(before), words=2)
    learner.set_rate(0.5)
    learner.run(3)
    again = Learner(after, GAMES_A_BLOCK, 9, learner.host_weights())
    again.set_games(learner.host_games())
    learner.relearn(after.coherence)
    for one in (learner, again):
        one.set_rate(0.5)
        one.run(3)
    assert np.array_equal(learner.host_weights(), again.host_weights())
    assert learner.host_games()["boards"].tolist() == again.host_games()["boards"].tolist()
    assert learner.room.size == 2 * learner.weights.size


def test_softened_coherence_keeps_its_ratio() -> None:
    learner, _ = both(lesson_of(coherence=True))
    learner.run(3)
    before = learner.host_memory()
    learner.soften(0.25)
    assert np.array_equal(learner.host_memory(), before * np.float32(0.25))


def test_the_mean_leans_on_the_last_weights() -> None:
    learner, _ = both(lesson_of())
    for value in (1.0, 2.0, 3.0):
        learner.set_weights(np.full(learner.lesson.evaluator.size, value, np.float32))
        learner.average()
    mean = learner.host_average()
    assert np.allclose(mean, 1 + 10 / 11 + (3 - (1 + 10 / 11)) * 10 / 12)
    learner.use_average()
    assert np.array_equal(learner.host_weights(), mean)
    assert learner.averaged == 0


@pytest.mark.parametrize("network", [SMALL, "014,5"])
def test_weights_come_back_in_the_order_they_went(network: str) -> None:
    found = evaluator(games.get("2048"), parse_network(network, (2,)))
    here = np.random.default_rng(1).random(found.size).astype(np.float32)
    there = cuda.device_array(found.size, np.float32)
    arrangement = Arrangement(found)
    arrangement.to_gpu(there, here)
    plain = there.copy_to_host()
    table = found.layout.tables[0]
    assert np.array_equal(plain[: 16 ** len(table.cells)], here[table.entries_in_order().astype(np.int64)])
    assert np.array_equal(arrangement.to_cpu(there), here)


def words(numbers: Iterable[Any]) -> tuple[np.uint64, ...]:
    """Compiled rules answer with plain integers, which they would not take back."""
    return tuple(np.uint64(number) for number in numbers)


def random_weights(lesson: Lesson) -> Any:
    return (100 * np.random.default_rng(2).random(lesson.evaluator.size)).astype(np.float32)


def play_plainly(lesson: Lesson, weights: Any, seed: int, number: int) -> list[int]:
    """A greedy game in plain Python: score, moves, largest."""
    rules, rows, value = lesson.game.rules, lesson.game.rows, lesson.evaluator.value
    board, aux, rng = words(rules.start(rows, np.uint64(seed_of(np.uint64(seed), np.uint64(number)))))
    score = int(rules.value_of_board(board, aux)) if lesson.game.score_is_value else 0
    moves = 0

    def best_move() -> int:
        found = (0.0, -1)
        for action in range(4):
            after, after_aux, reward = rules.slide(rows, board, aux, action)
            if after != board:
                total = np.float32(reward) + np.float32(max(value(weights, *words((after, after_aux))), 0))
                if found[1] < 0 or total > found[0]:
                    found = total, action
        return found[1]

    while (action := best_move()) >= 0:
        after, after_aux, reward = words(rules.slide(rows, board, aux, action))
        board, aux, placed, rng = words(rules.spawn(after, after_aux, rng))
        score += int(reward) + int(placed)
        moves += 1
    return [score, moves, int(rules.largest(board, aux))]


@pytest.mark.parametrize(("game", "by_age"), [("2048", False), ("2048", True), ("threes", False)])
def test_games_played_there_are_the_games_played_here(game: str, by_age: bool) -> None:
    lesson = lesson_of(game, "01,56", by_age=by_age)
    weights = random_weights(lesson)
    seen: list[int] = []

    def watch(results: Any) -> bool:
        seen.append(int((results[:, 1] >= 0).sum()))
        return True

    results = GpuPlayer(lesson, weights).play(3, seed=5, watch=watch, at_once=2)
    assert results.tolist() == [play_plainly(lesson, weights, 5, i) for i in range(3)]
    assert all(count <= 3 for count in seen)


CROWDED = [
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 1, 0, 3, 2, 0],
    [14, 12, 11, 10, 6, 7, 8, 9, 3, 2, 1, 3, 1, 2, 0, 1],
    [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 2],  # one merge is left
    [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 1],  # none
]
TOO_FEW = 70  # nodes
SEARCHES = {
    "two layers": (lesson_of(), Search(2)),
    "three layers": (lesson_of(), Search(3)),
    "narrow, by age": (lesson_of(by_age=True), Search(4, 1, 0.15)),
    "two moves, folded": (lesson_of(fold=14), Search(4, 2, 0.2)),
    "of states": (lesson_of(of_states=True), Search(2)),
    "of states, threes": (lesson_of("threes", of_states=True), Search(2)),
    "threes": (lesson_of("threes"), Search(3, 1, 0.2)),
    "phone": (lesson_of("threes-phone"), Search(2)),
    "phone by hint": (lesson_of("threes-phone", "01,5", by_hint=True, turned=False), Search(3, 1, 0.2)),
    "phone by hint, folded": (FOLDED["phone, by hint, not turned"], Search(3, 1, 0.2)),
}


def some_games(lesson: Lesson, boards: int, crowded: list[list[int]] = CROWDED) -> Boards:
    """Games in the middle: crowded boards, and what Threes! says beside a board."""
    game, threads = lesson.game, 32 if SIMULATED else 128
    numbers = np.full(threads, -1, np.int64)
    numbers[:boards] = range(boards)
    at = [
        numbers,
        *(np.zeros(threads, np.uint64) for _ in range(3)),
        *(np.zeros(threads, np.int64) for _ in range(2)),
    ]
    for place in range(boards):
        _, aux, rng = words(game.rules.start(game.rows, np.uint64(place + 1)))
        at[1][place], at[2][place], at[3][place] = pack(crowded[place]), aux, rng
    return Boards(*(cuda.to_device(array) for array in at))


def searched_here(lesson: Lesson, search: Search, weights: Any, at: list[Any], place: int) -> Any:
    """The value of every move, by the search of the CPU."""
    of = "states" if lesson.of_states else "afterstates"
    leaves = plain_function(
        lesson.game,
        lesson.evaluator.value,
        weights,
        of,
        lesson.evaluator.network.by_hint,
    )
    root_values = expectimax.build(lesson.game, leaves.code, narrow=search.width < 4).root_values
    out = np.zeros(4)
    state = expectimax.new_state(lesson.game, leaves, 10, search.width)
    limits = expectimax.Limits(search.layers, search.prune)
    root_values(state, *words((at[1][place], at[2][place])), limits, out)
    return out


def moved_here(lesson: Lesson, action: int, board: Any, aux: Any, rng: Any) -> tuple[Any, ...]:
    rules = lesson.game.rules
    after, after_aux, _ = words(rules.slide(lesson.game.rows, board, aux, action))
    board, aux, _, rng = words(rules.spawn(after, after_aux, rng))
    return board, aux, rng


def moved_there(
    searcher: GpuSearcher, boards: int, crowded: list[list[int]] = CROWDED
) -> tuple[list[Any], list[Any], Any]:
    """The games before and after their first move, and the results of those that were over."""
    at = some_games(searcher.lesson, boards, crowded)
    before = [array.copy_to_host() for array in at]
    results, taken = cuda.to_device(np.zeros((boards, 3), np.int64)), cuda.to_device(np.array([boards], np.int64))
    searcher.mover(at, results, taken, 1)
    return before, [array.copy_to_host() for array in at], results.copy_to_host()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_there_is_the_search_here(name: str) -> None:
    lesson, search = SEARCHES[name]
    weights, boards = random_weights(lesson), len(CROWDED)
    searcher = GpuSearcher(lesson, search, weights)
    (before, after, results), lists = moved_there(searcher, boards), searcher.searches[0]
    values = lists.nodes.values.copy_to_host()
    rewards, roots = (array.copy_to_host()[:boards] for array in (lists.roots.rewards, lists.roots.afterstates))
    for place in range(boards):
        here = searched_here(lesson, search, weights, before, place)
        there = [np.nan if i < 0 else r + max(values[i] / POINT, 0) for i, r in zip(roots[place], rewards[place])]
        assert np.allclose(there, here, rtol=1e-6 if lesson.of_states else 1e-9, equal_nan=True)
        exact = there if lesson.of_states else here  # float32 sums may tell apart what is equal
        action, position = int(best_of(np.array(exact))), words(before[k][place] for k in (1, 2, 3))
        if action >= 0:
            assert tuple(after[k][place] for k in (1, 2, 3)) == moved_here(lesson, action, *position)
        else:
            assert results[place, 2] == lesson.game.rules.largest(*position[:2])
            assert after[0][place] == -1
    assert after[5][:boards].tolist() == [int(after[0][place] >= 0) for place in range(boards)]


CHAINS = [  # links down to a 4, and small tiles
    [7, 6, 5, 4, 1, 0, 2, 3, 2, 0, 0, 0, 1, 1, 0, 0],
    [9, 8, 6, 5, 0, 1, 2, 3, 0, 0, 0, 1, 0, 0, 0, 2],
    [7, 1, 2, 1, 6, 0, 0, 1, 5, 2, 0, 0, 4, 3, 0, 0],
    [7, 6, 5, 4, 1, 2, 2, 3, 0, 0, 1, 0, 0, 0, 0, 1],
    [8, 7, 6, 5, 2, 1, 2, 3, 1, 0, 0, 0, 0, 0, 0, 0],
    [4, 5, 6, 7, 3, 2, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1],
]


def little_room(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """The simulator is slow: small tables."""
    if SIMULATED:
        monkeypatch.setattr("tilesage.search.game_2048.endgames.ROOM", room)


def test_endgames_solved_there_are_those_solved_here(monkeypatch: pytest.MonkeyPatch) -> None:
    little_room(monkeypatch, 6)
    tables = [(SNAKE, 2), (SNAKE[:5], 2)] if SIMULATED else [(SNAKE, 5), (SNAKE[:5], 4)]
    here, there = solve(lesson_of().game, tables), solve_on_gpu(lesson_of().game, tables)
    assert [a.tolist() for a in here[1:]] == [a.copy_to_host().tolist() for a in there[1:]]
    counts, differ = np.zeros(16, np.int64), there.slides.copy_to_host() != here.slides
    for half in (here.slides & 15, here.slides >> 4):
        counts += np.bincount(half, minlength=16)
    assert (counts > 10).sum() >= 4, "nothing to compare"
    assert differ.mean() < (1e-9 if SIMULATED else 1e-3)  # products and sums may be fused there, and chances be equal


def test_a_search_there_plays_by_endgames(monkeypatch: pytest.MonkeyPatch) -> None:
    little_room(monkeypatch, 10)
    lesson, search, boards = lesson_of(), Search(2), len(CHAINS)
    weights, solved = random_weights(lesson), solve(lesson.game, [(SNAKE, 2)])
    there = Endgames(*(cuda.to_device(array) for array in solved))
    overrule, differ = make_overrule(), 0
    before, after, _ = moved_there(GpuSearcher(lesson, search, weights, endgames=there), boards, CHAINS)
    for place in range(boards):
        values = searched_here(lesson, search, weights, before, place)
        plain = int(best_of(values))
        overrule(solved, before[1][place], values)
        action, position = int(best_of(values)), words(before[k][place] for k in (1, 2, 3))
        assert tuple(after[k][place] for k in (1, 2, 3)) == moved_here(lesson, action, *position)
        differ += action != plain
    assert differ > 0, "the search would have played the same: nothing is tested"


HANDED = {  # boards for the network that has practised, then some for the other
    "block": [  # pushed aside, at the wall, turned; larger tiles
        [0, 14, 13, 12, 1, 0, 2, 3, 0, 0, 1, 5, 0, 0, 0, 1],
        [14, 13, 12, 0, 0, 1, 0, 4, 0, 0, 0, 2, 0, 0, 1, 1],
        [1, 0, 0, 2, 0, 0, 1, 14, 0, 3, 2, 13, 0, 1, 10, 12],
        [12, 13, 15, 2, 11, 5, 3, 1, 2, 0, 0, 0, 1, 0, 0, 0],
        [14, 13, 12, 11, 0, 1, 0, 4, 0, 0, 0, 2, 0, 0, 1, 1],
        [9, 7, 5, 3, 1, 0, 2, 3, 0, 0, 1, 5, 0, 0, 0, 1],
    ],
    "walls": [  # apart from each other; larger tiles; before and after the target
        [0, 14, 3, 12, 1, 0, 2, 3, 0, 13, 1, 5, 0, 0, 0, 1],
        [15, 13, 12, 0, 0, 1, 0, 4, 0, 0, 0, 2, 0, 0, 1, 1],
        [1, 0, 0, 2, 0, 0, 1, 14, 0, 3, 2, 15, 0, 1, 10, 12],
        [12, 13, 14, 2, 11, 11, 3, 1, 2, 0, 0, 0, 1, 0, 0, 0],
        [14, 13, 12, 12, 0, 1, 0, 4, 0, 0, 0, 2, 0, 0, 1, 1],
        [9, 7, 5, 3, 1, 0, 2, 3, 0, 0, 1, 5, 0, 0, 0, 1],
    ],
}


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_a_search_there_hands_over_to_the_network_that_has_practised(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilesage.search.players.tables_wanted", lambda spec, game: [])
    lesson, practised, boards = lesson_of(), lesson_of(f"2048-{part.name}", "01,56"), HANDED[part.name]
    weights, others = random_weights(lesson), random_weights(practised)
    file = save_model(Model(practised.game, practised.evaluator.network, others), tmp_path / "part.safetensors")
    model = Model(lesson.game, lesson.evaluator.network, weights)
    agent = make_agent(f"expectimax:2,endgames=128,{part.name}={file}", lesson.game, model)
    second, memory = Practised(part, practised, others), agent.new_memory()
    before, after, _ = moved_there(GpuSearcher(lesson, Search(2), weights, practised=second), len(boards), boards)
    for place in range(len(boards)):
        position = words(before[k][place] for k in (1, 2, 3))
        for practises in (False, True):  # a move of the one search, then one of the other
            if (part.find(lesson.game.rows, *position[:2]) != NOWHERE) == practises:
                action = int(agent.decide(memory, *position[:2], 0, np.uint64(1), np.zeros(4))[0])
                position = moved_here(lesson, action, *position)
        assert tuple(after[k][place] for k in (1, 2, 3)) == position
    handed = [part.find(lesson.game.rows, pack(board), np.uint64(0)) != NOWHERE for board in boards]
    assert handed == [True] * 4 + [False] * 2


@pytest.mark.parametrize("option", ["walls=FILE", "endgames=128"])
def test_greedy_play_there_refuses_what_only_a_search_hands_over(option: str, tmp_path: Path) -> None:
    lesson, practised = lesson_of(), lesson_of("2048-walls", "01,56")
    part = Model(practised.game, practised.evaluator.network, random_weights(practised))
    option = option.replace("FILE", str(save_model(part, tmp_path / "walls.safetensors")))
    model = Model(lesson.game, lesson.evaluator.network, random_weights(lesson))
    agent = SimpleNamespace(spec=f"expectimax:1,{option}", game=lesson.game, model=model)
    with pytest.raises(InputError, match="two layers or more"):
        player_of(cast(Agent, agent))


def test_values_are_read_from_the_network_once() -> None:
    lesson, search = SEARCHES["narrow, by age"]
    weights, boards = random_weights(lesson), len(CROWDED)
    searcher = GpuSearcher(lesson, search, weights)
    (lists,) = searcher.searches
    lists.known = cuda.to_device(np.zeros((1 << 12, 2), np.uint64))

    def moved() -> list[Any]:
        at, results = some_games(lesson, boards), cuda.to_device(np.zeros((boards, 3), np.int64))
        searcher.mover(at, results, cuda.to_device(np.array([boards], np.int64)), 1)
        return [array.copy_to_host().tolist() for array in at]

    first = moved()
    names, bits = lists.known.copy_to_host().T
    board = (names ^ bits)[bits != 0]
    value = bits[bits != 0].astype(np.uint32).view(np.float32)
    assert len(board) > 20
    assert [lesson.evaluator.value(weights, b, np.uint64(0)) for b in board] == value.tolist()
    lists.weights = cuda.to_device(np.zeros_like(weights))
    assert moved() == first
    lists.known = cuda.to_device(np.zeros((1 << 12, 2), np.uint64))
    assert moved() != first


def test_when_the_room_is_full_fewer_games_move_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesage.gpu.search.STEPS_A_GRAPH", 1)  # later positions may need more room
    lesson, search = SEARCHES["narrow, by age"]
    weights, boards = random_weights(lesson), len(CROWDED)
    at = some_games(lesson, boards)
    before = [array.copy_to_host() for array in at]
    results, taken = cuda.to_device(np.zeros((boards, 3), np.int64)), cuda.to_device(np.array([boards], np.int64))
    make_moves = GpuSearcher(lesson, search, weights, nodes=TOO_FEW).mover(at, results, taken, 1)
    assert not at.moves.copy_to_host().any(), "there was room for all of them: nothing is tested"
    seen: dict[int, tuple[Any, ...]] = {}
    while len(seen) < boards - 1:
        make_moves()
        now = [array.copy_to_host() for array in at]
        seen |= {place: tuple(now[k][place] for k in (1, 2, 3)) for place in range(boards) if now[5][place] == 1}
    for place, found in seen.items():
        action = int(best_of(searched_here(lesson, search, weights, before, place)))
        assert found == moved_here(lesson, action, *words(before[k][place] for k in (1, 2, 3)))


def test_a_search_that_does_not_fit_says_so() -> None:
    lesson = lesson_of()
    with pytest.raises(InputError, match="does not fit"):
        GpuSearcher(lesson, Search(3), fresh(lesson), nodes=20).play(1)


def test_searched_games_end_like_any_other() -> None:
    """Whole games: many on a GPU, one of Threes! in the simulator."""
    lesson = lesson_of("threes" if SIMULATED else "2048", "01,56")
    weights, number = random_weights(lesson), 1 if SIMULATED else 300
    results = GpuSearcher(lesson, Search(2), weights).play(number, seed=5, at_once=1 if SIMULATED else 200)
    assert (results[:, 1] > 10).all()
    model = Model(lesson.game, lesson.evaluator.network, weights)
    here = LocalWorker(make_agent("expectimax:2", lesson.game, model), keep_actions=False).play(5, 0, number)
    assert results[:, 0].tolist() == here.scores.tolist()
    assert results[:, 1].tolist() == here.moves.tolist()


def test_play_stops_when_the_watcher_says_so() -> None:
    lesson = lesson_of("2048", "01")
    player = GpuPlayer(lesson, fresh(lesson))
    player.moves_a_launch = 5
    results = player.play(2, seed=1, watch=lambda results: False)
    assert (results == -1).all()


SETTINGS = TrainConfig(
    network=SMALL, device="cuda", flight=GAMES_A_BLOCK, moves=8 * GAMES_A_BLOCK, block=1, threads=1
)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_a_trainer_goes_on_exactly_where_another_stopped(decay: float) -> None:
    settings = replace(SETTINGS, decay=decay)
    first, second = GpuTrainer(settings), GpuTrainer(replace(settings, seed=9))
    tally = first.advance(3 * GAMES_A_BLOCK, 1000, 1.0)
    assert (tally.moves, tally.games) == (3 * GAMES_A_BLOCK, 0)
    first.learner.average()
    second.restore(first.state())
    for trainer in (first, second):
        trainer.advance(2 * GAMES_A_BLOCK, 1000, 0.5)
    assert np.array_equal(first.weights(), second.weights())
    assert np.array_equal(first.learner.host_weights(), second.learner.host_weights())
    assert np.array_equal(first.state()["memory"], second.state()["memory"])


@pytest.mark.parametrize(("rule", "decay"), [("td", 0.0), ("tc", 0.0), ("tc", 0.5)])
def test_exact_training_on_a_cpu_is_the_training_here_bit_for_bit(rule: str, decay: float) -> None:
    settings = replace(SETTINGS, rule=rule, decay=decay, average=False, seed=3)
    there = BatchTrainer(replace(settings, device="cpu", exact=True))
    here = GpuTrainer(settings)
    for _ in range(2):
        for trainer in (there, here):
            trainer.advance(12 * GAMES_A_BLOCK, 1 << 40, 0.5)
        assert np.array_equal(there.state()["weights"], here.state()["weights"])
    assert len(np.unique(here.state()["weights"])) > 20


def test_the_model_holds_what_was_learnt_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesage.gpu.trainer.STEPS_A_LOOK", 4)
    trainer = GpuTrainer(SETTINGS)
    means = []
    for steps in (3, 1, 2):  # a look after four
        trainer.advance(steps * GAMES_A_BLOCK, 1 << 40, 1.0)
        means.append((trainer.weights(), trainer.learner.host_weights()))
    for mean, last in means[:2]:
        assert np.array_equal(mean, last)
    (_, looked), (mean, last) = means[1:]
    assert np.allclose(mean, looked + (last - looked) * (10 / 11) * (2 / 4))
    assert not np.array_equal(mean, looked)
    assert np.array_equal(trainer.weights(), mean)  # whoever looks changes nothing
    trainer.begin_phase(trainer.rule, soften=True)
    assert np.array_equal(trainer.learner.host_weights(), mean)


def test_the_model_in_the_folder_holds_what_was_learnt_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilesage.gpu.trainer.STEPS_A_LOOK", 4)
    settings = replace(SETTINGS, moves=6 * GAMES_A_BLOCK, stages="8")
    run = Run.begin(settings, tmp_path / "run")
    run.train()
    assert np.array_equal(load_model(tmp_path / "run").weights, run.trainer.weights())
    whole = Run.begin(replace(settings, moves=11 * GAMES_A_BLOCK), None)
    whole.train()
    again = Run.resume(tmp_path / "run", moves=11 * GAMES_A_BLOCK)
    again.train()
    assert np.array_equal(again.trainer.weights(), whole.trainer.weights())


def wrong_number(state: dict[str, Any]) -> None:
    state["weights"][7] = np.inf


def wrong_length(state: dict[str, Any]) -> None:
    state["memory"] = state["memory"][:-1]


def fewer_games(state: dict[str, Any]) -> None:
    state |= {name: array[..., 1:] for name, array in state.items() if name.startswith("games.")}


def no_board(state: dict[str, Any]) -> None:
    state["games.boards"][0], state["games.auxes"][0] = 1, 15  # an empty cell with more than nothing on it


def no_error(state: dict[str, Any]) -> None:
    state["games.trace_targets"][0, 0] = np.nan


def no_mean(state: dict[str, Any]) -> None:
    state["done"][2] = 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("games.ages", 1), "outside the tables"),
        (("games.trace_ages", (0, 1)), "outside the tables"),
        (("games.trace_firsts", 1), "out of bounds"),
        (("games.trace_lengths", 1), "out of bounds"),
        (wrong_number, "infinite"),
        (wrong_length, "memory is float32"),
        (fewer_games, "this run needs"),
        (no_board, "a position that 2048 does not have"),
        (no_error, "trace_targets holds numbers"),
        (no_mean, "mean is missing"),
    ],
)
def test_a_checkpoint_is_not_believed(wrong: Any, said: str) -> None:
    trainer = GpuTrainer(replace(SETTINGS, by_age=True, decay=0.5))
    trainer.advance(4 * GAMES_A_BLOCK, 1 << 40, 1.0)
    state = trainer.state()
    trainer.restore(state)
    if callable(wrong):
        wrong(state)
    else:
        state[wrong[0]][wrong[1]] = trainer.evaluator.size
    with pytest.raises(InputError, match=said):
        trainer.restore(state)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_a_hint_without_tables_is_refused(decay: float) -> None:
    trainer = GpuTrainer(replace(SETTINGS, game="threes", network="01,5", by_hint=True, decay=decay))
    trainer.advance(2 * GAMES_A_BLOCK, 1 << 40, 1.0)
    state = trainer.state()
    trainer.restore(state)
    state["games.trace_auxes" if decay else "games.before_auxes"][..., 0] = 0
    with pytest.raises(InputError, match="hint has no tables"):
        trainer.restore(state)


def test_what_does_not_fit_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tilesage.gpu.memory.free_memory", lambda: 1000)
    with pytest.raises(InputError, match="GiB of the GPU's memory"):
        GpuTrainer(SETTINGS)
    with pytest.raises(InputError, match="GiB of the GPU's memory"):
        GpuPlayer(lesson_of(), random_weights(lesson_of()))
    with pytest.raises(InputError, match="GiB of the GPU's memory"):
        solve_on_gpu(lesson_of().game, [(SNAKE, 2)])
    monkeypatch.undo()
    monkeypatch.setattr("tilesage.gpu.trainer.free_memory", lambda: 1000)
    with pytest.raises(InputError, match="this machine's memory"):
        Run.begin(SETTINGS, tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()


def test_a_run_ends_with_a_model_that_the_cpu_reads(tmp_path: Path) -> None:
    phases = "td:0.1:0.4,tc:1:0.3,soften:1>0.1:0.3"
    run = Run.begin(replace(SETTINGS, phases=phases, stages="8"), tmp_path / "run")
    progress = run.train()
    assert progress.moves == SETTINGS.moves
    assert progress.phase == 2
    model = load_model(tmp_path / "run")
    assert not np.isnan(model.weights).any()
    assert np.array_equal(model.weights, run.trainer.weights())
    board = np.uint64(games.get("2048").new(1).board)
    assert model.evaluator.value(np.asarray(model.weights), board, np.uint64(0)) != 0
    again = Run.resume(tmp_path / "run", moves=10 * GAMES_A_BLOCK)
    assert again.train().moves == 10 * GAMES_A_BLOCK
    assert all(line["moves"] <= 10 * GAMES_A_BLOCK for line in read_metrics(tmp_path / "run"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"decay": 0.99}, "--decay"),
        ({"direction": "backward"}, "--direction"),
        ({"steps": 100}, "--steps"),
        ({"decay": 0.5, "of": "states"}, "--of states"),
        ({"flight": 1 << 20}, "--flight"),
    ],
)
def test_what_the_gpu_cannot_do_is_said(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        GpuTrainer(replace(SETTINGS, **wrong))


@pytest.mark.skipif(SIMULATED, reason="the simulator would take hours")
def test_a_real_gpu_learns() -> None:
    lesson = lesson_of("2048", "0123,0145,4567,5678", coherence=True)
    learner = Learner(lesson, 4096, seed=1)
    learner.set_rate(1.0)
    means = []
    for _ in range(6):
        learner.run(1000)
        stats = learner.take_stats()
        means.append(stats["score"] / max(1, stats["games"]))
    assert means[-1] > 3 * means[0]
