"""How functions are compiled, and where the compiled code is kept.

`compiled` is the one decorator: for small pure functions on `uint64` boards, and for loops that call them. Numba
compiles for the CPU, CUDA kernels may call the small ones, and everything is plain Python when the compiler is off
(`NUMBA_DISABLE_JIT=1`). What a function closes over is burnt into its machine code: constants, networks, functions
that a user hands in.

Compiled code is kept on disk, one file a signature, in the folder that `NUMBA_CACHE_DIR` names, or else in the user's
cache folder. A file's name is a digest of everything that went in: the function and all that it uses (digest.py), the
argument types, the processor, the versions. So an edit never meets stale machine code, and two processes that compile
at the same time cannot mix up each other's files (as Numba's own numbered index can). What has no digest is compiled
anew in every process.

The linker knows a compiled function by its name and a number that Numba counts up in every process. Functions from
one source have the same name, and code from disk brings along the numbers of the process that made it: a loop could
be linked to a function that was made for another network. So the digest becomes part of the name.

Functions that a user compiles with `numba.njit` and hands in are treated alike, as soon as compiled code uses them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, overload

import llvmlite
import numba
import numpy as np
from numba import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher
from numba.misc.appdirs import AppDirs

from tilesage.core import inner
from tilesage.core.digest import Compiled, Digests, Unseen, digest_of
from tilesage.core.interrupts import postponed

Function = TypeVar("Function", bound=Callable[..., Any])
Array: TypeAlias = np.ndarray[Any, Any]
# A number that compiled code hands around: Python's own when the compiler is off, NumPy's or the machine's otherwise.
Number: TypeAlias = Any

COMPILED: bool = not config.DISABLE_JIT  # type: ignore[attr-defined]
VERSIONS = (sys.version_info[:2], numba.__version__, llvmlite.__version__, np.__version__)
SETTINGS = [str(getattr(config, name)) for name in ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")]  # of the compiler
DAY = 24 * 3600.0
KEPT = 60 * DAY  # since a file was last read
# Division by zero gives infinity; references to arrays are counted.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": False, "_nrt": True}

if not COMPILED:  # uint64 arithmetic wraps around on purpose
    np.seterr(over="ignore")


_announced: set[str] = set()


def announce(what: str, why: str = "first use; kept on disk") -> None:
    """Say once that something compiles, so that nobody wonders why nothing happens."""
    if what not in _announced and not os.environ.get("TILESAGE_QUIET"):
        _announced.add(what)
        print(f"compiling {what} … ({why})", file=sys.stderr, flush=True)


def stopping() -> None:
    """Say that Ctrl-C was heard."""
    if not os.environ.get("TILESAGE_QUIET"):
        print("stopping when this is compiled …", file=sys.stderr, flush=True)


def folder() -> Path:
    """Where compiled code is kept."""
    named = config.CACHE_DIR  # type: ignore[attr-defined]
    return Path(named or AppDirs("tilesage").user_cache_dir).expanduser() / "compiled"  # type: ignore[no-untyped-call]


class _Store(_Cache):
    """The compiled code of one function on disk, one file a signature, written in one stroke."""

    def __init__(self, function: Compiled, title: str | None) -> None:
        self.function, self.code, self.title = function, function, title
        self.name: str = function.py_func.__qualname__
        self.digest: str | None = None  # of the code in memory, if one digest tells all of it,
        self.unseen = ""  # or else why none does
        self.begun: dict[Any, str] = {}  # signature -> key of what is being compiled

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code that was kept for this signature. Without any, Numba compiles: under the name given here."""
        target_context.refresh()
        self.function.py_func.__qualname__ = self.name
        try:
            key = self._key(sig, target_context.codegen())
        except Unseen as unseen:
            if self.title:
                announce(self.title, f"in every process anew: no digest tells {unseen}")
            return None
        self.function.py_func.__qualname__ += f"_{key[:12]}"
        with contextlib.suppress(Exception):  # missing, cut short, of another build: compile anew
            return self._kept(key, target_context)
        if self.title:
            announce(self.title)
        self.begun[sig] = key
        return None

    def _kept(self, key: str, target_context: Any) -> Any:
        return CompileResult._rebuild(target_context, *pickle.loads(_bytes_of(self._path(key))))  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless something that went in has become another meanwhile."""
        key = self.begun.pop(sig, None)
        if key is None or data.library.has_dynamic_globals or not all(loop.can_cache for loop in data.lifted):
            return
        with contextlib.suppress(Unseen):
            if key == self._key(sig, data.codegen):
                self._write(self._path(key), data)

    def _key(self, sig: Any, codegen: Any) -> str:
        """Tells apart all compiled code. Raises Unseen where nothing can."""
        before, self.digest = self.digest, None
        digests = Digests(_digest_in_memory)
        try:
            digest = digests.fresh(self.function)
        except Unseen as unseen:
            self.unseen = str(unseen)
            raise
        if self.code.overloads and digest != before:
            self.unseen = f"{self.name} from what it was when it was compiled first"
            raise Unseen(self.unseen)
        self.digest = digest
        return digest_of((digest, digests.types(sig), VERSIONS, SETTINGS, codegen.magic_tuple()))

    def _path(self, key: str) -> Path:
        name = self.name.replace("<locals>.", "").replace("<", "").replace(">", "")
        return folder() / f"{name[-80:]}-{key[:24]}.nbc"

    def _write(self, path: Path, data: Any) -> None:
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(pickle.dumps(data._reduce(), protocol=-1))
            temporary.replace(path)
            _remove_old_files(path.parent)
        except (OSError, RuntimeError, pickle.PicklingError, AttributeError, TypeError):
            with contextlib.suppress(OSError):  # a full or read-only disk costs a compilation next time, nothing else
                temporary.unlink()

    @property
    def cache_path(self) -> str:
        return str(folder())

    def enable(self) -> None:
        """Numba asks for these; there is nothing to do."""

    disable = flush = enable


def _bytes_of(path: Path) -> bytes:
    content = path.read_bytes()
    if time.time() - path.stat().st_mtime > DAY:
        with contextlib.suppress(OSError):
            path.touch()  # still in use
    return content


def _remove_old_files(place: Path) -> None:
    """Code of functions that are gone. Looked for once a day at most, when something new was written."""
    mark, now = place / "cleaned", time.time()
    if mark.exists() and now - mark.stat().st_mtime < DAY:
        return
    mark.touch()
    for path in place.iterdir():
        if now - path.stat().st_mtime > KEPT:
            path.unlink(missing_ok=True)


class _Names(_Store):
    """Of an inner function only the name is made; nothing of it is on disk. Without a digest it is compiled whole."""

    def __init__(self, function: Compiled, code: Compiled) -> None:
        super().__init__(function, None)
        self.code = code

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        super().load_overload(sig, target_context)
        if self.digest is not None:
            return None
        self.function.compile(sig)  # functions that call each other are not found without machine code
        return self.function.overloads[tuple(sig)]._replace(metadata=None)

    def _kept(self, key: str, target_context: Any) -> None:
        return None


def _keep(function: Compiled, title: str | None = None) -> None:
    """Keep what is compiled of a function on disk, and let Ctrl-C wait for its compilation."""
    function._cache = _Store(function, title)
    function.compile = _whole(function.compile)
    if inner.POSSIBLE:
        function.inner = inner.Inner(function)
        function.inner._cache = _Names(function, function.inner)


def _digest_in_memory(function: Compiled) -> str | None:
    """The digest of the code that this process holds; None if there is none yet.

    A function of `numba.njit` is taken over first: code without a digest in its name must not get into our files.
    Options that nobody has set would be those of whichever caller comes first.
    """
    if not isinstance(function._cache, _Store):
        for option, value in OPTIONS.items():
            function.targetoptions.setdefault(option, value)
        _keep(function)
        if function.overloads:
            function.recompile()
    called: Compiled = getattr(function, "inner", function)
    store = called._cache
    if called.overloads and store.digest is None:
        raise Unseen(store.unseen)
    return cast("str | None", store.digest) if called.overloads else None


def _whole(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Ctrl-C waits for the end of a compilation: in the middle of one, the compiler breaks, or swallows it."""

    def compile_whole(signature: object) -> Any:
        with postponed(stopping):
            return compile(signature)

    return compile_whole


_shared: dict[str, Any] = {}  # by digest


def shared(function: Function) -> Function:
    """The first compiled function that came here with the same code, in place of this one.

    Loaded machine code is never given back: whoever makes the same functions again and again shares them, or grows.
    """
    if not isinstance(function, CPUDispatcher):
        return function  # the compiler is off
    try:
        digest = Digests(_digest_in_memory).of(function)
    except Unseen:
        return function
    return cast(Function, _shared.setdefault(digest, function))


MAKERS = {"zeros", "empty", "full", "ones", "array", "arange", "copy", "zeros_like", "empty_like", "full_like"}


def _makes_arrays(function: Callable[..., Any]) -> bool:
    """Does it name a function of NumPy that makes arrays? If not, nobody needs to count references to them.

    Counting costs more than a rule itself where small functions hand arrays to each other: training ran 1.4 times as
    fast without.
    """
    return not MAKERS.isdisjoint(function.__code__.co_names)


@overload
def compiled(function: Function, /) -> Function: ...
@overload
def compiled(*, inline: bool = False, title: str | None = None) -> Callable[[Function], Function]: ...
def compiled(
    function: Function | None = None, /, *, inline: bool = False, title: str | None = None
) -> Function | Callable[[Function], Function]:
    """Compile a function for the CPU, the first time it is called; the machine code is kept on disk.

    What the function closes over and the globals that it names are constants from then on: numbers, tuples, small
    arrays, other compiled functions. When one of them changes, or the function itself, the next process compiles
    anew.

    `inline` puts the code of a small function into its callers, where a loop is hot. `title` is for a loop that is
    compiled for seconds: what the user reads meanwhile.
    """

    def compile_later(function: Function) -> Function:
        options: Any = {**OPTIONS, "nogil": True, "_nrt": _makes_arrays(function)}
        if inline:
            options["forceinline"] = True
        made = numba.njit(**options)(function)
        if COMPILED:
            _keep(made, title)
        return cast(Function, made)

    return compile_later if function is None else compile_later(function)
