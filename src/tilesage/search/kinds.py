"""What compiled code of searches and players hands around."""

from __future__ import annotations

from typing import Any, TypeAlias

# A number that compiled code hands around: Python's own when the compiler is off, NumPy's or the machine's otherwise.
Number: TypeAlias = Any

NO_MOVE = -1  # instead of an action, when none is legal
NOWHERE = -1  # instead of a way to turn a board, when it is not to be handed over
