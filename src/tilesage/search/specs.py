"""How a player is written: `name:budget,option=value,…`, such as expectimax:3 or mcts:400,leaf=value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tilesage.core.errors import InputError
from tilesage.core.plugins import offered_by_packages
from tilesage.search.registry import EXAMPLES, REGISTRY, Budget, Row

GROUP = f"{__name__.partition('.')[0]}.agents"  # the entry points of packages that bring players along
REFERENCE = r"[^\W\d]\w*(\.\w+)*:[^\W\d]\w*(\.\w+)*"  # module:name
HIGHEST = {"": 1e9, "nodes": 1e12, "ms": 3.6e6, "s": 3600.0}


@dataclass(frozen=True)
class Spec:
    """A player as it was written."""

    text: str
    name: str
    budget: float = 0.0
    unit: str = ""  # "" a number of what the player counts, "nodes", "s" seconds, or the word deep or d1
    options: dict[str, str] = field(default_factory=dict)
    best: bool = False  # with everything that is built in for the game

    @property
    def row(self) -> Row:
        """Its row in the registry."""
        return REGISTRY[self.name]

    @property
    def needs_model(self) -> bool:
        """Does this player ask a network?"""
        return self.row.needs_model(self)

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
            raise InputError(f"{option}={text} in {self.text!r}: write a number from {low:g} to {high:g}")
        return value

    def whole(self, option: str, default: int, low: int, high: int) -> int:
        value = self.number(option, default, low, high)
        if value != int(value):
            raise InputError(f"{option}={self.options[option]} in {self.text!r}: write a whole number")
        return int(value)

    def word(self, option: str, choices: tuple[str, ...]) -> str:
        """An option that is one of a few words; the first is the default."""
        text = self.options.get(option, choices[0])
        if text not in choices:
            raise InputError(f"{option}={text} in {self.text!r}: write {' or '.join(choices)}")
        return text


def is_from_outside(text: str) -> bool:
    """Is this no built-in player, but one in a module (my_module:my_agent) or one that a package brings along?"""
    name = re.split("[:,]", text.strip(), maxsplit=1)[0]
    return name not in REGISTRY and (bool(re.fullmatch(REFERENCE, text.strip())) or text.strip() in plugins())


def plugins() -> dict[str, str]:
    """The players that installed packages bring along: what to write, and module:name."""
    return offered_by_packages(GROUP)


def parse_spec(text: str) -> Spec:
    """Read `name:budget,option=value,…`."""
    name, colon, rest = text.strip().partition(":")
    if not colon:
        name, _, rest = text.strip().partition(",")
        rest = "," + rest if rest else ""
    row = REGISTRY.get(name)
    if row is None:
        file = " (a module in the current folder, without its path and .py)" if ".py" in text else ""
        raise InputError(f"unknown agent {text!r}: write one of {EXAMPLES}, or my_module:my_agent{file}")
    budget, *words = rest.split(",")
    options = dict(_option(text, row, word) for word in words)
    if row.budget:
        return Spec(text, name, *_budget(text, row.name, row.budget, budget), options)
    if budget:
        raise InputError(f"{name} takes no budget: write {name}, not {text!r}")
    name, unit = row.stands_for or (name, "")
    return Spec(text, name, unit=unit, options=options, best=row.stands_for is not None)


def _option(text: str, row: Row, word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or key not in {option.name for option in row.options}:
        known = ", ".join(f"{option.name}=…" for option in row.options) or "none"
        raise InputError(f"unknown option {word!r} in {text!r}; {row.name} takes: {known}")
    return key, value


def _budget(text: str, name: str, allowed: Budget, budget: str) -> tuple[float, str]:
    wrong = InputError(f"how long may {text!r} think? {name} takes {allowed.meaning}")
    if budget in allowed.words:
        return 0.0, budget
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|nodes)?", budget)
    if not found or (found[2] or "") not in allowed.units:
        raise wrong
    value, unit = float(found[1]), found[2] or ""
    if value <= 0 or value > HIGHEST[unit] or (unit in ("", "nodes") and value != int(value)):
        raise wrong
    return (value / 1000, "s") if unit == "ms" else (value, unit)
