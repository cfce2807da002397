"""How rules and loops are compiled, and where the compiled code is kept.

Two decorators serve the whole package:

`rule`
    a small pure function on `uint64` boards. Numba compiles it for the CPU, CUDA kernels may call it, and it is
    plain Python when the compiler is off (`NUMBA_DISABLE_JIT=1`).
`rule_for(*key)`, `kernel(*key)`
    a small function or a loop made by a factory: a Python function that closes over compiled functions and
    constants, which are burnt into the machine code. `key` tells apart the closures that one factory makes.

Compiled code is kept on disk, one file a signature, beside the source or in the user's cache folder. A file's name
is a digest of everything that went in: the function, `key`, the argument types, the processor, the versions, and
the sources of every room that the code may come from. So an edit never meets stale machine code, and two processes
that compile at the same time cannot mix up each other's files (as Numba's own numbered index can).

The linker knows a compiled function by its name and a number that Numba counts up in every process. The closures of
one factory have the same name, and code from disk brings along the numbers of the process that made it: a loop could
be linked to a function that was made for another network. So `key` becomes part of the name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba import config
from numba.core.caching import FunctionCache

from .interrupts import postponed

Function = TypeVar("Function", bound=Callable[..., Any])
Array: TypeAlias = np.ndarray[Any, Any]

OUTSIDE = "outside:"  # in a key: code of the user's own, which may change; nothing that holds it is kept on disk
COMPILED: bool = not config.DISABLE_JIT  # type: ignore[attr-defined]
PACKAGE = Path(__file__).resolve().parent.parent
# A room's code can only come from itself and from the rooms to its left.
SOURCES = {
    "games": ("games",),
    "values": ("games", "values"),
    "learning": ("games", "values", "learning"),
    "search": ("games", "values", "search"),
}
EVERYTHING = ("games", "values", "learning", "search", "arena")

if not COMPILED:  # uint64 arithmetic wraps around on purpose
    np.seterr(over="ignore")


@lru_cache
def source_digest(rooms: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _rooms_behind(function: Callable[..., Any]) -> tuple[str, ...]:
    room = function.__module__.split(".")[1:2]
    return SOURCES.get(room[0] if room else "", EVERYTHING)


_announced: set[str] = set()


def announce(what: str) -> None:
    """Say once that something compiles, so that nobody wonders why nothing happens."""
    if what not in _announced and not os.environ.get("AFTERSTATE_QUIET"):
        _announced.add(what)
        print(f"compiling {what} … (first use; kept on disk)", file=sys.stderr, flush=True)


def stopping() -> None:
    """Say that Ctrl-C was heard."""
    if not os.environ.get("AFTERSTATE_QUIET"):
        print("stopping when this is compiled …", file=sys.stderr, flush=True)


class _Store(FunctionCache):
    """Compiled code on disk, one file a signature, written in one stroke."""

    def __init__(self, function: Callable[..., Any], key: tuple[object, ...], title: str | None):
        super().__init__(function)  # type: ignore[no-untyped-call]
        place = (function.__module__, function.__qualname__, function.__code__.co_firstlineno)
        self._key = repr(
            (place, key, source_digest(_rooms_behind(function)), numba.__version__, sys.version_info[:2])
        )
        self._title = title
        self._enabled = self._enabled and OUTSIDE not in repr(key)

    def _path(self, signature: object, codegen: Any) -> Path:
        text = repr((self._key, str(signature), codegen.magic_tuple()))
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        return Path(self._cache_path) / f"{self._py_func.__qualname__.replace('<locals>.', '')}-{digest}.nbc"

    def load_overload(self, sig: object, target_context: Any) -> Any:
        target_context.refresh()
        if self._enabled:
            try:
                data = pickle.loads(self._path(sig, target_context.codegen()).read_bytes())
                return self._impl.rebuild(target_context, data)
            except Exception:  # missing, cut short, of another build: compile anew
                pass
        if self._title:
            announce(self._title)
        return None

    def save_overload(self, sig: object, data: Any) -> None:
        if not (self._enabled and self._impl.check_cachable(data)):
            return
        path = self._path(sig, data.codegen)
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            self._impl.locator.ensure_cache_path()
            temporary.write_bytes(pickle.dumps(self._impl.reduce(data), protocol=-1))
            temporary.replace(path)
        except OSError:  # a full or read-only disk costs a compilation next time, nothing else
            with contextlib.suppress(OSError):
                temporary.unlink()


def _compile(function: Function, key: tuple[object, ...], title: str | None, **options: Any) -> Function:
    if key:
        function.__qualname__ += "_" + hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if COMPILED:
        compiled.compile = _whole(compiled.compile)
        with contextlib.suppress(RuntimeError):  # no folder to write to: compile anew in every process
            compiled._cache = _Store(function, key, title)
    return cast(Function, compiled)


def _whole(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Ctrl-C waits for the end of a compilation: in the middle of one, the compiler breaks, or swallows it."""

    def compile_whole(signature: object) -> Any:
        with postponed(stopping):
            return compile(signature)

    return compile_whole


MAKERS = {"zeros", "empty", "full", "ones", "array", "arange", "copy", "zeros_like", "empty_like", "full_like"}


def _makes_arrays(function: Callable[..., Any]) -> bool:
    """Does it name a function of NumPy that makes arrays? If not, nobody needs to count references to them.

    Counting costs more than a rule itself where small functions hand arrays to each other: training ran 1.4 times as
    fast without.
    """
    return not MAKERS.isdisjoint(function.__code__.co_names)


def rule(function: Function) -> Function:
    """Compile a small pure function of a module."""
    return _compile(function, (), None, _nrt=_makes_arrays(function))


def rule_for(*key: object, inline: bool = False) -> Callable[[Function], Function]:
    """Compile a small pure function that closes over values which `key` names; `inline` where a loop is hot."""
    return lambda function: _compile(function, key, None, _nrt=_makes_arrays(function), forceinline=inline)


def kernel(*key: object, title: str | None = None, fastmath: bool = False) -> Callable[[Function], Function]:
    """Compile a loop that a factory made; `key` names what it closes over, `title` is what the user reads."""

    def decorate(function: Function) -> Function:
        name = title or function.__qualname__.replace(".<locals>.", " ").replace("_", " ").strip()
        return _compile(function, key, name, fastmath=fastmath, _nrt=_makes_arrays(function))

    return decorate
