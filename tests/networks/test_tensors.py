"""Sparse arrays: what is put away comes back bit for bit, in little room, and files that lie are refused."""

from __future__ import annotations

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hostile.mutations import broken_model

from tilesage.core.errors import InputError
from tilesage.networks.tensors import Sparse, Tensors, sparse, write_tensors

ROWS = 5000
KIND = "test"


def tables(met: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Weights and two numbers of memory for each of ROWS entries, of which so many were met."""
    random = np.random.default_rng(seed)
    weights, memory = np.full(ROWS, 2.5, np.float32), np.zeros(2 * ROWS, np.float32)
    weights[ROWS // 2 :] = np.nan
    places = random.choice(ROWS, met, replace=False)
    weights[places] = random.normal(size=met)
    memory.reshape(-1, 2)[places] = random.normal(size=(met, 2))
    return {"weights": weights, "memory": memory}


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("met", [0, 1, 64, 700, 2000, ROWS])
def test_sparse_tables_come_back_bit_for_bit(tmp_path: Path, met: int) -> None:
    path, whole = tmp_path / "x.safetensors", tables(met)
    with ThreadPoolExecutor(2) as pool:
        stored = sparse(whole, ROWS, pool.map)
    assert all(isinstance(part, Sparse) == (met <= ROWS // 2) for part in stored.values())
    small = np.arange(7, dtype=np.uint8)
    write_tensors(path, {**stored, "small": small}, {"format": KIND, "note": "kept"})
    border = 12 * 512  # of the segment in which one usual row follows another
    assert path.stat().st_size < 12 * met + 12 * min(met, ROWS // 64) + border + 2000
    again = Tensors.open(path, KIND)
    assert list(again) == ["weights", "memory", "small"]
    assert again.metadata == {"format": KIND, "note": "kept"}
    assert same(again["small"], small)
    for name, table in whole.items():
        assert same(again[name], table)
        assert again.kind_of(name) == (np.float32, table.shape)


def test_what_lies_in_a_file_is_written_again_as_it_is(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.safetensors", tmp_path / "copy.safetensors"
    write_tensors(path, sparse(tables(100), ROWS), {"format": KIND})
    opened = Tensors.open(path, KIND)
    write_tensors(copy, {name: opened.stored(name) for name in opened}, opened.metadata)
    assert all(same(array, opened[name]) for name, array in Tensors.open(copy, KIND).items())


def test_minus_zero_and_other_words_are_not_lost() -> None:
    boards = np.zeros(3000, np.uint64)
    boards[[5, 2999]] = 7, 2**63
    zeros = np.zeros(3000, np.float32)
    zeros[17] = -0.0
    assert len(sparse({"boards": boards}, 3000)["boards"].values) == 2  # type: ignore[union-attr]
    assert len(sparse({"zeros": zeros}, 3000)["zeros"].values) == 1  # type: ignore[union-attr]


def test_files_that_lie_are_refused(tmp_path: Path) -> None:
    """Whatever was changed: an array of the size that was told, or one line."""
    path, random = tmp_path / "x.safetensors", Random(3)
    metadata = {"format": KIND, "parameters": "{}", "training": "{}"}
    write_tensors(path, sparse(tables(100), ROWS), metadata)
    good, said = path.read_bytes(), []
    for _ in range(400):
        path.write_bytes(broken_model(good, random))
        try:
            for array in Tensors.open(path, KIND, 1 << 20).values():
                assert array.nbytes <= 1 << 20
        except InputError as mistake:
            said.append(str(mistake))
    assert len(said) > 200
    assert not any("\n" in words for words in said)


@pytest.mark.parametrize(
    ("metadata", "array"),
    [
        ({"model": []}, {}),
        ({"training": 5}, {}),
        ({}, {"dtype": "F32", "shape": [0, 2**63 - 1], "data_offsets": [0, 0]}),
        ({}, {"dtype": "F32", "shape": [0, 2**50, 2**50], "data_offsets": [0, 0]}),
    ],
)
def test_headers_that_lie_are_refused(tmp_path: Path, metadata: dict[str, Any], array: dict[str, Any]) -> None:
    header = {"__metadata__": {"format": KIND} | metadata} | ({"x": array} if array else {})
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(InputError):
        Tensors.open(tmp_path / "x.safetensors", KIND)
