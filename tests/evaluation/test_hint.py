"""`tilesage hint`: advice for people and for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from slow_search import played_on
from small_models import tiny_model

from tilesage import games
from tilesage.cli import main
from tilesage.core.compiler import _Store
from tilesage.core.errors import InputError
from tilesage.evaluation.advice import advise, check_possible
from tilesage.networks.files import save_model
from tilesage.search.agents import make_agent

BOARD = "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("hint") / "tiny.safetensors"
    save_model(tiny_model("2048"), path)
    return str(path)


def test_the_table_marks_the_best_move(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hint", BOARD, "--model", model, "--agent", "expectimax:2"]) == 0
    out = capsys.readouterr().out
    assert out.count("→") == 1
    assert out.count("moves nothing") == 2
    assert "16" in out.splitlines()[0]


def test_json_says_the_same(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hint", f"{BOARD} score=500", "--model", model, "--agent", "expectimax:2", "--json", "-"]) == 0
    advice = json.loads(capsys.readouterr().out)
    expected = {move["action"]: move["expected"] for move in advice["moves"] if move["legal"]}
    assert set(expected) == {"down", "left"}
    assert advice["best"] == max(expected, key=lambda action: expected[action])
    assert min(expected.values()) >= 500
    assert (advice["score"], advice["next_tile"], advice["over"]) == (500, 32, False)


def test_one_line_of_json_a_query(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [
        BOARD,
        json.dumps({"board": BOARD, "score": 7}),
        json.dumps({"board": [2, 4, 8, 16, 0, 2, 4, 8, 0, 0, 2, 4, 0, 0, 0, 2]}),
        "nonsense",
        "{broken",
        json.dumps({"bored": 1}),
        "",
        "1212/2121/1212/2121",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*queries, ""])))
    assert main(["hint", "--stdin", "--model", model, "--agent", "expectimax:2"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers) == len(queries)
    assert answers[0]["best"] == answers[1]["best"] == answers[2]["best"]
    assert answers[1]["score"] == 7
    assert all(set(answer) == {"error"} for answer in answers[3:7])
    assert answers[7]["over"] is True
    assert answers[7]["best"] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("131072 131072 2 2 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0",), "at most 65536"),
        (("0 0 0 0 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0",), "empty board"),
        (("0 0 0 0 / 0 0 2 0 / 0 0 0 0 / 0 0 0 0",), "single tile"),
        (("3 0 0 0 / 0 0 2 0 / 0 0 0 0 / 0 0 0 0",), "3 is no tile"),
        (("2 4 8",), "sixteen tile numbers"),
        ((), "which position"),
        ((BOARD, "--stdin"), "leave out the board"),
        ((BOARD, "--playouts", "-1"), "from 0 on"),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...], part: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hint", *words, "--model", model, "--agent", "expectimax:2"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert part in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2048", "2343/4565/2343/566. seed=3"),
        ("threes", "31.2/1453/.786/2319 hint=3 bag=12 seed=3"),
        ("threes-phone", "31.2/1453/.786/2319 hint=3 deck=1,2,0 seed=3"),
    ],
)
def test_playouts_are_games_that_were_really_played(name: str, text: str) -> None:
    """Played once more with states: the same mean, the same share."""
    state = games.get(name).parse(text)
    advice = advise(make_agent("random", state.game), state, playouts=12)
    assert [move.action for move in advice.moves if move.legal] == list(state.legal)
    for move in advice.moves:
        if move.legal:
            assert move.expected is None  # the random player has no opinion
            played = played_on(state, move.action, 12, max(state.indices) + 1)
            assert (move.played, move.reach) == (pytest.approx(played[0]), pytest.approx(played[1]))
        else:
            assert (move.played, move.reach) == (None, None)


@pytest.mark.parametrize(
    ("text", "next_tile", "reach"), [("3145/1231/3545/6623", 128, 1.0), ("3148/1231/3545/6623", 512, 0.0)]
)
def test_to_make_the_next_tile_is_to_reach_it(text: str, next_tile: int, reach: float) -> None:
    """Two 64s merge to the left or to the right, and whatever lands then ends the game."""
    state = games.get("2048").parse(f"{text} score=1000")
    advice = advise(make_agent("random", state.game), state, playouts=5)
    assert advice.next_tile == next_tile
    found = [(move.played, move.reach) for move in advice.moves]
    assert found == [(None, None), (1128, reach), (None, None), (1128, reach)]


def test_no_answer_but_the_first_loads_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never given back, and `hint --stdin --playouts` is asked without end."""
    game = games.get("2048")
    agent, state, load, loaded = make_agent("random", game), game.parse(BOARD), _Store.load_overload, []
    first = advise(agent, state, playouts=2)
    monkeypatch.setattr(_Store, "load_overload", lambda *asked: loaded.append(asked) or load(*asked))
    assert advise(agent, state, playouts=2).summary() == first.summary()
    assert loaded == []


def test_the_longest_chain_can_be_and_nothing_above_it() -> None:
    game = games.get("2048")
    chain = [2 ** (17 - k) for k in range(16)]
    check_possible(game.parse(" ".join(map(str, chain))))
    with pytest.raises(InputError, match="cannot be"):
        check_possible(game.parse(" ".join(map(str, [*chain[:15], 8]))))


def test_a_model_is_given_as_a_word_or_as_a_flag(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["--model", model, BOARD], [model, BOARD], [BOARD, "--model", model]):
        assert main(["hint", *words, "--agent", "greedy"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] == said[2] != ""
    for word in (model, "--model"):
        words = [word] if word == model else [word, model]
        assert main(["evaluate", *words, "--games", "2", "--quiet"]) == 0
        assert "2 games of 2048" in capsys.readouterr().out
    assert main(["evaluate", model, "--model", model]) == 2
    assert "two models" in capsys.readouterr().err
