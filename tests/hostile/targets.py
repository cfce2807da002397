"""What is attacked: for each kind of input some good examples, a way to break them, and the code that reads them."""

from __future__ import annotations

import contextlib
import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
from recording import play_game

from hostile.mutations import broken, broken_model, broken_tensors
from hostile.watch import Broken, through_the_command
from tilesage import games
from tilesage.core.errors import InputError
from tilesage.learning.config import TrainConfig
from tilesage.learning.metrics import read_metrics
from tilesage.learning.runs import Run, train
from tilesage.networks.convert import Numbering, export_model
from tilesage.networks.files import Model, load_model, save_model, size_of
from tilesage.networks.patterns import parse_network
from tilesage.records.record import format_record, parse_record
from tilesage.search.specs import parse_spec

Breaker = Callable[[bytes, Random, Sequence[bytes]], bytes]
EVALUATE = ["--games", "1", "--workers", "1", "--json", "-"]


@dataclass(frozen=True)
class Target:
    """One kind of input."""

    name: str
    good: Sequence[bytes]  # examples that are accepted
    attempt: Callable[[bytes], int | None]  # reads one input; raises Broken when a promise is
    breaker: Breaker = broken
    share: int = 3  # of a flood: those that take long get less

    def broken_input(self, random: Random) -> bytes:
        return self.breaker(random.choice(self.good), random, self.good)


# --- model files ----------------------------------------------------------------------------------------------------


def good_models(folder: Path) -> list[bytes]:
    """Small models of every kind: full and packed, staged, by hint, for all games, afterstates and states."""
    kinds = [("2048", (), False), ("2048", (11, 13), False), ("threes", (), True), ("threes-phone", (9,), True)]
    found = []
    for name, stages, by_hint in kinds:
        network = parse_network("012", stages, by_hint)
        weights = np.sin(np.arange(size_of(network))).astype(np.float32) * 100
        weights[200:-100] = 0
        for packed in (False, True):
            model = Model(
                games.get(name),
                network,
                weights,
                "states" if by_hint else "afterstates",
                {"games": 3},
            )
            found.append(save_model(model, folder / "good.safetensors", packed).read_bytes())
    return found


def models(folder: Path) -> Target:
    path = folder / "model.safetensors"

    def attempt(data: bytes) -> int:
        path.write_bytes(data)
        try:
            model = load_model(path)
        except InputError as mistake:
            _clear(mistake)
            return 0
        if model.weights.shape != (size_of(model.network),) or model.weights.dtype != np.float32:
            raise Broken(f"opened with weights {model.weights.dtype}{model.weights.shape}")
        if not np.isfinite(model.weights).all():
            raise Broken("opened with weights that are not finite")
        return int(model.weights.nbytes)

    return Target("model files", good_models(folder), attempt, broken_model, share=16)


def models_for_the_command(folder: Path) -> Target:
    path, known = folder / "given.safetensors", parse_network("012")

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        try:
            model = load_model(path)
        except InputError:
            through_the_command(["evaluate", str(path), *EVALUATE], (2,))
            return
        if model.network.key == known.key and model.game.key == "2048":  # others would be compiled, for seconds
            through_the_command(["evaluate", str(path), *EVALUATE])
            through_the_command(["evaluate", str(path), "--agent", "random", *EVALUATE])

    good = [data for data in good_models(folder) if b'"2048"' in data[:2000] and b"11,13" not in data[:2000]]
    return Target("model files for the command", good, attempt, broken_model, share=1)


def listed_models(folder: Path) -> Target:
    """`tilesage models` must list what is broken beside what is not."""
    run = folder / "runs" / "broken"
    run.mkdir(parents=True, exist_ok=True)

    def attempt(data: bytes) -> None:
        (run / "best.safetensors").write_bytes(data)
        through_the_command(["models", "--runs", str(run.parent)], (0,))
        through_the_command(["models", "--runs", str(run.parent), "--json", "-"], (0,))

    return Target("models listed", good_models(folder), attempt, broken_model, share=2)


# --- weights of other programs --------------------------------------------------------------------------------------


def weights(folder: Path, form: str, name: str) -> Target:
    """Files of the course framework, the demo program and TDL2048+, recognised or told what they are."""
    network = parse_network("012,456")
    model = Model(games.get("2048"), network, np.sin(np.arange(size_of(network))).astype(np.float32))
    export_model(model, folder / name, form, Numbering())
    out = folder / "converted.safetensors"

    def attempt(data: bytes) -> None:
        (folder / name).write_bytes(data)
        words = ["convert", str(folder / name), str(out), "--force", "--game", "2048"]
        through_the_command([*words, "--from", form])
        if through_the_command([*words, "--network", "012,456"] if form == "course" else words) == 0:
            converted = load_model(out)
            if converted.weights.shape != (size_of(converted.network),):
                raise Broken("converted into a model that does not fit its network")

    return Target(f"weights of {form}", [(folder / name).read_bytes()], attempt, share=2)


# --- records --------------------------------------------------------------------------------------------------------


def good_records(game: str) -> list[bytes]:
    lines = [format_record(play_game(game, seed)) for seed in range(3)]
    return [("\n".join(lines[:count]) + "\n").encode() for count in (1, 3)]


def records(folder: Path, game: str) -> Target:
    path = folder / "records.txt"

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        status = through_the_command(["referee", str(path), "--json", str(folder / "verdict.json")], (0, 1, 2))
        through_the_command(["replay", str(path), "--svg", str(folder / "board.svg")])
        if status == 0:
            _second_opinion(data)

    return Target(f"records of {game}", good_records(game), attempt)


def _second_opinion(data: bytes) -> None:
    """What the referee passes must be a record for the reader, and in order for the references."""
    from recording import is_in_order

    for line in data.split(b"\n\n")[0].replace(b"\r", b"").splitlines():
        if not line:
            return
        if not is_in_order(parse_record(line.decode("utf-8", "surrogateescape"))):
            raise Broken("the referee passed a record that the references reject")


# --- run folders ----------------------------------------------------------------------------------------------------


def small_run(folder: Path) -> Path:
    """A run of a moment, on one thread and a small network."""
    if not (folder / "run.toml").exists():
        train(TrainConfig(network="012", games=60, block=20, threads=1), folder)
    return folder


def settings(folder: Path) -> Target:
    """run.toml: what is read must be sane, and is never more memory than it says."""
    path = folder / "broken.toml"

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        try:
            config = TrainConfig.read(path)
            config.memory_needed()
        except InputError as mistake:
            _clear(mistake)
            return
        config.write(path)
        if TrainConfig.read(path) != config:
            raise Broken(f"settings change when they are written and read: {config}")

    return Target("run.toml", [(small_run(folder / "run") / "run.toml").read_bytes()], attempt, share=8)


def metrics(folder: Path) -> Target:
    """metrics.jsonl: read, plotted, resumed."""
    run = small_run(folder / "run")
    good = (run / "metrics.jsonl").read_bytes()

    def attempt(data: bytes) -> None:
        (run / "metrics.jsonl").write_bytes(data)
        try:
            lines = read_metrics(run)
        except InputError as mistake:
            _clear(mistake)
            return
        if not all(isinstance(line, dict) for line in lines):
            raise Broken("a line of metrics that is no record")

    return Target("metrics.jsonl", [good], attempt, share=16)


def checkpoints(folder: Path) -> Target:
    """last.safetensors, through `--resume`."""
    run = small_run(folder / "run")
    path = run / "last.safetensors"
    good = path.read_bytes()

    def attempt(data: bytes) -> None:
        path.write_bytes(data)
        try:
            resumed = Run.resume(run)
            resumed.trainer.advance(2000, 5, 0.1)
            resumed.close()
        except InputError as mistake:
            _clear(mistake)
            return
        if not np.isfinite(resumed.trainer.weights()).all():
            raise Broken("resumed with weights that are not finite")

    return Target("checkpoints", [good], attempt, broken_tensors, share=1)


# --- texts ----------------------------------------------------------------------------------------------------------


def boards(folder: Path) -> Target:
    def attempt(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        for name in games.names():
            try:
                state = games.get(name).parse(text)
            except InputError as mistake:
                _clear(mistake)
                continue
            again = games.get(name).parse(state.text)
            if (again.board, again.aux) != (state.board, state.aux) or len(str(state).splitlines()) < 4:
                raise Broken(f"{state.text!r} is read back as {again.text!r}")
            for action in state.legal:
                chances = [chance for chance, _ in state.slide(action).outcomes()]
                if abs(sum(chances) - 1) > 1e-9 or state.play(action).moves != 1:
                    raise Broken(f"the outcomes of {state.text!r} have probability {sum(chances)}")

    good = [
        b"2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2",
        b"1234/..../HG21/F.1.",
        b"1,2,3,6/12,24,48,96/0,0,0,0/3,2,1,0 hint=2 bag=13 score=123 seed=7",
        b"789A/3.../1.2./E..1 hint=6+12 deck=4,0,2",
        b"131072 65536 32768 16384 2 2 2 2 0 0 0 0 . . - .",
    ]
    return Target("boards", good, attempt)


def hints(folder: Path) -> Target:
    """`tilesage hint`: a board on the command line, and queries on standard input."""
    model = folder / "advisor.safetensors"
    model.write_bytes(good_models(folder)[0])
    flags = ["--model", str(model), "--agent", "greedy"]

    def attempt(data: bytes) -> None:
        lines = io.TextIOWrapper(io.BytesIO(data), "utf-8")
        with mock.patch.object(sys, "stdin", lines):
            through_the_command(["hint", "--stdin", *flags], (0,))
        text = data.decode("utf-8", "surrogateescape").replace("\0", "")
        through_the_command(["hint", f" {text}", *flags, "--json", "-"])

    good = [
        b"2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2",
        b'{"board": "1.23/2345/.987/3A12", "score": 700}\n"1.23/2345/.987/3A12"\n',
        b'{"board": [2, 4, 8, 16, 0, 2, 4, 8, 0, 0, 2, 4, 0, 0, 0, 2]}\n',
        b"[" * 3000 + b"\n",
    ]
    return Target("hints", good, attempt)


def networks(folder: Path) -> Target:
    def attempt(data: bytes) -> None:
        try:
            network = parse_network(data.decode("utf-8", "surrogateescape"))
        except InputError as mistake:
            _clear(mistake)
            return
        if not 0 < size_of(network) <= 64 * 16**7:
            raise Broken(f"{network.name!r} has {size_of(network)} entries")

    return Target(
        "networks", [b"4x6", b"8x6+small", b"group0+1", b"012345,456789", b"012 456+tiny"], attempt, share=16
    )


def agents(folder: Path) -> Target:
    def attempt(data: bytes) -> None:
        try:
            spec = parse_spec(data.decode("utf-8", "surrogateescape"))
        except InputError as mistake:
            _clear(mistake)
            return
        if not (math.isfinite(spec.budget) and 0 <= spec.budget <= 1e12):
            raise Broken(f"a budget of {spec.budget}")

    good = [b"greedy", b"expectimax:3", b"expectimax:200ms,prune=0.01", b"mcts:1s,leaf=value,c=2", b"rollouts:100"]
    return Target("agents", good, attempt, share=16)


def command_lines(folder: Path) -> Target:
    """Whole command lines of commands that only read; words are separated by line breaks."""
    (folder / "words.txt").write_bytes(good_records("2048")[0])

    def attempt(data: bytes) -> None:
        words = data.decode("utf-8", "surrogateescape").replace("\0", "").split("\n")
        if any("/" in word or ".." in word for word in words) or words[0] not in ("referee", "replay", "games"):
            words = ["games", *words]
        try:
            with contextlib.chdir(folder):
                through_the_command(words, (0, 1, 2))
        except SystemExit as end:  # --help
            if end.code:
                raise Broken(f"left with status {end.code}") from None

    lines = [
        "referee words.txt --game 2048 --four-rate 0.1 --speed 100 --significance 1e-6 --workers 1",
        "replay words.txt --game 1 --move 3 --svg words.svg --theme dark",
        "games --json words.json",
    ]
    return Target("command lines", [line.replace(" ", "\n").encode() for line in lines], attempt)


def _clear(mistake: InputError) -> None:
    """A mistake is told in one line of a length that people read."""
    text = " ".join(str(mistake).split())
    if not 10 < len(text) < 2000:
        raise Broken(f"a mistake of {len(text)} characters: {text[:200]!r}")


def all_targets(folder: Path) -> list[Target]:
    return [
        models(folder),
        models_for_the_command(folder),
        listed_models(folder),
        weights(folder, "course", "weights.bin"),
        weights(folder, "demo", "2048.bin"),
        weights(folder, "tdl2048", "2048.w"),
        settings(folder),
        metrics(folder),
        checkpoints(folder),
        *(records(folder, game) for game in games.names()),
        boards(folder),
        hints(folder),
        networks(folder),
        agents(folder),
        command_lines(folder),
    ]
