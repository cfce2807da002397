"""Compiled code from disk is what the program would compile now, whatever was edited and whatever else is loaded."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from tilesage.core import digest
from tilesage.evaluation import evaluate
from tilesage.games import threes
from tilesage.search import expectimax, mcts

# Every ingredient of `loop` makes one digit of what it answers.
PROGRAM = """
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

import helpers
from tilesage.core.compiler import compiled

RATE = 1
TABLE = np.array([1, 7])
SHIFTED = np.array([7, 1, 7])[1:]


class Piece(IntEnum):
    ROOK = 1


class Sides(NamedTuple):
    own: int
    other: int


SIDES = Sides(own=1, other=2)


@compiled
def deepest(x):
    return x


@compiled
def between(x):
    return deepest(x) + deepest(0)


@numba.njit
def plain(x):
    ones = np.ones(1, np.int64)
    return x + ones[0] * helpers.further(0)


def steps_of(number):
    table = np.array([number[1], 7])

    @compiled
    def step(x):
        return number[0] * x + table[0] * 10 * x

    return step


def added():
    return 1


@intrinsic
def made(typing):
    def generate(context, builder, signature, args):
        return context.get_constant(types.int64, added())

    return types.int64(), generate


@compiled
def usual(x, y=1):
    return x * y


step = steps_of((1, 1))


@compiled(title="the loop")
def loop(sides):
    x = 1
    x += between(10)
    x += 100 * RATE
    x += 1000 * TABLE[0]
    x += step(10_000)
    x += plain(1_000_000)
    x += 100_000_000 * Piece.ROOK
    x += 1_000_000_000 * helpers.NUMBER
    x += usual(10_000_000_000)
    x += 100_000_000_000 * sides.own
    x += 1_000_000_000_000 * SIDES.own
    x += 10_000_000_000_000 * made()
    x += 100_000_000_000_000 * SHIFTED[0]
    return x


if __name__ == "__main__":
    from numba.core import event

    import program

    with event.install_recorder("numba:compile") as recorder:
        answer = program.loop(program.Sides(1, 2))
    print(answer, len(recorder.buffer) // 2)
"""
HELPERS = """
import numba

NUMBER = 1


@numba.njit(cache=True)
def further(x):
    return x + 10_000_000
"""
BEFORE = 111_111_111_111_111
EDITS = {
    "its own code": ("    x = 1\n", "    x = 2\n", 0),
    "a callee two levels down": ("def deepest(x):\n    return x\n", "def deepest(x):\n    return 2 * x\n", 1),
    "a global constant": ("RATE = 1", "RATE = 2", 2),
    "a global array": ("np.array([1, 7])", "np.array([2, 7])", 3),
    "a number in a closed-over tuple": ("steps_of((1, 1))", "steps_of((2, 1))", 4),
    "a closed-over array": ("steps_of((1, 1))", "steps_of((1, 2))", 5),
    "a callee of numba.njit": ("return x + ones", "return 2 * x + ones", 6),
    "what that one calls, in another module": ("x + 10_000_000", "x + 20_000_000", 7),
    "a member of an enumeration": ("ROOK = 1", "ROOK = 2", 8),
    "a constant of a module": ("NUMBER = 1", "NUMBER = 2", 9),
    "a default": ("y=1", "y=2", 10),
    "the fields of an argument": ("    own: int\n    other: int", "    other: int\n    own: int", 11),
    "a named tuple": ("Sides(own=1", "Sides(own=2", 12),
    "the Python inside an intrinsic": ("    return 1\n", "    return 2\n", 13),
    "part of an array": ("np.array([7, 1, 7])", "np.array([7, 2, 7])", 14),
}


def run(folder: Path, cache: Path, *words: str, **environment: str) -> list[float]:
    """Run the program in this folder in a process of its own: the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, "program.py", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def write(folder: Path, program: str, **modules: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {"program": program, **modules}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def kept(cache: Path) -> set[Path]:
    return set(cache.rglob("*.nbc"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled code of the program, left behind by a process that is gone."""
    cache = tmp_path_factory.mktemp("cache")
    folder = write(tmp_path_factory.mktemp("first"), PROGRAM, helpers=HELPERS)
    answer, compiled = run(folder, cache)
    assert answer == BEFORE
    assert compiled >= 8
    assert not list(folder.rglob("*.nb?"))  # nothing beside the source
    return cache


def test_the_next_process_compiles_nothing(cache: Path, tmp_path: Path) -> None:
    """Not even from another folder."""
    before = kept(cache)
    assert run(write(tmp_path / "moved", PROGRAM, helpers=HELPERS), cache) == [BEFORE, 0]
    assert kept(cache) == before


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_never_meets_what_was_compiled_before(cache: Path, tmp_path: Path, what: str) -> None:
    old, new, digit = EDITS[what]
    assert (PROGRAM + HELPERS).count(old) == 1
    folder = write(tmp_path / "edited", PROGRAM.replace(old, new), helpers=HELPERS.replace(old, new))
    answer, compiled = run(folder, cache)
    assert answer == BEFORE + 10**digit
    assert compiled > 0


def test_with_the_compiler_off_the_same_comes_out(tmp_path: Path) -> None:
    program = PROGRAM.replace(" * made()", "")  # an intrinsic is for the compiler
    folder = write(tmp_path / "plain", program, helpers=HELPERS)
    assert run(folder, tmp_path / "cache", NUMBA_DISABLE_JIT="1") == [BEFORE, 0]
    assert not kept(tmp_path)


def test_a_damaged_file_is_compiled_anew(tmp_path: Path) -> None:
    folder = write(tmp_path / "here", PROGRAM, helpers=HELPERS)
    assert run(folder, tmp_path)[0] == BEFORE
    for path in kept(tmp_path):
        path.write_bytes(path.read_bytes()[:-100])
    assert run(folder, tmp_path)[1] > 0
    assert run(folder, tmp_path) == [BEFORE, 0]


def test_a_place_that_cannot_be_written_to_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    folder = write(tmp_path / "here", PROGRAM, helpers=HELPERS)
    assert run(folder, tmp_path / "taken")[0] == BEFORE


def test_files_that_nobody_has_read_for_long_are_removed(tmp_path: Path) -> None:
    folder = write(tmp_path / "here", PROGRAM, helpers=HELPERS)
    place = tmp_path / "cache" / "compiled"
    place.mkdir(parents=True)
    for name, days in (("forgotten.nbc", 61), ("used.nbc", 59)):
        (place / name).touch()
        os.utime(place / name, (time.time() - days * 86400,) * 2)
    run(folder, tmp_path / "cache")
    assert not (place / "forgotten.nbc").exists()
    assert (place / "used.nbc").exists()
    for path in kept(place):
        os.utime(path, (time.time() - 50 * 86400,) * 2)
    assert run(folder, tmp_path / "cache") == [BEFORE, 0]
    assert any(time.time() - path.stat().st_mtime < 86400 for path in kept(place))  # read: still in use


# --- What changes within a process -------------------------------------------------------------------------------

CHANGING = """
from tilesage.core.compiler import compiled

RATE = 1


@compiled
def inner(x):
    return x * RATE


@compiled
def outer(x):
    return inner(x)


if __name__ == "__main__":
    import sys

    import program

    for word in sys.argv[1:]:
        if word == "change":
            program.RATE += 1
        else:
            print(float(getattr(program, word.split(":")[0])(eval(word.split(":")[1]))))
"""


@pytest.mark.parametrize(
    "first",
    [
        ("outer:1", "change", "outer:1.0"),
        ("inner:1", "change", "outer:1", "outer:1.0"),
        ("inner:1", "change", "inner:1.0", "outer:1", "outer:1.0"),
    ],
)
def test_a_global_that_changes_while_a_program_runs_leaves_nothing_wrong_behind(
    tmp_path: Path, first: tuple[str, ...]
) -> None:
    folder = write(tmp_path / "here", CHANGING)
    run(folder, tmp_path, *first)
    assert run(folder, tmp_path, "outer:1", "outer:1.0", "inner:1", "inner:1.0") == [1, 1, 1, 1]
    assert run(folder, tmp_path, "change", "outer:1", "outer:1.0", "inner:1", "inner:1.0") == [2, 2, 2, 2]


# --- What no digest can tell -------------------------------------------------------------------------------------

OVERLOADED = """
from numba.extending import overload
from tilesage.core.compiler import compiled


def given(x):
    return x


@overload(given)
def _given(x):
    return lambda x: x + 1


@compiled(title="what is given")
def loop(x):
    return given(x)


if __name__ == "__main__":
    import program

    print(program.loop(1))
"""
JITCLASS = """
import numpy as np
from numba import int64
from numba.experimental import jitclass
from tilesage.core.compiler import compiled


@jitclass([("x", int64)])
class Box:
    def __init__(self, x):
        self.x = x

    def value(self):
        return self.x + 1


@compiled
def loop(box):
    np.zeros(1)
    return box.value()


if __name__ == "__main__":
    import program

    print(program.loop(program.Box(1)))
"""
EACH_OTHER = """
import sys

import numba

from tilesage.core.compiler import compiled


@compiled
def even(n):
    if n == 0:
        return 1
    return odd(n - 1)


@compiled
def odd(n):
    if n == 0:
        return 0
    return even(n - 1) + 1 - 1


@compiled
def itself(n):
    return 1 if n == 0 else itself(n - 1)


@compiled
def through(n):
    return even(n)


@numba.njit
def in_python(n):
    with numba.objmode(found="int64"):
        found = int(str(n) + "1")
    return found


@compiled
def through_python(n):
    return in_python(n)


if __name__ == "__main__":
    import program

    called = [getattr(program, name) for name in sys.argv[1:]] or [program.even, program.odd, program.itself]
    print(*(function(10) for function in called))
"""


@pytest.mark.parametrize("program", [OVERLOADED, JITCLASS], ids=["overload", "jitclass"])
def test_what_cannot_be_read_is_compiled_in_every_process(tmp_path: Path, program: str) -> None:
    folder = write(tmp_path / "here", program)
    assert run(folder, tmp_path) == [2]
    write(folder, program.replace("x + 1", "x + 2"))
    assert run(folder, tmp_path) == [3]
    assert not kept(tmp_path)


def test_the_user_is_told_why(tmp_path: Path) -> None:
    folder = write(tmp_path / "here", OVERLOADED)
    environment = {**os.environ, "TILESAGE_QUIET": ""}
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.stderr.strip() == (
        "compiling what is given … (in every process anew: no digest tells the Python function given)"
    )


def test_functions_that_call_each_other_are_not_kept(tmp_path: Path) -> None:
    """From the disk they would take the process down. One that calls itself is kept."""
    folder = write(tmp_path / "here", EACH_OTHER)
    for _ in range(3):
        assert run(folder, tmp_path) == [1, 0, 1]
    assert [path.name.partition("-")[0] for path in kept(tmp_path)] == ["itself"]


@pytest.mark.parametrize(("name", "found"), [("through", 1), ("through_python", 101)])
def test_what_has_no_digest_is_compiled_whole_where_others_call_it(tmp_path: Path, name: str, found: int) -> None:
    folder = write(tmp_path / "here", EACH_OTHER)
    for _ in range(2):
        assert run(folder, tmp_path, name) == [found]


# --- Linking -----------------------------------------------------------------------------------------------------

# `long` is too long to be written out at each of its four calls, so the linker has to find it.
STEP = "            x = (x * {} + n) % {} if x % {} else x + {}"
STEPS = "\n".join(STEP.format(k + 31, 1000003 + k, k + 2, k) for k in range(60))
LINKED = f"""
import numba
from tilesage.core.compiler import compiled


def loop_of(number):
    @compiled
    def long(n):
        x = number
        for _ in range(n):
{STEPS}
        return number if x else 0

    if called:
        long(1)

    @compiled
    def loop(n):
        return (long(n) + long(n + 1) + long(n + 2) + long(n + 3)) // 4

    return loop


called = False

if __name__ == "__main__":
    import sys

    import program

    print(*(program.loop_of(int(word))(5) for word in sys.argv[1:]))
"""
NETWORKS = """
import sys

import numpy as np
from tilesage import games
from tilesage.core.compiler import compiled
from tilesage.networks.ntuple import evaluator
from tilesage.networks.patterns import parse_network


def value_of(name):
    network = evaluator(games.get("2048"), parse_network(name))
    value = network.value

    @compiled
    def loop(weights, board):
        total = 0.0
        for k in range(4):
            total += value(weights, board << np.uint64(k), np.uint64(0))
        return total / 4

    return loop(np.ones(network.size, np.float32), np.uint64(0x1234))


print(*map(value_of, sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "program",
    [
        LINKED,
        LINKED.replace("    @compiled\n    def long", "    @numba.njit\n    def long"),
        LINKED.replace("    @compiled\n    def long", "    @numba.njit\n    def long").replace("= False", "= True"),
    ],
    ids=["compiled", "numba.njit", "numba.njit, called before"],
)
def test_closures_of_one_factory_from_several_processes_do_not_take_each_other_s_place(
    tmp_path: Path, program: str
) -> None:
    folder = write(tmp_path / "here", program)
    assert run(folder, tmp_path, "111") == [111]
    assert run(folder, tmp_path, "222") == [222]
    assert len(kept(tmp_path)) >= 2  # both processes have left code behind
    assert run(folder, tmp_path, "111", "222") == [111, 222]
    assert run(folder, tmp_path, "222", "111") == [222, 111]


def test_networks_from_several_processes_do_not_take_each_other_s_place(tmp_path: Path) -> None:
    """With every weight 1, a value is the number of entries that make it up."""
    folder, three, six = write(tmp_path / "here", NETWORKS), "0123,4567,0145", "0123,4567,0145,1256,012,456"
    assert run(folder, tmp_path, three) == [24]
    assert run(folder, tmp_path, six) == [48]
    before = kept(tmp_path)
    assert run(folder, tmp_path, three, six) == [24, 48]
    assert run(folder, tmp_path, six, three) == [48, 24]
    assert kept(tmp_path) == before


INNER = """
import sys

from tilesage.core import inner

if "whole" in sys.argv:
    inner.POSSIBLE = False

from tilesage.core.compiler import compiled


@compiled
def twice(n):
    return 2 * n


@compiled
def down(n):
    return twice(n) + down(n - 1) if n > 0 else 0


@compiled
def loop(n):
    return down(n) + down(n)


if "first" in sys.argv:
    print(down(3))
print(loop(3), twice(7), down(3), loop(2.5))
"""


@pytest.mark.parametrize("words", [(), ("first",), ("whole",), ("whole", "first")])
def test_what_compiled_code_calls_is_made_whole_when_python_calls_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In the first process the outermost function is compiled, in the second one it comes from the disk."""
    folder = write(tmp_path / "here", INNER)
    for _ in range(2):
        assert run(folder, tmp_path, *words)[-4:] == [24, 14, 12, 18]


def test_only_what_python_calls_has_machine_code(tmp_path: Path) -> None:
    folder = write(tmp_path / "here", INNER.replace("print(loop(3), twice(7), down(3), loop(2.5))", "print(loop(3))"))
    assert run(folder, tmp_path) == [24]
    assert [path.name.partition("-")[0] for path in kept(tmp_path)] == ["loop"]
    assert run(folder, tmp_path / "other", "whole") == [24]
    assert {path.name.partition("-")[0] for path in kept(tmp_path / "other")} == {"loop", "down", "twice"}


# --- Reading byte code -------------------------------------------------------------------------------------------


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


MANY = "def many():\n    return " + " + ".join(f"global_{k}" for k in range(700))
SOURCES = [Path(str(module.__file__)).read_text() for module in (digest, threes, evaluate, expectimax, mcts)]


@pytest.mark.parametrize("text", [MANY, *SOURCES], ids=["many", "digest", "threes", "evaluate", "expectimax", "mcts"])
def test_the_globals_of_a_function_are_those_that_the_disassembler_finds(text: str) -> None:
    for code in codes(compile(text, "here", "exec")):
        expected = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
        found = {code.co_names[number >> 1] for number in digest._arguments(code, digest.LOAD_GLOBAL)}
        assert found == expected
