"""Games for the record: many of them, on all cores, the same ones whatever the number of workers.

Game number i under a seed has its own generator for chance and another for the player's own dice, so its course
depends on the seed, on i and on the player, and on nothing else.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from afterstate.games import PRACTICE, Game, Mistake
from afterstate.games.board import Whole
from afterstate.games.chance import seed_of
from afterstate.games.compiler import Array, compiled
from afterstate.search.agents import Agent, Memory

from .records import Place, Record, Slide
from .statistics import Statistics

LONGEST_GAME = 1 << 18  # moves: 131072 cannot take more
CHUNK_SECONDS = 0.25
MOST_READY = 8  # portions of games that wait to be counted
LOOPS = 64  # of players, that stay at hand
PLAYER_STREAMS = np.uint64(1 << 63)


@compiled
def chance_in(seed: np.uint64, index: Whole) -> np.uint64:
    """The generator of chance in game `index` under `seed`."""
    return seed_of(seed, np.uint64(index))


@compiled
def dice_in(seed: np.uint64, index: Whole) -> np.uint64:
    """The generator of the player's own dice in that game."""
    return seed_of(seed, np.uint64(index) | PLAYER_STREAMS)


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

    def __len__(self) -> int:
        return len(self.scores)


def make_player(agent: Agent) -> Callable[..., Any]:
    """The loop that plays games `first`, `first` + 1, … with this agent, compiled as one piece."""
    return _player_of(agent.game, agent.decide, agent.spec)


@lru_cache(maxsize=LOOPS)  # machine code that was loaded is never given back
def _player_of(game: Game, decide: Callable[..., Any], spec: str) -> Callable[..., Any]:
    start, slide, spawn = game.rules.start, game.rules.slide, game.rules.spawn
    value_of_board, largest_tile = game.rules.value_of_board, game.rules.largest
    score_is_value = game.score_is_value

    @compiled(title=f"games of {game.title} for {spec}")
    def play(
        memory: Memory, rows: Array, seed: np.uint64, first: int, results: Array, actions: Array, stop: Array
    ) -> int:
        """Fill results [games, 3] with score, moves, largest. Returns how many games were finished."""
        used = np.int64(0)
        for game_number in range(len(results)):
            if actions.size and used + LONGEST_GAME > actions.size:
                return game_number
            rng, thought = chance_in(seed, first + game_number), dice_in(seed, first + game_number)
            board, aux, rng = start(rows, rng)
            score = value_of_board(board, aux) if score_is_value else np.int64(0)
            moves = np.int64(0)
            while True:
                action, thought = decide(memory, board, aux, score, thought)
                if action < 0:
                    break
                after, after_aux, reward = slide(rows, board, aux, action)
                board, aux, placed, rng = spawn(after, after_aux, rng)
                score += reward + placed
                if actions.size:
                    actions[used + moves] = action
                moves += 1
                if stop[0]:
                    return game_number
            results[game_number, 0] = score
            results[game_number, 1] = moves
            results[game_number, 2] = largest_tile(board, aux)
            used += moves
        return len(results)

    return play


class Player:
    """One worker's player: the compiled loop and its own memory."""

    def __init__(self, agent: Agent, keep_actions: bool, stop: Array | None = None) -> None:
        self.agent = agent
        self.loop = make_player(agent)
        self.memory = agent.new_memory()
        self.actions = np.zeros(4 * LONGEST_GAME if keep_actions else 0, np.uint8)
        self.stop = np.zeros(1, np.int64) if stop is None else stop

    def play(self, seed: int, first: int, games: int) -> Played:
        """Games first … first + games - 1; fewer when stopped, or when the room for their moves is used up."""
        results = np.zeros((games, 3), np.int64)
        begun, clock = time.time(), time.perf_counter()
        done = self.loop(self.memory, self.agent.game.rows, np.uint64(seed), first, results, self.actions, self.stop)
        scores, moves, largest = results[:done].T
        played = Played(first, scores, moves, largest, begun, time.perf_counter() - clock)
        if self.actions.size:
            ends = np.cumsum(moves)
            played.actions = [self.actions[end - n : end].tobytes() for end, n in zip(ends, moves)]
        return played


@dataclass
class Evaluation:
    """What an agent did in its games."""

    agent: Agent
    seed: int
    statistics: Statistics
    seconds: float
    workers: int
    records: list[Record] = field(default_factory=list, repr=False)
    complete: bool = True

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
            **self.statistics.summary(),
            "seconds": self.seconds,
            "moves_per_second": moves / self.seconds if self.seconds else None,
            "workers": self.workers,
            "complete": self.complete,
        }


def evaluate(
    agent: Agent,
    games: int,
    seed: int = 1,
    workers: int = 1,
    *,
    keep: Callable[[Record], None] | None = None,
    progress: Callable[[Statistics, float], None] | None = None,
) -> Evaluation:
    """Play games 0 … games - 1 under `seed` on `workers` threads.

    `keep` receives every game as a record, in order; `progress` the figures so far, a few times a second. Ctrl-C ends
    the evaluation early with what was finished: `complete` is then False, even if that is all of it, so that whoever
    wanted to do more afterwards knows.
    """
    if games < 1 or workers < 1:
        raise Mistake("games and workers are whole numbers from 1 on")
    if not 0 <= seed < 2**64:
        raise Mistake(f"a seed is a whole number from 0 to 2^64 - 1, not {seed}")
    return Evaluating(agent, games, seed, min(workers, games), keep, progress).run()


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
    ) -> None:
        if keep is not None and agent.game.name in PRACTICE:
            raise Mistake(
                f"games of {agent.game.name} cannot be recorded: a record begins with an empty board, and practice "
                "begins in the middle of a game; leave out --save"
            )
        self.agent, self.games, self.seed, self.workers = agent, games, seed, workers
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
        players = [Player(self.agent, self.keep is not None, self.stop) for _ in range(self.workers)]
        self._warm_up(players[0])
        begin = time.perf_counter()
        threads = [threading.Thread(target=self._work, args=(player,), daemon=True) for player in players]
        for thread in threads:
            thread.start()
        with self._stopped_by_ctrl_c():
            self._watch(threads, begin)
            seconds = time.perf_counter() - begin
            self._count()
        if self.failure is not None:
            raise self.failure
        complete = self.statistics.games == self.games and not self.interrupted
        return Evaluation(self.agent, self.seed, self.statistics, seconds, self.workers, complete=complete)

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

    def _warm_up(self, player: Player) -> None:
        """Compile before the clock starts: a game that is stopped at once."""
        self.stop[0] = 1
        player.play(self.seed, 0, 1)
        self.stop[0] = 0

    def _watch(self, threads: list[threading.Thread], begin: float) -> None:
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.1 / len(threads))
            self._count()
            if self.progress is not None:
                self.progress(self.statistics, time.perf_counter() - begin)

    def _take(self, wanted: int) -> tuple[int, int]:
        with self.lock:
            first = self.next_game
            size = max(0, min(wanted, self.games - first))
            self.next_game += size
        return first, size

    def _work(self, player: Player) -> None:
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
                while size and not self.stop[0]:
                    played = player.play(self.seed, first, size)
                    self._deliver(played)
                    first, size = first + len(played), size - len(played)
                if time.perf_counter() - begin < CHUNK_SECONDS:
                    wanted = min(2 * wanted, max(1, self.games // (8 * self.workers)))
        except BaseException as error:
            self.failure = error
            self.stop[0] = 1

    def _deliver(self, played: Played) -> None:
        if not len(played):
            return
        with self.lock:
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


@cache
def make_replayer(game: Game) -> Callable[..., Any]:
    """The loop that plays a game again from its generator and its actions, compiled."""
    deal, slide, spawn, starting_tiles = game.rules.deal, game.rules.slide, game.rules.spawn, game.starting_tiles

    @compiled(title=f"the recorder of {game.title}")
    def replay(rows: Array, rng: np.uint64, actions: Array, rewards: Array, landed: Array, auxes: Array) -> None:
        """`rewards` [moves] of the slides; `landed` [start + moves] the new tile alone; `auxes` what it led to."""
        board, aux = np.uint64(0), np.uint64(0)
        for i in range(starting_tiles):
            before = board
            board, aux, rng = deal(board, aux, rng)
            landed[i], auxes[i] = board ^ before, aux
        for i in range(actions.size):
            after, after_aux, rewards[i] = slide(rows, board, aux, np.int64(actions[i]))
            board, aux, _, rng = spawn(after, after_aux, rng)
            landed[starting_tiles + i], auxes[starting_tiles + i] = board ^ after, aux

    return replay


def records_of(agent: Agent, seed: int, played: Played) -> Iterator[Record]:
    """Finished games as records. Their times share out the time of all of them by the number of moves."""
    game, replay = agent.game, make_replayer(agent.game)
    pace = 1000 * played.seconds / max(1, int(played.moves.sum()))
    clock = 1000 * played.begun
    for i, actions in enumerate(played.actions):
        moves = np.frombuffer(actions, np.uint8)
        rewards = np.zeros(len(moves), np.int64)
        landed, auxes = (np.zeros(game.starting_tiles + len(moves), np.uint64) for _ in range(2))
        rng = np.uint64(chance_in(np.uint64(seed), played.first + i))
        replay(game.rows, rng, moves, rewards, landed, auxes)
        places = [_place(game, int(tile), aux) for tile, aux in zip(landed, auxes)]
        lines: list[Slide | Place] = [*places[: game.starting_tiles]]
        for action, reward, place in zip(moves.tolist(), rewards.tolist(), places[game.starting_tiles :]):
            lines += (Slide(action, reward), place)
        end = clock + pace * len(moves)
        yield Record(game.name, lines, agent.spec.replace(":", "-"), start_ms=round(clock), end_ms=round(end))
        clock = end


def _place(game: Game, landed: int, aux: np.uint64) -> Place:
    """The tile that stands alone on the board `landed`, with the hint it led to."""
    cell = (landed.bit_length() - 1) // 4
    index = landed >> 4 * cell
    if not game.score_is_value:
        return Place(cell, index)
    shown = game.write(np.uint64(landed), aux)[1]["hint"]
    hint = tuple(game.tiles.index(int(number)) for number in shown.split("+"))
    return Place(cell, index, hint, 3 ** (index - 2) if index >= 3 else 0)
