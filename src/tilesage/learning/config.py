"""What a training run is: one dataclass that is the flags of the command, the file in the run folder, and the API."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tilesage.core.errors import InputError, check_seed
from tilesage.core.files import written
from tilesage.core.processors import processors
from tilesage.games import DEFAULT_GAME, get, parse_parameters
from tilesage.games.outside import check_known
from tilesage.learning import registry
from tilesage.learning.schedules import Schedule, parse_schedule
from tilesage.networks.patterns import Network, parse_network

if TYPE_CHECKING:
    from tilesage.games import Game
    from tilesage.learning.rules import UpdateRule

GIGABYTE = 1 << 30
SOFTEN = "soften"  # a phase that goes on from the one before
MOST_ENTRIES = 1 << 32  # that the CPU's loops and merged copies of a network can name
MOST_IN_FLIGHT = 1 << 16  # a weight counts all its hits of a step in 20 bits, at most 8 a game
MOST = 1e18  # games, moves, seconds, points: beyond all use, and safe to count with


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what a run learns. The same settings, seed and one thread: the same weights."""

    game: str = DEFAULT_GAME
    """A game (tilesage games lists them); 2048-walls and 2048-block practise the hardest part of 2048."""
    network: str = "4x6"
    """A name (tilesage networks lists them) or patterns such as 012345,456789."""
    rule: str = registry.DEFAULT
    """td: one rate for all weights. tc: temporal coherence, each weight finds its own. Or my_module:my_rule."""
    rate: str = ""
    """0.1, or over the run 0.5>0.01 (linear), 0.1,0.01@0.5 (steps). Default: that of the rule, 0.1 td, 1 tc."""
    of: Literal["afterstates", "states"] = "afterstates"
    """What values are of: the board after the move, or before it (choosing then averages over chance)."""
    direction: Literal["forward", "backward"] = "forward"
    """Learn as the game goes, or after it from its end."""
    learn_end: bool = True
    """Values of states, backward: the last state of a game learns that it is worth 0, too."""
    decay: float = 0.0
    """λ of TD(λ) and TC(λ): how much of later errors reaches back. 0.5 is a good one."""
    steps: int = 0
    """n-step learning with this n (forward): the errors of n moves, undiminished."""
    optimism: float = 0.0
    """What every position is worth before anything is learnt."""
    stages: str = ""
    """Tiles such as 8192,16384: other tables once they are on the board; unlearnt entries read the stage before."""
    by_hint: bool = False
    """Threes!: other tables for each hint."""
    turned: bool = True
    """With --by-hint: boards are turned so that the slide goes left. Exact, and four times the tables."""
    fold: str = ""
    """From this tile on (such as 8192), boards are seen at the scale of smaller ones, learning and playing."""
    by_age: bool = False
    """What is usual so far into a game is learnt apart: patterns say only how much better or worse a board is."""
    start: Literal["fresh", "ahead"] = "fresh"
    """Where games begin: afresh, or every second one ahead, with tiles of --stages on the board."""
    phases: str = ""
    """Rules one after another, rule:rate:share, such as td:0.1:0.9,tc:1:0.1; each begins with fresh memory, except
    soften, which goes on from tc with less inertia."""
    games: int = 0
    """Stop after this many games (0: no such limit)."""
    moves: int = 0
    """Stop after this many moves."""
    seconds: float = 0.0
    """Stop after this much training time."""
    threads: int = processors()
    """Threads that learn together on one table; 1 is reproducible bit for bit under --games or
    --moves, more are with --exact."""
    exact: bool = False
    """All games in flight move against weights that stand still, then those learn: the same on any number of threads,
    and on a GPU."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where it runs."""
    seed: int = 1
    """The seed of chance."""
    parameters: str = ""
    """Of the rules, in games that have some: four_rate=0.2, or --four-rate 0.2 (tilesage games lists them)."""
    block: int = 1000
    """Games that make one line of the metrics (50 times as many on the GPU)."""
    flight: int = 0
    """GPU, and --exact: games in flight at once (0: 32768, on the CPU 1024)."""
    average: bool = True
    """Models hold the mean of the weights towards the end of the run, which plays better than the last ones."""

    def __post_init__(self) -> None:
        positive = {"games": self.games, "moves": self.moves, "seconds": self.seconds, "optimism": self.optimism}
        for name, value in positive.items():
            if not 0 <= value <= MOST:
                raise InputError(
                    f"--{name} is a number from 0 to {MOST:.0e}, not {value if abs(value) < MOST**2 else 'that'}"
                )
        if not 0 <= self.decay <= 1:
            raise InputError(f"--decay is λ, a number from 0 to 1, not {self.decay}")
        if self.decay == 1 and self.direction == "forward":
            raise InputError("--decay 1 waits for the end of the game: add --direction backward, or take --steps N")
        if not 1 <= self.threads <= 1024 or self.block < 1 or not 0 <= self.steps <= 1000:
            raise InputError("--threads is 1 to 1024, --block at least 1, --steps 0 to 1000")
        check_seed(self.seed)
        if self.steps and (self.decay or self.direction == "backward"):
            raise InputError("--steps goes with forward learning and without --decay")
        if self.by_hint and self.of == "states":
            raise InputError("--by-hint goes with values of afterstates: only they know the direction of the slide")
        if not self.learn_end and (self.of != "states" or self.direction != "backward"):
            raise InputError("--no-learn-end goes with --of states --direction backward")
        if self.by_age and (self.of == "states" or self.direction == "backward"):
            raise InputError("--by-age goes with forward learning of values of afterstates")
        if self.start == "ahead" and not self.stages:
            raise InputError(
                "--start ahead begins games with tiles of the stages: give --stages, such as --stages 8192"
            )
        if self.flight < 0:
            raise InputError(f"--flight is a number of games from 0 up, not {self.flight}")
        if self.game:  # empty while the command line has not been read to its end
            _ = self.phase_list, self.the_network  # wrong text shows here
            self._check_use()

    def _check_use(self) -> None:
        """Refuse what would do nothing, or what cannot be done."""
        if self.phases and (self.rate or self.rule != registry.DEFAULT):
            raise InputError("--phases says rules and rates itself: leave out --rule and --rate")
        for phase in self.phase_list:
            if self.device == "cuda" and not phase.rule.gpu:
                raise InputError(f"the GPU has no batch rule for {phase.rule.name}: leave out --device cuda")
        if self.flight and self.device == "cpu" and not self.exact:
            raise InputError("--flight goes with --exact or --device cuda: else each thread plays its own games")
        if self.exact:
            self._check_exact()
        if not self.turned and not self.by_hint:
            raise InputError("--no-turned goes with --by-hint")
        game = self.the_game
        if not game.practice:
            return
        if self.start == "ahead":
            raise InputError(f"{game.name} begins games in its own way: leave out --start ahead")
        if any(stage >= game.given for stage in self.the_network.stages):
            given, smaller = game.tiles[game.given], game.tiles[game.given - 1]
            raise InputError(
                f"{game.name} begins with tiles from {given} on: --stages are for smaller ones, such as {smaller}"
            )

    def _check_exact(self) -> None:
        if self.device == "cuda":
            raise InputError("a GPU is exact always: leave out --exact")
        if self.of == "states" or self.direction == "backward":
            raise InputError("--exact goes with forward learning of values of afterstates")
        if self.flight > MOST_IN_FLIGHT:
            raise InputError(f"--flight is at most {MOST_IN_FLIGHT} games, not {self.flight}")
        for phase in self.phase_list:
            if not phase.rule.gpu:
                raise InputError(f"{phase.rule.name} has no batch rule: leave out --exact")

    @property
    def the_game(self) -> Game:
        return get(self.game, **parse_parameters(self.parameters))

    @property
    def the_network(self) -> Network:
        from tilesage.networks.ntuple import evaluator

        game = self.the_game
        stages: list[int] = []
        names = [str(tile) for tile in game.tiles[:16]]
        for word in self.stages.replace(",", " ").split():
            if word not in names[3:]:
                raise InputError(f"a stage is a tile of {game.name} such as {game.tiles[12]}, not {word!r}")
            stages.append(names.index(word))
        if len(stages) > 6:
            raise InputError("at most six stages: each doubles the tables")
        if stages and self.of == "states" and game.second_rate is None:
            raise InputError(f"stages of values of states are for games such as 2048, not for {game.name}")
        network = parse_network(self.network, tuple(stages), self.by_hint, self._fold(game), self.turned, self.by_age)
        evaluator(game, network)
        return network

    def _fold(self, game: Game) -> int:
        """The index of the tile from which boards are folded, 0 for never."""
        if not self.fold:
            return 0
        names = [str(tile) for tile in game.tiles[:16]]
        if self.fold not in names[8:]:
            raise InputError(f"--fold takes a tile of {game.name} such as {game.tiles[12]}, not {self.fold!r}")
        if self.of == "states" or self.direction == "backward":
            raise InputError("--fold goes with forward learning of values of afterstates")
        return names.index(self.fold)

    @property
    def history(self) -> int:
        """Moves that an update waits (forward)."""
        from tilesage.learning.traces import history_of

        return history_of(self.decay, self.steps)

    @property
    def trace(self) -> float:
        """The λ that the loops use: n-step learning is λ = 1 over n moves."""
        return 1.0 if self.steps else self.decay

    @property
    def phase_list(self) -> list[Phase]:
        """The phases, one after another; one of them for a plain run."""
        if not self.phases:
            rule = registry.get(self.rule)
            return [Phase(rule, parse_schedule(self.rate or rule.rate), 0, 1)]
        return parse_phases(self.phases)

    @property
    def block_size(self) -> int:
        """Games that make one line of the metrics."""
        return self.block if self.device == "cpu" else 50 * self.block

    def stretch(self, most: int) -> int:
        """Moves at one rate: a hundredth of the run, so that rates and means are those of any number of threads."""
        return max(1, min(most, self.moves // 100)) if self.moves else most

    @property
    def limited(self) -> bool:
        return bool(self.games or self.moves or self.seconds)

    def memory_needed(self) -> int:
        """Bytes of weights, of what the rules remember, and of the mean, known before any is taken."""
        from tilesage.networks.ntuple import evaluator

        return self.bytes_an_entry * evaluator(self.the_game, self.the_network).size

    @property
    def bytes_an_entry(self) -> int:
        """What is known of each entry: its weight, what the rules remember, and the mean."""
        return 4 * (1 + max(len(phase.rule.memory) for phase in self.phase_list) + self.average)

    def with_budget(self, games: int, moves: int, seconds: float) -> TrainConfig:
        """The same run with another end, where one is given."""
        if not (games or moves or seconds):
            return self
        return replace(self, games=games, moves=moves, seconds=seconds)

    def with_phases(self, text: str, done: float, now: Phase) -> TrainConfig:
        """The same run with other phases after `now`; all that was done before them counts as one.

        That one has the rate of this moment: it is what goes on if the run is given a later end before it has learnt
        anything under the new ones.
        """
        if done >= 1:
            raise InputError(
                "this run is done, and --phases are for what is left of one: add --seconds, --games or --moves"
            )
        rest = parse_phases(text, now.rule)
        words = [f"{phase.name}:{phase.rate.text}:{(phase.end - phase.begin) * (1 - done)!r}" for phase in rest]
        past = [f"{now.rule.name}:{now.rate_at(done)!r}:{done!r}"] if done else []
        return replace(self, rule=registry.DEFAULT, rate="", phases=",".join(past + words))

    def write(self, path: Path) -> None:
        """As TOML, every setting."""
        lines = [f"{name} = {_toml(value)}" for name, value in asdict(self).items()]
        with written(path, text=True) as file:
            file.write("# tilesage train --resume reads this\n" + "\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """The settings of a run; a game or a rule from outside must have been asked for by name before."""
        found = settings_in(path)
        for name in rules_in(found):
            registry.check_known(name, path)
        return cls(**found)


@dataclass(frozen=True)
class Phase:
    """A stretch of a run under one rule."""

    rule: UpdateRule
    rate: Schedule
    begin: float
    end: float
    softened: bool = False  # what the rule remembers goes on with less inertia instead of afresh

    @property
    def name(self) -> str:
        """As it is written."""
        return SOFTEN if self.softened else self.rule.name

    def rate_at(self, done: float) -> float:
        return self.rate.at((done - self.begin) / (self.end - self.begin))


def parse_phases(text: str, before: UpdateRule | None = None) -> list[Phase]:
    """Phases as they are written; `before`: the rule that they come after, if there is one.

    >>> [(phase.name, phase.begin, phase.end) for phase in parse_phases("td:0.1:0.75,tc:1:0.25")]
    [('td', 0.0, 0.75), ('tc', 0.75, 1.0)]
    """
    found: list[Phase] = []
    begin = 0.0
    for word in text.replace(" ", "").split(","):
        name, rate, share = ["", "", *word.rsplit(":", 2)][-3:]
        try:
            end = begin + float(share)
        except ValueError:
            end = -1.0
        if not name or not begin < end <= 1.0001:
            raise InputError(f"{word!r} is not a phase: write rule:rate:share, such as td:0.1:0.9,tc:1:0.1")
        if name != SOFTEN:
            before = registry.get(name)
        elif before is None or not before.softens:
            raise InputError("a soften phase goes on from a tc phase: write tc:1:0.6,soften:1:0.4")
        found.append(Phase(before, parse_schedule(rate), begin, end, name == SOFTEN))
        begin = end
    if begin < 0.9999:
        raise InputError(f"the shares of the phases {text!r} add up to {begin:g}, not to 1")
    return found


def rules_in(settings: dict[str, Any]) -> set[str]:
    """The names of the rules that these settings learn by."""
    if not settings.get("phases"):
        return {settings.get("rule", registry.DEFAULT)}
    words = settings["phases"].replace(" ", "").split(",")
    return {word.rsplit(":", 2)[0] for word in words} - {SOFTEN}


def settings_in(path: Path) -> dict[str, Any]:
    """The settings in a file, of the right kinds, of a game that is known; no rule of learning is asked for."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, numbers or nesting beyond all use
        raise InputError(f"{path} is not TOML: {error}") from None
    check_known(str(found.get("game", "")), path)
    return checked(found, path)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # but for that, JSON's texts are TOML's


def checked(found: dict[str, Any], path: Path | str) -> dict[str, Any]:
    """The settings of a file, of the right kinds."""
    defaults = asdict(TrainConfig())
    known = {field.name for field in fields(TrainConfig)}
    for name, value in found.items():
        if name not in known:
            raise InputError(f"{path}: unknown setting {name!r}; known are {', '.join(sorted(known))}")
        kind = type(defaults[name])
        if kind is float and isinstance(value, int) and abs(value) <= MOST:
            found[name] = float(value)
        elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{path}: {name} is a {kind.__name__}, not {value!r}")
    choices: dict[str, tuple[str, ...]] = {
        "of": ("afterstates", "states"),
        "direction": ("forward", "backward"),
    }
    choices |= {"start": ("fresh", "ahead"), "device": ("cpu", "cuda")}
    for name, allowed in choices.items():
        if found.get(name, allowed[0]) not in allowed:
            raise InputError(f"{path}: {name} is one of {', '.join(allowed)}, not {found[name]!r}")
    return found


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that somebody gave in Python, where rates and tiles may also be numbers.

    >>> settings_of({"rate": 0.1, "stages": 4096, "seconds": 5})
    {'rate': '0.1', 'stages': '4096', 'seconds': 5.0}
    """
    texts = {field.name for field in fields(TrainConfig) if isinstance(field.default, str)}
    numbers = {name for name, value in given.items() if type(value) in (int, float)}
    return checked({name: str(value) if name in texts & numbers else value for name, value in given.items()}, "train")


def free_memory() -> int:
    """Bytes that are free now, as far as the system tells."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 1 << 62


def check_entries(entries: int) -> None:
    """Refuse tables whose entries 32 bits cannot tell apart."""
    if entries > MOST_ENTRIES:
        raise InputError(
            f"{entries:,} entries are more than {MOST_ENTRIES:,}: take a smaller network or fewer stages"
        )


def check_memory(config: TrainConfig) -> None:
    """Refuse what does not fit, before taking it."""
    needed, free = config.memory_needed(), free_memory()
    if needed > 0.95 * free:
        raise InputError(
            f"{config.network} with these settings needs {needed / GIGABYTE:.1f} GiB of memory, "
            f"{free / GIGABYTE:.1f} GiB are free: take a smaller network, fewer stages, --no-average or --rule td"
        )
