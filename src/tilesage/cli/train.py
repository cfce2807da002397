"""`tilesage train`."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tilesage import games
from tilesage.cli.flags import MaybePath, MaybeText, program, say, write_json
from tilesage.core.errors import InputError
from tilesage.learning import registry
from tilesage.learning.config import TrainConfig, rules_in, settings_in
from tilesage.learning.recipes import completed, flags_of

if TYPE_CHECKING:
    from tilesage.learning.progress import Progress
    from tilesage.learning.runs import Maker, Run

GROUPS = {  # of flags, in the help
    "how long": ("games", "moves", "seconds", "recipe"),
    "the game": ("game", "parameters", "seed"),
    "the network": ("network", "stages", "by-hint", "turned", "fold", "by-age", "average"),
    "the learning rule": ("rule", "rate", "of", "direction", "decay", "steps", "optimism", "start", "phases"),
    "the machine": ("threads", "device", "flight", "on", "nodes", "merge-seconds", "ray-address"),
    "the run folder": ("out", "resume", "checkpoint", "block", "tensorboard"),
}
RESUMED = ("games", "moves", "seconds", "phases")  # of a run that is resumed, what can be given anew


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
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")] = ""
    # best: what learns best in this time, as far as it was measured, for all that is not given here; it says
    # what. plain: the textbook's, which are the defaults of this help.
    recipe: Literal["best", "plain"] = "best"
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=partial(TrainConfig, game=""))
    # The run folder; by default a new one in runs/.
    out: MaybePath = None
    # Go on with the run in this folder, to its own end or to a new --seconds, --games or --moves, and with
    # other --phases from here on if they are given.
    resume: MaybePath = None
    # Seconds between checkpoints.
    checkpoint: float = 60.0
    # Where: on this machine, or on a Ray cluster (pip install '.[scale]').
    on: Literal["local", "ray"] = "local"
    # On Ray: how many copies of the network learn, each with --threads threads on a node of its own if it can.
    nodes: int = 1
    # On Ray: the changes of all copies are averaged this often.
    merge_seconds: float = 5.0
    # The cluster: HOST:PORT, ray://HOST:PORT or auto; by default one is started on this machine.
    ray_address: MaybeText = None
    # Also write the metrics for TensorBoard (needs it installed).
    tensorboard: bool = False
    # No progress display.
    quiet: bool = False
    # Write the final figures as JSON to this file (- for standard output).
    json: MaybeText = None
    # The flags that were typed.
    given: tyro.conf.Suppress[frozenset[str]] = frozenset()


def run(command: Command) -> int:
    """Begin a run, or go on with one."""
    if not 0 < command.checkpoint < math.inf:
        raise InputError(f"--checkpoint is a number of seconds above 0, not {command.checkpoint:g}")
    if command.tensorboard:
        summary_writer()  # what is missing shows before a run begins
    with trainers(command) as make:
        return learn(command, begin(command, make))


def trainers(command: Command) -> contextlib.AbstractContextManager[Maker]:
    """Who trains: this machine, or a cluster."""
    from tilesage.learning.trainer import make_trainer

    if command.on == "ray":
        from tilesage.cluster.training import trainers_on_ray

        return trainers_on_ray(command.nodes, command.merge_seconds, command.ray_address)
    if command.ray_address or command.nodes != 1:
        raise InputError("--nodes and --ray-address go with --on ray")
    return contextlib.nullcontext(make_trainer)


def learn(command: Command, training: Run) -> int:
    """Train to the end of the run with a display, and report."""
    from tilesage.app.progress import TrainingView
    from tilesage.learning.folders import promise
    from tilesage.learning.runs import stopping_cleanly

    assert training.folder is not None
    say(f"{promise(training.config)}, in {training.folder}", to_stderr=command.json == "-")
    config = training.config
    game = config.the_game
    goal = str(game.tiles[game.goal])
    export = Export(training.folder) if command.tensorboard else None
    title = (
        f"{game.title} · {config.network} · {config.rule if not config.phases else config.phases} · {training.folder}"
    )
    with stopping_cleanly(training), TrainingView(title, goal, command.quiet) as view:

        def listen(line: Mapping[str, Any], at: Progress) -> None:
            view.update(line, at.games, at.moves, at.seconds, training.done)
            if export and line:
                export.add(line)

        training.train(listen)
    if export:
        export.close()
    result = summary(training)
    if write_json(result, command.json):
        report(training, result)
    return 130 if training.stopping and training.done < 1 else 0


def begin(command: Command, make: Maker) -> Run:
    """The new or resumed run of the flags."""
    from tilesage.learning.runs import Run

    config = command.config
    if command.resume is not None:
        if command.out is not None:
            raise InputError("--resume goes on in its own folder: leave out --out")
        return go_on(command, make)
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


def go_on(command: Command, make: Maker) -> Run:
    """The run of --resume; what it learns is settled, but for its end and its phases."""
    from tilesage.learning.runs import Run

    assert command.resume is not None
    config, folder = command.config, command.resume
    given = [field.name for field in fields(config) if field.name in command.given]
    own = ("game", "rule") if ":" in config.rule else ("game",)  # those from outside are known by being named here
    settled = [name.replace("_", "-") for name in given if name not in (*RESUMED, *own)]
    if settled:
        raise InputError(
            f"--resume goes on as the run began, so --{settled[0]} does not go with it: "
            "its --seconds, --games, --moves and --phases can be changed"
        )
    game, path = command.name or config.game, folder / "run.toml"
    if game:
        games.get(game)  # one in a file of its own is known from here on
    settings = settings_in(path) if (game or "rule" in own) and path.exists() else {}
    learnt = settings.get("game", game)
    if game and learnt != game:
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
    from tilesage.learning.metrics import latest, read_metrics

    assert training.folder is not None
    p, lines = training.progress, read_metrics(training.folder)
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
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise InputError("--tensorboard needs tensorboardX or torch, and neither is installed here") from None
    return SummaryWriter


class Export:
    """Metrics for TensorBoard, where it is installed."""

    def __init__(self, folder: Path) -> None:
        self.writer = summary_writer()(str(folder / "tensorboard"))

    def add(self, line: Mapping[str, Any]) -> None:
        """One line of the metrics."""
        for name in ("mean", "max", "rate", "moves_per_second"):
            self.writer.add_scalar(name, line[name], line["games"])
        for tile, share in line["reach"].items():
            self.writer.add_scalar(f"reach/{tile}", share, line["games"])

    def close(self) -> None:
        """Write what is left."""
        self.writer.close()
