"""Model files: safetensors with metadata, opened by memory map whatever their size.

A full model holds one tensor `weights`, ready to be mapped. A packed model, for shipping, keeps only the entries that
were ever learnt, a byte each, compressed (packing.py), and the table of ages as it is; it is unpacked into memory
when opened. A checkpoint of a run is a model, too: `model` in its metadata says which of its tables the weights are,
and they may be stored sparse (tensors.py). The metadata name the game, the network and how it was trained.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.games import DEFAULT_GAME, Game, get
from tilesage.games.outside import check_known
from tilesage.networks.layout import VERSION, layout_of
from tilesage.networks.ntuple import Evaluator, evaluator, promote_all
from tilesage.networks.packing import VERSION as PACKING
from tilesage.networks.packing import unzip_weights, zip_weights
from tilesage.networks.patterns import Network, parse_network
from tilesage.networks.tensors import Tensors, write_tensors

if TYPE_CHECKING:
    from tilesage.games import Afterstate, State
    from tilesage.networks.reading import Boards, Entry

FORMAT = "tilesage-model"
CHECKED_TOGETHER = 1 << 16
CHECKED_AT_MOST = 1 << 23  # weights, about: a few milliseconds
BUILT_IN = Path(__file__).resolve().parent.parent / "models"
WHAT = ("afterstates", "states")
SUFFIX = ".safetensors"


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
    metadata = metadata_of(model)
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


def metadata_of(model: Model) -> dict[str, str]:
    """What the file of a model says of it."""
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


def write_training(path: Path, training: Mapping[str, Any]) -> Path:
    """Change what a model says about its training; its weights stay as they are, byte by byte."""
    opened, new = Tensors.open(path, FORMAT), path.with_name(f".{path.name}.new")
    metadata = {**opened.metadata, "training": json.dumps(dict(training))}
    write_tensors(new, {name: opened.stored(name) for name in opened}, metadata)
    return new.replace(path)  # Windows replaces no file that is mapped


def load_model(source: os.PathLike[str] | str | None = None, game: Game | str | None = None) -> Model:
    """The model of a file, of a run folder (the one that plays best), or the built-in one of this name.

    Without a source: the model that ships for `game`.

    >>> from tilesage import load_model
    >>> load_model(), load_model(game="threes").value(load_model(game="threes").game.new(seed=1)) > 100_000
    (Model('2048': 2048, 4x6+squares, values of afterstates), True)
    """
    asked_for = get(game) if isinstance(game, str) else game
    wanted = asked_for.name if asked_for else None
    path = find_model(source, wanted)
    opened = Tensors.open(path, FORMAT, memory_of_this_machine())
    model_game, network = _what_it_is(path, opened.metadata)
    if wanted is not None and wanted != model_game.name:
        raise InputError(
            f"{path} plays {model_game.name}, not {wanted}: give a model of {wanted}, or --game {model_game.name}"
        )
    if isinstance(game, Game):
        model_game = game
    weights = _weights(opened, network)
    check_finite(path, weights)
    training = json.loads(opened.metadata["training"])
    return Model(model_game, network, weights, opened.metadata["of"], training, path)


def _weights(opened: Tensors, network: Network) -> Array:
    """All weights of a file, however they are stored."""
    size, metadata = size_of(network), opened.metadata
    if "packed" in metadata:
        weights = _unpack(opened, size)
        if network.by_age:
            weights[size - network.ages :] = _fitting(opened, "ages", network.ages, network)
        return weights
    weights = _fitting(opened, metadata.get("model", "weights"), size, network)
    if metadata.get("unlearnt") == "1":
        weights = np.array(weights)
        promote_all(weights, network, layout_of(network).entries)
    return weights


def _fitting(opened: Tensors, name: str, size: int, network: Network) -> Array:
    """A tensor of so many numbers."""
    if opened.kind_of(name) != (np.float32, (size,)):
        raise InputError(f"{opened.path}: its {name} do not fit its network {network.name}")
    return opened[name]


def describe_model(path: Path) -> Model:
    """What a model file says of itself, without its weights."""
    metadata = Tensors.open(path, FORMAT).metadata
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
        found_here = model_in(path)
        if found_here is None:
            raise InputError(f"{path} is a folder without a model: last{SUFFIX} is missing")
        return found_here
    if path.exists():
        return path
    built_in_path = BUILT_IN / f"{path.name.removesuffix(SUFFIX)}{SUFFIX}"
    if path.parent == Path(".") and built_in_path.exists():
        return built_in_path
    names = ", ".join(built_in_names()) or "none"
    raise InputError(f"no model {str(source)!r}: give a file, a run folder, or a built-in one ({names})")


def model_in(folder: Path) -> Path | None:
    """The model that a run folder means: the last one, or an earlier one kept beside it while that plays better."""
    return next((path for name in ("best", "last") if (path := folder / f"{name}{SUFFIX}").is_file()), None)


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


def _unpack(opened: Tensors, size: int) -> Array:
    path = opened.path
    if opened.metadata["packed"] != PACKING:
        raise InputError(f"{path} is packed in another way than this version of tilesage reads: make it anew")
    kind, shape = opened.kind_of("packed")
    if kind != np.uint8 or len(shape) != 1:
        raise InputError(f"{path}: the weights of a packed model are missing")
    if 4 * size > memory_of_this_machine():
        raise InputError(f"{path} takes {4 * size / 1e9:,.0f} GB when it is unpacked: more than this machine has")
    return unzip_weights(opened["packed"], size, str(path))
