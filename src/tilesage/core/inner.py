"""What compiled code calls is made without machine code of its own, so that a first use takes a third of the time.

Numba optimises every function and makes its machine code, wrappers for Python and C with it, even of functions that
only other compiled ones call; whoever calls one links it, optimises it again, and so on up to the function that
Python calls. Here a function that is compiled for another one is typed and lowered to LLVM, and that is all: the
outermost one links all of them and is optimised as a whole. Called from Python itself, it is compiled whole, and so
is what has no digest (digest.py).

This reaches into two classes of Numba's compiler. `POSSIBLE` says whether they have the shape that is known here;
where they do not, every function is compiled whole, as Numba does by itself.
"""

# mypy: disable-error-code="no-untyped-call, method-assign"
from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher

SKIPPED = ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")
STEPS = ("_optimize_functions", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
POSSIBLE = all(callable(getattr(JITCodeLibrary, step, None)) for step in STEPS) and {*SKIPPED} <= {*Flags.options}


class Unfinished(JITCodeLibrary):
    """LLVM code that waits to be linked into that of a caller."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class InnerFlags(Flags):
    """A function that goes without the steps skipped is called what it would be with them, wherever it is called."""

    def get_mangle_string(self) -> str:
        whole = Flags(self)
        for step in SKIPPED:
            whole.discard(step)
        return str(whole.get_mangle_string())


class InnerCompiler(Compiler):
    """Compiles as far as the lowering."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        flags = InnerFlags(flags)
        for step in SKIPPED:
            setattr(flags, step, True)
        super().__init__(typing, target, library, args, result, flags, local)
        self.state.library = Unfinished(self.state.targetctx.codegen(), "inner")


class Inner(CPUDispatcher):
    """A compiled function as other compiled functions see it."""

    def __init__(self, function: CPUDispatcher) -> None:
        super().__init__(function.py_func, function.locals, function.targetoptions, InnerCompiler)
        self._compiling_counter = function._compiling_counter  # by which Numba knows recursion
        function.get_call_template, function.get_overload = self.get_call_template, self.get_overload

    def add_overload(self, result: Any) -> None:
        """What is called stands under a name, in place of an address."""
        named = result._replace(entry_point=object())
        self.targetctx.insert_user_function(named.entry_point, named.fndesc, [named.library])
        self.overloads[tuple(named.signature.args)] = named
