"""Games in the terminal: watching a player, playing oneself, looking at a recorded game again."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live

from tilesage import games
from tilesage.app.analysis import Judged, accuracy, incidents
from tilesage.app.keyboard import Keyboard
from tilesage.core.errors import InputError
from tilesage.drawing.terminal import Scene, draw, is_interactive, move_line, plain_lines, start_line
from tilesage.games import State
from tilesage.games.board import ACTIONS

if TYPE_CHECKING:
    from tilesage.evaluation.forecast import Opinion
    from tilesage.records.replay import Moment
    from tilesage.search.agents import Agent

FRAME = 1 / 30  # seconds: no screen is drawn more often
JUDGING = 0.05  # seconds for which moves are judged between two looks at the keyboard
# Each in a line of 40 columns.
WATCH_KEYS = "space pause · n one · + - speed · q quit"
PLAY_KEYS = "arrows, u undo, h hint, r new, q quit"
REPLAY_KEYS = "e judge · n p mistake · space · ← → · q"
SLOWEST, FASTEST = 4.0, 0.01


def landed(before: State, action: int, after: State) -> int | None:
    """The cell on which the new tile appeared."""
    changed = int(before.slide(action).board) ^ int(after.board)
    return (changed.bit_length() - 1) // 4 if changed else None


class Adviser:
    """An agent with its memory, asked for one position at a time."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.memory = agent, agent.new_memory()

    def think(self, state: State) -> Opinion:
        """The move, and a figure for each move where the agent has an opinion."""
        from tilesage.evaluation.forecast import opinion_of

        return opinion_of(self.agent, state, self.agent.think(state, self.memory))


class Screen:
    """The whole terminal, drawn again and again, not more often than the eye can follow; the last scene stays."""

    def __init__(self) -> None:
        self.console = Console()
        self.live = Live(console=self.console, auto_refresh=False, screen=True)
        self.again = self.drawing = False
        self.drawn, self.scene = 0.0, Scene(games.get(games.DEFAULT_GAME).new(0))

    def __enter__(self) -> Screen:
        self.live.start()
        with contextlib.suppress(ValueError, AttributeError):  # not in the main thread, or no such signal here
            signal.signal(signal.SIGWINCH, lambda *_: self.show(self.scene))
        return self

    def __exit__(self, *error: Any) -> None:
        with contextlib.suppress(ValueError, AttributeError):
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self.live.stop()
        self.console.print(draw(self.scene.but(keys=""), self.console))

    def show(self, scene: Scene, at_once: bool = True) -> None:
        """Draw the scene; unless `at_once`, only if the last one has been there for a moment.

        The window may become larger while it is drawn: then it is drawn once more, after that.
        """
        now, self.scene = time.monotonic(), scene
        self.again = at_once or now - self.drawn >= FRAME
        while self.again and not self.drawing:
            self.again, self.drawing, self.drawn = False, True, now
            self.live.update(draw(self.scene, self.console), refresh=True)
            self.drawing = False


# --- watching -----------------------------------------------------------------------------------------------------


@dataclass
class Pace:
    """How long to wait between moves, and the keys that change it."""

    delay: float
    paused: bool = False

    def wait(self, keyboard: Keyboard, redraw: Callable[[bool], None]) -> str:
        """Wait for the next move; "quit" or "" (go on)."""
        end = time.monotonic() + self.delay
        while True:
            left = end - time.monotonic()
            key = keyboard.read(None if self.paused else max(0.0, left))
            if key == "quit":
                return key
            if key == "pause":
                self.paused = not self.paused
                redraw(self.paused)
            elif key == "faster":
                self.delay = 0.0 if self.delay <= FASTEST else self.delay / 2
            elif key == "slower":
                self.delay = min(SLOWEST, max(FASTEST, self.delay * 2))
            if key == "step" or (not self.paused and time.monotonic() >= end):
                return ""


def watch(start: State, agent: Agent, delay: float | None, theme: str = "dark") -> State:
    """Show an agent at play: on a screen that changes, or a line a move where that is not possible."""
    if is_interactive():
        with Keyboard() as keyboard, Screen() as screen:
            return _watch_on(screen, keyboard, start, agent, 1.0 if delay is None else delay, theme)
    return _watch_plainly(start, agent, delay or 0.0)


def _watch_on(screen: Screen, keyboard: Keyboard, start: State, agent: Agent, delay: float, theme: str) -> State:
    adviser, pace, state = Adviser(agent), Pace(delay), start
    scene = Scene(state, theme, f"{state.game.title} · {agent.spec}", keys=WATCH_KEYS, message="thinking …")
    screen.show(scene)
    Adviser(agent).think(state)  # the first thought may compile: not counted, and not remembered
    begin = time.monotonic()
    while not state.over:
        thinking = time.monotonic()
        opinion = adviser.think(state)
        thought = time.monotonic() - thinking
        speed = (state.moves - start.moves) / max(time.monotonic() - begin, 1e-9)
        figures = (("thought", _duration(thought)), ("speed", f"{speed:,.1f} moves/s"), ("figures", opinion.name))
        scene = scene.but(state=state, values=opinion.values, best=opinion.best, figures=figures)

        def redraw(paused: bool, scene: Scene = scene) -> None:
            screen.show(scene.but(message="paused" if paused else ""))

        screen.show(scene.but(message="paused" if pace.paused else ""), at_once=pace.delay > FRAME)
        if pace.wait(keyboard, redraw) == "quit":
            return state
        before, state = state, state.play(opinion.best)
        scene = scene.but(new=landed(before, opinion.best, state))
    screen.show(scene.but(state=state, values=(), message="game over", keys=""))
    return state


def _watch_plainly(start: State, agent: Agent, delay: float) -> State:
    adviser, state = Adviser(agent), start
    print(start_line(state), flush=True)
    while not state.over:
        action = adviser.agent.choose(state, adviser.memory)
        before, state = state, state.play(action)
        print(move_line(state, action, state.score - before.score), flush=delay > 0)
        time.sleep(delay)
    print(f"game over: score {state.score}, largest tile {state.largest}, {state.moves} moves", flush=True)
    return state


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"


# --- playing ------------------------------------------------------------------------------------------------------


@dataclass
class Session:
    """A person's game in the terminal: the positions so far, and what there is to say about the last key."""

    start: State
    new_game: Callable[[], State]
    adviser: Adviser | None
    history: list[State] = field(init=False)
    new: int | None = None
    opinion: Opinion | None = None
    message: str = ""
    best: int = 0

    def __post_init__(self) -> None:
        self.history = [self.start]

    @property
    def state(self) -> State:
        """The position now."""
        return self.history[-1]

    def press(self, key: str) -> None:
        """What a key does."""
        self.message, self.opinion, self.new = "", None, None
        if key in ACTIONS:
            self._move(ACTIONS.index(key))
        elif key == "undo":
            self.message = "" if len(self.history) > 1 else "nothing to take back"
            del self.history[max(1, len(self.history) - 1) :]
        elif key == "restart":
            self.history = [self.new_game()]
        elif key == "hint":
            self._ask()
        self.best = max(self.best, self.state.score)
        if self.state.over:
            self.message = "game over · u takes back · r starts anew"

    def _move(self, action: int) -> None:
        before = self.state
        if action not in before.legal:
            self.message = f"{ACTIONS[action]} moves nothing"
            return
        self.history.append(before.play(action))
        self.new = landed(before, action, self.state)
        goal = before.game.tiles[before.game.goal]
        if before.largest < goal <= self.state.largest:
            self.message = f"{goal}! The game goes on."

    def _ask(self) -> None:
        if self.adviser is None or self.state.over:
            self.message = "nobody to ask: give a model, or --agent mcts:400" if self.adviser is None else ""
            return
        try:
            self.opinion = self.adviser.think(self.state)
        except InputError as failed:  # of somebody's own player: the game goes on without its advice
            self.message = str(failed)
            return
        self.message = f"the agent {self.adviser.agent.spec} would go {ACTIONS[self.opinion.best]}"

    def scene(self, theme: str) -> Scene:
        """What the screen shows."""
        scene = Scene(self.state, theme, new=self.new, message=self.message, keys=PLAY_KEYS)
        figures: tuple[tuple[str, str], ...] = (("highest", f"{self.best:,}"),)
        if self.opinion is None:
            return scene.but(figures=figures)
        figures += (("figures", self.opinion.name),)
        return scene.but(figures=figures, values=self.opinion.values, best=self.opinion.best)


def play(session: Session, theme: str = "dark") -> State:
    """Let a person play: with single keys on a screen, or with words where there is none."""
    if not is_interactive():
        return _play_plainly(session)
    with Keyboard() as keyboard, Screen() as screen:
        screen.show(session.scene(theme))
        for key in keyboard.presses():
            session.press(key)
            screen.show(session.scene(theme))
        screen.show(session.scene(theme).but(message="", keys=""))
    return session.state


WORDS = {"quit": "quit", "q": "quit", "undo": "undo", "hint": "hint", "restart": "restart", "r": "restart"}


def _play_plainly(session: Session) -> State:
    """Words from standard input, a board after each."""
    print("\n".join(plain_lines(Scene(session.state))))
    print("write up, right, down, left, undo, hint, restart or quit")
    while True:
        try:
            words = input().split()
        except EOFError:
            return session.state
        for word in map(str.lower, words):
            key = word if word in ACTIONS else WORDS.get(word, "")
            if key == "quit":
                return session.state
            if not key:
                raise InputError(
                    f"unknown word {word[:20]!r}: write {', '.join(ACTIONS)}, undo, hint, restart or quit"
                )
            session.press(key)
            print("\n".join(plain_lines(session.scene("dark").but(keys=""))), flush=True)


# --- replaying ----------------------------------------------------------------------------------------------------


@dataclass
class Replay:
    """A recorded game that is looked at again, forth and back, and judged move by move while nobody presses a key."""

    moments: Sequence[Moment]
    find_adviser: Callable[[], Adviser] | None = None  # made when it is first asked
    at: int = 0
    playing: bool = False
    judging: bool = False
    judged: list[Judged] = field(default_factory=list)
    adviser: Adviser | None = None
    said: str = ""

    @property
    def last(self) -> int:
        """The number of the last position."""
        return len(self.moments) - 1

    def press(self, key: str) -> None:
        """What a key does."""
        self.said = ""
        if key == "pause":
            self.playing = not self.playing
        elif key in ("judge", "hint"):
            self.judging = not self.judging and self.find_adviser is not None
            self.said = "judging …" if self.judging else "" if self.find_adviser else "nobody is here to judge"
        elif key in ("step", "before"):
            self._go_to_mistake(1 if key == "step" else -1)
        else:
            self.at = _moved(self.at, key, self.last)

    def _go_to_mistake(self, way: int) -> None:
        found = [number for number in incidents(self.judged)[::way] if (number - self.at) * way > 0]
        if found:
            self.at, self.playing = found[0], False
        else:
            self.said = f"no {'later' if way > 0 else 'earlier'} mistake" + ("" if self.judged else ": press e first")

    def judge(self) -> None:
        """Judge as many moves as come in a moment."""
        end = time.monotonic() + JUDGING
        try:
            self.adviser = self.adviser or (self.find_adviser() if self.find_adviser else None)
            while self.adviser and len(self.judged) < self.last and time.monotonic() < end:
                before, after = self.moments[len(self.judged) : len(self.judged) + 2]
                self.judged.append(Judged(self.adviser.think(before.state), after.action or 0))
        except InputError as failed:
            self.said, self.judging = str(failed), False
        self.judging = self.judging and len(self.judged) < self.last

    def scene(self, theme: str, title: str) -> Scene:
        """What the screen shows."""
        moment, count = self.moments[self.at], len(self.judged)
        scene = Scene(moment.state, theme, title, new=moment.new, keys=REPLAY_KEYS)
        words, figures = [f"move {self.at:,} of {self.last:,}"], []
        if self.at < count:
            opinion, action = self.judged[self.at]
            scene = scene.but(values=opinion.values, best=opinion.best, played=action)
            figures.append(("figures", opinion.name))
            kind = self.judged[self.at].kind
            words += [f"{kind}: {ACTIONS[opinion.best]} was better"] if kind else []
        if count and (sure := accuracy(self.judged)) is not None:
            done = "" if count == self.last else f" ({100 * count // self.last} % judged)"
            figures += [("accuracy", f"{sure:.1f} %{done}"), ("mistakes", f"{len(incidents(self.judged)):,}")]
        if self.said or not (self.playing or self.judged):
            words.append(self.said or "space plays")
        return scene.but(message=" · ".join(words), figures=tuple(figures))


def show_replay(
    moments: Sequence[Moment],
    delay: float | None,
    theme: str = "dark",
    title: str = "",
    find_adviser: Callable[[], Adviser] | None = None,
) -> None:
    """Show a recorded game, forth and back; whoever `find_adviser` finds judges its moves."""
    if not is_interactive():
        for before, moment in zip([None, *moments], moments):
            print(_line_of(moment, moment.state.score - (before.state.score if before else 0)))
        return
    replay, pause = Replay(moments, find_adviser, playing=delay is not None), 0.25 if delay is None else delay
    with Keyboard() as keyboard, Screen() as screen:
        while True:
            screen.show(replay.scene(theme, title), at_once=not replay.playing or pause > FRAME)
            wait = pause if replay.playing else 0.0 if replay.judging else None
            key = keyboard.read(wait)
            if key == "quit":
                return
            if key in ("faster", "slower"):
                pause = min(SLOWEST, max(FASTEST, pause / 2 if key == "faster" else pause * 2))
            elif key:
                replay.press(key)
            elif replay.playing:
                replay.at += 1
            if replay.judging:
                replay.judge()
            replay.playing = replay.playing and replay.at < replay.last


def _line_of(moment: Moment, gained: int) -> str:
    if moment.action is None:
        return start_line(moment.state)
    return move_line(moment.state, moment.action, gained)


def _moved(at: int, key: str, last: int) -> int:
    """Where a key leads in a recorded game."""
    steps = {"left": -1, "up": -1, "right": 1, "down": 1, "back": -20, "forth": 20}
    if key in ("home", "end"):
        return 0 if key == "home" else last
    return min(last, max(0, at + steps.get(key, 0)))
