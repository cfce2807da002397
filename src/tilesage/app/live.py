"""Games in the terminal: watching a player, playing oneself, looking at a recorded game again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live

from tilesage.app.keyboard import Keyboard
from tilesage.core.errors import InputError
from tilesage.drawing.terminal import Scene, draw, is_interactive, move_line, plain_lines, start_line
from tilesage.games import State
from tilesage.games.board import ACTIONS

if TYPE_CHECKING:
    from tilesage.records.replay import Moment
    from tilesage.search.agents import Agent, Thought

FRAME = 1 / 30  # seconds: no screen is drawn more often
WATCH_KEYS = "space pause · n one move · + faster · - slower · q quit"
PLAY_KEYS = "arrows, WASD or HJKL (Shift-h) move · u undo · h hint · r new game · q quit"
REPLAY_KEYS = "space play · ← → step · page ↑ ↓ 20 moves · home, end · + - speed · q quit"
SLOWEST, FASTEST = 4.0, 0.01


def landed(before: State, action: int, after: State) -> int | None:
    """The cell on which the new tile appeared."""
    changed = int(before.slide(action).board) ^ int(after.board)
    return (changed.bit_length() - 1) // 4 if changed else None


class Adviser:
    """An agent with its memory, asked for one position at a time."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.memory = agent, agent.new_memory()

    def think(self, state: State) -> Thought:
        """The move, and the expected final score of each move where the agent has an opinion."""
        return self.agent.think(state, self.memory)


@dataclass
class Screen:
    """One place that is drawn again and again, not more often than the eye can follow."""

    console: Console = field(default_factory=Console)
    _live: Live | None = None
    _drawn: float = 0.0

    def __enter__(self) -> Screen:
        self._live = Live(console=self.console, auto_refresh=False, transient=False, vertical_overflow="crop")
        self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live:
            self._live.__exit__(*error)

    def show(self, scene: Scene, at_once: bool = True) -> None:
        """Draw the scene; unless `at_once`, only if the last one has been there for a moment."""
        now = time.monotonic()
        if self._live and (at_once or now - self._drawn >= FRAME):
            self._live.update(draw(scene, self.console), refresh=True)
            self._drawn = now


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
        action, values = adviser.think(state)
        thought = time.monotonic() - thinking
        speed = (state.moves - start.moves) / max(time.monotonic() - begin, 1e-9)
        figures = (("thought", _duration(thought)), ("speed", f"{speed:,.1f} moves/s"))
        scene = scene.but(state=state, values=values, figures=figures)

        def redraw(paused: bool, scene: Scene = scene) -> None:
            screen.show(scene.but(message="paused" if paused else ""))

        screen.show(scene.but(message="paused" if pace.paused else ""), at_once=pace.delay > FRAME)
        if pace.wait(keyboard, redraw) == "quit":
            return state
        before, state = state, state.play(action)
        scene = scene.but(new=landed(before, action, state))
    screen.show(scene.but(state=state, values=(), message="game over", keys=""))
    return state


def _watch_plainly(start: State, agent: Agent, delay: float) -> State:
    adviser, state = Adviser(agent), start
    print(start_line(state), flush=True)
    while not state.over:
        action, _ = adviser.think(state)
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
    values: Sequence[float | None] = ()
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
        self.message, self.values, self.new = "", (), None
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
            action, self.values = self.adviser.think(self.state)
        except InputError as failed:  # of somebody's own player: the game goes on without its advice
            self.message = str(failed)
            return
        self.message = f"{self.adviser.agent.spec} would go {ACTIONS[action]}"

    def scene(self, theme: str) -> Scene:
        """What the screen shows."""
        figures = (("best", f"{self.best:,}"),)
        return Scene(self.state, theme, "", self.values, self.new, figures, self.message, PLAY_KEYS)


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


def show_replay(moments: Sequence[Moment], delay: float | None, theme: str = "dark", title: str = "") -> None:
    """Show a recorded game, forth and back."""
    last = len(moments) - 1
    if not is_interactive():
        for before, moment in zip([None, *moments], moments):
            print(_line_of(moment, moment.state.score - (before.state.score if before else 0)))
        return
    at, playing, pause = 0, delay is not None, 0.25 if delay is None else delay
    with Keyboard() as keyboard, Screen() as screen:
        while True:
            message = f"move {at:,} of {last:,}" + ("" if playing else " · space plays")
            scene = Scene(moments[at].state, theme, title, new=moments[at].new, message=message, keys=REPLAY_KEYS)
            screen.show(scene, at_once=not playing or pause > FRAME)
            key = keyboard.read(pause if playing else None)
            if key == "quit":
                return
            if key in ("faster", "slower"):
                pause = min(SLOWEST, max(FASTEST, pause / 2 if key == "faster" else pause * 2))
            elif key == "pause":
                playing = not playing
            at = _moved(at, key or "step", last)
            playing = playing and at < last


def _line_of(moment: Moment, gained: int) -> str:
    if moment.action is None:
        return start_line(moment.state)
    return move_line(moment.state, moment.action, gained)


def _moved(at: int, key: str, last: int) -> int:
    """Where a key leads in a recorded game."""
    steps = {"left": -1, "up": -1, "right": 1, "down": 1, "step": 1, "back": -20, "forth": 20}
    if key in ("home", "end"):
        return 0 if key == "home" else last
    return min(last, max(0, at + steps.get(key, 0)))
