"""Players that hand boards over to a second network, whichever part of the game it has practised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import tiny_model

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import LocalWorker
from tilesage.games import State
from tilesage.games.board import pack
from tilesage.networks.files import save_model
from tilesage.search import players
from tilesage.search.agents import make_agent
from tilesage.search.game_2048.practice import PARTS

WHOLE, NOTHING = games.get("2048"), np.uint64(0)
# fmt: off
AMONG_WALLS = [14, 13, 12, 11,  0, 1, 0, 4,  0, 0, 0, 2,  0, 0, 1, 1]
# fmt: on
Files = dict[str, Path]


@pytest.fixture(scope="module")
def whole() -> Any:
    return tiny_model("2048")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, whole: Any) -> Files:
    """Tiny networks, by the part that they have practised."""
    folder = tmp_path_factory.mktemp("practised")
    models = {"whole": whole, **{part.name: tiny_model(f"2048-{part.name}") for part in PARTS}}
    return {name: save_model(model, folder / f"{name}.safetensors") for name, model in models.items()}


@pytest.mark.parametrize("part", [part.name for part in PARTS])
def test_games_with_both_and_endgames(part: str, files: Files, whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players, "ENDGAME_TILES", ("8",))
    agent = make_agent(f"expectimax:1,endgames=8,{part}={files[part]}", WHOLE, whole)
    assert (LocalWorker(agent, keep_actions=False).play(3, 0, 4).scores > 0).all()


@pytest.mark.parametrize("part", [part.name for part in PARTS])
def test_wrong_models_are_refused(part: str, files: Files, whole: Any) -> None:
    start = f"expectimax:2,endgames=128,{part}="
    with pytest.raises(InputError, match=f"has learnt 2048: train one with tilesage train 2048-{part}"):
        make_agent(f"{start}{files['whole']}", WHOLE, whole)
    with pytest.raises(InputError, match="no model"):
        make_agent(f"{start}nothing.safetensors", WHOLE, whole)
    with pytest.raises(InputError, match="it is a part of 2048"):
        make_agent(f"expectimax:2,{part}={files[part]}", games.get("threes"), tiny_model("threes"))


def test_boards_go_to_one_of_them(files: Files, whole: Any) -> None:
    with pytest.raises(InputError, match="write block=… or walls=…"):
        make_agent(f"expectimax:2,endgames=128,walls={files['walls']},block={files['block']}", WHOLE, whole)
    with pytest.raises(InputError, match="add endgames=512"):
        make_agent(f"expectimax:2,block={files['block']}", WHOLE, whole)
    with pytest.raises(InputError, match="add endgames=512"):
        make_agent(f"best,block={files['block']}", WHOLE, whole)


def test_the_best_player_has_all_that_is_in_the_box(files: Files, whole: Any) -> None:
    both, alone = (
        make_agent("expectimax:deep,walls=2048-walls", WHOLE, whole),
        make_agent("expectimax:deep", WHOLE, whole),
    )
    handed = State(WHOLE, pack(AMONG_WALLS), NOTHING)
    own = State(WHOLE, pack([0, 13, 12, *AMONG_WALLS[3:]]), NOTHING)
    assert make_agent("best", WHOLE, whole).values(handed) == both.values(handed) != alone.values(handed)
    assert make_agent("best", WHOLE, whole).values(own) == alone.values(own)
    mine = make_agent(f"expectimax:deep,walls={files['walls']}", WHOLE, whole).values(handed)
    assert make_agent(f"best,walls={files['walls']}", WHOLE, whole).values(handed) == mine != both.values(handed)
    threes = tiny_model("threes")
    start = threes.game.new(1)
    assert make_agent("best", threes.game, threes).values(start) == make_agent(
        "expectimax:deep", threes.game, threes
    ).values(start)
