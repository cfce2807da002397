"""Networks and their files: shapes, layout, symmetry, stages, hints, and files that must be refused."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.games.board import symmetry
from tilesage.networks import NAMES, Model, evaluator, load_model, parse_network, save_model, tensors
from tilesage.networks.layout import Layout, Table, flip, images, layout_of, mirror, spread, transpose
from tilesage.networks.patterns import drawing

BOARDS = st.integers(0, 2**64 - 1).map(np.uint64)
NO_AUX = np.uint64(0)
GAME = games.get("2048")


@cache
def in_order(table: Table) -> Any:
    return table.entries_in_order()


def slow_value(weights: Any, layout: Layout, board: int, once: bool = False) -> float:
    """The definition: every pattern in its eight images, entries in the order of other programs' files."""
    cells = [board >> 4 * i & 15 for i in range(16)]
    total = 0.0
    for table in layout.tables:
        order = in_order(table)
        for image in [table.pattern] if once else images(table.pattern):
            total += float(weights[order[sum(cells[cell] << 4 * k for k, cell in enumerate(image))]])
    return total


@pytest.mark.parametrize(
    "name", [name for name in NAMES if layout_of(parse_network(name)).entries < 1_000_000] + ["01259,6abde"]
)
def test_every_entry_has_its_own_place(name: str) -> None:
    layout = layout_of(parse_network(name))
    places = np.concatenate([table.entries_in_order() for table in layout.tables])
    assert len(np.unique(places)) == len(places)
    assert places.max() < layout.entries


def test_four_by_six_pairs_its_patterns_on_shared_lines() -> None:
    tables = layout_of(parse_network("4x6")).tables
    board = spread(np.uint64(0x0123_4567_0123_4567))
    lines = [int(table.entry(board)) // 16 for table in tables]
    assert lines[0] == lines[2]
    assert lines[1] == lines[3]


@given(BOARDS)
def test_symmetries_of_words_are_those_of_boards(board: np.uint64) -> None:
    for turn, k in ((mirror, 1), (flip, 2), (transpose, 4)):
        assert turn(spread(board)) == spread(np.uint64(symmetry(board, k)))


def test_a_network_without_symmetries_has_a_table_for_every_place(tmp_path: Path) -> None:
    network = parse_network("lines")
    rows, columns = ("0123", "4567", "89ab", "cdef"), ("048c", "159d", "26ae", "37bf")
    assert network.written == "once:" + ",".join(rows + columns)
    e = evaluator(GAME, network)
    assert (e.reads, e.size) == (8, 8 * 16**4)
    weights = np.random.default_rng(7).normal(size=e.size).astype(np.float32)
    board = np.uint64(0x0123_4567_89AB_CDEF)
    for k in range(8):
        turned = np.uint64(symmetry(board, k))
        expected = slow_value(weights, e.layout, int(turned), once=True)
        assert float(e.value(weights, turned, NO_AUX)) == pytest.approx(expected, abs=1e-3)
    again = load_model(save_model(Model(GAME, network, weights), tmp_path / "model.safetensors"))
    assert again.network == network
    after = GAME.new(seed=1).slide("left")
    assert sum(entry.value for entry in again.entries(after)) == pytest.approx(again.value(after), abs=1e-3)
    assert len(again.entries(after)) == 8


def test_patterns_read_once_keep_apart_from_others() -> None:
    assert parse_network("once:012+once:456").patterns == parse_network("once: 012 456").patterns
    assert layout_of(parse_network("once:01234,1234f")).tables[1].cells == (1, 2, 3, 4, 15)
    with pytest.raises(InputError, match="write once: before each part"):
        parse_network("lines+tiny")


WEIGHTS: dict[str, Any] = {}


def weights_for(text: str, stages: tuple[int, ...] = ()) -> tuple[Any, Any]:
    e = evaluator(GAME, parse_network(text, stages))
    if text not in WEIGHTS:
        WEIGHTS[text] = np.random.default_rng(7).normal(size=e.size).astype(np.float32)
    return e, WEIGHTS[text]


@given(BOARDS)
def test_value_is_the_sum_over_patterns_and_symmetries(board: np.uint64) -> None:
    e, weights = weights_for("012,0145,12569,0125a")
    expected = slow_value(weights, e.layout, int(board))
    assert float(e.value(weights, board, NO_AUX)) == pytest.approx(expected, abs=1e-3)


@given(BOARDS, st.integers(0, 7))
def test_symmetric_boards_have_one_value(board: np.uint64, k: int) -> None:
    e, weights = weights_for("012,0145,12569,0125a")
    twin = np.uint64(symmetry(board, k))
    assert float(e.value(weights, twin, NO_AUX)) == pytest.approx(float(e.value(weights, board, NO_AUX)), abs=1e-3)


def test_stages_go_by_the_tiles_on_the_board() -> None:
    e = evaluator(GAME, parse_network("tiny", (9, 11)))
    boards = {"9.../..../..../....": 1, "B.../..../..../....": 2, "9B../..../..../....": 3, "C.../..../..../....": 2}
    boards |= {"8A../..../..../....": 0, "F.../..../..../...9": 3, "..../..../..../....": 0}
    for text, stage in boards.items():
        assert int(e.offset(GAME.parse(text).board, NO_AUX)) == stage * e.entries


def test_tables_by_hint_see_the_slide_as_leftward() -> None:
    game = games.get("threes")
    e = evaluator(game, parse_network("tiny", (), True))
    weights = np.random.default_rng(3).normal(size=e.size).astype(np.float32)
    position = game.new(5)
    turned_position = game.parse(position.text)  # the same one; compare the four slides of its four turns
    values = {}
    for k, action in ((0, 3), (1, 1)):
        board = np.uint64(symmetry(turned_position.board, k))
        after, aux, _ = game.rules.slide(game.rows, board, position.aux, action)
        values[k] = float(e.value(weights, np.uint64(after), np.uint64(aux)))
    assert values[0] == pytest.approx(values[1], abs=1e-4)
    after, aux, _ = game.rules.slide(game.rows, position.board, position.aux, 3)
    hint = int(aux) & 3
    other = np.uint64((int(aux) & ~3) | hint % 3 + 1)
    assert float(e.value(weights, after, np.uint64(aux))) != float(e.value(weights, after, other))


@pytest.mark.parametrize(
    ("name", "hint_bits", "sets"),
    [("threes", 3, {1: 0, 2: 1, 3: 2}), ("threes-phone", 15, {1: 0, 2: 1, 3: 2, 4: 3, 6: 3})],
)
def test_tables_by_hint_that_are_not_turned_keep_all_symmetries(
    name: str, hint_bits: int, sets: dict[int, int], tmp_path: Path
) -> None:
    game, network = games.get(name), parse_network("tiny", (), True, turned=False)
    e, plain = evaluator(game, network), evaluator(game, parse_network("tiny"))
    assert network.patterns == plain.network.patterns
    assert e.size == 4 * plain.size
    weights = np.random.default_rng(3).normal(size=e.size).astype(np.float32)
    position = game.new(5)
    after, aux, _ = game.rules.slide(game.rows, position.board, position.aux, position.legal[0])
    for hint, chosen in sets.items():
        shown = np.uint64((int(aux) & ~hint_bits) | hint)
        own = weights[chosen * e.entries : (chosen + 1) * e.entries]
        expected = float(plain.value(own, np.uint64(after), NO_AUX))
        for k in range(8):
            found = float(e.value(weights, np.uint64(symmetry(np.uint64(after), k)), shown))
            assert found == pytest.approx(expected, abs=1e-4)
    save_model(Model(game, network, weights), tmp_path / "model.safetensors")
    assert load_model(tmp_path / "model.safetensors").network == network


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("5x7", "neither a network"),
        ("0123g", "neither a network"),
        ("0011", "twice"),
        ("01234567", "at most 7"),
        ("", "no pattern"),
        (",".join(f"{a:x}{b:x}" for a in range(16) for b in range(16) if a != b), "too many"),
    ],
)
def test_wrong_networks_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        parse_network(text)


def test_patterns_are_drawn() -> None:
    assert drawing((0, 5, 15)) == "■ · · ·\n· ■ · ·\n· · · ·\n· · · ■"


# --- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def model() -> Model:
    e = evaluator(GAME, parse_network("tiny", (11,)))
    weights = np.zeros(e.size, np.float32)
    weights[100:5000] = np.random.default_rng(1).normal(0, 3000, 4900)
    return Model(GAME, e.network, weights, training={"games": 12})


@pytest.mark.parametrize("packed", [False, True])
def test_a_model_survives_its_file(tmp_path: Path, model: Model, packed: bool) -> None:
    path = save_model(model, tmp_path / "m.safetensors", packed)
    again = load_model(path, "2048")
    assert again.network == model.network
    assert again.game.name == "2048"
    assert again.of == "afterstates"
    assert again.training["games"] == 12
    assert np.abs(again.weights - model.weights).max() <= (np.abs(model.weights).max() / 200 if packed else 0)
    assert not packed or path.stat().st_size < model.weights.nbytes / 2
    assert list(tmp_path.iterdir()) == [path]


def test_the_format_is_safetensors(tmp_path: Path, model: Model) -> None:
    from safetensors import safe_open

    path = save_model(model, tmp_path / "m.safetensors")
    with safe_open(path, "numpy") as file:
        assert np.array_equal(file.get_tensor("weights"), model.weights)
        assert file.metadata()["patterns"] == "012,456,0145"


def test_another_game_is_refused(tmp_path: Path, model: Model) -> None:
    path = save_model(model, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="plays 2048, not threes"):
        load_model(path, "threes")


def broken(path: Path, kind: str) -> None:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    if kind == "empty":
        data = b""
    elif kind == "text":
        data = b"hello, I am not a model at all" * 10
    elif kind == "cut":
        data = data[:-1000]
    elif kind == "cut in the header":
        data = data[:100]
    elif kind == "huge header":
        data = struct.pack("<Q", 1 << 60) + data[8:]
    else:
        if kind == "huge shape":
            header["weights"]["shape"] = [1 << 50]
        elif kind == "negative place":
            header["weights"]["data_offsets"] = [-4096, 0]
        elif kind == "wrong size":
            header["weights"]["shape"] = [4]
            header["weights"]["data_offsets"] = [0, 16]
        elif kind == "wrong network":
            header["__metadata__"]["network"] = header["__metadata__"]["patterns"] = "99"
        elif kind == "other layout":
            header["__metadata__"]["layout"] = "77"
        elif kind == "unknown game":
            header["__metadata__"]["game"] = "chess"
        elif kind == "not ours":
            header["__metadata__"] = {"format": "pt"}
        elif kind == "lists for text":
            header["__metadata__"]["stages"] = ["1"]
        elif kind == "nested":
            header["__metadata__"]["training"] = "[" * 100_000
        text = json.dumps(header).encode()
        data = struct.pack("<Q", len(text)) + text + body
    path.write_bytes(data)


KINDS = ["empty", "text", "cut", "cut in the header", "huge header", "huge shape", "negative place", "wrong size"]
KINDS += ["wrong network", "other layout", "unknown game", "not ours", "lists for text", "nested"]


@pytest.mark.parametrize("kind", KINDS)
def test_broken_files_are_refused_in_one_line(tmp_path: Path, model: Model, kind: str) -> None:
    path = save_model(model, tmp_path / "m.safetensors")
    broken(path, kind)
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_missing_models_say_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model"):
        load_model("nowhere")
    with pytest.raises(InputError, match="folder without a model"):
        load_model(tmp_path)


def test_files_have_as_many_parts_as_can_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint has a part for each array of each thread, and there may be a thousand threads."""
    parts = {f"seat{k // 34}.part{k % 34}": np.arange(2, dtype=np.uint32) for k in range(34 * 1024)}
    tensors.write_tensors(tmp_path / "many.safetensors", parts, {"format": "test"})
    again = tensors.Tensors.open(tmp_path / "many.safetensors", "test")
    assert list(again) == list(parts)
    assert again["seat1023.part33"].tolist() == [0, 1]
    monkeypatch.setattr(tensors, "LONGEST_HEADER", 1 << 20)
    with pytest.raises(InputError, match="too many parts"):
        tensors.write_tensors(tmp_path / "more.safetensors", parts, {"format": "test"})
    assert not (tmp_path / "more.safetensors").exists()
