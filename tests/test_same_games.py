"""The same seed gives the same game and the same weights as in the edition before, whatever code has moved since.

tests/data/seeds.json holds what commands printed then: records without their clocks, and digests of weights. When a
rule of play or of learning changes on purpose, write the file anew: python tests/test_same_games.py
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import pytest

from tilesage.cli import main
from tilesage.networks import load_model

SEEDS = Path(__file__).parent / "data" / "seeds.json"
TRAININGS = {
    "td": "2048 --network 012,0145 --rule td --rate 0.1",
    "td falling": "2048 --network 012,0145 --rule td --rate 0.5>0.01 --optimism 500",
    "tc": "2048 --network 012,0145 --rule tc",
    "tc, lambda": "2048 --network 012,0145 --rule tc --decay 0.5",
    "td, 3 steps": "2048 --network 012,0145 --rule td --rate 0.1 --steps 3",
    "backward": "2048 --network 012,0145 --rule td --rate 0.1 --direction backward",
    "states": "2048 --network 012,0145 --rule td --rate 0.1 --of states",
    "states, backward": "2048 --network 012,0145 --rule td --rate 0.5>0.01 --of states --direction backward",
    "stages": "2048 --network 012,0145 --rule tc --stages 128,256",
    "folded, by age": "2048 --network 012,0145 --rule tc --fold 256 --by-age",
    "phases": "2048 --network 012,0145 --phases td:0.1:0.5,tc:1:0.25,soften:1:0.25",
    "threes": "threes --network 012,0145 --rule td --rate 0.1",
    "threes, by hint": "threes --network 012,0145 --rule tc --by-hint",
    "threes-phone": "threes-phone --network 012,0145 --rule tc --by-hint --no-turned",
}
GAMES = {
    "2048, random": "--game 2048 --agent random --games 3",
    "2048, greedy": "2048 --agent greedy --games 1",
    "2048, two layers": "2048 --agent expectimax:2 --games 1",
    "2048, rollouts": "--game 2048 --agent rollouts:4 --games 1",
    "2048, mcts": "--game 2048 --agent mcts:20 --games 1",
    "threes, random": "--game threes --agent random --games 3",
    "threes, greedy": "threes --agent greedy --games 1",
    "threes, mcts on the network": "threes --agent mcts:5,leaf=value --games 1",
    "threes-phone, random": "--game threes-phone --agent random --games 3",
    "threes-phone, greedy": "threes-phone --agent greedy --games 1",
}


def digest_of_weights(words: str, folder: Path) -> str:
    """Of what a short training on one thread has learnt."""
    end = ["--moves", "300000", "--threads", "1", "--seed", "5", "--quiet", "--out", str(folder / "run")]
    assert main(["train", "--recipe", "plain", *words.split(), *end]) == 0
    weights = load_model(folder / "run" / "last.safetensors").weights
    return hashlib.sha256(weights.tobytes()).hexdigest()[:16]


def records_without_clocks(words: str, folder: Path) -> list[str]:
    """The games of an evaluation: how they went, not when, nor under whose name."""
    path = folder / "records.txt"
    assert main(["evaluate", *words.split(), "--seed", "7", "--workers", "1", "--save", str(path)]) == 0
    moves = [line.split("|")[1] for line in path.read_text(encoding="utf-8").splitlines()]
    return [hashlib.sha256(re.sub(r"\([0-9]+\)", "", game).encode()).hexdigest()[:16] for game in moves]


@pytest.mark.parametrize("name", TRAININGS)
def test_seeds_mean_the_same_weights(name: str, tmp_path: Path) -> None:
    assert digest_of_weights(TRAININGS[name], tmp_path) == json.loads(SEEDS.read_text())["weights"][name]


@pytest.mark.parametrize("name", GAMES)
def test_seeds_mean_the_same_games(name: str, tmp_path: Path) -> None:
    assert records_without_clocks(GAMES[name], tmp_path) == json.loads(SEEDS.read_text())["games"][name]


def write() -> None:
    found: dict[str, dict[str, object]] = {"weights": {}, "games": {}}
    for name, words in TRAININGS.items():
        with tempfile.TemporaryDirectory() as place:
            found["weights"][name] = digest_of_weights(words, Path(place))
    for name, words in GAMES.items():
        with tempfile.TemporaryDirectory() as place:
            found["games"][name] = records_without_clocks(words, Path(place))
    SEEDS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write())
