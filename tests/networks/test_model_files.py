"""What a model file says: read and written byte by byte, and everything that must come back out of one."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilesage import games
from tilesage.networks import Model, files, load_model, parse_network, save_model
from tilesage.networks.files import describe_model, size_of, write_training
from tilesage.networks.layout import VERSION

GAME = games.get("2048")
WEIGHTS = [float(k * k) for k in range(16)]  # one cell: the entry of a tile is its index
SAID = {
    "format": files.FORMAT,
    "layout": str(VERSION),
    "game": "2048",
    "parameters": '{"four_rate": 0.1}',
    "network": "5",
    "patterns": "5",
    "stages": "",
    "by_hint": "0",
    "of": "afterstates",
    "training": "{}",
}


def by_hand(**said: str) -> bytes:
    """A model file of sixteen weights, as safetensors has it: length, header, numbers."""
    place = {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}
    header = json.dumps({"__metadata__": SAID | said, "weights": place}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack("<16f", *WEIGHTS)


def saved(folder: Path, **kind: Any) -> Path:
    """A file of another player than the usual one."""
    network = parse_network("tiny")
    weights = np.random.default_rng(1).normal(0, 50, size_of(network)).astype(np.float32)
    return save_model(Model(kind.pop("game", GAME), network, weights, **kind), folder / "model.safetensors")


def metadata_of(path: Path) -> dict[str, str]:
    data = path.read_bytes()
    metadata: dict[str, str] = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]
    return metadata


def test_a_file_written_by_hand_is_understood(tmp_path: Path) -> None:
    """A tile in cell 5 is seen twice, once in each of two symmetries; so is one in cells 6, 9 and 10."""
    path = tmp_path / "hand.safetensors"
    path.write_bytes(by_hand())
    model = load_model(path)
    board = np.uint64(7 << 4 * 5 | 3 << 4 * 10 | 2)
    assert model.evaluator.value(model.weights, board, np.uint64(0)) == 2 * (7 * 7 + 3 * 3)
    assert (model.of, model.game.parameters, dict(model.training)) == ("afterstates", {"four_rate": 0.1}, {})

    other = {"of": "states", "parameters": '{"four_rate": 0.3}', "training": '{"games": 12, "mean": 2.5}'}
    path.write_bytes(by_hand(**other))
    for model in (load_model(path), describe_model(path)):
        assert (model.of, model.game.parameters) == ("states", {"four_rate": 0.3})
        assert model.training == {"games": 12, "mean": 2.5}


def test_what_is_written_is_what_was_meant(tmp_path: Path) -> None:
    model = Model(
        games.get("2048", four_rate=0.3), parse_network("5", (11,)), np.arange(32, dtype=np.float32), "states"
    )
    path = save_model(model, tmp_path / "model.safetensors")
    said = SAID | {"of": "states", "parameters": '{"four_rate": 0.3}', "stages": "11"}
    found = metadata_of(path)
    assert {name: found[name] for name in said} == said
    assert path.read_bytes()[-128:] == struct.pack("<32f", *range(32))


def chance_of_a_four(model: Model) -> float:
    """On an empty board, by the model's own game."""
    boards, auxes = (np.zeros(model.game.max_placements, np.uint64) for _ in range(2))
    shares = np.zeros(model.game.max_placements)
    count = model.game.rules.placements(np.uint64(0), np.uint64(0), boards, auxes, shares)
    four = [max(int(board) >> 4 * cell & 15 for cell in range(16)) == 2 for board in boards[:count]]
    return float(shares[:count][four].sum())


@pytest.mark.parametrize("packed", [False, True])
def test_a_model_of_states_is_one_when_it_is_opened(tmp_path: Path, packed: bool) -> None:
    path = saved(tmp_path, of="states", training={"games": 3})
    save_model(load_model(path), path, packed)
    write_training(path, {"games": 4})
    assert (load_model(path).of, describe_model(path).of) == ("states", "states")
    assert load_model(path).training == {"games": 4}


@pytest.mark.parametrize("packed", [False, True])
def test_a_model_keeps_the_rules_that_it_was_trained_on(tmp_path: Path, packed: bool) -> None:
    path = saved(tmp_path, game=games.get("2048", four_rate=0.3))
    save_model(load_model(path), path, packed)
    write_training(path, {"games": 4})
    for model in (load_model(path), load_model(path, "2048"), describe_model(path)):
        assert model.game.parameters == {"four_rate": 0.3}
        assert chance_of_a_four(model) == pytest.approx(0.3)
    assert chance_of_a_four(load_model(path, GAME)) == pytest.approx(0.1)  # other rules are asked for by name
