"""Types of values in compiled code."""

from __future__ import annotations

from typing import Any, TypeAlias

# A number that compiled code hands around: Python's own when the compiler is off, NumPy's or the machine's otherwise.
Number: TypeAlias = Any
