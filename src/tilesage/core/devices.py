"""Where training can run: by the name of a device, who makes its trainer (`module:function` of the settings).

The package enters its own devices when it is imported (tilesage/__init__.py), so that learning need not know the GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

TRAINERS: dict[str, str] = {}


def trainer_maker(device: str) -> Callable[[Any], Any]:
    """The function from settings to a trainer on this device; imported now, and not before."""
    module, _, name = TRAINERS[device].partition(":")
    maker: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return maker
