"""The update rules by name: those of this package, those that installed packages offer, and a user's own.

A rule is an `UpdateRule` at `module:name`, whoever wrote it. One of a user's own is written `my_module:my_rule`; a
package offers its rules as entry points of the group `GROUP`. Nothing is imported before a rule is asked for by
name, and never because a file names it (`check_known`).
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tilesage.core.errors import InputError
from tilesage.core.plugins import PLACE, Blamed, load, offered_by_packages

if TYPE_CHECKING:
    from tilesage.core.compiler import Array
    from tilesage.learning.rules import UpdateRule

DEFAULT = "tc"
BUILT_IN = {"tc": "tilesage.learning.rules:TC", "td": "tilesage.learning.rules:TD"}
GROUP = "tilesage.rules"
ENTRIES = 8  # of the table on which a rule from outside is tried
found: dict[str, UpdateRule] = {}  # by name, those that this process has asked for


@cache
def offered() -> dict[str, str]:
    """The rules that installed packages offer, by name, with their places."""
    return offered_by_packages(GROUP)


def names() -> list[str]:
    """The rules that need no import of a user's module."""
    return list(dict.fromkeys([*BUILT_IN, *offered()]))


def check_known(name: str, where: object) -> None:
    """Refuse a rule that a file names and nobody has asked for."""
    if name not in found and name not in names():
        raise InputError(
            f"{where} learns by the rule {name!r}, which is not known here: if you trust it, add --rule {name}"
        )


def get(name: str) -> UpdateRule:
    """The rule of this name."""
    if name not in found:
        found[name] = _built_in(name) if name in BUILT_IN else _from_outside(name)
    return found[name]


def _built_in(name: str) -> UpdateRule:
    module, _, attribute = BUILT_IN[name].partition(":")
    rule: UpdateRule = getattr(importlib.import_module(module), attribute)
    return rule


def _from_outside(name: str) -> UpdateRule:
    from tilesage.core.compiler import compiled
    from tilesage.learning.rules import UpdateRule

    place = offered().get(name, name)
    if not PLACE.fullmatch(place):
        raise InputError(f"unknown rule {name!r}: write {', '.join(names())}, or my_module:my_rule")
    rule, file = load(place, f"the rule {name}")
    with Blamed(file):
        if not isinstance(rule, UpdateRule):
            raise InputError(f"{place.partition(':')[2]} is a {type(rule).__name__}, not an UpdateRule")
        if not hasattr(rule.update, "py_func"):
            rule = replace(rule, update=compiled(rule.update))
        check(rule)
    return replace(rule, name=name)


def check(rule: UpdateRule) -> None:
    """Let a rule move the first half of a small table, so that errors show at once."""
    import numpy as np  # here, so that the help of a command need not wait for it

    weights, memory, half = np.ones(ENTRIES, np.float32), rule.new_memory(ENTRIES), ENTRIES // 2
    for error in (2, -1):
        rule.update(weights, memory, np.arange(half, dtype=np.uint32), np.float32(error), np.float32(0.1))
    if not (np.isfinite(weights).all() and np.isfinite(memory).all()):
        raise InputError("after an error of 2 and one of -1, weights or memory are infinite or no numbers at all")
    if (weights[half:] != 1).any() or (memory[half * len(rule.memory) :] != rule.new_memory(half)).any():
        raise InputError("the update changes weights or memory of entries that it was not given")


def as_array(rule: UpdateRule) -> Array:
    """A rule as a checkpoint names it."""
    import numpy as np

    return np.frombuffer(bytearray(rule.name.encode()), np.uint8)


def from_array(array: Array) -> UpdateRule:
    """The rule that a checkpoint names."""
    name = bytes(array).decode()
    check_known(name, "it")
    return get(name)
