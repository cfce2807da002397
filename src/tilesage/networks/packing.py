"""Small files for shipping: one byte a weight, only the blocks that matter, compressed.

Weights are cut into blocks of 64 entries, which the layout keeps alike, and these into groups of 16. A group is kept
as a size, the upper half of a float32, and 16 bytes, each a share of it: a trained network of 5-tuples played as well
afterwards (129,521 ± 1,006 points) as before (129,012), while one size for all 64 cost it 4 %.

`importance` says how often each entry is met. Blocks that are met least are left out until the file is small enough;
entries that are never met become 0; and a group's size is the one that makes the smallest error where it matters, so
that one large weight, met once in a million moves, does not make its neighbours coarse.
"""

from __future__ import annotations

import zlib

import numpy as np

from tilesage.core.compiler import Array
from tilesage.core.errors import InputError

VERSION = "2"  # of the stream; files name it
BLOCK, GROUP = 64, 16
GROUPS = BLOCK // GROUP
STEPS = 127  # of a byte, to each side of 0
RECORD = 4 + 2 * GROUPS + BLOCK  # bytes of a block: number, sizes, shares
DENSEST = 30  # bytes that a block takes in the stream at the very least, worth trying
SHRUNK = 0.5 ** np.arange(7)  # sizes that are tried for a group, as shares of its largest weight
SMALLEST = np.float32(1e-3)  # size


def blocks_of(weights: Array) -> Array:
    """[blocks, 64], the last one filled up with zeros."""
    padded = np.zeros(-(-weights.size // BLOCK) * BLOCK, weights.dtype)
    padded[: weights.size] = weights
    return padded.reshape(-1, BLOCK)


def zip_weights(weights: Array, limit: int = 0, importance: Array | None = None) -> Array:
    """The stream of bytes; at most `limit` of them (0: all blocks), the most important blocks kept."""
    blocks, met = blocks_of(weights), None
    if importance is not None:
        met = blocks_of(importance)
        blocks *= met > 0
    used = np.flatnonzero(blocks.any(axis=1))
    if met is not None:
        used = used[np.argsort(-met.sum(axis=1, dtype=np.float64)[used], kind="stable")]
    kept = min(len(used), limit // DENSEST) if limit else len(used)
    stream = _stream(blocks, met, np.sort(used[:kept]))
    while limit and len(stream) > limit and kept > 1:
        kept = min(kept - 1, max(1, int(0.995 * kept * limit / len(stream))))
        stream = _stream(blocks, met, np.sort(used[:kept]))
    return np.frombuffer(stream, np.uint8)


def _stream(blocks: Array, met: Array | None, used: Array) -> bytes:
    """Number, sizes and shares of these blocks, compressed."""
    groups = blocks[used].reshape(-1, GROUPS, GROUP)
    sizes = _half_as_long(np.abs(groups).max(axis=2, initial=0))
    if met is not None:
        sizes = _best_sizes(groups, met[used].reshape(groups.shape), sizes)
    numbers = np.diff(used, prepend=0).astype(np.uint32)
    upper = (sizes.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return zlib.compress(numbers.tobytes() + upper.tobytes() + _shares(groups, sizes).astype(np.int8).tobytes(), 9)


def _half_as_long(sizes: Array) -> Array:
    """Sizes that the upper 16 bits of a float32 hold, rounded up."""
    bits = np.maximum(sizes, SMALLEST).astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFFF)) & np.uint32(0xFFFF_0000)).view(np.float32)


def _shares(groups: Array, sizes: Array) -> Array:
    return np.clip(np.rint(groups * (STEPS / sizes)[:, :, None]), -STEPS, STEPS)


def _best_sizes(groups: Array, met: Array, largest: Array) -> Array:
    """Of each group, the size with the smallest squared error, every entry counted as often as it is met."""
    best, error = largest, np.full(largest.shape, np.inf)
    for share in SHRUNK:
        sizes = _half_as_long(largest * share)
        kept = _shares(groups, sizes) * (sizes / np.float32(STEPS))[:, :, None]
        missed = (met * np.square(groups - kept, dtype=np.float64)).sum(axis=2)
        best, error = np.where(missed < error, sizes, best), np.minimum(missed, error)
    return best


def unzip_weights(stream: Array, size: int, where: str) -> Array:
    """[size] the weights of a stream, which may be anything: nothing larger than the network is unpacked."""
    most = -(-size // BLOCK)
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(stream.tobytes(), most * RECORD + 1)
    except zlib.error:
        raise InputError(f"{where}: its packed weights are damaged") from None
    count, rest = divmod(len(data), RECORD)
    if rest or count > most or not unpacker.eof:
        raise InputError(f"{where}: its packed weights do not fit its network")
    numbers = np.cumsum(np.frombuffer(data, np.uint32, count), dtype=np.uint64)
    upper = np.frombuffer(data, np.uint16, GROUPS * count, 4 * count).reshape(count, GROUPS, 1)
    sizes = (upper.astype(np.uint32) << np.uint32(16)).view(np.float32)
    shares = np.frombuffer(data, np.int8, BLOCK * count, (4 + 2 * GROUPS) * count).reshape(count, GROUPS, GROUP)
    if count and int(numbers[-1]) >= most:
        raise InputError(f"{where}: its packed weights do not fit its network")
    weights = np.zeros((most, GROUPS, GROUP), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # found by check_finite
        weights[numbers] = shares * (sizes / np.float32(STEPS))
    return weights.reshape(-1)[:size]
