"""Small files: what packing keeps, what it leaves out, and streams that cannot be."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.networks.files import Model, load_model, save_model, size_of
from tilesage.networks.packing import BLOCK, RECORD, unzip_weights, zip_weights
from tilesage.networks.patterns import parse_network


def some_weights(size: int) -> np.ndarray:
    weights = np.random.default_rng(1).normal(0, 300, size).astype(np.float32)
    weights[: size // 2] = 0
    return weights


def test_a_weight_is_kept_to_a_127th_of_the_largest_in_its_group() -> None:
    weights = some_weights(10_000)
    again = unzip_weights(zip_weights(weights), weights.size, "here")
    groups, errors = (np.pad(x, (0, -x.size % 16)).reshape(-1, 16) for x in (weights, np.abs(again - weights)))
    assert (errors.max(axis=1) <= np.abs(groups).max(axis=1) * (0.5 / 127 + 0.001) + 1e-3).all()
    assert (again[: weights.size // 2] == 0).all()


def test_the_least_important_blocks_go_first() -> None:
    weights = some_weights(64 * BLOCK)
    importance = np.repeat(np.arange(64, dtype=np.float32), BLOCK)
    whole = zip_weights(weights)
    small = zip_weights(weights, len(whole) // 2, importance)
    assert len(small) <= len(whole) // 2
    kept = unzip_weights(small, weights.size, "here").reshape(-1, BLOCK).any(axis=1)
    assert kept.any()
    assert kept[np.argmax(kept) :].all()


def test_packed_models_open_and_play_alike(tmp_path: Path) -> None:
    network = parse_network("tiny")
    model = Model(games.get("2048"), network, some_weights(size_of(network)), training={"strength": {"greedy": 1}})
    save_model(model, tmp_path / "small.safetensors", packed=True)
    again = load_model(tmp_path / "small.safetensors")
    assert again.training == model.training
    assert np.abs(again.weights - model.weights).max() < 20
    assert (tmp_path / "small.safetensors").stat().st_size < model.weights.nbytes / 3


@pytest.mark.parametrize(
    "data",
    [b"\x00" * (RECORD * 3 + 1), b"\xff" * RECORD, b"\x00" * (RECORD * 5000)],
    ids=["not whole blocks", "a block far outside", "more blocks than the network has"],
)
def test_streams_that_cannot_be(data: bytes) -> None:
    with pytest.raises(InputError, match="do not fit"):
        unzip_weights(np.frombuffer(zlib.compress(data), np.uint8), 1000, "here")
    with pytest.raises(InputError, match="damaged"):
        unzip_weights(np.frombuffer(b"nothing", np.uint8), 1000, "here")
    with pytest.raises(InputError, match="do not fit"):
        unzip_weights(np.frombuffer(zlib.compress(data)[:-3], np.uint8), 1000, "here")
