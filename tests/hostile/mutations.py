"""How good input is broken: bytes, texts, numbers inside texts, JSON trees, and headers that lie about lengths."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (
    0,
    1,
    -1,
    2,
    15,
    16,
    17,
    64,
    255,
    65535,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**63,
    2**64 - 1,
    2**64,
    10**30,
    10**400,
)
WORDS = (
    "",
    "NaN",
    "Infinity",
    "-Infinity",
    "nan",
    "1e309",
    "-0.0",
    "0x10",
    "null",
    "true",
    "٣",
    "²",
    "é",
    "\x00",
    "\r",
    "\ud800",
)
WIDTHS = ("<b", "<h", "<i", "<q", "<f", "<d")
LONGEST = 1 << 20  # of a mutated input

Mutation = Callable[[bytearray, Random], bytes]


def _span(data: bytearray, random: Random, longest: int = 200) -> tuple[int, int]:
    begin = random.randrange(len(data) + 1)
    return begin, min(len(data), begin + random.randint(1, longest))


def flip_bit(data: bytearray, random: Random) -> bytes:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def set_byte(data: bytearray, random: Random) -> bytes:
    if data:
        data[random.randrange(len(data))] = random.choice(
            (0, 9, 10, 13, 32, 34, 47, 127, 128, 255, random.randrange(256))
        )
    return bytes(data)


def cut_end(data: bytearray, random: Random) -> bytes:
    return bytes(data[: random.randrange(len(data) + 1)])


def delete(data: bytearray, random: Random) -> bytes:
    begin, end = _span(data, random)
    del data[begin:end]
    return bytes(data)


def repeat(data: bytearray, random: Random) -> bytes:
    begin, end = _span(data, random, 40)
    times = random.choice((2, 3, 10, 1000))
    return bytes(data[:end] + data[begin:end] * times + data[end:])


def exchange(data: bytearray, random: Random) -> bytes:
    (a, b), (c, d) = sorted((_span(data, random, 20), _span(data, random, 20)))
    return bytes(data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]) if b <= c else bytes(data)


def insert_noise(data: bytearray, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return bytes(data[:at]) + random.randbytes(random.choice((1, 2, 8, 300))) + bytes(data[at:])


def insert_word(data: bytearray, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    word = random.choice(WORDS + tuple(str(number) for number in NUMBERS))
    return bytes(data[:at]) + word.encode("utf-8", "surrogatepass") + bytes(data[at:])


def change_number(data: bytearray, random: Random) -> bytes:
    """A number written in the text becomes another one, often an absurd one."""
    places = list(re.finditer(rb"[0-9]+", data[:100_000]))
    if not places:
        return bytes(data)
    place = random.choice(places)
    number = random.choice((*NUMBERS, random.randrange(1000)))
    return bytes(data[: place.start()]) + str(number).encode() + bytes(data[place.end() :])


def overwrite_number(data: bytearray, random: Random) -> bytes:
    """A binary number, most often one near the start, where the lengths stand."""
    width = random.choice(WIDTHS)
    size = struct.calcsize(width)
    room = len(data) - size
    if room < 0:
        return bytes(data)
    at = random.randrange(min(room, 64) + 1) if random.random() < 0.7 else random.randrange(room + 1)
    value: float = random.choice((float("nan"), float("inf"), -1.0, 3e38)) if width in ("<f", "<d") else 0
    if width not in ("<f", "<d"):
        top = 1 << (8 * size - 1)
        value = random.choice((0, 1, -1, top - 1, -top, random.randrange(-top, top), len(data) % top))
    data[at : at + size] = struct.pack(width, value)
    return bytes(data)


BYTES: tuple[Mutation, ...] = (
    flip_bit,
    set_byte,
    cut_end,
    delete,
    repeat,
    exchange,
    insert_noise,
    insert_word,
    change_number,
    overwrite_number,
)


def broken(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """The input after one to four mutations, sometimes with the tail of another good input."""
    for _ in range(random.choice((1, 1, 2, 4))):
        data = random.choice(BYTES)(bytearray(data), random)
    if others and random.random() < 0.05:
        other = random.choice(others)
        data = data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]
    return data[:LONGEST]


def absurd_value(value: Any, random: Random) -> Any:
    """Another value in place of one of a JSON tree: of another type, out of range, or nested without end."""
    choices: list[Any] = [
        None,
        True,
        [],
        {},
        "",
        0,
        -1,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        [value],
        {"a": value},
    ]
    choices += [random.choice(NUMBERS), str(random.choice(NUMBERS)), random.choice(WORDS), "x" * 5000]
    if isinstance(value, int) and not isinstance(value, bool):
        choices += [value + 1, value - 1, -value, value * 2, float(value % 2**64), str(value), value << 32] * 2
    if isinstance(value, str):
        text = broken(value.encode("utf-8", "replace"), random)[:5000].decode("utf-8", "replace")
        choices += [text, value + value, value.upper(), value + "," + value] * 3
    if isinstance(value, list):
        choices += [value + value, value[:-1], value[::-1], [value, value]]
    return random.choice(choices)


def broken_tree(tree: Any, random: Random) -> Any:
    """A JSON tree with one value changed, lost, or doubled under another name."""
    if isinstance(tree, dict) and tree and random.random() < 0.9:
        key = random.choice(list(tree))
        fate = random.random()
        if fate < 0.1:
            return {name: value for name, value in tree.items() if name != key}
        if fate < 0.15:
            return {**tree, f"{key}2": tree[key]}
        return {**tree, key: broken_tree(tree[key], random)}
    if isinstance(tree, list) and tree and random.random() < 0.7:
        at = random.randrange(len(tree))
        return [broken_tree(value, random) if i == at else value for i, value in enumerate(tree)]
    return absurd_value(tree, random)


def broken_json(text: str, random: Random) -> str:
    """JSON text with a changed value, or with a bomb of brackets."""
    if random.random() < 0.03:
        depth = random.choice((50, 5000, 200_000))
        bracket = random.choice(("[", '{"a":'))
        return text.replace(":", ":" + bracket * depth, 1) if random.random() < 0.5 else bracket * depth
    tree = json.loads(text)
    for _ in range(random.choice((1, 1, 2, 3))):
        tree = broken_tree(tree, random)
    return json.dumps(tree)


def broken_model(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """A safetensors file: broken bytes, or a header that still fits its length but tells stories."""
    return _broken_file(data, random, others, ("parameters", "training"))


def broken_tensors(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """A checkpoint, likewise."""
    return _broken_file(data, random, others, ("progress",))


def _broken_file(data: bytes, random: Random, others: Sequence[bytes], nested: tuple[str, ...]) -> bytes:
    if random.random() < 0.35:
        return broken(data, random, others)
    length = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + length], data[8 + length :]
    tree = json.loads(header)
    if random.random() < 0.25:  # JSON inside JSON
        name = random.choice(nested)
        tree["__metadata__"][name] = broken_json(tree["__metadata__"][name], random)
        text = json.dumps(tree)
    else:
        text = broken_json(json.dumps(tree), random)
    if random.random() < 0.2:
        body = broken(body, random)
    new = text.encode("utf-8", "replace")
    claimed = len(new) if random.random() < 0.95 else random.choice(NUMBERS) % 2**64
    return (struct.pack("<Q", claimed) + new + body)[:LONGEST]
