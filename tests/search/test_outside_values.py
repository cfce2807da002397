"""Values from outside the package: the same searches, on functions of the user's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from small_models import POSITIONS, STARTS, tiny_model

from tilesage import games
from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import State
from tilesage.networks import Model, batch_value, compiled_value, outside
from tilesage.search.agents import make_agent

every_game = pytest.mark.parametrize("name", games.names())


class Asked:
    """A model as a Python function, which remembers what it was asked."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.batches: list[list[tuple[int, int]]] = []

    def __call__(self, boards: Array, aux: Array) -> Array:
        self.batches.append(list(zip(boards.tolist(), aux.tolist())))
        return self.model.values(boards, aux)


def same_words(model: Model, value: Any, spec: str, state: State) -> None:
    """Moves and values of the search on a function, against those on the model itself."""
    compiled, asking = make_agent(spec, model.game, model), make_agent(spec, model.game, value)
    assert asking.values(state) == [
        None if worth is None else pytest.approx(worth, rel=1e-12) for worth in compiled.values(state)
    ]
    assert asking.choose(state) == compiled.choose(state)


@every_game
@pytest.mark.parametrize("spec", ["greedy", "expectimax:1", "expectimax:2", "expectimax:3", "expectimax:deep"])
def test_a_search_on_a_python_function_is_that_on_the_model(name: str, spec: str) -> None:
    model = tiny_model(name)
    for text in STARTS[name]:
        asked = Asked(model)
        same_words(model, batch_value(asked, reads_hint=False), spec, model.game.parse(text + " score=300"))
        if spec != "expectimax:deep":  # that one follows the moves that it likes, and learns on the way which
            assert len(asked.batches) == 2  # for the values and for the move
        for first in range(0, len(asked.batches), len(asked.batches) // 2):
            half = [board for batch in asked.batches[first : first + len(asked.batches) // 2] for board in batch]
            assert len(set(half)) == len(half)  # no board twice


@pytest.mark.parametrize("spec", ["expectimax:2", "expectimax:3", "mcts:30,leaf=value"])
def test_a_function_may_look_at_the_hint(spec: str) -> None:
    model = tiny_model("threes", by_hint=True)
    for text in STARTS["threes"]:
        same_words(model, Asked(model), spec, model.game.parse(text))


@pytest.mark.parametrize("name", ["2048", "threes"])
@pytest.mark.parametrize("spec", ["greedy", "expectimax:2", "mcts:30,leaf=value"])
def test_values_of_states_are_averaged_over_chance(name: str, spec: str) -> None:
    model = tiny_model(name, "states")
    state = model.game.parse(STARTS[name][0])
    same_words(model, batch_value(Asked(model), of="states", reads_hint=False), spec, state)


@every_game
def test_the_tree_on_a_python_function_is_that_on_the_model(name: str) -> None:
    """The same moves over a game in which the tree is kept, and the same values on its last position."""
    model = tiny_model(name)
    compiled, asking = (
        make_agent("mcts:40,leaf=value,c=0.7", model.game, value)
        for value in (model, batch_value(Asked(model), reads_hint=False))
    )
    memory, state = compiled.new_memory(), model.game.parse(STARTS[name][0] + " seed=3")
    for _ in range(12):
        if state.over:
            break
        action = compiled.choose(state, memory)
        assert asking.choose(state) == action
        state = state.play(action)
    assert asking.values(state) == compiled.values(state, memory)


def test_a_tree_asks_for_the_moves_of_a_position_together() -> None:
    asked = Asked(tiny_model("2048"))
    state = asked.model.game.parse(STARTS["2048"][0])
    make_agent("mcts:20,leaf=value", state.game, asked).choose(state)
    assert len(asked.batches) == 21
    assert len(asked.batches[0]) == len(state.legal)


@every_game
def test_a_compiled_function_is_as_good_as_a_model(name: str) -> None:
    model = tiny_model(name)
    read, weights = model.evaluator.value, model.weights

    @numba.njit
    def value(board: np.uint64, aux: np.uint64) -> float:
        return read(weights, board, aux)  # type: ignore[no-any-return]

    state = model.game.parse(STARTS[name][0])
    for spec in ("greedy", "expectimax:2", "mcts:30,leaf=value"):
        same_words(model, compiled_value(value, reads_hint=False), spec, state)
    same_words(model, value, "greedy", state)


def test_functions_with_tiles_in_and_columns_out() -> None:
    """As a module of PyTorch is likely to be wrapped."""

    def empty_cells(tiles: Array) -> Array:
        assert tiles.shape[1:] == (4, 4)
        assert tiles.dtype == np.int64
        return (tiles == 0).sum(axis=(1, 2)).reshape(-1, 1).astype(np.float32)

    state = games.get("threes").parse(POSITIONS["threes"][0])
    agent = make_agent("expectimax:1", state.game, batch_value(empty_cells, tiles=True))
    expected = [
        None
        if after is None
        else state.score + after.reward + sum(cell == 0 for cell in state.game.write(after.board, after.aux)[0])
        for after in state.slides
    ]
    assert agent.values(state) == expected
    assert agent.choose(state) in state.legal
    assert len(repr(agent)) <= 100


def test_no_board_is_forgotten_in_a_table_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "FIRST_PLACES", 16)
    asked = Asked(tiny_model("2048"))
    state = asked.model.game.parse(STARTS["2048"][0])
    same_words(asked.model, asked, "expectimax:3", state)
    assert sum(map(len, asked.batches)) > 200


def test_what_would_ask_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "FIRST_PLACES", 16)
    monkeypatch.setattr(outside, "MOST_PLACES", 64)
    asked = Asked(tiny_model("2048"))
    state = asked.model.game.parse(STARTS["2048"][0])
    with pytest.raises(InputError, match="more than 32 boards: take fewer layers"):
        make_agent("expectimax:3", state.game, asked).choose(state)
    assert make_agent("expectimax:1", state.game, asked).choose(state) in state.legal


def test_a_large_question_is_put_in_parts() -> None:
    sizes: list[int] = []

    def value(boards: Array, aux: Array) -> Array:
        sizes.append(boards.size)
        return boards.astype(np.float64)

    boards = np.arange(150_000, dtype=np.uint64)
    found = batch_value(value).of_boards(games.get("2048"), boards, np.zeros_like(boards))
    assert np.array_equal(found, boards)
    assert sizes == [65_536, 65_536, 18_928]


def test_a_function_that_learns_is_asked_again() -> None:
    scale = 1.0
    state = games.get("2048").parse(STARTS["2048"][0])
    agent = make_agent("expectimax:1", state.game, lambda boards, aux: np.full(boards.size, scale))
    memory = agent.new_memory()
    before = agent.values(state, memory)
    scale = 1000.0
    assert [value and value - 999 for value in agent.values(state, memory)] == before


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda boards, aux: boards[1:].astype(float), r"gave numbers of shape \(3,\) for 4 boards"),
        (lambda boards, aux: 5.0, r"gave numbers of shape \(\) for 4 boards: one for each"),
        (lambda boards, aux: ["a", "b", "c", "d"], "gave no numbers, but a list"),
        (lambda boards, aux: [[1.0], [2.0, 3.0], [], []], "gave no numbers, but a list"),
        (lambda boards, aux: np.full(boards.size, np.nan), "no number"),
    ],
)
def test_functions_that_give_something_else(function: Callable[..., Any], complaint: str) -> None:
    state = games.get("2048").parse(STARTS["2048"][0])
    with pytest.raises(InputError, match=complaint):
        make_agent("greedy", state.game, function).choose(state)


def test_players_and_values_that_are_none() -> None:
    game = games.get("2048")
    for spec in ("expectimax:200ms", "expectimax:500nodes"):
        with pytest.raises(InputError, match="has a budget, which a Python function cannot keep"):
            make_agent(spec, game, lambda boards, aux: boards)
    with pytest.raises(InputError, match="values are of afterstates or of states"):
        batch_value(lambda boards, aux: boards, of="moves")


def test_a_tree_may_have_a_time_limit() -> None:
    asked = Asked(tiny_model("2048"))
    state = asked.model.game.parse(STARTS["2048"][0])
    assert make_agent("mcts:30ms,leaf=value", state.game, asked).choose(state) in state.legal


@pytest.mark.parametrize("name", games.names())
def test_where_no_move_is_legal_nothing_is_asked(name: str) -> None:
    asked = Asked(tiny_model(name))
    ended = asked.model.game.parse("1313/3131/1313/3131" + (" hint=1" if asked.model.game.hint else ""))
    for spec in ("greedy", "mcts:10,leaf=value"):
        assert make_agent(spec, ended.game, asked).choose(ended) == -1
    assert asked.batches == []


def test_an_edited_function_never_meets_the_machine_code_of_the_old_one(tmp_path: Path) -> None:
    """Two processes, one after the other, with another constant in a function that the value calls."""
    script = tmp_path / "script.py"
    text = (
        "import numba\nfrom tilesage import agent, game\n"
        "@numba.njit\ndef inner(board):\n    return WORTH\n"
        "@numba.njit\ndef value(board, aux):\n    return inner(board)\n"
        "state = game('2048').parse('11../..../..../....')\n"
        "print(agent('greedy', state.game, value).values(state))\n"
    )
    for worth in ("100.0", "200.0"):
        script.write_text(text.replace("WORTH", worth))
        command = [sys.executable, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        assert done.stdout.strip() == str([None, 4.0 + float(worth), float(worth), 4.0 + float(worth)])
