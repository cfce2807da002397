"""The digest of a compiled function: another one as soon as anything that goes into its machine code is another.

Numba burns into the code of a function what the function closes over and the globals that it names, and links it to
the compiled functions that it calls. All of that is read here from the objects themselves, down to the last function
called: nobody has to say what a function depends on, and nothing about the file that it came from matters.

Python, NumPy, Numba and llvmlite are taken by the names of their things; their versions are the caller's business.
What cannot be read (an object of unknown kind, a plain Python function that Numba must have another version of)
raises `Unseen`: a function that uses it has no digest.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import Signature

Compiled: TypeAlias = Any  # a CPUDispatcher of Numba, whose stubs leave out what is needed here
Description: TypeAlias = tuple[Any, ...]  # of strings and more descriptions

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented), range)
LARGEST_CONSTANT = 10**6  # bytes: Numba hands a larger array over by its address
LOAD_GLOBAL, IMPORT_NAME, EXTENDED_ARG = (dis.opmap[name] for name in ("LOAD_GLOBAL", "IMPORT_NAME", "EXTENDED_ARG"))
LIBRARIES = tuple(str(Path(str(library.__file__)).parent) + os.sep for library in (np, numba, llvmlite))
PYTHON = str(Path(os.__file__).parent) + os.sep
OF_A_CLASS = {  # what Python writes into every class, and what says nothing that its methods and values do not say
    *("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"),
    *("__annotations__", "__annotate_func__", "__annotations_cache__"),
    *("__dataclass_fields__", "__dataclass_params__"),
}


class Unseen(Exception):
    """Machine code may depend on something that no digest can hold; the message names it."""


def digest_of(description: Description) -> str:
    return hashlib.sha256(repr(description).encode()).hexdigest()


@cache
def is_library(module: str) -> bool:
    """Is this a module of Python, NumPy, Numba or llvmlite?"""
    found = sys.modules.get(module)
    path = getattr(found, "__file__", None)
    if path is None:
        return getattr(getattr(found, "__spec__", None), "origin", None) in ("built-in", "frozen")
    return _is_library_file(path)


def _is_library_file(path: str) -> bool:
    of_python = path.startswith(PYTHON) and "-packages" + os.sep not in path[len(PYTHON) :]
    return of_python or path.startswith(("<frozen", *LIBRARIES))


class _Read(NamedTuple):
    """What a code object says, with the code of the functions inside it."""

    text: str
    globals: tuple[str, ...]
    imports: tuple[str, ...]
    names: frozenset[str]  # of globals and attributes


@cache
def _read(code: CodeType) -> _Read:
    inner = [_read(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    constants = tuple(_constant(constant) for constant in code.co_consts)
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    words = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    steps = code.co_code.hex(), code.co_exceptiontable.hex()
    named = {code.co_names[number >> 1] for number in _arguments(code, LOAD_GLOBAL)}
    imports = {code.co_names[number] for number in _arguments(code, IMPORT_NAME)}
    return _Read(
        digest_of((code.co_qualname, arguments, words, steps, constants)),
        tuple(sorted(named.union(*(one.globals for one in inner)))),
        tuple(sorted(imports.union(*(one.imports for one in inner)))),
        frozenset(code.co_names).union(*(one.names for one in inner)),
    )


def _constant(value: object) -> Description:
    if isinstance(value, CodeType):
        return "code", _read(value).text
    if isinstance(value, tuple):
        return "tuple", *map(_constant, value)
    if isinstance(value, frozenset):
        return "set", *sorted(map(_constant, value))
    return type(value).__name__, repr(value)


def _arguments(code: CodeType, operation: int) -> Iterator[int]:
    """The arguments of one operation in byte code. (`dis` tells them too, but takes longer than everything else.)"""
    operations, arguments = code.co_code[::2], code.co_code[1::2]
    at = operations.find(operation)
    while at >= 0:
        argument, before = arguments[at], at - 1
        while before >= 0 and operations[before] == EXTENDED_ARG:
            argument |= arguments[before] << 8 * (at - before)
            before -= 1
        yield argument
        at = operations.find(operation, at + 1)


class Digests:
    """Digests of compiled functions, all read at one moment.

    `in_memory` tells the digest of a function whose machine code this process holds already: that code is what its
    callers get, whatever has changed since. It answers None for a function that is not compiled yet.
    """

    def __init__(self, in_memory: Callable[[Compiled], str | None]) -> None:
        self.in_memory = in_memory
        self.known: dict[Compiled, str] = {}
        self.path: list[Compiled] = []  # from the function that was asked for to the one that is read now

    def of(self, function: Compiled) -> str:
        if function not in self.known:
            if function in self.path:  # from the disk, such a pair takes the process down
                raise Unseen(f"functions that call each other, such as {_name(function)}")
            self.known[function] = self.in_memory(function) or self.fresh(function)
        return self.known[function]

    def fresh(self, function: Compiled) -> str:
        """The digest of what machine code would be made of now."""
        options = function.targetoptions
        if options.get("parallel") or options.get("forceobj") or "objmode" in function.py_func.__code__.co_names:
            raise Unseen(f"the threads or the Python objects of {_name(function)}")
        self.path.append(function)
        try:
            reader = _Reader(self)
            settings = [reader.value(one) for one in (options, function.locals, function._compiler.pipeline_class)]
            module = function.py_func.__module__
            return digest_of((module, *settings, reader.function(function.py_func)))
        finally:
            self.path.pop()

    def types(self, signature: Any) -> Description:
        """Argument types, by which Numba tells the versions of one function apart."""
        return _Reader(self).value(signature)


class _Reader:
    """Describes what one compiled function uses."""

    def __init__(self, digests: Digests) -> None:
        self.digests = digests
        self.met: dict[int, tuple[int, object]] = {}  # Python functions and classes, which may refer to each other
        self.in_python = False  # inside an intrinsic, whose Python runs while it is compiled

    def value(self, value: Any, names: frozenset[str] = frozenset()) -> Description:
        """`names`: which things of a module are meant."""
        if type(value) in PLAIN:
            return type(value).__name__, repr(value)
        if isinstance(value, CPUDispatcher):
            return ("itself",) if self.digests.path[-1:] == [value] else ("compiled", self.digests.of(value))
        if isinstance(value, enum.Enum):
            return "member", self.klass(type(value)), value.name
        if isinstance(value, (np.generic, np.ndarray)):
            return self.numbers(value)
        if isinstance(value, np.dtype):
            return "dtype", repr(value)
        if isinstance(value, (tuple, list)):
            return "items", self.klass(type(value)), *(self.value(one) for one in value)
        if isinstance(value, (set, frozenset)):
            return type(value).__name__, *sorted(self.value(one) for one in value)
        if isinstance(value, dict):
            return "dict", *((self.value(key), self.value(one)) for key, one in value.items())
        if isinstance(value, ModuleType):
            return self.module(value, names)
        if isinstance(value, (types.Type, Signature)):
            return self.numba_type(value)
        if library := _library_name(value):
            return library
        if isinstance(value, type):
            return self.klass(value)
        if isinstance(value, _Intrinsic):
            return self.intrinsic(value)
        if self.in_python:
            return self.python(value)
        raise Unseen(f"the Python function {_name(value)}" if isinstance(value, FunctionType) else _kind(value))

    def values(self, values: Iterable[Any]) -> Description:
        return tuple(self.value(value) for value in values)

    def function(self, function: FunctionType) -> Description:
        """A function with all that it closes over and names."""
        read = _read(function.__code__)
        if foreign := [name for name in read.imports if not is_library(name)]:
            raise Unseen(f"the import of {foreign[0]} in {_name(function)}")
        closed = [self.cell(cell, read.names) for cell in function.__closure__ or ()]
        known = function.__globals__
        named = [(name, self.value(known[name], read.names)) for name in read.globals if name in known]
        defaults = self.value(function.__defaults__), self.value(function.__kwdefaults__)
        return "function", read.text, defaults, closed, named

    def cell(self, cell: Any, names: frozenset[str]) -> Description:
        try:
            return self.value(cell.cell_contents, names)
        except ValueError:
            return ("empty",)

    def numbers(self, value: Any) -> Description:
        if value.dtype.hasobject or value.nbytes > LARGEST_CONSTANT:
            raise Unseen(f"an array of {value.nbytes} bytes" if not value.dtype.hasobject else "an array of objects")
        content = hashlib.sha256(value.tobytes()).hexdigest()
        flags = (value.flags.c_contiguous, value.flags.f_contiguous, value.flags.aligned)
        return type(value).__name__, repr(value.dtype), value.shape, flags, content

    def module(self, module: ModuleType, names: frozenset[str]) -> Description:
        if is_library(module.__name__):
            return "library", module.__name__
        used = sorted(names.intersection(vars(module)))
        return "module", *((name, self.value(vars(module)[name], names)) for name in used)

    def numba_type(self, value: Any) -> Description:
        if isinstance(value, Signature):
            return "signature", self.values((value.return_type, *value.args))
        if isinstance(value, types.Dispatcher):
            return "compiled", self.value(value.dispatcher)
        if isinstance(value, types.Omitted):
            return "omitted", self.value(value.value)
        if isinstance(value, (types.ClassType, types.ClassInstanceType)) or not is_library(type(value).__module__):
            raise Unseen(f"the type {value}")
        return "type", type(value).__name__, self.value(value.key)

    def klass(self, value: type) -> Description:
        if library := _library_name(value):
            return library
        name = value.__module__, value.__qualname__
        if issubclass(value, enum.Enum):
            members = ((word, self.value(member.value)) for word, member in value.__members__.items())
            return "enum", name, self.values(value.__bases__), *members
        if issubclass(value, tuple) and hasattr(value, "_fields"):
            defaults: dict[str, Any] = getattr(value, "_field_defaults", {})
            return "named tuple", name, value._fields, self.value(defaults)
        if issubclass(value, BaseException):
            return "exception", name
        if self.in_python:
            return self.once(value, lambda: (name, self.values(value.__bases__), self.content(vars(value))))
        raise Unseen(f"the class {value.__qualname__}")

    def content(self, found: Any) -> Description:
        return tuple((name, self.value(one)) for name, one in sorted(found.items()) if name not in OF_A_CLASS)

    def intrinsic(self, value: Any) -> Description:
        before, self.in_python = self.in_python, True
        try:
            return "intrinsic", self.value(value._defn), self.value(value._ctor_kwargs)
        finally:
            self.in_python = before

    def python(self, value: Any) -> Description:
        """What code uses that runs in Python while something is compiled."""
        if isinstance(value, FunctionType):
            if _is_library_file(value.__code__.co_filename):  # a wrapper, such as the `repr` of dataclasses
                inside = (self.cell(cell, frozenset()) for cell in value.__closure__ or ())
                return "library", value.__qualname__, *inside
            return self.once(value, lambda: self.function(value))
        if isinstance(value, MethodType):
            return "method", self.value(value.__self__), self.value(value.__func__)
        if isinstance(value, (staticmethod, classmethod)):
            return type(value).__name__, self.value(value.__func__)
        if isinstance(value, property):
            return "property", self.values((value.fget, value.fset, value.fdel))
        if isinstance(value, cached_property):
            return "property", self.value(value.func)
        if dataclasses.is_dataclass(value):
            fields = ((one.name, self.value(getattr(value, one.name))) for one in dataclasses.fields(value))
            return "object", self.klass(type(value)), *fields
        if hasattr(value, "__wrapped__"):
            return "wrapped", self.value(value.__wrapped__)
        if hasattr(value, "__dict__"):
            return "object", self.klass(type(value)), self.content(vars(value))
        raise Unseen(_kind(value))

    def once(self, value: object, describe: Callable[[], Description]) -> Description:
        """Described where it is met first."""
        if id(value) in self.met:
            return "met", self.met[id(value)][0]
        self.met[id(value)] = len(self.met), value
        return describe()


def _library_name(value: Any) -> Description | None:
    """The name of a thing of a library, if it is one and that is what the library calls so."""
    module = "numpy" if isinstance(value, np.ufunc) else getattr(value, "__module__", None)
    if not isinstance(module, str) or not is_library(module):
        return None
    for name in (getattr(value, "__qualname__", ""), getattr(value, "__name__", "")):
        found: Any = sys.modules[module]
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value or (isinstance(value, MethodType) and found == value):
            return "library", module, name
    return None


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", value)).replace("<locals>.", "")


def _kind(value: object) -> str:
    return f"an object of the class {type(value).__module__}.{type(value).__qualname__}"
