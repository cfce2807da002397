"""Model files: safetensors with metadata, opened by memory map whatever their size.

A full model holds one tensor `weights`, ready to be mapped. A packed model, for shipping, keeps only the entries that
were ever learnt, a byte each, compressed (packing.py), and the table of ages as it is; it is unpacked into memory
when opened. The metadata name the game, the network and how it was trained.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.core.files import written
from tilesage.games import DEFAULT_GAME, Game, get
from tilesage.games.outside import check_known
from tilesage.networks.layout import VERSION, layout_of
from tilesage.networks.ntuple import Evaluator, evaluator
from tilesage.networks.packing import VERSION as PACKING
from tilesage.networks.packing import unzip_weights, zip_weights
from tilesage.networks.patterns import Network, parse_network

if TYPE_CHECKING:
    from tilesage.games import Afterstate, State
    from tilesage.networks.reading import Boards, Entry

FORMAT = "tilesage-model"
CHECKED_TOGETHER = 1 << 16
CHECKED_AT_MOST = 1 << 23  # weights, about: a few milliseconds
LONGEST_HEADER = 1 << 23  # bytes: a checkpoint takes 3 kB for each thread
BUILT_IN = Path(__file__).resolve().parent.parent / "models"
WHAT = ("afterstates", "states")
SUFFIX = ".safetensors"
DTYPES: dict[str, Any] = {
    "F32": np.float32,
    "F64": np.float64,
    "I64": np.int64,
    "U8": np.uint8,
    "U32": np.uint32,
    "U64": np.uint64,
}


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network: everything a player needs."""

    game: Game
    network: Network
    weights: Array  # [sets × entries + ages] float32, often a memory map
    of: str = "afterstates"  # what the value is of: afterstates or states
    training: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None  # the file that holds these weights: a pickled model is no more than this

    def __repr__(self) -> str:
        return f"Model({self.name!r}: {self.game.key}, {self.network.name}, values of {self.of})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is not None:
            return load_model, (self.path.resolve(), self.game)
        return Model, (self.game, self.network, self.weights, self.of, dict(self.training))

    @cached_property
    def evaluator(self) -> Evaluator:
        """The network compiled for the game."""
        return evaluator(self.game, self.network)

    def value(self, position: State | Afterstate) -> float:
        """What a position is worth: the points that the model expects from here to the end of the game.

        A model of afterstates says V(afterstate). A state is then worth the best of its moves, max r + V(afterstate),
        where r is what the move itself earns; 0 when no move is legal. A model of states says V(state), and an
        afterstate is worth its expectation, Σ probability · (r' + V(state)), where r' is what the tile that lands is
        worth (nothing in 2048). The score so far is not part of any of them.

        >>> from tilesage import game, load_model
        >>> state, model = game("2048").new(seed=1), load_model("2048")
        >>> model.value(state) == max(after.reward + model.value(after) for after in state.slides if after)
        True
        """
        return float(self.values([position])[0])

    def values(self, boards: Boards, aux: Array | None = None, of: str | None = None) -> Array:
        """float64 [n], what each of n positions is worth, by compiled code: `value` for many.

        They are given as states and afterstates; or as arrays, which are then all afterstates, or all states, as `of`
        says: by default what the model values. An array holds the numbers on the tiles [n, 4, 4], or boards, uint64
        [n], with their `aux` (states have both). Without `aux` no hint is known, and in boards no tile past 32768.

        >>> import numpy as np
        >>> from tilesage import game, load_model
        >>> states, model = [game("2048").new(seed) for seed in range(3)], load_model("2048")
        >>> tiles = np.array([state.cells for state in states]).reshape(3, 4, 4)
        >>> np.array_equal(model.values(states), model.values(tiles, of="states"))
        True
        """
        from tilesage.networks.reading import values_of

        return values_of(self, boards, aux, of)

    def entry(self, pattern: str, tiles: Sequence[int], tables: int = 0) -> Entry:
        """The table entry of these tiles on the cells of a pattern: where it is in `weights`, and its value.

        Networks with stages or hints have several sets of `tables`: bit k of the number says that the k-th stage's
        tile is on the board, and where tables go by hint, that is times 4 plus 0, 1, 2 or 3 for the hint 1, 2, 3 or
        larger.

        >>> from tilesage import load_model
        >>> entry = load_model("2048").entry("012345", [2, 4, 8, 16, 32, 64])
        >>> entry.pattern, entry.tiles, bool(entry.value == load_model("2048").weights[entry.index])
        ('012345', (2, 4, 8, 16, 32, 64), True)
        """
        from tilesage.networks.reading import entry_of

        return entry_of(self, pattern, tiles, tables)

    def entries(self, position: State | Afterstate) -> list[Entry]:
        """All entries that make up the value of an afterstate (of a state, in a model of states): it is their sum.

        Tables of folded or turned networks see another board than the one on the table; `tiles` are as they see it.

        >>> from tilesage import game, load_model
        >>> after, model = game("2048").new(seed=1).slide("left"), load_model("2048")
        >>> abs(sum(entry.value for entry in model.entries(after)) - model.value(after)) < 0.1
        True
        """
        from tilesage.networks.reading import entries_of

        return entries_of(self, position)

    @property
    def name(self) -> str:
        """The name of its file, or of the run whose best or last model it is."""
        if self.path is None:
            return "unnamed"
        return self.path.parent.name if self.path.name in ("best.safetensors", "last.safetensors") else self.path.stem


def memory_of_this_machine() -> int:
    """Bytes, or a number without meaning where the system does not tell."""
    if not hasattr(os, "sysconf"):
        return 1 << 62
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def size_of(network: Network) -> int:
    """Entries of all sets of tables, computed before any memory is taken."""
    return layout_of(network).entries * network.sets + network.ages


def save_model(
    model: Model, path: Path | str, packed: bool = False, limit: int = 0, importance: Array | None = None
) -> Path:
    """Write a model under a temporary name, then rename: a kill never leaves half a file.

    >>> import tempfile
    >>> from tilesage import load_model, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(load_model("threes"), f"{folder}/copy.safetensors")).name
    'copy'

    A packed one takes at most `limit` bytes (0: no limit) by leaving out what has the least `importance`.
    """
    path = Path(path)
    check_finite(path, model.weights)
    metadata = _metadata(model)
    if packed:
        tables = len(model.weights) - model.network.ages
        met = None if importance is None else importance[:tables]
        tensors: dict[str, Array] = {"packed": zip_weights(model.weights[:tables], limit, met)}
        if model.network.by_age:
            tensors["ages"] = model.weights[tables:]
        metadata["packed"] = PACKING
    else:
        tensors = {"weights": model.weights}
    write_tensors(path, tensors, metadata)
    return path


def _metadata(model: Model) -> dict[str, str]:
    network = model.network
    return {
        "format": FORMAT,
        "layout": str(VERSION),
        "game": model.game.name,
        "parameters": json.dumps(dict(model.game.parameters)),
        "network": network.name,
        "patterns": network.written,
        "stages": ",".join(map(str, network.stages)),
        "by_hint": str(int(network.by_hint)),
        "turned": str(int(network.turned)),
        "fold": str(network.fold),
        "by_age": str(int(network.by_age)),
        "of": model.of,
        "training": json.dumps(dict(model.training)),
    }


def write_tensors(path: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """The safetensors format, streamed: a header of names, types and places, then the bytes."""
    names = {np.dtype(kind): name for name, kind in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    place = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    text = json.dumps(header).encode()
    if len(text) > LONGEST_HEADER:
        raise InputError(f"cannot write {path}: it would have too many parts to be read again")
    text += b" " * (-(len(text) + 8) % 64)  # so that the weights start on a cache line
    with written(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            if tensor.size:
                file.write(np.ascontiguousarray(tensor).data.cast("B"))


def write_training(path: Path, training: Mapping[str, Any]) -> Path:
    """Change what a model says about its training; its weights stay as they are, byte by byte."""
    header, metadata, start = read_header(path)
    tensors = {name: map_tensor(path, tensor, start) for name, tensor in header.items()}
    write_tensors(path, tensors, metadata | {"training": json.dumps(dict(training))})
    return path


def read_header(path: Path, kind: str = FORMAT) -> tuple[dict[str, Any], dict[str, str], int]:
    """Tensors, metadata and the place of the data, after checking that all of it can be true."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 2 <= length <= LONGEST_HEADER + 64:
                raise InputError(f"{path} is not a model: tilesage writes .safetensors files")
            if length > size - 8:
                raise InputError(f"{path} is cut short: {length + 8 - size} bytes of its header alone are missing")
            header = json.loads(file.read(length))
        metadata = header.pop("__metadata__")
        if metadata.get("format") != kind:
            raise InputError(f"{path} is a safetensors file, but not an {kind}")
        _check_places(path, header, size - 8 - length)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a model: its header makes no sense") from None
    return header, metadata, 8 + length


def _check_places(path: Path, header: dict[str, Any], room: int) -> None:
    for name, tensor in header.items():
        begin, end = places = tensor["data_offsets"]
        shape = tensor["shape"]
        whole = all(type(n) is int and n >= 0 for n in (*places, *shape)) and len(shape) <= 8
        kind = DTYPES.get(tensor["dtype"])
        if kind is None or not whole or end - begin != np.dtype(kind).itemsize * math.prod(shape):
            raise InputError(f"{path}: tensor {name!r} does not fit its description")
        if end > room:
            raise InputError(f"{path} is cut short: {end - room} bytes are missing")


def map_tensor(path: Path, tensor: Mapping[str, Any], start: int) -> Array:
    """One tensor of a checked header as a memory map."""
    kind = DTYPES[tensor["dtype"]]
    if 0 in tensor["shape"]:
        return np.zeros(tensor["shape"], kind)
    return np.memmap(path, kind, "r", start + tensor["data_offsets"][0], tuple(tensor["shape"]))


def load_model(source: os.PathLike[str] | str | None = None, game: Game | str | None = None) -> Model:
    """The model of a file, of a run folder (its best), or the built-in one of this name.

    Without a source: the model that ships for `game`.

    >>> from tilesage import load_model
    >>> load_model(), load_model(game="threes").value(load_model(game="threes").game.new(seed=1)) > 100_000
    (Model('2048': 2048, 4x6+squares, values of afterstates), True)
    """
    path = find_model(source, game if isinstance(game, str) or game is None else game.name)
    header, metadata, start = read_header(path)
    model_game, network = _what_it_is(path, metadata)
    wanted = game if isinstance(game, str) or game is None else game.name
    if wanted is not None and wanted != model_game.name:
        raise InputError(
            f"{path} plays {model_game.name}, not {wanted}: give a model of {wanted}, or --game {model_game.name}"
        )
    if isinstance(game, Game):
        model_game = game
    size = size_of(network)
    if "packed" in metadata:
        weights = _unpack(path, header, metadata["packed"], start, size)
        if network.by_age:
            weights[size - network.ages :] = _fitting(path, header, "ages", start, network.ages, network)
    else:
        weights = _fitting(path, header, "weights", start, size, network)
    check_finite(path, weights)
    return Model(model_game, network, weights, metadata["of"], json.loads(metadata["training"]), path)


def _fitting(path: Path, header: Mapping[str, Any], name: str, start: int, size: int, network: Network) -> Array:
    """A tensor of so many numbers."""
    tensor = header.get(name, {})
    if tensor.get("shape") != [size] or tensor.get("dtype") != "F32":
        raise InputError(f"{path}: its {name} do not fit its network {network.name}")
    return map_tensor(path, tensor, start)


def describe_model(path: Path) -> Model:
    """What a model file says of itself, without its weights."""
    _, metadata, _ = read_header(path)
    game, network = _what_it_is(path, metadata)
    return Model(game, network, np.zeros(0, np.float32), metadata["of"], json.loads(metadata["training"]), path)


def check_finite(path: Path | str, weights: Array) -> None:
    """A player with NaN or infinite weights would lose without a word: say so instead, before it plays.

    Reads a part at a time that fits into the cache; a NaN survives minimum and maximum. Of a large file, which
    should open at once, only parts all over it are read: a diverged network has hardly a sound one.
    """
    stride = CHECKED_TOGETHER * max(1, len(weights) // CHECKED_AT_MOST)
    for i in range(0, len(weights), stride):
        part = weights[i : i + CHECKED_TOGETHER]
        if not (np.isfinite(part.min()) and np.isfinite(part.max())):
            bad = i + int(np.flatnonzero(~np.isfinite(part))[0])
            raise InputError(
                f"{path} is damaged or its training has diverged: weight {bad:,} is {weights[bad]}. "
                "Use an earlier checkpoint, or train again with a smaller learning rate"
            )


def find_model(source: os.PathLike[str] | str | None, game: str | None = None) -> Path:
    """Where the model is that the user means."""
    if source is None:
        name = get(game or DEFAULT_GAME).name
        found = sorted(BUILT_IN.glob(f"{name}*{SUFFIX}"), key=lambda path: len(path.name))
        if not found:
            raise InputError(
                f"there is no built-in model of {name}: train one, give a file or a run folder, or let "
                "a player that reads none play, such as --agent random"
            )
        return found[0]
    path = Path(source)
    if path.is_dir():
        for name in ("best", "last"):
            if (path / f"{name}{SUFFIX}").exists():
                return path / f"{name}{SUFFIX}"
        raise InputError(f"{path} is a folder without a model: best.safetensors is missing")
    if path.exists():
        return path
    built_in_path = BUILT_IN / f"{path.name.removesuffix(SUFFIX)}{SUFFIX}"
    if path.parent == Path(".") and built_in_path.exists():
        return built_in_path
    names = ", ".join(built_in_names()) or "none"
    raise InputError(f"no model {str(source)!r}: give a file, a run folder, or a built-in one ({names})")


def built_in_names() -> list[str]:
    """The models that come with the package."""
    return sorted(path.name.removesuffix(SUFFIX) for path in BUILT_IN.glob(f"*{SUFFIX}"))


def _what_it_is(path: Path, metadata: Mapping[str, str]) -> tuple[Game, Network]:
    """The game and the network that the metadata name."""
    try:
        if metadata["layout"] != str(VERSION):
            raise InputError(f"{path} uses memory layout {metadata['layout']}, this program {VERSION}: convert it")
        if metadata["of"] not in WHAT:
            raise InputError(f"{path}: values are of afterstates or states, not of {metadata['of']!r}")
        parameters = {str(k): float(v) for k, v in json.loads(metadata["parameters"]).items()}
        stages = tuple(int(stage) for stage in metadata["stages"].split(",") if stage)
        by_hint, fold = metadata["by_hint"] == "1", int(metadata.get("fold", "0"))
        turned = by_hint and metadata.get("turned", "1") == "1"
        by_age = metadata.get("by_age", "0") == "1"
        if not isinstance(json.loads(metadata["training"]), dict):
            raise InputError(f"{path} is not a model: what it says about its training makes no sense")
        network = parse_network(metadata["network"], stages, by_hint, fold, turned, by_age)
        if network.written != metadata["patterns"]:
            network = parse_network(metadata["patterns"], stages, False, fold, False, by_age)
            network = replace(network, name=metadata["network"], by_hint=by_hint, turned=turned)
        check_known(metadata["game"], path)
        return get(metadata["game"], **parameters), network
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise error if str(path) in str(error) else InputError(f"{path}: {error}") from None
        raise InputError(f"{path} is not a model: its metadata make no sense") from None


def _unpack(path: Path, header: Mapping[str, Any], version: str, start: int, size: int) -> Array:
    tensor = header.get("packed", {})
    if version != PACKING:
        raise InputError(f"{path} is packed in another way than this version of tilesage reads: make it anew")
    if tensor.get("dtype") != "U8" or len(tensor["shape"]) != 1:
        raise InputError(f"{path}: the weights of a packed model are missing")
    if 4 * size > memory_of_this_machine():
        raise InputError(f"{path} takes {4 * size / 1e9:,.0f} GB when it is unpacked: more than this machine has")
    return unzip_weights(map_tensor(path, tensor, start), size, str(path))
