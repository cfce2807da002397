"""Hostile input, the quick part: a few hundred broken inputs of every kind, and the attacks that once worked.

The flood itself, a hundred thousand of them, is scripts/soak/flood.py.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hostile.targets import Target, all_targets, good_models, good_records, small_run
from hostile.watch import held, through_the_command

from tilesage import games
from tilesage.core.errors import LONGEST, InputError
from tilesage.learning.config import TrainConfig
from tilesage.learning.runs import Run, train
from tilesage.networks.files import FORMAT, Model, load_model, save_model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.networks.tensors import Tensors, write_tensors

QUICK = 60  # broken inputs a target
NAMES = [
    "model files",
    "model files for the command",
    "models listed",
    "weights of course",
    "weights of demo",
    "weights of tdl2048",
    "run.toml",
    "metrics.jsonl",
    "checkpoints",
    "records of 2048",
    "records of threes",
    "records of threes-phone",
    "records of fibonacci",
    "boards",
    "hints",
    "networks",
    "agents",
    "command lines",
]
Tree = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return {target.name: target for target in all_targets(tmp_path_factory.mktemp("hostile"))}


def test_every_target_is_named_here(targets: dict[str, Target]) -> None:
    assert list(targets) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_broken_inputs_break_nothing(name: str, targets: dict[str, Target]) -> None:
    target, random = targets[name], Random(name)
    for data in target.good:
        target.attempt(data)
    found = []
    for _ in range(QUICK):
        data = target.broken_input(random)
        found.append(held(lambda data=data: target.attempt(data), len(data)))
    assert len(found) == QUICK
    assert not [wrong for wrong in found if wrong]


# --- model files: the attacks one by one ---------------------------------------------------------------------------


def with_header(data: bytes, change: Callable[[Tree], object]) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    tree = json.loads(data[8 : 8 + length])
    change(tree)
    text = json.dumps(tree).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def weights(tree: Tree) -> dict[str, object]:
    return tree["weights"]


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: b"",
    "a pickle": lambda data: b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93.",
    "a header of 2^64 - 1 bytes": lambda data: b"\xff" * 8 + data[8:],
    "a header past the end": lambda data: struct.pack("<Q", len(data)) + data[8:],
    "a bomb of brackets": lambda data: struct.pack("<Q", 1_000_000) + b"[" * 1_000_000,
    "a bomb inside the metadata": lambda data: with_header(
        data, lambda tree: tree["__metadata__"].update(training="[" * 100_000)
    ),
    "not even UTF-8": lambda data: struct.pack("<Q", 4) + b"\xff\xfe\xfd\xfc" + data,
    "no metadata": lambda data: with_header(data, lambda tree: tree.pop("__metadata__")),
    "cut short": lambda data: data[:-1],
    "another type": lambda data: with_header(data, lambda tree: weights(tree).update(dtype="F64")),
    "an unknown type": lambda data: with_header(data, lambda tree: weights(tree).update(dtype="Q4_K")),
    "a negative shape": lambda data: with_header(data, lambda tree: weights(tree).update(shape=[-1, -4096])),
    "a fractional shape": lambda data: with_header(data, lambda tree: weights(tree).update(shape=[4096.0])),
    "an infinite shape": lambda data: with_header(data, lambda tree: weights(tree).update(shape=[float("inf")])),
    "overlapping offsets": lambda data: with_header(
        data, lambda tree: weights(tree).update(data_offsets=[-8, 16376])
    ),
    "offsets as text": lambda data: with_header(data, lambda tree: weights(tree).update(data_offsets=["0", "16384"])),
    "a network of 2^40 stages": lambda data: with_header(
        data, lambda tree: tree["__metadata__"].update(stages=",".join(map(str, range(1, 41))))
    ),
    "a pattern of 16 cells": lambda data: with_header(
        data, lambda tree: tree["__metadata__"].update(network="0123456789abcdef", patterns="0123456789abcdef")
    ),
    "a training that is a number": lambda data: with_header(
        data, lambda tree: tree["__metadata__"].update(training="7")
    ),
    "a game that is not one": lambda data: with_header(data, lambda tree: tree["__metadata__"].update(game="../x")),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_on_model_files_are_refused(attack: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(ATTACKS[attack](good_models(tmp_path)[0]))
    with pytest.raises(InputError, match=re.escape(str(path))):
        load_model(path)
    assert through_the_command(["evaluate", str(path), "--games", "1"], (2,)) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused_with_their_place(value: float, tmp_path: Path) -> None:
    network, path = parse_network("012"), tmp_path / "bad.safetensors"
    table = np.ones(size_of(network), np.float32)
    save_model(Model(games.get("2048"), network, table), path)
    metadata = Tensors.open(path, FORMAT).metadata
    table[1234] = value
    write_tensors(path, {"weights": table}, metadata)
    with pytest.raises(InputError, match=r"weight 1,234 is (nan|inf|-inf)"):
        load_model(path)
    for packed in (False, True):
        with pytest.raises(InputError, match=r"weight 1,234 is (nan|inf|-inf)"):
            save_model(Model(games.get("2048"), network, table), tmp_path / "new.safetensors", packed)
    assert not (tmp_path / "new.safetensors").exists()


def test_a_small_file_that_unpacks_into_more_than_the_machine_has_is_refused(tmp_path: Path) -> None:
    network = parse_network("012")
    model = Model(games.get("2048"), network, np.zeros(size_of(network), np.float32))
    data = save_model(model, tmp_path / "model.safetensors", packed=True).read_bytes()
    many = ",".join(sorted({f"012345{x:x}" for x in range(6, 16)} | {f"456789{x:x}" for x in range(10, 16)}))
    change = {"network": many, "patterns": many, "stages": "10,11,12,13,14,15"}
    path = tmp_path / "bomb.safetensors"
    path.write_bytes(with_header(data, lambda tree: tree["__metadata__"].update(change)))
    assert path.stat().st_size < 2000
    with pytest.raises(InputError, match="when it is unpacked"):
        load_model(path)


def test_messages_stay_short_and_cannot_control_the_terminal() -> None:
    assert len(str(InputError("x" * 10**6))) < LONGEST
    assert "\x1b" not in str(InputError("\x1b[2J\x07 gone"))
    assert str(InputError("ends with what to write instead" * 100)).endswith("instead")


# --- places to write to --------------------------------------------------------------------------------------------

BAD_PLACES = ["", ".", "no/such/folder/x.json", "full disk", "x" * 300, "words.txt/x.json"]


@pytest.mark.parametrize("place", BAD_PLACES)
def test_json_that_cannot_be_written_is_one_line(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = tmp_path / "words.txt"
    record.write_bytes(good_records("2048")[0])
    (tmp_path / "full disk").symlink_to("/dev/full")  # a device: to be written to, not to be replaced by a file
    assert through_the_command(["referee", "words.txt", "--json", place], (2,)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full disk", "words.txt"]
    assert (tmp_path / "full disk").is_char_device()


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/version").exists(), reason="root writes everywhere")
def test_json_into_a_folder_without_permission_is_one_line(tmp_path: Path) -> None:
    record = tmp_path / "words.txt"
    record.write_bytes(good_records("2048")[0])
    place = "/proc/version" if os.geteuid() == 0 else str(tmp_path / "locked" / "x.json")
    (tmp_path / "locked").mkdir(mode=0o500)
    assert through_the_command(["referee", str(record), "--json", place], (2,)) == 2


# --- the whole process ---------------------------------------------------------------------------------------------


def test_a_bomb_leaves_a_real_process_with_one_line_and_little_memory(tmp_path: Path) -> None:
    """As users meet it: a process of its own with 3 GiB of address space, fed a header that claims 2^63 bytes."""
    path = tmp_path / "bomb.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + b"{" * 10_000)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "from tilesage.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "evaluate", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tilesage: ")
    assert done.stderr.count("\n") == 1


# --- run folders: a checkpoint that points outside the tables would be followed by compiled code -------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("thread0.ring", 2**32 - 1),
        ("thread0.entries", 4096),
        ("thread0.length", 2**40),
        ("thread0.legal", 99),
        ("thread0.origin", -1),
        ("thread0.afters", 12345),
        ("thread0.aux", 1),
        ("weights", np.nan),
        ("memory", np.inf),
    ],
)
def test_a_checkpoint_that_points_elsewhere_is_refused(name: str, value: float, tmp_path: Path) -> None:
    folder = small_run(tmp_path / "run")
    path = folder / "last.safetensors"
    opened = Tensors.open(path, FORMAT)
    tensors = {key: np.array(array) for key, array in opened.items()}
    tensors[name].ravel()[:1] = value
    write_tensors(path, tensors, opened.metadata)
    with pytest.raises(InputError, match="damaged, or not from this run"):
        Run.resume(folder)


def test_a_checkpoint_with_a_hint_that_is_no_tile_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(TrainConfig(game="threes-phone", network="012", threads=1, games=5), folder)
    path = folder / "last.safetensors"
    opened = Tensors.open(path, FORMAT)
    tensors = {key: np.array(array) for key, array in opened.items()}
    tensors["thread0.aux"] |= np.uint64(0x3F)
    write_tensors(path, tensors, opened.metadata)
    with pytest.raises(InputError, match="damaged, or not from this run"):
        Run.resume(folder, games=10)
