"""A place where threads of compiled code wait for each other: what one wrote before it, all read after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tilesage.core.compiler import COMPILED, Array, compiled

APART = 8  # words between two counters: each has a cache line of its own
PATIENCE = 4000  # looks at a counter before others may have the processor
WORD_BYTES = 8
GIVE_WAY = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


def new_meeting(threads: int) -> Array:
    """[threads · APART] how often each thread has come."""
    return np.zeros(threads * APART, np.int64)


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.gep(context.make_array(signature.args[0])(context, builder, args[0]).data, [args[1]])


def _operations() -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any, Any], None], Callable[[], None]]:
    """array[index] as it is now; array[index] = value, after all that was written before; let others run."""
    if not COMPILED:
        return (
            lambda array, index: array[index],
            lambda array, index, value: array.put(index, value),
            lambda: time.sleep(0),
        )

    @intrinsic
    def see(typing: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load_atomic(_place(context, builder, signature, args), "acquire", WORD_BYTES)

        return types.int64(array, types.int64), generate

    @intrinsic
    def show(typing: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store_atomic(args[2], _place(context, builder, signature, args), "release", WORD_BYTES)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), generate

    @intrinsic
    def give_way(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(32), [])
            function = cgutils.get_or_insert_function(builder.module, kind, GIVE_WAY)  # type: ignore[no-untyped-call]
            builder.call(function, [])
            return context.get_dummy_value()

        return types.void(), generate

    return cast(Any, see), cast(Any, show), cast(Any, give_way)


see, show, give_way = _operations()


@compiled
def meet(met: Array, me: int) -> None:
    """Wait until all threads have come here as often as thread `me`."""
    number = met[me * APART] + 1
    show(met, np.int64(me * APART), np.int64(number))
    for other in range(0, len(met), APART):
        looks = 0
        while see(met, np.int64(other)) < number:
            looks += 1
            if looks > PATIENCE:
                give_way()
