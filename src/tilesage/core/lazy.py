"""Names of a package that are imported when first used, so that importing the package itself is quick."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of `package`: a name comes from `.module`, or as another one there from `.module:other`."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, there = homes[name].partition(":")
        return getattr(importlib.import_module(module, package), there or name)

    return find
