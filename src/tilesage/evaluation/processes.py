"""Players in plain Python on all processors: each worker is a process of its own.

Python runs one thread at a time, so that threads would not help. A worker is a fresh interpreter that imports this
package and the player's module, and never the script that asked for the evaluation: a script needs no
`if __name__ == "__main__"`. Orders and finished games travel through pipes; what a player prints goes to standard
error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, Any, NamedTuple

import numpy as np

from tilesage import games
from tilesage.core.errors import InputError
from tilesage.evaluation.evaluate import LocalWorker, Played, Worker
from tilesage.search.agents import agent as agent_of
from tilesage.search.python_players import AgentError, PythonAgent

IN_WORKER = "TILESAGE_WORKER"  # set in the environment of workers, which start no workers of their own
START = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


class Order(NamedTuple):
    """Who plays what."""

    reference: str
    spec: str
    game: str
    parameters: dict[str, float]
    keep: bool
    until: int

    def worker(self) -> LocalWorker:
        """The worker that carries out the order, in its process."""
        game = games.get(self.game, **self.parameters)
        return LocalWorker(agent_of(self.reference, game), self.keep, self.until)


def can_be_found(agent: PythonAgent) -> bool:
    """Can another process import this player, and has it the same game?"""
    return agent.reference is not None and agent.game.is_registered()


def start_workers(agent: PythonAgent, keep: bool, until: int, count: int) -> list[Worker]:
    """So many processes, each ready to play."""
    assert agent.reference is not None
    order = Order(agent.reference, agent.spec, agent.game.name, dict(agent.game.parameters), keep, until)
    started = [ProcessWorker(order, quiet=number > 0) for number in range(count)]
    try:
        for worker in started:
            worker.receive()
    except BaseException:
        for worker in started:
            worker.close()
        raise
    return list[Worker](started)


class ProcessWorker:
    """A worker process, as the process that started it sees it."""

    def __init__(self, order: Order, quiet: bool) -> None:
        words = [sys.executable, "-c", START.format(path=sys.path, module=__name__)]
        self.spec, self.ended = order.spec, False
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {IN_WORKER: "1"} | ({"TILESAGE_QUIET": "1"} if quiet else {}),  # one of them tells
            start_new_session=True,  # Ctrl-C is for the process that counts the games
        )
        self._send(order)

    def play(self, seed: int, first: int, games: int) -> Played:
        """See `Worker`; the other process plays."""
        self._send((seed, first, games))
        played = self.receive()
        return played if isinstance(played, Played) else _nothing(first)

    def finish(self) -> None:
        """The end of its input tells it to stop at the next move."""
        self.ended = True
        with contextlib.suppress(OSError):
            _open(self.process.stdin).close()

    def close(self) -> None:
        """End the process now."""
        self.ended = True
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                _open(pipe).close()

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, or is to end: the answer will tell
            pickle.dump(message, _open(self.process.stdin))
            _open(self.process.stdin).flush()

    def receive(self) -> Any:
        """Its answer; None from one that was told to end."""
        try:
            answer = pickle.load(_open(self.process.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            if self.ended:
                return None
            status = self.process.wait()
            raise AgentError(f"{self.spec}: a process that played with it ended at once, status {status}") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _nothing(first: int) -> Played:
    """No game was finished."""
    none = np.zeros(0, np.int64)
    return Played(first, none, none, none, 0.0, 0.0)


# --- in the worker process ----------------------------------------------------------------------------------------


def main() -> None:
    """Take an order, then play portions until the input ends."""
    orders, answers = _pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = pickle.load(orders).worker()
        worker.warm_up()
    except InputError as wrong:
        _answer(answers, wrong)
        return
    _answer(answers, "ready")
    waiting: queue.SimpleQueue[tuple[int, int, int] | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(orders, waiting, worker), daemon=True).start()
    while (portion := waiting.get()) is not None:
        _answer(answers, worker.play(*portion))


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes of the start, moved away: whatever the player reads or prints does not get into them."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return orders, answers


def _read(orders: IO[bytes], waiting: queue.SimpleQueue[tuple[int, int, int] | None], worker: LocalWorker) -> None:
    """Hand on the orders as they come; at their end, the game in play ends with its next move."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            waiting.put(pickle.load(orders))
    worker.stop[0] = 1
    waiting.put(None)


def _answer(answers: IO[bytes], what: object) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        pickle.dump(what, answers)
        answers.flush()
