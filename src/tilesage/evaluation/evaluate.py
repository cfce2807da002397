"""Games for the record: many of them, on all cores, the same ones whatever the number of workers.

Game number i under a seed has its own generator for chance and another for the player's own dice, so its course
depends on the seed, on i and on the player, and on nothing else.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError, check_seed
from tilesage.evaluation.playing import COLUMNS, LARGEST, LONGEST_GAME, MOVES, SCORE, Playing, chance_in, dealer_of
from tilesage.games import Game, State
from tilesage.records.notation import notation_of
from tilesage.records.record import Record, dealt, followed
from tilesage.records.statistics import Statistics
from tilesage.search.agents import Agent
from tilesage.search.agents import agent as agent_of
from tilesage.search.python_players import AgentError, Player, PythonAgent

if TYPE_CHECKING:
    from tilesage.networks.files import Model

CHUNK_SECONDS = 0.25  # a portion that takes less is followed by larger ones
CHUNK_SECONDS_KEPT = 0.01  # the same where games are recorded, which takes far longer than to play them
PATIENCE = 1.0  # seconds in which a process may end by itself what it has begun


@dataclass
class Played:
    """Some finished games, in order of their numbers."""

    first: int
    scores: Array  # [games] int64
    moves: Array  # [games] int64
    largest: Array  # [games] int64, index of the largest tile
    begun: float  # seconds since 1970
    seconds: float
    actions: list[bytes] = field(default_factory=list)  # one a game, when games are kept
    failure: AgentError | None = None  # of the player, in the game after these

    def __len__(self) -> int:
        return len(self.scores)


class Worker(Protocol):
    """Who plays portions of an evaluation: a thread of this process, or another process."""

    def play(self, seed: int, first: int, games: int) -> Played:
        """Games first … first + games - 1; fewer when stopped, or when the room for their moves is used up."""
        ...

    def finish(self) -> None:
        """End at the next move, and tell of the games that were finished."""
        ...

    def close(self) -> None:
        """End now."""
        ...


class LocalWorker:
    """A worker of this process: an agent at its games, with a memory of its own."""

    def __init__(self, agent: Agent, keep_actions: bool, until: int = 0, stop: Array | None = None) -> None:
        self.agent, self.until = agent, until
        self.playing = Playing(agent)
        self.actions = np.zeros(4 * LONGEST_GAME if keep_actions else 0, np.uint8)
        self.stop = np.zeros(1, np.int64) if stop is None else stop

    def play(self, seed: int, first: int, games: int) -> Played:
        """See `Worker`."""
        places = np.zeros((games, COLUMNS), np.uint64)
        dealer_of(self.agent.game)(self.agent.game.rows, np.uint64(seed), first, places)
        begun, clock, failure = time.time(), time.perf_counter(), None
        try:
            self.playing.finish(places, self.actions, self.stop, self.until)
        except AgentError as error:
            failure = error
        seconds = time.perf_counter() - clock
        done = places[places[:, LARGEST] > 0].astype(np.int64)
        moves = done[:, MOVES]
        played = Played(first, done[:, SCORE], moves, done[:, LARGEST], begun, seconds, failure=failure)
        if self.actions.size:
            played.actions = [self.actions[end - n : end].tobytes() for end, n in zip(np.cumsum(moves), moves)]
        return played

    def warm_up(self) -> None:
        """Compile before the clock starts: a game that is stopped at once."""
        self.stop[0] = 1
        self.play(0, 0, 1)
        self.stop[0] = 0

    def finish(self) -> None:
        """See `Worker`."""
        self.stop[0] = 1

    close = finish


@dataclass(repr=False)
class Evaluation:
    """What an agent did in its games."""

    agent: Agent
    seed: int
    statistics: Statistics
    seconds: float
    workers: int
    complete: bool = True
    worker_kind: str = "threads"
    until: int | None = None  # the tile at which games ended

    def __repr__(self) -> str:
        part = "" if self.complete else ", not complete"
        return f"Evaluation({self.agent.spec!r}, {self.agent.game.name}: {self.statistics.told}{part})"

    @property
    def heading(self) -> str:
        """Who played what with which model, in a line."""
        agent, model = self.agent, self.agent.model
        known = f", model {model.name} ({model.network.name})" if model else ""
        until = f", until {self.until}" if self.until else ""
        return f"{agent.spec} plays {agent.game.key}{known}, seed {self.seed}{until}"

    @property
    def placements(self) -> int:
        """Tiles that chance placed: those of every start, and one after every slide."""
        return self.agent.game.starting_tiles * self.statistics.games + self.statistics.slides

    def summary(self) -> dict[str, Any]:
        """The figures of `--json`."""
        model = self.agent.model
        moves = self.statistics.slides
        return {
            "game": self.agent.game.name,
            "agent": self.agent.spec,
            "model": model.name if model else None,
            "network": model.network.name if model else None,
            "seed": self.seed,
            "until": self.until,
            **self.statistics.summary(),
            "seconds": self.seconds,
            "moves_per_second": moves / self.seconds if self.seconds else None,
            "workers": self.workers,
            "complete": self.complete,
        }


def evaluate(
    player: str | Agent | Player | Callable[[State], int | str],
    games: int,
    seed: int = 1,
    workers: int = 1,
    *,
    game: Game | str | None = None,
    model: Model | Path | str | None = None,
    keep: Callable[[Record], None] | None = None,
    progress: Callable[[Statistics, float], None] | None = None,
    until: int | None = None,
) -> Evaluation:
    """Play games 0 … games - 1 under `seed` and count what came of them.

    `player` is whatever `agent` takes: "greedy", "my_module:my_agent", a function from a position to a move, an
    object with `choose`. Compiled players play on `workers` threads. Players in plain Python play in as many
    processes if they can be imported there, otherwise in this one. The games are the same for any number of workers.

    `until`: games also end as soon as they have this tile, as a player does who stops at 2048.

    `keep` receives every game as a record, in order; `progress` the figures so far, a few times a second. Ctrl-C
    ends the evaluation early with the games before the first unfinished one: `complete` is then False, even if that
    is all of it, so that whoever wanted to do more afterwards knows. A player that raises, or makes a move that is
    none, ends it with an `AgentError`, whose `evaluation` has the games before that one.

    >>> evaluate(lambda state: state.legal[0], games=10)
    Evaluation('<lambda>', 2048: 10 games, mean 2,511 ± 299)
    """
    if games < 1 or workers < 1:
        raise InputError("games and workers are whole numbers from 1 on")
    check_seed(seed)
    return Evaluating(agent_of(player, game, model), games, seed, min(workers, games), keep, progress, until).run()


def where_to_play(agent: Agent, workers: int) -> tuple[int, str]:
    """How many of what: compiled players need no processes, and some players in plain Python cannot have any."""
    if not isinstance(agent, PythonAgent):
        return workers, "threads"
    from tilesage.evaluation.processes import IN_WORKER, can_be_found

    if workers == 1 or os.environ.get(IN_WORKER):
        return 1, "processes"
    if can_be_found(agent):
        return workers, "processes"
    if not os.environ.get("TILESAGE_QUIET"):
        what = agent.spec if agent.game.is_registered() else f"this {agent.game}"
        print(f"{what} cannot be imported elsewhere: all games are played in this process", file=sys.stderr)
    return 1, "processes"


class Crew:
    """Some workers, each with a thread that plays its portions, or waits for the process that does."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = workers
        self.orders: SimpleQueue[tuple[Future[list[Played]], tuple[int, int, int]] | None] = SimpleQueue()
        for worker in workers:
            threading.Thread(target=self._serve, args=(worker,), daemon=True).start()

    def submit(self, seed: int, first: int, games: int) -> Future[list[Played]]:
        """Let somebody play games first … first + games - 1."""
        future: Future[list[Played]] = Future()
        self.orders.put((future, (seed, first, games)))
        return future

    def _serve(self, worker: Worker) -> None:
        while order := self.orders.get():
            future, portion = order
            try:
                future.set_result(whole_portion(worker, *portion))
            except BaseException as error:
                future.set_exception(error)

    def finish(self) -> None:
        """Let everybody end at the next move, and tell of the games that were finished."""
        for worker in self.workers:
            worker.finish()

    def close(self) -> None:
        """End everybody now."""
        for worker in self.workers:
            worker.close()
            self.orders.put(None)


def whole_portion(worker: Worker, seed: int, first: int, games: int) -> list[Played]:
    """Games first … first + games - 1, in as many parts as the worker has room for; fewer when it is stopped."""
    end, found = first + games, list[Played]()
    while first < end:
        found.append(worker.play(seed, first, end - first))
        first += len(found[-1])
        if not len(found[-1]) or found[-1].failure:
            break
    return found


class Evaluating:
    """One evaluation under way: it deals out the games, and counts them in their order."""

    def __init__(
        self,
        agent: Agent,
        games: int,
        seed: int,
        workers: int,
        keep: Callable[[Record], None] | None,
        progress: Callable[[Statistics, float], None] | None,
        until: int | None = None,
    ) -> None:
        tiles = agent.game.tiles
        if until is not None and until not in tiles[1:]:
            raise InputError(f"{until} is no tile of {agent.game.title}: give one such as {tiles[agent.game.goal]}")
        if keep is not None and until is not None:
            raise InputError("games that end at a tile are not whole, so no record holds them: leave out --save")
        self.until = until
        if keep is not None and agent.game.practice:
            raise InputError(
                f"games of {agent.game.name} cannot be recorded: a record begins with an empty board, and practice "
                "begins in the middle of a game; leave out --save"
            )
        self.agent, self.games, self.seed, self.workers = agent, games, seed, workers
        self.wanted = games  # `games` becomes less where the player fails
        self.worker_kind = "workers"
        self.keep, self.progress = keep, progress
        self.stop = np.zeros(1, np.int64)
        self.interrupted = False
        self.chunk = CHUNK_SECONDS if keep is None else CHUNK_SECONDS_KEPT
        self.next_game = self.next_ready = self.tasks = 0
        self.waiting: dict[int, Played] = {}  # finished out of order
        self.statistics = Statistics(agent.game.name, agent.game.tiles)
        self.failure: BaseException | None = None

    def run(self) -> Evaluation:
        """Play all games, until they are finished or the user stops them."""
        crew = self._crew()
        begin = time.perf_counter()
        try:
            with self._stopped_by_ctrl_c():
                self._play(crew, begin)
                seconds = time.perf_counter() - begin
        finally:
            crew.close()
        complete = self.statistics.games == self.wanted and not self.interrupted
        found = self.agent, self.seed, self.statistics, seconds, self.workers
        result = Evaluation(*found, complete=complete, worker_kind=self.worker_kind, until=self.until)
        if isinstance(self.failure, AgentError):
            self.failure.evaluation = result
        if self.failure is not None:
            raise self.failure
        return result

    def _crew(self) -> Crew:
        """Who plays, ready to begin."""
        self.workers, self.worker_kind = where_to_play(self.agent, self.workers)
        keep, tile = self.keep is not None, self.agent.game.tiles.index(self.until) if self.until else 0
        if isinstance(self.agent, PythonAgent) and self.workers > 1:
            from tilesage.evaluation.processes import start_workers

            return Crew(start_workers(self.agent, keep, tile, self.workers))
        local = [LocalWorker(self.agent, keep, tile, self.stop) for _ in range(self.workers)]
        local[0].warm_up()
        return Crew(local)

    @contextlib.contextmanager
    def _stopped_by_ctrl_c(self) -> Iterator[None]:
        """The first Ctrl-C ends the games and keeps what was finished; a second one ends everything at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: object) -> None:
            self.stop[0], self.interrupted = 1, True
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            self.stop[0] = 1
            signal.signal(signal.SIGINT, before)

    @property
    def outstanding(self) -> int:
        """How many portions are dealt out at a time: enough that nobody waits for us."""
        return 2 * self.workers

    def _play(self, crew: Crew, begin: float) -> None:
        """Deal, count and tell until all is played, or until it has to end; then nobody is waited for for long."""
        under_way, size, shown, deadline = set[Future[list[Played]]](), 1, begin, math.inf
        while under_way or (self.next_game < self.games and not self.stop[0]):
            while len(under_way) < self.outstanding and self.next_game < self.games and not self.stop[0]:
                portion = min(size, self.games - self.next_game)
                under_way.add(crew.submit(self.seed, self.next_game, portion))
                self.next_game, self.tasks = self.next_game + portion, self.tasks + 1
            done, under_way = wait(under_way, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                if self._deliver(future) < self.chunk:
                    size = min(2 * size, max(1, self.games // (8 * self.workers)))
            now = time.perf_counter()
            if self.progress is not None and now - shown > 0.1:
                self.progress(self.statistics, now - begin)
                shown = now
            if (self.stop[0] or self.next_ready >= self.games) and deadline == math.inf:
                deadline = now + PATIENCE
                crew.finish()
            if now > deadline:  # a player may think for ever: what was finished counts
                return

    def _deliver(self, future: Future[list[Played]]) -> float:
        """Take what has come, count what is next in order, and tell how many seconds it took."""
        seconds = 0.0
        try:
            for played in future.result():
                seconds += played.seconds
                if played.failure is not None and played.first + len(played) < self.games:
                    self.games, self.failure = played.first + len(played), played.failure
                if len(played):
                    self.waiting[played.first] = played
        except BaseException as error:
            self.failure, self.stop[0] = error, 1
        while self.next_ready in self.waiting:
            played = self.waiting.pop(self.next_ready)
            self.next_ready += len(played)
            self.statistics.add_games(played.scores, played.largest, played.moves)
            if self.keep is not None:
                for record in records_of(self.agent, self.seed, played):
                    self.keep(record)
        return seconds


def records_of(agent: Agent, seed: int, played: Played) -> Iterator[Record]:
    """Finished games as records. Their times share out the time of all of them by the number of moves."""
    game = agent.game
    pace = 1000 * played.seconds / max(1, int(played.moves.sum()))
    clock = 1000 * played.begun
    slider, placer = agent.spec.replace(":", "-"), notation_of(game.name).placer
    for number, actions in enumerate(played.actions, played.first):
        start, board, aux, rng = dealt(game, np.uint64(chance_in(np.uint64(seed), number)))
        begin, clock = clock, clock + pace * len(actions)
        moves = start + followed(game, board, aux, rng, actions)
        yield Record(game.name, moves, slider, placer, round(begin), round(clock))
