"""Games for the record: many of them, on all cores, the same ones whatever the number of workers.

Game number i under a seed has its own generator for chance and another for the player's own dice, so its course
depends on the seed, on i and on the player, and on nothing else.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
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

CHUNK_SECONDS = 0.25
MOST_READY = 8  # portions of games that wait to be counted
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

    def finish(self) -> None:
        """See `Worker`."""
        self.stop[0] = 1

    def close(self) -> None:
        """See `Worker`."""
        self.stop[0] = 1


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

    `keep` receives every game as a record, in order; `progress` the figures so far, a few times a second. Ctrl-C ends
    the evaluation early with what was finished: `complete` is then False, even if that is all of it, so that whoever
    wanted to do more afterwards knows. A player that raises, or makes a move that is none, ends it with an
    `AgentError`, whose `evaluation` has the games before that one.

    >>> evaluate(lambda state: state.legal[0], games=10)
    Evaluation('<lambda>', 2048: 10 games, mean 2,511 ± 299)
    """
    if games < 1 or workers < 1:
        raise InputError("games and workers are whole numbers from 1 on")
    if not 0 <= seed < 2**64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed}")
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
        print(f"{agent.spec} cannot be imported elsewhere: all games are played in this process", file=sys.stderr)
    return 1, "processes"


class Evaluating:
    """The state that the workers of one evaluation share."""

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
        self.lock = threading.Lock()
        self.next_game = 0
        self.waiting: dict[int, Played] = {}  # finished out of order
        self.next_ready = 0
        self.ready: deque[Played] = deque()  # in order, to be counted by the main thread
        self.statistics = Statistics(agent.game.name, agent.game.tiles)
        self.failure: BaseException | None = None

    def run(self) -> Evaluation:
        """Play all games, until they are finished or the user stops them."""
        workers = self._workers()
        begin = time.perf_counter()
        threads = [threading.Thread(target=self._work, args=(worker,), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            with self._stopped_by_ctrl_c():
                self._watch(threads, workers, begin)
                seconds = time.perf_counter() - begin
                self._count()
        finally:
            for worker in workers:
                worker.close()
        result = self._result(seconds)
        if isinstance(self.failure, AgentError):
            self.failure.evaluation = result
        if self.failure is not None:
            raise self.failure
        return result

    def _result(self, seconds: float) -> Evaluation:
        complete = self.statistics.games == self.wanted and not self.interrupted
        found = self.agent, self.seed, self.statistics, seconds, self.workers
        return Evaluation(*found, complete=complete, worker_kind=self.worker_kind, until=self.until)

    def _workers(self) -> list[Worker]:
        """All of them, ready to play."""
        self.workers, self.worker_kind = where_to_play(self.agent, self.workers)
        keep, tile = self.keep is not None, self.agent.game.tiles.index(self.until) if self.until else 0
        if isinstance(self.agent, PythonAgent) and self.workers > 1:
            from tilesage.evaluation.processes import start_workers

            return start_workers(self.agent, keep, tile, self.workers)
        local = [LocalWorker(self.agent, keep, tile, self.stop) for _ in range(self.workers)]
        self.stop[0] = 1
        local[0].play(self.seed, 0, 1)  # a game that is stopped at once: compiled before the clock starts
        self.stop[0] = 0
        return list[Worker](local)

    @contextlib.contextmanager
    def _stopped_by_ctrl_c(self) -> Iterator[None]:
        """The first Ctrl-C ends the games and keeps all that were finished; a second one ends everything at once."""
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

    def _watch(self, threads: list[threading.Thread], workers: list[Worker], begin: float) -> None:
        """Count and tell until all is played, or until it has to end; who has not ended in time then is ended."""
        deadline = float("inf")
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.1 / len(threads))
            self._count()
            if self.progress is not None:
                self.progress(self.statistics, time.perf_counter() - begin)
            if (self.stop[0] or self.next_ready >= self.games) and deadline == float("inf"):
                deadline = time.monotonic() + PATIENCE
                for worker in workers:
                    worker.finish()
            if time.monotonic() > deadline:
                for worker in workers:
                    worker.close()
                if isinstance(self.agent, PythonAgent):  # it may think for ever: what it played counts
                    return

    def _take(self, wanted: int) -> tuple[int, int]:
        with self.lock:
            first = self.next_game
            size = max(0, min(wanted, self.games - first))
            self.next_game += size
        return first, size

    def _work(self, worker: Worker) -> None:
        wanted = 1
        try:
            while not self.stop[0]:
                first, size = self._take(wanted)
                if not size:
                    return
                while (
                    len(self.ready) > MOST_READY and not self.stop[0]
                ):  # records are written more slowly than played
                    time.sleep(0.01)
                begin = time.perf_counter()
                while size and not self.stop[0] and first < self.games:
                    played = worker.play(self.seed, first, size)
                    self._deliver(played)
                    first, size = first + len(played), size - len(played)
                if time.perf_counter() - begin < CHUNK_SECONDS:
                    wanted = min(2 * wanted, max(1, self.games // (8 * self.workers)))
        except BaseException as error:
            self.failure = error
            self.stop[0] = 1

    def _deliver(self, played: Played) -> None:
        with self.lock:
            if played.failure is not None and played.first + len(played) < self.games:
                self.games, self.failure = played.first + len(played), played.failure
            if len(played):
                self.waiting[played.first] = played
            while self.next_ready in self.waiting:
                self.ready.append(self.waiting.pop(self.next_ready))
                self.next_ready += len(self.ready[-1])

    def _count(self) -> None:
        """Take the games that are ready into the statistics, and hand them on."""
        while self.ready:
            played = self.ready.popleft()
            self.statistics.add_games(played.scores, played.largest, played.moves)
            if self.keep is not None:
                for record in records_of(self.agent, self.seed, played):
                    self.keep(record)


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
