"""What the objects of the library say of themselves, and what is left of them in a pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import tiny_model

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.evaluation.advice import advise
from tilesage.evaluation.evaluate import evaluate
from tilesage.games import Game, State
from tilesage.games.outside import check_merges
from tilesage.networks import Model, load_model, parse_network, save_model
from tilesage.networks.outside import batch_value, compiled_value
from tilesage.records.statistics import Statistics
from tilesage.search.agents import agent, make_agent

every_game = pytest.mark.parametrize("name", games.names())


def one_line(thing: Any) -> str:
    text = repr(thing)
    assert "\n" not in text
    assert len(text) <= 100, text
    return text


def far(game: Game) -> State:
    """A position with a history, a score and a generator that no seed gives at once."""
    state = game.new(seed=7)
    for _ in range(30):
        state = state.play(state.legal[-1])
    return state


@every_game
def test_a_state_is_its_line(name: str) -> None:
    state = far(games.get(name))
    again = state.game.parse(state.line)
    assert again == state
    assert again.play(again.legal[0]) == state.play(state.legal[0])
    assert state.game.parse(f"{state.text} score=77 moves=5").moves == 5
    assert state.game.parse(f"{state.text} score=77 moves=5").score == 77
    assert state.line.startswith(f"{state.text} ")


@pytest.mark.parametrize("words", ["rng=xyz", "rng=", "rng=-1", "rng=11112222333344445", "moves=-1", "moves=few"])
def test_a_state_that_cannot_be(words: str) -> None:
    with pytest.raises(InputError, match=words.split("=")[0]):
        games.get("2048").parse(f"1.../..../..../.... {words}")


@every_game
def test_states_in_one_line(name: str) -> None:
    state = far(games.get(name))
    assert one_line(state) == f"State({name!r}, '{state.text} score={state.score} moves=30')"
    after = state.slide(state.legal[-1])
    text = one_line(after)
    assert text.startswith(f"Afterstate({name!r}, '")
    assert f"reward={after.reward})" in text
    assert one_line(state.game).startswith(f"Game({name!r}")


def test_parameters_of_a_game_are_said() -> None:
    assert one_line(games.get("2048", four_rate=0.25)) == "Game('2048', four_rate=0.25)"


@every_game
def test_networks_and_models_in_one_line(name: str) -> None:
    model = tiny_model(name)
    assert one_line(model) == f"Model('unnamed': {name}, tiny, values of afterstates)"
    assert one_line(model.network) == "Network('tiny')"
    staged = parse_network("8x6", (9, 11, 14), fold=14, by_age=True)
    assert one_line(staged) == "Network('8x6', stages=(9, 11, 14), fold=14, by_age=True)"
    assert one_line(parse_network(",".join(f"{cell:x}12345"[:5] for cell in range(6, 16)))).endswith("…')")
    assert f"{model.evaluator.size:,} weights" in one_line(model.evaluator)


def test_what_is_found_out_in_one_line() -> None:
    model = tiny_model("2048")
    state = model.game.parse("1.23/2345/.987/3A12")
    assert one_line(advise(make_agent("greedy", model.game, model), state)).endswith(
        ("up)", "right)", "down)", "left)")
    )
    ended = advise(make_agent("random", model.game), model.game.parse("1212/2121/1212/2121"))
    assert "no move is legal" in one_line(ended)
    statistics = Statistics("2048")
    assert one_line(statistics) == "Statistics(2048: 0 games, max 0)"
    for score in (1000, 3000):
        statistics.add(score, 7)
    assert one_line(statistics) == "Statistics(2048: 2 games, mean 2,000 ± 1,000, max 3,000)"


@every_game
def test_a_pickled_state_is_small_and_whole(name: str) -> None:
    state = far(games.get(name))
    after = state.slide(state.legal[0])  # by now it remembers all its slides
    assert len(pickle.dumps(state)) < 600
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    assert again.game is state.game
    assert len(pickle.dumps(after)) < 1200
    assert pickle.loads(pickle.dumps(after)) == after
    assert copy.deepcopy(state) == state


def test_a_pickled_game_is_its_name_and_its_parameters() -> None:
    for game in (*map(games.get, games.names()), games.get("2048", four_rate=0.5), games.get("2048-walls")):
        data = pickle.dumps(game)
        assert len(data) < 200
        assert pickle.loads(data) is game
    assert games.get("2048", four_rate=0.1) is games.get("2048")


def test_a_changed_game_is_not_pickled_as_another() -> None:
    changed = replace(games.get("2048"), rules=games.get("2048", four_rate=0.9).rules)
    assert copy.deepcopy(changed.new(1)) == changed.new(1)
    with pytest.raises(InputError, match="another process"):
        pickle.dumps(changed)


NEW = games.get("2048").new(1)
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "seed": (lambda: NEW.game.new("1"), "a seed is a whole number"),  # type: ignore[arg-type]
    "seed of games": (lambda: evaluate("random", 2, seed="1"), "a seed is"),  # type: ignore[arg-type]
    "list": (lambda: NEW.game.parse([2] * 16), "a position is a text"),  # type: ignore[arg-type]
    "hint": (lambda: NEW.game.parse(f"{NEW.text} hint=2"), "unknown word hint="),
    "text": (lambda: agent("random").choose("text"), "asked for a State of 2048"),  # type: ignore[arg-type]
    "afterstate": (lambda: agent("random").choose(NEW.slide(NEW.legal[0])), "asked for"),  # type: ignore[arg-type]
    "another game": (lambda: agent(max).choose(games.get("threes").new(1)), "asked for"),
    "order": (lambda: agent("greedy", tiny_model("2048"), NEW.game), r"agent\(player, game, model\)"),  # type: ignore
    "number": (lambda: batch_value(5), "a function of boards"),  # type: ignore[arg-type]
    "one argument": (lambda: compiled_value(lambda board: 1.0), r"\(board, aux\)"),
    "over": (lambda: NEW.play(-1), "when the game is over"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_sense_is_one_line(wrong: str) -> None:
    call, said = WRONG[wrong]
    with pytest.raises(InputError, match=said):
        call()


@every_game
def test_slides_and_merged_say_the_same(name: str) -> None:
    check_merges(games.get(name).new(3))


def test_a_model_says_nothing_of_no_boards() -> None:
    assert tiny_model("2048").values([]).shape == (0,)


def test_a_pickled_model_is_its_file_if_it_has_one(tmp_path: Path) -> None:
    model = tiny_model("threes")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.weights, model.weights)
    assert (again.game, again.network, again.of) == (model.game, model.network, model.of)
    opened = load_model(save_model(model, tmp_path / "small.safetensors"))
    assert len(pickle.dumps(opened)) < 1000
    again = pickle.loads(pickle.dumps(opened))
    assert isinstance(again, Model)
    assert (again.path, again.name) == (opened.path, "small")
    assert np.array_equal(again.weights, model.weights)


def test_a_model_of_a_game_with_parameters_keeps_them(tmp_path: Path) -> None:
    often = games.get("2048", four_rate=0.5)
    model = Model(often, tiny_model("2048").network, tiny_model("2048").weights)
    opened = load_model(save_model(model, tmp_path / "often.safetensors"))
    assert pickle.loads(pickle.dumps(opened)).game is often
