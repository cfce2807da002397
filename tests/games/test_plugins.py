"""A game from outside the package goes the whole way: learnt, searched, played, recorded, refereed, drawn, served."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import gymnasium
import httpx
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image
from web_support import serving

import tilesage.environments
from tilesage import games
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.drawing.motions import motions
from tilesage.drawing.terminal import ansi
from tilesage.evaluation.advice import advise
from tilesage.games import State, outside
from tilesage.networks.files import load_model
from tilesage.records.record import read_records
from tilesage.records.referee import judge
from tilesage.records.replay import moments_of
from tilesage.search.agents import make_agent

STONES = Path(__file__).parents[1] / "plugins" / "stones.py"
NAME = "stones:game"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the game in it, and a process that has not heard of it."""
    shutil.copy(STONES, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(outside, "found", {})
    monkeypatch.delitem(sys.modules, "stones", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that has learnt the game for a second, with two stones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(STONES.parent)
        patch.setattr(outside, "found", {})
        folder = tmp_path_factory.mktemp("stones") / "run"
        words = ["--network", "tiny", "--seconds", "1", "--threads", "1", "--quiet", "--out", str(folder)]
        assert main(["train", NAME, "--stones", "2", *words]) == 0
    return folder


def test_it_is_a_game_like_others(here):
    game = games.get(NAME)
    assert (game.name, game.title, dict(game.parameters)) == (
        NAME,
        "2048 with stones",
        {"four_rate": 0.1, "stones": 1},
    )
    assert games.get(NAME) is game is games.get(NAME, stones=1)
    assert games.get(NAME, stones=2) is games.get(NAME, stones=2.0, four_rate=0.1)
    assert games.get(NAME, stones=3).starting_tiles == 5
    assert NAME in games.names()
    state = game.parse("0 2 1 2 / 0 0 0 0 / 0 0 0 0 / 2 2 1 0")
    assert state.slide("left").board == game.parse("2 0 1 2 / 0 0 0 0 / 0 0 0 0 / 4 0 1 0").board
    with pytest.raises(InputError, match="stones is how many stones lie there, a number from 1 to 3, not 4"):
        games.get(NAME, stones=4)


def test_it_is_trained_evaluated_recorded_and_refereed(here, trained, capsys):
    learnt = json.loads(next(iter((trained / "metrics.jsonl").read_text().splitlines())))
    assert learnt["games"] > 0
    words = ["--agent", "expectimax:2", "--games", "3", "--quiet", "--save", "games.txt", "--json", "result.json"]
    assert main(["evaluate", str(trained), "--game", NAME, *words]) == 0
    result = json.loads(Path("result.json").read_text())
    assert (result["game"], result["games"]) == (NAME, 3)
    found = list(read_records("games.txt"))
    assert [record.game for record in found] == [NAME] * 3
    scores = [moments_of(record)[-1].state.score for record in found]
    assert sum(scores) == pytest.approx(3 * result["mean"])
    capsys.readouterr()
    assert main(["referee", "games.txt", "--stones", "2"]) == 0
    assert "not independent: judged by the rules of stones:game itself" in capsys.readouterr().out
    assert not judge("games.txt", stones=2).independent


def test_its_records_are_judged(here):
    """Every kind of fault, by the rules of the game itself."""
    game = games.get(NAME)
    line = "random:chance of stones.game@1|{}|chance of stones.game@2"
    faults = {
        "5F0111#U": (4, "illegal slide: up moves nothing"),
        "5F0111#L[8]": (4, "the slide earns 4, the record says 8"),
        "5F0111#L[4]#R": (5, "a placement is due, but another slide follows"),
        "5F0111#L[4]01": (5, "illegal placement: no tile of index 1 can land on cell 0"),
        "5F0111#L[4]13": (5, "illegal placement: no tile of index 3 can land on cell 1"),
        "5F0111#L[4]11[4]": (5, "the placement earns 0, the record says 4"),
        "5F011121": (4, "a slide is due, but a placement follows"),
        "5F0111#L[4]": (4, "the record stops where a placement must follow"),
        "5F0111": (3, "the game stops here while right is legal"),
        "5F5111": (2, "illegal placement: no such cell, or it is taken"),
        "5F0911": (2, "no game of stones:game starts with a tile of index 9"),
        "5F01#L": (3, "a game of stones:game starts with 3 placements"),
        "?F0111": (1, "unreadable action"),
    }
    for moves, (action, reason) in faults.items():
        Path("wrong.txt").write_text(line.format(moves) + "\n")
        verdict = judge("wrong.txt", game.name)
        assert verdict.reason.startswith(reason), moves
        assert verdict.action == action, moves


def test_unfair_chance_is_seen(here):
    """Tiles that always land on the first empty cell, in games that are else by the rules."""
    game, lines = games.get(NAME), []
    for seed in range(12):
        state = game.new(seed)
        text = [f"{i:X}{tile:X}" for i, tile in enumerate(state.indices) if tile == 15]
        text += [f"{i:X}{tile:X}" for i, tile in enumerate(state.indices) if 0 < tile < 15]
        while not state.over:
            after = state.slide(state.legal[state.moves % len(state.legal)])
            first = [tile == 0 for tile in game.write(after.board, after.aux)[0]].index(True)
            board = np.uint64(int(after.board) | 1 << 4 * first)
            text.append(f"#{'URDL'[after.action]}" + (f"[{after.reward}]" if after.reward else "") + f"{first:X}1")
            state = State(game, board, after.aux, state.score + after.reward, state.moves + 1)
        lines.append(f"me:you@1|{''.join(text)}|you@2")
    Path("unfair.txt").write_text("\n".join(lines) + "\n")
    verdict = judge("unfair.txt", NAME)
    assert verdict.reason == ""
    assert {test.name for test in verdict.unfair} == {"cells", "places", "tiles"}


def test_a_file_does_not_bring_code_along(here, trained, capsys):
    """A model or a record names its game; it is looked for only where the user says so."""
    for words in (["evaluate", str(trained)], ["train", "--resume", str(trained), "--seconds", "2"]):
        assert main(words) == 2
        assert "is of the game 'stones:game', which is not known here: if you trust it" in capsys.readouterr().err
    Path("one.txt").write_text("me:chance of stones.game@1|5F0111|chance of stones.game@2\n")
    assert main(["referee", "one.txt"]) == 2
    assert "these are games of 'stones:game'" in capsys.readouterr().err
    assert "stones" not in sys.modules


def test_who_names_the_game_may_have_it(here, trained, capsys):
    """From Python and on the command line; a run that nobody may read is not called broken."""
    assert main(["runs", str(trained)]) == main(["models", "--runs", str(trained.parent)]) == 0
    said = capsys.readouterr().out
    assert said.count("add --game stones:game") == 2
    assert "broken" not in said
    assert main(["runs", str(trained), "--game", NAME]) == 0
    assert main(["models", "--runs", str(trained.parent), "--game", NAME]) == 0
    assert "add --game" not in capsys.readouterr().out
    outside.found.clear()
    assert repr(load_model(trained, game=NAME)) == f"Model('run': {NAME} stones=2, tiny, values of afterstates)"


def test_every_kind_of_player_plays_it(here, trained):
    games.get(NAME)
    model = load_model(trained)
    state = model.game.new(3)
    for spec in (
        "random",
        "greedy",
        "expectimax:2",
        "expectimax:deep",
        "mcts:20,leaf=value",
        "rollouts:2",
        "mcts:20",
    ):
        assert make_agent(spec, model.game, model).choose(state) in state.legal
    advice = advise(make_agent("expectimax:2", model.game, model), state)
    assert advice.best in state.legal


def test_it_is_an_environment(here):
    env = gymnasium.make("tilesage/Game-v0", game=NAME, stones=2).unwrapped
    check_env(env)
    observation, _ = env.reset(seed=5)
    assert observation.ravel().tolist() == games.get(NAME, stones=2).new(5).indices
    envs = gymnasium.make_vec("tilesage/Game-v0", num_envs=3, game=NAME)
    _, infos = envs.reset(seed=1)
    assert infos["action_mask"].shape == (3, 4)
    assert tilesage.environments.id_of("threes") == "tilesage/Threes-v0"


def test_it_is_drawn(here, trained):
    games.get(NAME)
    state = games.get(NAME, stones=2).new(4)
    assert "\x1b[" in ansi(state)
    words = ["--game", NAME, "--agent", "random", "--games", "1", "--quiet", "--save", "games.txt"]
    assert main(["evaluate", *words]) == 0
    assert main(["replay", "games.txt", "--game", NAME, "--png", "board.png"]) == 0
    with Image.open("board.png") as image:
        assert image.size[0] > 400
    after = state.play(state.legal[0])
    assert motions(state, state.legal[0], after) == () or len(motions(state, state.legal[0], after)) == 4


def test_it_is_on_the_page(here):
    with serving(here / "runs", "--game", NAME) as address, httpx.Client(base_url=address, timeout=60) as client:
        listed = {game["name"]: game for game in client.get("/api/games").json()["games"]}
        assert (listed[NAME]["title"], listed[NAME]["goal"]) == ("2048 with stones", 1024)
        assert f'[data-palette="{NAME}"]' in client.get("/palette.css").text
        board = "2 2 1 2 0 0 0 0 0 0 0 0 0 0 0 0"
        hint = client.post("/api/hint", json={"game": NAME, "board": board, "agent": "rollouts:3"}).json()
        assert [value is None for value in hint["values"]] == [True, False, False, False]
        assert client.post("/api/position", json={"game": NAME, "board": board}).json()["legal"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("game = 7", "{file}: game is a int, not a Game or a function that makes one"),
        ("x = 1\ngame = nothing", "{file}, line 2: NameError: name 'nothing' is not defined"),
        ("def game(:", "{file}, line 1: SyntaxError: "),
        ("import nowhere_at_all\n", "{file}, line 1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("other = 1", "{file} has no 'game' for the game {module}:game"),
        ("def game(**rates):\n    return 1 / 0", "{file}, line 2: ZeroDivisionError: division by zero"),
        (
            "from dataclasses import replace\nfrom tilesage.games import g2048\n"
            "game = replace(g2048.game(), starting_tiles=3)",
            "{file}: start lays 2 tiles, and starting_tiles says 3",
        ),
        (
            "from dataclasses import replace\nfrom tilesage.games import g2048\n"
            "game = replace(g2048.game(), merged=lambda a, b: a + 1 if a == b and 0 < a < 6 else 0)",
            "{file}: merged says that the indices 6 and 6 make nothing, and a slide of them gives [7, 0]",
        ),
        (
            "from tilesage.games.exact import table_of\ngame = table_of(lambda line: (line, 4 * 65536), 4)",
            "{file}: a row earns 262144: rewards of a row must fit 16 bits, so take a unit above 4",
        ),
        (
            "from dataclasses import replace\nfrom tilesage.games import g2048\n"
            "from tilesage.core.compiler import compiled\nwhole = g2048.game()\n\n@compiled\n"
            "def spawn(after, aux, rng):\n    return after + undefined_name, aux, 0, rng\n\n"
            "game = replace(whole, rules=whole.rules._replace(spawn=spawn))",
            "{file}, line 8: NameError: name 'undefined_name' is not defined",
        ),
        (
            "from dataclasses import replace\nfrom tilesage.games import g2048\n"
            "from tilesage.core.compiler import compiled\nwhole = g2048.game()\n\n@compiled\n"
            "def slide(rows, board, aux, action):\n    after, aux, reward = g2048.slide(rows, board, aux, action)\n"
            "    return after | 0, aux, reward\n\n"
            "game = replace(whole, rules=whole.rules._replace(slide=slide))",
            "{file}: line 6: slide gives Tuple(int64, uint64, int64), where boards, aux and random numbers are",
        ),
    ],
)
def test_an_error_is_one_line_with_the_users_file(here, request, text, said):
    module = f"wrong_{abs(hash(request.node.name))}"
    Path(f"{module}.py").write_text(text + "\n")
    with pytest.raises(InputError) as mistake:
        games.get(f"{module}:game")
    assert "\n" not in str(mistake.value)
    assert str(mistake.value).startswith(said.format(file=f"{module}.py", module=module))


def test_a_package_may_offer_games(here, monkeypatch):
    """By an entry point, as installed packages have them."""
    about = here / "lab-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{outside.GROUP}]\npebbles = stones:game\nlost = nowhere:game\n")
    outside.offered.cache_clear()
    try:
        assert {"pebbles", "lost"} <= set(games.names())
        assert games.get("pebbles").name == "pebbles"
        assert "pebbles" in {game.name for game in games.all_games()}
        with pytest.raises(InputError, match="there is no module 'nowhere' for the game lost"):
            games.get("lost")
    finally:
        monkeypatch.undo()
        outside.offered.cache_clear()
