"""Evaluation: the same games whatever the number of workers, records that the referee accepts, a clean early end."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from evaluation_support import figures
from slow_search import Dice, choose_at_random

from tilesage import games
from tilesage.cli import main
from tilesage.core.compiler import _Store
from tilesage.core.errors import InputError
from tilesage.core.random import seed_of
from tilesage.evaluation.evaluate import LocalWorker, evaluate, records_of
from tilesage.games import State
from tilesage.games.board import pack
from tilesage.games.state import start_from
from tilesage.networks.files import Model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.records.record import Place, Record, format_record, parse_record
from tilesage.records.statistics import Statistics
from tilesage.search.agents import Agent, make_agent

every_game = pytest.mark.parametrize("name", games.names())


def random_player(name: str) -> Agent:
    return make_agent("random", games.get(name))


@every_game
def test_same_games_whatever_the_number_of_workers(name: str) -> None:
    agent = random_player(name)
    one, three = (evaluate(agent, 200, seed=5, workers=workers) for workers in (1, 3))
    assert figures(one) == figures(three)
    assert figures(one) != figures(evaluate(agent, 200, seed=6, workers=1))


def landed(state: State, placed: Place) -> State:
    """The position after a tile: the cells that a record shows, without anything that it does not show."""
    cells = state.indices
    assert cells[placed.cell] == 0
    return replace(state, board=pack([*cells[: placed.cell], placed.tile, *cells[placed.cell + 1 :]]))


@every_game
def test_the_compiled_loop_plays_as_the_friendly_layer_does(name: str) -> None:
    """A recorded game, played again move by move with states: same choices, same tiles, same points, same end."""
    kept: list[Record] = []
    result = evaluate(random_player(name), 5, seed=3, keep=kept.append)
    game, seed, scores, largest, slides = games.get(name), np.uint64(3), [], [], 0
    assert len(kept) == 5
    for number, record in enumerate(kept):
        assert parse_record(format_record(record)) == record
        state = start_from(game, np.uint64(seed_of(seed, np.uint64(number))))
        dice = Dice(np.uint64(seed_of(seed, np.uint64(number) | np.uint64(1 << 63))))
        dealt, moves = record.actions[: game.starting_tiles], record.actions[game.starting_tiles :]
        begun = replace(state, board=np.uint64(0))
        for place in dealt:
            begun = landed(begun, place)
        assert begun.board == state.board
        hint = dealt[-1].hint
        for slid, place in zip(moves[::2], moves[1::2], strict=True):
            assert tuple(game.tiles[index] for index in hint) == state.hint
            assert slid.action == choose_at_random(state, dice)
            after = state.slide(slid.action)
            state, shown = after.spawn(), replace(state, board=after.board)
            assert slid.reward == after.reward
            assert state.board == landed(shown, place).board
            assert place.reward == state.score - after.before.score - after.reward
            hint, slides = place.hint, slides + 1
        assert state.over
        assert choose_at_random(state, dice) is None
        scores.append(state.score)
        largest.append(state.largest)
    found = result.statistics
    assert (found.total, found.best, found.slides) == (sum(scores), max(scores), slides)
    assert {tile: found.end(tile) for tile in game.tiles if found.end(tile)} == {
        tile: largest.count(tile) / 5 for tile in largest
    }


def test_the_games_of_a_portion_follow_one_another_in_time() -> None:
    """Each has its share of the time by its moves: here 2 ms a move."""
    agent = random_player("2048")
    played = LocalWorker(agent, keep_actions=True).play(1, 0, 4)
    played.begun, played.seconds = 5.0, 0.002 * int(played.moves.sum())
    ends = [5000 + 2 * int(moves) for moves in np.cumsum(played.moves)]
    times = [(record.start_ms, record.end_ms) for record in records_of(agent, 1, played)]
    assert times == list(zip([5000, *ends], ends))


@every_game
def test_the_referee_accepts_a_thousand_random_games(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.txt"
    words = ("evaluate", "--agent", "random", "--game", name, "--games", "1000", "--save", str(file))
    assert main(words) == 0
    assert main(("referee", str(file))) == 0
    assert "1,000 games" in capsys.readouterr().out


@every_game
def test_the_course_table_counts_slides_and_placements(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, figures = tmp_path / "records.txt", tmp_path / "figures.json"
    words = ("evaluate", "--agent", "random", "--game", name, "--games", "50", "--workers", "1", "--style", "course")
    assert main((*words, "--save", str(records), "--json", str(figures))) == 0
    found = re.search(r"ops = (\d+) \((\d+)\|(\d+)\)", capsys.readouterr().out)
    assert found is not None
    assert main(("referee", str(records), "--json", "-")) == 0
    actions = json.loads(capsys.readouterr().out)["actions"]
    seconds = json.loads(figures.read_text())["seconds"]
    assert set(found.groups()) == {f"{actions * 1000 / max(1, round(1000 * seconds)):.0f}"}


def test_machine_code_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never given back: an evaluation that loaded it for every worker and portion would grow and grow."""
    agent, load, loaded = random_player("2048"), _Store.load_overload, []
    player = LocalWorker(agent, keep_actions=True)
    list(records_of(agent, 1, player.play(1, 0, 1)))
    monkeypatch.setattr(_Store, "load_overload", lambda *asked: loaded.append(asked) or load(*asked))
    for seed in (2, 3):
        another = LocalWorker(agent, keep_actions=True)
        assert len(list(records_of(agent, seed, another.play(seed, 0, 2)))) == 2
    assert loaded == []


@pytest.mark.parametrize("of", ["afterstates", "states"])
def test_greedy_takes_the_largest_value(of: str) -> None:
    """Against the formula spelled out with states: r + V(s') or r + E[V(next state)]."""
    game, network = games.get("2048"), parse_network("tiny")
    weights = np.random.default_rng(1).normal(0, 50, size_of(network)).astype(np.float32)
    model = Model(game, network, weights, of=of)
    agent, value = make_agent("greedy", game, model), model.evaluator.value
    state = game.new(3)
    for _ in range(30):
        expected = []
        for after in state.slides:
            if after is None:
                expected.append(-np.inf)
            elif of == "afterstates":
                expected.append(after.reward + float(value(weights, after.board, after.aux)))
            else:
                nexts = [(p, value(weights, s.board, s.aux)) for p, s in after.outcomes()]
                expected.append(after.reward + sum(p * float(v) for p, v in nexts))
        chosen = agent.choose(state)
        assert expected[chosen] == pytest.approx(max(expected), rel=1e-5)
        values = agent.values(state)
        assert [v is None for v in values] == [e == -np.inf for e in expected]
        assert values[chosen] == pytest.approx(state.score + expected[chosen], rel=1e-5)
        state = state.play(chosen)


def test_the_flag_that_ctrl_c_sets_ends_the_game_in_play() -> None:
    """At its next move; a game that was not finished does not count."""
    stop = np.ones(1, np.int64)
    player = LocalWorker(random_player("2048"), keep_actions=True, stop=stop)
    assert len(player.play(1, 0, 10)) == 0
    stop[0] = 0
    played = player.play(1, 0, 10)
    assert (len(played), len(played.actions)) == (10, 10)
    assert played.moves.tolist() == [len(actions) for actions in played.actions]


def first_legal(state: State) -> int:
    return state.legal[0]


@pytest.mark.parametrize("player", ["random", first_legal])
def test_games_that_end_at_a_tile_are_the_beginnings_of_whole_games(player: str | Callable[[State], int]) -> None:
    whole, until = (evaluate(player, 60, game="2048", until=tile).statistics for tile in (None, 64))
    assert until.slides < whole.slides
    assert max(until.ends) == 6  # of the index 6: 64
    assert until.ends[6] == sum(games for tile, games in whole.ends.items() if tile >= 6) > 0


def test_games_end_at_a_tile_of_theirs_and_are_not_recorded() -> None:
    with pytest.raises(InputError, match="100 is no tile of 2048: give one such as 2048"):
        evaluate("random", 1, game="2048", until=100)
    with pytest.raises(InputError, match="not whole"):
        evaluate("random", 1, game="2048", until=64, keep=print)


@pytest.mark.usefixtures("plain_ctrl_c")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_the_games_before_it(workers: int) -> None:
    """Pressed as soon as some games have been counted: as many as there are, they are the first ones."""
    player, pressed = random_player("2048"), list[int]()

    def press(statistics: Statistics, seconds: float) -> None:
        if statistics.games and not pressed:
            pressed.append(statistics.games)
            signal.raise_signal(signal.SIGINT)

    stopped = evaluate(player, 5_000_000, seed=5, workers=workers, progress=press)
    assert not stopped.complete
    assert pressed[0] <= stopped.statistics.games < 5_000_000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert figures(stopped) == figures(evaluate(player, stopped.statistics.games, seed=5, workers=1))


def test_ctrl_c_after_the_last_game_is_not_forgotten() -> None:
    kept: list[Record] = []

    def keep(record: Record) -> None:
        kept.append(record)
        if len(kept) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    result = evaluate(random_player("2048"), 3, keep=keep)
    assert (len(kept), result.statistics.games, result.complete) == (3, 3, False)
    assert evaluate(random_player("2048"), 3).complete


@pytest.mark.usefixtures("plain_ctrl_c")
def test_progress_sees_the_figures_grow() -> None:
    """It is told as long as games are played: here until it has seen three different figures."""
    seen: list[tuple[int, float]] = []

    def progress(statistics: Statistics, seconds: float) -> None:
        seen.append((statistics.games, seconds))
        if len({games for games, _ in seen}) == 3:
            signal.raise_signal(signal.SIGINT)

    result = evaluate(random_player("2048"), 5_000_000, workers=2, progress=progress)
    assert seen == sorted(seen)
    assert len({games for games, _ in seen}) >= 3
    assert seen[-1][0] <= result.statistics.games < 5_000_000
