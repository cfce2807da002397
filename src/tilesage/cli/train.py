"""`tilesage train`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import OmitArgPrefixes, Positional, Suppress, arg

from tilesage import games
from tilesage.cli.flags import JsonFile, Limits, MaybePath, RayAddress, program, say, write_json
from tilesage.core.errors import InputError
from tilesage.learning import registry
from tilesage.learning.config import TrainConfig, rules_in, settings_in
from tilesage.learning.recipes import completed, flags_of

if TYPE_CHECKING:
    from tilesage.learning.progress import Progress
    from tilesage.learning.runs import Listener, Maker, Run

RESUMED = ("games", "moves", "seconds", "phases")  # of a run that is resumed, what can be given anew


@dataclass
class Cluster:
    """On many machines."""

    # Where: on this machine, or on a Ray cluster (pip install '.[scale]').
    on: Literal["local", "ray"] = "local"
    # On Ray: how many copies of the network learn, each with --threads threads on a node of its own if it can.
    nodes: int = 1
    # On Ray: the changes of all copies are averaged this often.
    merge_seconds: float = 5.0
    ray_address: RayAddress = None


@dataclass
class Command:
    """Learn to play. Everything goes into a run folder, which can be resumed, plotted, evaluated and played with.

    examples:
      tilesage train 2048 --seconds 60 --out runs/first
      tilesage train threes --network 4x6 --games 100000 --out runs/threes
      tilesage train --recipe plain --rule td --rate 0.1 --games 100000 --out runs/textbook
      tilesage train --resume runs/first --seconds 600
    """

    # The name of a game (tilesage games lists them), or my_module:my_game; 2048 by default.
    name: Annotated[str, Positional, arg(metavar="[GAME]", help_behavior_hint="")] = ""
    # best: what learns best in this time, as far as it was measured, for all that is not given here; it says what.
    # plain: the textbook's, which are the defaults of this help.
    recipe: Literal["best", "plain"] = "best"
    # The run folder; by default a new one in runs/. Mind the disk: it holds every table entry that was met, and
    # the first line of a training says what that may come to.
    out: MaybePath = None
    # Go on with the run in this folder, to its own end or to a new --seconds, --games or --moves, and with
    # other --phases from here on if they are given.
    resume: MaybePath = None
    # Seconds between checkpoints.
    checkpoint: Annotated[float, Limits(0, above=True)] = 60.0
    # Also write the metrics for TensorBoard (needs it installed).
    tensorboard: bool = False
    # No progress display.
    quiet: bool = False
    json: JsonFile = None
    # What is learnt, and for how long.
    learning: OmitArgPrefixes[TrainConfig] = field(default_factory=partial(TrainConfig, game=""))
    # On many machines.
    cluster: OmitArgPrefixes[Cluster] = field(default_factory=Cluster)
    given: Suppress[frozenset[str]] = frozenset()  # the flags that were typed


def run(command: Command) -> int:
    """Begin a run or go on with one, train to its end with a display, and report."""
    from tilesage.learning.folders import promise

    writer = summary_writer() if command.tensorboard else None  # what is missing shows before a run begins
    with trainers(command.cluster) as make:
        training = begin(command, make) if command.resume is None else go_on(command, command.resume, make)
        export = partial(add_scalars, writer(f"{training.folder}/tensorboard")) if writer else None
        config = training.config
        say(f"{promise(config)}, in {training.folder}", to_stderr=command.json == "-")
        title = f"{config.the_game.title} · {config.network} · {config.phases or config.rule} · {training.folder}"
        watch_training(training, title, command.quiet, export)
    result = summary(training)
    if write_json(result, command.json):
        report(training, result)
    return 130 if training.stopping and training.done < 1 else 0


def trainers(cluster: Cluster) -> contextlib.AbstractContextManager[Maker]:
    """Who trains: this machine, or a cluster."""
    from tilesage.learning.trainer import make_trainer

    if cluster.on == "ray":
        from tilesage.cluster.training import trainers_on_ray

        return trainers_on_ray(cluster.nodes, cluster.merge_seconds, cluster.ray_address)
    if cluster.ray_address or cluster.nodes != 1:
        raise InputError("--nodes and --ray-address go with --on ray")
    return contextlib.nullcontext(make_trainer)


def watch_training(training: Run, title: str, quiet: bool = False, listener: Listener | None = None) -> None:
    """Train with figures on the screen; Ctrl-C ends it with everything saved."""
    from tilesage.app.progress import TrainingView
    from tilesage.learning.runs import stopping_cleanly

    game = training.config.the_game
    with stopping_cleanly(training), TrainingView(title, str(game.tiles[game.goal]), quiet) as view:

        def listen(line: Mapping[str, Any], at: Progress) -> None:
            view.update(line, at.games, at.moves, at.seconds, training.done)
            if listener:
                listener(line, at)

        training.train(listen)


def begin(command: Command, make: Maker) -> Run:
    """A new run of these flags and of the recipe."""
    from tilesage.learning.runs import Run

    config = command.learning
    if command.name and config.game not in ("", command.name):
        raise InputError(f"two games: {command.name} and --game {config.game}; write one")
    given = {name: value for name, value in asdict(config).items() if name in command.given}
    given["game"] = command.name or config.game or TrainConfig.game
    whole = completed(given, command.recipe)
    config = replace(config, **whole)
    training = Run.begin(config, command.out or new_folder(config), command.checkpoint, make)
    if len(whole) > len(given):
        added = flags_of({name: value for name, value in whole.items() if name not in given})
        say(f"learning by the best recipe known here: {added}", to_stderr=command.json == "-")
    return training


def go_on(command: Command, folder: Path, make: Maker) -> Run:
    """The run of --resume; what it learns is settled, but for its end and its phases."""
    from tilesage.learning.runs import Run

    if command.out is not None:
        raise InputError("--resume goes on in its own folder: leave out --out")
    config = command.learning
    own = ("game", "rule") if ":" in config.rule else ("game",)  # those from outside are known by being named here
    settled = [name for name in asdict(config) if name in command.given and name not in (*RESUMED, *own)]
    if settled:
        raise InputError(
            f"--resume goes on as the run began, so --{settled[0].replace('_', '-')} does not go with it: "
            "its --seconds, --games, --moves and --phases can be changed"
        )
    game, path = command.name or config.game, folder / "run.toml"
    if game:
        games.get(game)  # one in a file of its own is known from here on
    settings = settings_in(path) if (game or "rule" in own) and path.exists() else {}
    if game and game != (learnt := settings.get("game", game)):
        raise InputError(f"{folder} learns {learnt}, not {game}")
    if "rule" in own:
        if config.rule not in rules_in(settings):
            raise InputError(f"{folder} does not learn by the rule {config.rule}")
        registry.get(config.rule)
    return Run.resume(folder, config.games, config.moves, config.seconds, command.checkpoint, make, config.phases)


def new_folder(config: TrainConfig) -> Path:
    """A folder in runs/ that is not there yet."""
    stem = f"runs/{config.game}-{config.network.replace(',', '-')[:40]}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = Path(stem), 2
    while folder.exists():
        folder, number = Path(f"{stem}-{number}"), number + 1
    return folder


def summary(training: Run) -> dict[str, Any]:
    """The figures of `--json`."""
    from tilesage.learning.metrics import latest

    p, lines = training.progress, training.metrics
    now = latest(lines)
    figures = {
        "run": str(training.folder),
        "game": training.config.game,
        "network": training.config.network,
        "games": p.games,
        "moves": p.moves,
        "seconds": round(p.seconds, 3),
        "moves_per_second": round(p.moves / p.seconds) if p.seconds else 0,
        "mean": now.get("mean"),
        "error": now.get("error"),
        "mean_of": now.get("block", 0),
        "max": max((line["max"] for line in lines), default=None),
        "reach": now.get("reach", {}),
        "complete": training.done >= 1,
    }
    traffic = getattr(training.trainer, "traffic", None)
    return figures if traffic is None else figures | {"ray": traffic.summary()}


def report(training: Run, result: dict[str, Any]) -> None:
    """Print what was learnt, and what may be done with it."""
    mean = ""
    if result["mean_of"]:
        mean = f", mean of the last {result['mean_of']:,} games {result['mean']:,.0f} ± {result['error']:,.0f}"
    say(
        f"{result['games']:,} games, {result['moves'] / 1e6:,.1f} M moves in {result['seconds']:.1f} s "
        f"({result['moves_per_second'] / 1e6:.2f} M moves/s){mean}"
    )
    if "ray" in result:
        up, down = (result["ray"][f"bytes_{way}_per_second"] / 1e6 for way in ("up", "down"))
        say(f"merged {result['ray']['rounds']} times; {up:.1f} MB/s from the copies, {down:.1f} MB/s to them")
    if training.done < 1:
        say(f"stopped at {100 * training.done:.0f} %; go on: {program()} train --resume {training.folder}")
    else:
        own = f" --game {training.config.game}" if ":" in training.config.game else ""
        say(f"next: {program()} evaluate {training.folder}{own}    {program()} plot {training.folder}{own}")


def summary_writer() -> Any:
    """What writes for TensorBoard, of either package that has it."""
    with contextlib.suppress(ImportError):
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter
    with contextlib.suppress(ImportError):
        from tensorboardX import SummaryWriter

        return SummaryWriter
    raise InputError("--tensorboard needs tensorboardX or torch, and neither is installed here")


def add_scalars(writer: Any, line: Mapping[str, Any], at: Progress) -> None:
    """One line of the metrics for TensorBoard."""
    if line:
        figures = {name: line[name] for name in ("mean", "max", "rate", "moves_per_second")}
        for name, value in {**figures, **{f"reach/{tile}": share for tile, share in line["reach"].items()}}.items():
            writer.add_scalar(name, value, line["games"])
        writer.flush()
