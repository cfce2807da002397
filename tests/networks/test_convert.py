"""Weights from and to other programs: hand-made bytes, round trips, the order of entries, hostile files."""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesage import games
from tilesage.cli import main
from tilesage.core.errors import InputError
from tilesage.networks.convert import Numbering, export_model, format_by_name, import_model
from tilesage.networks.exchange import READERS, read_tables
from tilesage.networks.files import Model, load_model, save_model, size_of
from tilesage.networks.layout import images
from tilesage.networks.patterns import Network, parse_network

FOREIGN = tuple(READERS)
PLAIN = Numbering()


def floats(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def table_of(length: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 100, length).astype(np.float32)


def model_of(network: str, game: str = "2048", seed: int = 1) -> Model:
    spec = parse_network(network)
    return Model(games.get(game), spec, table_of(size_of(spec), seed))


def value_by_hand(network: Network, tables: list[np.ndarray], cells: list[int], base: int = 16) -> float:
    """Σ over patterns and symmetries, from the files' own numbering: Σ tile[k] · base^k."""
    total = 0.0
    for pattern, table in zip(network.patterns, tables, strict=True):
        for image in images(pattern):
            total += float(table[sum(cells[cell] * base**k for k, cell in enumerate(image))])
    return total


def board_of(cells: list[int]) -> np.uint64:
    return np.uint64(sum(tile << 4 * cell for cell, tile in enumerate(cells)))


HAND_MADE = {
    "course": struct.pack("<I", 1) + struct.pack("<Q", 16) + floats(*range(16)),
    "course64": struct.pack("<Q", 1) + struct.pack("<Q", 16) + floats(*range(16)),
    "demo": struct.pack("<Qi", 1, 17) + b"1-tuple pattern 5" + struct.pack("<Q", 16) + floats(*range(16)),
    "tdl2048": struct.pack("<BI", 0, 1) + struct.pack("<BIHHHQ", 4, 5, 1, 0, 4, 16) + floats(*range(16)) + b"\0\0",
}


def test_folds_and_ages_do_not_fit(tmp_path: Path) -> None:
    for network in (parse_network("tiny", (), False, 13), parse_network("tiny", by_age=True)):
        model = Model(games.get("2048"), network, np.zeros(size_of(network), np.float32))
        with pytest.raises(InputError, match="without --fold and --by-age"):
            export_model(model, tmp_path / "w", "tdl2048", PLAIN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FOREIGN)
def test_reads_hand_made_bytes(form: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(HAND_MADE[form])
    found, (table,) = read_tables(path)
    assert found == form
    assert table.values.tolist() == list(range(16))
    assert table.pattern == ((5,) if form in ("demo", "tdl2048") else None)
    imported = import_model(path, games.get("2048"), None if table.pattern else "5", None, PLAIN)
    assert (
        imported.model.evaluator.value(imported.model.weights, np.uint64(7 << 20), np.uint64(0)) == 14
    )  # cells 5 and 6


@pytest.mark.parametrize("form", FOREIGN)
def test_writes_those_bytes(form: str, tmp_path: Path) -> None:
    model = Model(games.get("2048"), parse_network("5"), np.arange(16, dtype=np.float32))
    export_model(model, tmp_path / "file", form, PLAIN)
    assert (tmp_path / "file").read_bytes() == HAND_MADE[form]


def test_tdl_names_and_memory(tmp_path: Path) -> None:
    """Names as text, old names without a width, numbers of two and eight bytes, TC's memory after the weights."""
    weights = np.arange(256)
    one = b"\x04" + b"0f      " + struct.pack("<HQ", 2, 256)
    one += weights.astype("<f2").tobytes() + struct.pack("<HQ", 4, 512) + bytes(4 * 512) + b"\0\0"
    two = b"\x04" + struct.pack("<IHH", 0x01, 0, 0) + struct.pack("<HQ", 8, 256) + weights.astype("<f8").tobytes()
    path = tmp_path / "two.w"
    path.write_bytes(struct.pack("<BI", 0, 2) + one + two + b"\0\0")
    form, tables = read_tables(path)
    assert form == "tdl2048"
    assert [table.pattern for table in tables] == [(0, 15), (0, 1)]
    imported = import_model(path, games.get("2048"), None, None, PLAIN)
    again = tmp_path / "again.w"
    export_model(imported.model, again, "tdl2048", PLAIN)
    assert [table.values.tolist() for table in read_tables(again)[1]] == [weights.tolist()] * 2


@pytest.mark.parametrize("form", FOREIGN)
@pytest.mark.parametrize("network", ["tiny", "8x4", "group2"])
def test_round_trip(form: str, network: str, tmp_path: Path) -> None:
    model = model_of(network)
    export_model(model, tmp_path / "a", form, PLAIN)
    back = import_model(tmp_path / "a", model.game, network, None, PLAIN)
    assert back.form == form
    assert back.lost == 0
    export_model(back.model, tmp_path / "b", form, PLAIN)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    board = np.uint64(0xFEDC_BA98_7654_3210)
    value = model.evaluator.value
    assert value(back.model.weights, board, np.uint64(0)) == value(model.weights, board, np.uint64(0))


@given(cells=st.lists(st.integers(0, 14), min_size=16, max_size=16), base=st.sampled_from([15, 16, 18]))
def test_value_is_the_sum_of_the_files_entries(cells: list[int], base: int) -> None:
    network = parse_network("0125,012,5")
    model, tables = imported_in(base)
    expected = value_by_hand(network, tables, cells, base)
    assert model.evaluator.value(model.weights, board_of(cells), np.uint64(0)) == pytest.approx(expected, abs=0.1)


CACHE: dict[int, tuple[Model, list[np.ndarray]]] = {}


def imported_in(base: int) -> tuple[Model, list[np.ndarray]]:
    if base not in CACHE:
        tables = [table_of(base**cells, cells) for cells in (4, 3, 1)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights.bin"
            path.write_bytes(struct.pack("<I", 3) + b"".join(struct.pack("<Q", len(t)) + t.tobytes() for t in tables))
            done = import_model(path, games.get("threes"), "0125,012,5", None, PLAIN)
        assert done.base == base
        assert (done.lost > 0) == (base > 16)
        CACHE[base] = done.model, tables
    return CACHE[base]


def test_first_cell_as_highest_digit(tmp_path: Path) -> None:
    model = model_of("0125")
    export_model(model, tmp_path / "low", "course", PLAIN)
    export_model(model, tmp_path / "high", "course", Numbering(None, "high"))
    low, high = (read_tables(tmp_path / name)[1][0].values for name in ("low", "high"))
    assert low[0x4321] == high[0x1234]
    assert low[0xF00E] == high[0xE00F]
    back = import_model(tmp_path / "high", model.game, "0125", None, Numbering(None, "high")).model
    assert back.weights.tobytes() == model.weights.tobytes()


@pytest.mark.parametrize(("first", "value"), [("low", 1366), ("high", 1621)])
def test_the_first_of_three_cells_is_the_lowest_digit_or_the_highest(
    first: str, value: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table whose entries are their numbers, and a board with tiles 3 and 5 in its first two cells.

    Three images see them: cells 0 1 2 as tiles 3 5 0, cells 3 2 1 as 0 0 5, cells 0 4 8 as 3 0 0. The first cell
    lowest, that is 3 + 5 · 16, 5 · 256 and 3; highest, 3 · 256 + 5 · 16, 5 and 3 · 256.
    """
    numbers = np.arange(4096, dtype=np.float32)
    course, ours, back = tmp_path / "weights.bin", tmp_path / "ours.safetensors", tmp_path / "back.bin"
    course.write_bytes(struct.pack("<IQ", 1, 4096) + numbers.tobytes())
    words = ["--game", "2048", "--network", "012", "--first", first]
    assert main(["convert", str(course), str(ours), *words]) == 0
    model = load_model(ours)
    assert model.evaluator.value(model.weights, np.uint64(3 | 5 << 4), np.uint64(0)) == value
    assert main(["convert", str(ours), str(back), "--to", "course", "--first", first]) == 0
    assert back.read_bytes() == course.read_bytes()
    other = {"low": "high", "high": "low"}[first]
    assert main(["convert", str(ours), str(back), "--to", "course", "--first", other, "--force"]) == 0
    (table,) = read_tables(back)[1]
    assert table.values.tolist() == [a * 256 + b * 16 + c for c in range(16) for b in range(16) for a in range(16)]


def test_base_15_leaves_out_what_it_cannot_number(tmp_path: Path) -> None:
    model = model_of("012")
    lost = export_model(model, tmp_path / "w", "course", Numbering(15))
    assert lost == 16**3 - 15**3
    assert len(read_tables(tmp_path / "w")[1][0]) == 15**3


def test_recognises_networks_by_size(tmp_path: Path) -> None:
    export_model(model_of("8x4", "threes"), tmp_path / "weights.bin", "course", Numbering(15))
    done = import_model(tmp_path / "weights.bin", games.get("threes"), None, None, PLAIN)
    assert (done.model.network.name, done.base, done.guessed) == ("8x4", 15, True)


def test_networks_without_symmetries_are_written_as_course_files_alone(tmp_path: Path) -> None:
    model = model_of("lines")
    for form in ("demo", "tdl2048"):
        with pytest.raises(InputError, match="--to course"):
            export_model(model, tmp_path / "w", form, PLAIN)
    export_model(model, tmp_path / "weights.bin", "course", PLAIN)
    back = import_model(tmp_path / "weights.bin", model.game, "lines", None, PLAIN).model
    assert back.weights.tobytes() == model.weights.tobytes()
    assert back.network.once


def test_names_of_files() -> None:
    names = ["a.safetensors", "b.w", "weights.bin", "2048.bin"]
    assert [format_by_name(Path(name)) for name in names] == ["tilesage", "tdl2048", "course", "demo"]
    with pytest.raises(InputError, match="--to"):
        format_by_name(Path("other.bin"))


def test_stages_and_hints_do_not_fit(tmp_path: Path) -> None:
    for network in (parse_network("tiny", (11,)), parse_network("tiny", (), True)):
        model = Model(games.get("threes"), network, np.zeros(size_of(network), np.float32))
        with pytest.raises(InputError, match="sets of tables"):
            export_model(model, tmp_path / "w", "course", PLAIN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FOREIGN)
@pytest.mark.parametrize("cut", [1, 4, 60])
def test_cut_short(form: str, cut: int, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(HAND_MADE[form][:-cut])
    with pytest.raises(InputError, match="cut short"):
        read_tables(path)
    path.write_bytes(HAND_MADE[form] + b"\1")
    with pytest.raises(InputError, match=f"not a {form} file: 1 bytes follow"):
        read_tables(path, form)


HUGE = (1 << 64) - 1
HOSTILE = {
    "nothing": b"",
    "one byte": b"\0",
    "no tables": struct.pack("<Q", 0),
    "many tables": struct.pack("<I", 0xFFFF_FFFF) + bytes(100),
    "a huge table": struct.pack("<IQ", 1, HUGE) + bytes(100),
    "a huge table that wraps around": struct.pack("<IQ", 1, 1 << 62) + bytes(100),
    "a huge name": struct.pack("<Qi", 1, 0x7FFF_FFFF) + bytes(100),
    "a negative name": struct.pack("<Qi", 1, -1) + bytes(100),
    "a name of no pattern": struct.pack("<Qi", 1, 4) + b"\xff\xfe\n\0" + struct.pack("<Q", 0),
    "a huge field": struct.pack("<BIBIHHHQ", 0, 1, 4, 5, 1, 0, 4, HUGE) + bytes(100),
    "a field of odd numbers": struct.pack("<BIBIHHHQ", 0, 1, 4, 5, 1, 0, 3, 16) + bytes(100),
    "text": b"hello, these are no weights at all\n" * 9,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = tmp_path / "in.bin", tmp_path / "out.safetensors"
    path.write_bytes(HOSTILE[name])
    for flags in ([], *(["--from", form] for form in FOREIGN)):
        assert main(["convert", str(path), str(target), "--game", "2048", *flags]) == 2
        error = capsys.readouterr().err
        assert error.startswith("tilesage: ")
        assert error.count("\n") == 1
    assert not target.exists()


def read_or_refuse(data: bytes, form: str) -> None:
    """Nothing but an `InputError` of one line may come of any bytes, and never more numbers than the file has."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        complaint, tables = "", []
        try:
            _, tables = read_tables(Path(file.name), form)
        except InputError as mistake:
            complaint = str(mistake)
        assert "\n" not in complaint
        assert sum(table.values.nbytes for table in tables) <= len(data)


@given(data=st.binary(max_size=200), form=st.sampled_from(FOREIGN))
def test_any_bytes_are_read_or_refused(data: bytes, form: str) -> None:
    read_or_refuse(data, form)


@given(at=st.integers(0, 40), byte=st.integers(0, 255), form=st.sampled_from(FOREIGN))
def test_damaged_headers_are_read_or_refused(at: int, byte: int, form: str) -> None:
    data = bytearray(HAND_MADE[form])
    data[at] = byte
    read_or_refuse(bytes(data), form)


def test_infinite_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(struct.pack("<IQ", 1, 16) + floats(*[float("nan")] * 16))
    with pytest.raises(InputError, match="not numbers"):
        import_model(tmp_path / "w", games.get("2048"), "5", None, PLAIN)


class TestCommand:
    def test_there_and_back(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        model = model_of("8x4", "threes")
        ours, course = tmp_path / "m.safetensors", tmp_path / "weights.bin"
        save_model(model, ours)
        assert main(["convert", str(ours), str(course)]) == 0
        assert "values of afterstates" in capsys.readouterr().out
        back = tmp_path / "back.safetensors"
        assert main(["convert", str(course), str(back), "--game", "threes", "--json", "-"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["game"], told["network"], told["format"]) == ("threes", "8x4", "tilesage")
        assert "give --patterns if yours differ" in told["notes"][1]
        assert np.array_equal(load_model(back).weights, model.weights)
        assert load_model(back).training == {"imported": "course", "file": "weights.bin"}

    def test_demo_file_names_its_network(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        save_model(model_of("tiny"), tmp_path / "m.safetensors")
        assert main(["convert", str(tmp_path / "m.safetensors"), str(tmp_path / "2048.bin")]) == 0
        assert main(["convert", str(tmp_path / "2048.bin"), str(tmp_path / "b.safetensors"), "--packed"]) == 0
        assert load_model(tmp_path / "b.safetensors").network.name == "tiny"
        assert "demo file of 3 tables" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (["w", "o.safetensors"], "add --game"),
            (["w", "o.safetensors", "--game", "2048"], "like no network known by name"),
            (["w", "o.safetensors", "--game", "2048", "--network", "012"], "its pattern 012 4,096"),
            (["w", "o.safetensors", "--game", "2048", "--patterns", "0,1"], "holds 1 tables"),
            (["w", "o.safetensors", "--game", "chess"], "chess"),
            (["w", "o.bin", "--game", "2048", "--network", "5"], "add --to"),
            (["w", "there.safetensors", "--game", "2048", "--network", "5"], "--force"),
            (["w", "folder", "--to", "course"], "is a folder"),
            (["missing", "o.safetensors"], "no model 'missing'"),
            (["w", "o.w", "--game", "2048", "--network", "5", "--base", "99"], "--base"),
            (["w", "o.w", "--game", "2048", "--network", "5", "--base", "15"], "its pattern 5 15"),
            (["w", "o.w", "--game", "2048", "--network", "5", "--first", "high"], "leave --base and --first"),
            (["w", "o.w", "--game", "2048", "--network", "5", "--packed"], "--packed"),
            (["w", "o.w", "--from", "ours"], "tilesage convert --help"),
        ],
    )
    def test_mistakes(
        self,
        flags: list[str],
        message: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "w").write_bytes(HAND_MADE["course"])
        (tmp_path / "there.safetensors").write_text("mine")
        (tmp_path / "folder").mkdir()
        assert main(["convert", *flags]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert (tmp_path / "there.safetensors").read_text() == "mine"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "there.safetensors", "w"]

    def test_force_replaces(self, tmp_path: Path) -> None:
        (tmp_path / "w").write_bytes(HAND_MADE["course"])
        (tmp_path / "o.safetensors").write_text("old")
        words = ["convert", str(tmp_path / "w"), str(tmp_path / "o.safetensors"), "--game", "2048", "--network", "5"]
        assert main([*words, "--force"]) == 0
        assert load_model(tmp_path / "o.safetensors").network.name == "5"
