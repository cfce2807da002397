"""How a player is written: `name:budget,option=value,…`, such as expectimax:3 or mcts:400,leaf=value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from afterstate.games import Mistake

EXAMPLES = (
    "best, random, greedy, expectimax:3, expectimax:deep, expectimax:200ms, mcts:400, mcts:1s, mcts:d1, rollouts:100"
)
BUDGETS = {
    "best": "",
    "random": "",
    "greedy": "",
    "expectimax": "layers (expectimax:3), expectimax:deep, time a move (expectimax:200ms) or expectimax:5000nodes",
    "mcts": "iterations (mcts:400), time a move (mcts:1s) or mcts:d1",
    "rollouts": "random games a legal move (rollouts:100) or time a move (rollouts:100ms)",
}
OPTIONS = {
    "random": (),
    "greedy": ("downgrade",),
    "expectimax": ("width", "prune", "table", "downgrade", "endgames", "wide", "block", "walls"),
    "best": ("table", "endgames", "wide", "block", "walls"),
    "mcts": ("leaf", "c"),
    "rollouts": (),
}
HIGHEST = {"": 1e9, "nodes": 1e12, "ms": 3.6e6, "s": 3600.0}


@dataclass(frozen=True)
class Spec:
    """A player as it was written."""

    text: str
    name: str
    budget: float = 0.0
    unit: str = ""  # "" a number of what the player counts, "nodes", "s" seconds, or the word deep or d1
    options: dict[str, str] = field(default_factory=dict)
    best: bool = False  # with everything that the box has for the game

    @property
    def needs_model(self) -> bool:
        """Does this player ask a network?"""
        if self.name == "mcts":
            return self.word("leaf", ("rollouts", "value")) == "value"
        return self.name in ("greedy", "expectimax")

    def number(self, option: str, default: float, low: float, high: float) -> float:
        """An option that is a number between two bounds."""
        text = self.options.get(option)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise Mistake(f"{option}={text} in {self.text!r}: write a number from {low:g} to {high:g}")
        return value

    def whole(self, option: str, default: int, low: int, high: int) -> int:
        value = self.number(option, default, low, high)
        if value != int(value):
            raise Mistake(f"{option}={self.options[option]} in {self.text!r}: write a whole number")
        return int(value)

    def word(self, option: str, choices: tuple[str, ...]) -> str:
        """An option that is one of a few words; the first is the default."""
        text = self.options.get(option, choices[0])
        if text not in choices:
            raise Mistake(f"{option}={text} in {self.text!r}: write {' or '.join(choices)}")
        return text


def parse_spec(text: str) -> Spec:
    """Read `name:budget,option=value,…`."""
    name, colon, rest = text.strip().partition(":")
    if not colon:
        name, _, rest = text.strip().partition(",")
        rest = "," + rest if rest else ""
    if name not in BUDGETS:
        raise Mistake(f"unknown agent {text!r}: write one of {EXAMPLES}")
    budget, *words = rest.split(",")
    options = dict(_option(text, name, word) for word in words)
    if not BUDGETS[name]:
        if budget:
            raise Mistake(f"{name} takes no budget: write {name}, not {text!r}")
        if name == "best":
            return Spec(text, "expectimax", unit="deep", options=options, best=True)
        return Spec(text, name, options=options)
    value, unit = _budget(text, name, budget)
    return Spec(text, name, value, unit, options)


def _option(text: str, name: str, word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or key not in OPTIONS[name]:
        known = ", ".join(f"{option}=…" for option in OPTIONS[name]) or "none"
        raise Mistake(f"unknown option {word!r} in {text!r}; {name} takes: {known}")
    return key, value


def _budget(text: str, name: str, budget: str) -> tuple[float, str]:
    wrong = Mistake(f"how long may {text!r} think? {name} takes {BUDGETS[name]}")
    if (name, budget) in (("expectimax", "deep"), ("mcts", "d1")):
        return 0.0, budget
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|nodes)?", budget)
    if not found or (found[2] == "nodes" and name != "expectimax"):
        raise wrong
    value, unit = float(found[1]), found[2] or ""
    if value <= 0 or value > HIGHEST[unit] or (unit in ("", "nodes") and value != int(value)):
        raise wrong
    return (value / 1000, "s") if unit == "ms" else (value, unit)
