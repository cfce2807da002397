"""The few things that only a GPU can do, each with a stand-in for Numba's CUDA simulator.

Eight lanes (threads of one warp) share a game: lane k reads the k-th symmetric board, and lanes 0 to 3 also slide
one way each. Here are the exchange between those lanes, 16-byte loads and stores, loads that are skipped when they
are not wanted, and arithmetic that the compiler may not fuse, so that a CPU computes the same bits. Everything else
in this package is plain Numba and runs unchanged in the simulator (`NUMBA_ENABLE_CUDASIM=1`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import config
from numba import cuda as _cuda
from numba import types as _types

from tilesage.core.compiler import Array

Function = TypeVar("Function", bound=Callable[..., Any])

# Numba describes its own types only in part: to the type checker these are anything.
cuda: Any = _cuda
types: Any = _types
float32: Any = numba.float32
int32: Any = numba.int32
int64: Any = numba.int64
uint32: Any = numba.uint32
uint64: Any = numba.uint64

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]
# A step of few games fills few processors, which is no news to anybody who asked for few games.
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]
LANES = 8
LANE_BITS = np.uint64(3)
LANE_MASK = np.uint64(7)
LEGAL, REWARD = 1 << 30, (1 << 25) - 1  # in the word that lanes exchange: a bit, and a mask
BLOCK = 32 if SIMULATED else 128
BLOCKS_A_MULTIPROCESSOR = 8  # 128 threads, at most 64 registers each: measured best of 6, 8, 10, 12
ONE, LOW_HALF = np.uint64(1), np.uint64(0xFFFF_FFFF)


def device(function: Function) -> Function:
    """A function that runs on the GPU and is called by kernels."""
    return cast(Function, cuda.jit(device=True)(function))


def launched(function: Function) -> Any:
    """A kernel, launched over blocks of BLOCK threads."""
    if SIMULATED:
        return cuda.jit(function)
    return cuda.jit(launch_bounds=(BLOCK, BLOCKS_A_MULTIPROCESSOR))(function)


if SIMULATED:
    _slots: list[Any] = [None] * BLOCK

    @device
    def _all_eight(mine: Any) -> Any:
        """What each of the eight lanes of this game brought."""
        me = cuda.threadIdx.x
        _slots[me] = mine
        cuda.syncthreads()
        first = me - me % LANES
        everyone = tuple(_slots[first : first + LANES])
        cuda.syncthreads()
        return everyone

    @device
    def meet() -> None:
        cuda.syncthreads()

    exchange = _all_eight

    def word_of(held: Any, lane: int) -> Any:
        return held[lane]

    info_of = word_of

    def sum_lanes(value: Any) -> Any:
        q = _all_eight(value)
        return ((q[0] + q[1]) + (q[2] + q[3])) + ((q[4] + q[5]) + (q[6] + q[7]))

    def load_if(array: Array, index: np.uint64, wanted: int) -> Any:
        return array[index] if wanted else np.float32(0)

    def load_pair(array: Array, index: np.uint64) -> Any:
        return array[index], array[index + ONE]

    def store_pair(array: Array, index: np.uint64, first: np.uint64, second: np.uint64) -> None:
        array[index] = first
        array[index + ONE] = second

    def minus(a: Any, b: Any) -> Any:
        return np.float32(a) - np.float32(b)

    def times(a: Any, b: Any) -> Any:
        return np.float32(a) * np.float32(b)

    def bits_of(x: Any) -> Any:
        return np.uint64(np.float32(x).view(np.uint32))

    def float_of(bits: Any) -> Any:
        return np.uint32(bits & LOW_HALF).view(np.float32)

else:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    FLOAT, WORD, HALF_WORD = ir.FloatType(), ir.IntType(64), ir.IntType(32)
    PAIR = ir.VectorType(WORD, 2)
    EVERY_LANE = 0xFFFF_FFFF

    @device
    def meet() -> None:
        """Wait for the other lanes: what they read before is read, what they wrote before is written."""
        cuda.syncwarp()

    @device
    def exchange(mine: Any) -> Any:
        """Lay out a word or an info of this lane for the others; read theirs with `word_of` or `info_of`."""
        return mine

    @device
    def word_of(held: Any, lane: int) -> Any:
        return uint64(cuda.shfl_sync(EVERY_LANE, int64(held), (cuda.laneid & 24) | lane))

    @device
    def info_of(held: Any, lane: int) -> Any:
        return cuda.shfl_sync(EVERY_LANE, held, (cuda.laneid & 24) | lane)

    @device
    def sum_lanes(value: Any) -> Any:
        """The sum over the eight lanes, as a tree: the same bits in every lane."""
        value += cuda.shfl_xor_sync(EVERY_LANE, value, 1)
        value += cuda.shfl_xor_sync(EVERY_LANE, value, 2)
        value += cuda.shfl_xor_sync(EVERY_LANE, value, 4)
        return value

    def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
        data = context.make_array(array_type)(context, builder, value=array).data
        return builder.ptrtoint(builder.gep(data, [index]), WORD)

    def _assembly(code: str, constraints: str, result: Any, arguments: list[Any]) -> Any:
        return ir.InlineAsm(ir.FunctionType(result, arguments), code, constraints)

    @intrinsic
    def load_if(typing: Any, array: Any, index: Any, wanted: Any) -> Any:
        """array[index] if wanted else 0, without a branch, so that many loads are under way at once."""
        code = "{ .reg .pred p; setp.ne.s32 p, $2, 0; mov.f32 $0, 0f00000000; @p ld.global.f32 $0, [$1]; }"

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _address(context, builder, signature.args[0], arguments[0], arguments[1])
            load = _assembly(code, "=f,l,r", FLOAT, [WORD, HALF_WORD])
            return builder.call(load, [place, arguments[2]])

        return types.float32(array, types.uint64, types.int32), generate

    @intrinsic
    def load_pair(typing: Any, array: Any, index: Any) -> Any:
        """array[index], array[index + 1] in one load; index is even."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _address(context, builder, signature.args[0], *arguments)
            pair = builder.load(builder.inttoptr(place, PAIR.as_pointer(1)))
            pair.align = 16
            both = [builder.extract_element(pair, HALF_WORD(k)) for k in range(2)]
            return context.make_tuple(builder, signature.return_type, both)

        return types.UniTuple(types.uint64, 2)(array, types.uint64), generate

    @intrinsic
    def store_pair(typing: Any, array: Any, index: Any, first: Any, second: Any) -> Any:
        """array[index], array[index + 1] = first, second in one store; index is even."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _address(context, builder, signature.args[0], *arguments[:2])
            pair = ir.Constant(PAIR, ir.Undefined)
            for k in range(2):
                pair = builder.insert_element(pair, arguments[2 + k], HALF_WORD(k))
            builder.store(pair, builder.inttoptr(place, PAIR.as_pointer(1))).align = 16
            return context.get_dummy_value()

        return types.void(array, types.uint64, types.uint64, types.uint64), generate

    minus, times = cuda.libdevice.fsub_rn, cuda.libdevice.fmul_rn  # rounded on their own, never fused

    @device
    def bits_of(x: Any) -> Any:
        """The bits of a float32, in the low half of a word."""
        return uint64(uint32(cuda.libdevice.float_as_int(x)))

    @device
    def float_of(bits: Any) -> Any:
        """The float32 in the low half of a word."""
        return cuda.libdevice.int_as_float(int32(bits & LOW_HALF))


@device
def thread_number() -> Any:
    return int64(cuda.grid(1))


@device
def stride() -> Any:
    """How many threads there are: how far a loop over an array goes at a time."""
    return int64(cuda.gridsize(1))
