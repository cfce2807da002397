"""Eight symmetries at once: vector code for the compiler, written as ordinary arithmetic.

Numba compiles scalar loops well but leaves small bit tricks unvectorised. `VectorWords` is a vector of `uint64`
inside the compiler: the functions of layout.py, which use only operators, run on it unchanged and become vector
instructions of whatever width the processor has. With the compiler off, the same functions run on numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tilesage.core.compiler import COMPILED
from tilesage.networks.layout import Layout, flip, mirror, spread, transpose

WORD, HALF, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
TURNS = {1: (), 2: (flip,), 8: (mirror, flip, transpose)}  # each doubles the ways in which a board is read


class VectorWords:
    """A vector of 64-bit words, as the compiler builds it: one spread board in each word."""

    def __init__(self, builder: Any, vector: Any):
        self.builder, self.vector = builder, vector

    def _with(self, operation: str, other: Any) -> VectorWords:
        if not isinstance(other, VectorWords):
            kind = self.vector.type
            other = VectorWords(self.builder, ir.Constant(kind, [int(other)] * kind.count))
        return VectorWords(self.builder, getattr(self.builder, operation)(self.vector, other.vector))

    def __add__(self, other: Any) -> VectorWords:
        return self._with("add", other)

    def __and__(self, other: Any) -> VectorWords:
        return self._with("and_", other)

    def __or__(self, other: Any) -> VectorWords:
        return self._with("or_", other)

    def __xor__(self, other: Any) -> VectorWords:
        return self._with("xor", other)

    def __lshift__(self, other: Any) -> VectorWords:
        return self._with("shl", other)

    def __rshift__(self, other: Any) -> VectorWords:
        return self._with("lshr", other)

    def beside(self, other: VectorWords) -> VectorWords:
        """Both vectors as one of twice the width."""
        both = list(range(2 * self.vector.type.count))
        order = ir.Constant(ir.VectorType(HALF, len(both)), both)
        return VectorWords(self.builder, self.builder.shuffle_vector(self.vector, other.vector, order))


def symmetric(words: VectorWords, symmetries: int) -> VectorWords:
    """Spread boards in all their symmetries: word k of s boards is board k % s in symmetry k // s."""
    for turn in TURNS[symmetries]:
        words = words.beside(turn(words))
    return words


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def entries_of(layout: Layout, symmetries: int, boards: int) -> Callable[[Any, Any], None]:
    """`entries(source, index)`: index[(table · symmetries + symmetry) · boards + board] = its entry.

    `source` is an array of that many boards, or for a single one the board itself.
    """
    tables = layout.tables
    if not COMPILED:
        return _plain_entries(layout, symmetries, boards)

    @intrinsic
    def entries(typing: Any, source: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            target = _data(context, builder, signature.args[1], args[1])
            kind = ir.VectorType(WORD, boards)
            if boards == 1:
                vector = builder.insert_element(ir.Constant(kind, ir.Undefined), args[0], HALF(0))
            else:
                place = _data(context, builder, signature.args[0], args[0])
                vector = builder.load(builder.bitcast(place, kind.as_pointer()), align=8)
            words = symmetric(spread(VectorWords(builder, vector)), symmetries)
            for t, table in enumerate(tables):
                entry = builder.trunc(table.entry(words).vector, ir.VectorType(HALF, boards * symmetries))
                place = builder.gep(target, [WORD(boards * symmetries * t)])
                builder.store(entry, builder.bitcast(place, entry.type.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.void(types.uint64 if boards == 1 else source, index), generate

    return cast(Callable[[Any, Any], None], entries)


def sum_of_one(layout: Layout, symmetries: int) -> Callable[[Any, Any, Any], Any]:
    """`total(weights, board, offset)`: the sum of all entries of one board, from `offset` on."""
    tables = layout.tables
    if not COMPILED:
        return _plain_sum(layout, symmetries)

    @intrinsic
    def total(typing: Any, weights: Any, board: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[2]])
            one = ir.Constant(ir.VectorType(WORD, 1), ir.Undefined)
            words = symmetric(spread(VectorWords(builder, builder.insert_element(one, args[1], HALF(0)))), symmetries)
            sums = [ir.Constant(ir.FloatType(), 0.0)] * symmetries
            for table in tables:
                entry = table.entry(words).vector
                for k in range(symmetries):
                    weight = builder.load(builder.gep(source, [builder.extract_element(entry, HALF(k))]))
                    sums[k] = builder.fadd(sums[k], weight)
            while len(sums) > 1:
                sums = [builder.fadd(a, b) for a, b in zip(sums[::2], sums[1::2])]
            return sums[0]

        return types.float32(weights, types.uint64, types.uint64), generate

    return cast(Callable[[Any, Any, Any], Any], total)


def _plain_entries(layout: Layout, symmetries: int, boards: int) -> Callable[[Any, Any], None]:
    def entries(source: Any, index: Any) -> None:
        for b in range(boards):
            for s, word in enumerate(symmetric_words(source if boards == 1 else source[b], symmetries)):
                for t, table in enumerate(layout.tables):
                    index[(t * symmetries + s) * boards + b] = table.entry(word)

    return entries


def _plain_sum(layout: Layout, symmetries: int) -> Callable[[Any, Any, Any], Any]:
    def total(weights: Any, board: Any, offset: Any) -> Any:
        sums = [np.float32(0)] * symmetries
        words = symmetric_words(board, symmetries)
        for table in layout.tables:
            sums = [s + weights[int(offset) + int(table.entry(word))] for s, word in zip(sums, words)]
        while len(sums) > 1:
            sums = [a + b for a, b in zip(sums[::2], sums[1::2])]
        return sums[0]

    return cast(Callable[[Any, Any, Any], Any], total)


def symmetric_words(board: Any, symmetries: int) -> list[Any]:
    """A board in all its symmetries, spread."""
    words = [spread(np.uint64(board))]
    for turn in TURNS[symmetries]:
        words += [turn(word) for word in words]
    return words


def _prefetch() -> Callable[[Any, Any], None]:
    if not COMPILED:
        return lambda array, index: None

    @intrinsic
    def prefetch(typing: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
            kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), HALF, HALF, HALF])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
            to_read, keep_near, data = HALF(0), HALF(3), HALF(1)
            builder.call(function, [builder.bitcast(place, BYTE.as_pointer()), to_read, keep_near, data])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    return cast(Callable[[Any, Any], None], prefetch)


# prefetch(array, index): ask the memory for the line of array[index], which will soon be read. Asked for to be
# written, as one line in four then is, cores would take them from each other (docs/performance.md).
prefetch = _prefetch()
