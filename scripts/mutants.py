"""Break the rules on purpose, one expression at a time, and see whether the tests notice.

Every mutant is one change in one place of the rule books of the games or of the referee: another comparison, another
operator, a number one off, a condition turned round. It runs in a process of its own, with the compiler off, against
the tests of its package. A mutant that passes them all survived: the tests are blind there, or it means nothing.

    python scripts/mutants.py                               # all of them, for hours
    python scripts/mutants.py --workers 16 --part 1/3       # the first third, sixteen at a time
    python scripts/mutants.py --sample 40 --seed 1          # a random share of them
    python scripts/mutants.py --file games/threes.py
    python scripts/mutants.py --only mutants.log            # those of which an earlier run said "survived: ..."
"""

from __future__ import annotations

import argparse
import ast
import copy
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from random import Random

from changed_copy import PACKAGE, survives

GAMES = [
    "tests/games/test_games.py",
    "tests/games/test_reference.py",
    "tests/games/test_perft.py",
    "-k",
    "not compiler_off",
]
GAME_OF_2048 = [*GAMES[:-1], "not compiler_off and not threes"]
GAMES_OF_THREES = [*GAMES[:-1], "not compiler_off and not 2048"]
REFEREE = [
    "tests/records/test_referee.py",
    "tests/records/test_rulebooks.py",
    "tests/records/test_records.py",
    "tests/records/test_verdicts.py",
    "-k",
    "not workers and not engine",
]
FILES = {
    "games/board.py": GAMES,
    "core/random.py": GAMES,
    "games/g2048.py": GAME_OF_2048,
    "games/new_tiles.py": GAMES,
    "games/exact.py": GAMES,
    "games/fibonacci.py": GAMES,
    "games/threes.py": GAMES_OF_THREES,
    "games/threes_phone.py": GAMES_OF_THREES,
    "records/notation.py": REFEREE,
    "records/rulebooks.py": REFEREE,
    "records/referee.py": REFEREE,
    "records/by_game_rules.py": ["tests/games/test_plugins.py"],
    "records/replay.py": ["tests/games/test_plugins.py", "tests/drawing/test_pictures.py"],
}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Mod: ast.FloorDiv,
}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The ways in which one expression can be broken: a description and the new expression."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        other = copy.deepcopy(node)
        other.ops[0] = COMPARISONS[type(node.ops[0])]()
        yield "comparison", other
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        other_operation = copy.deepcopy(node)
        other_operation.op = OPERATORS[type(node.op)]()
        yield "operator", other_operation
    elif isinstance(node, ast.BoolOp):
        other_word = copy.deepcopy(node)
        other_word.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", other_word
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "truth", ast.Constant(not node.value)


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """(parent, field, index, expression) of everything inside functions, annotations left out."""
    typed = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    hidden = {id(inner) for node in typed for inner in ast.walk(node.annotation)}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for parent in [inner for statement in function.body for inner in ast.walk(statement)]:
            if isinstance(parent, ast.FunctionDef | ast.arg | ast.AnnAssign) or id(parent) in hidden:
                continue
            for field, value in ast.iter_fields(parent):
                many = value if isinstance(value, list) else [value]
                for index, child in enumerate(many):
                    if isinstance(child, ast.expr):
                        yield parent, field, index if isinstance(value, list) else None, child


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """(line, what was changed, the new source) of every mutant."""
    tree, seen = ast.parse(source), set[tuple[int, int, str]]()
    for parent, field, index, child in sites(tree):
        for what, changed in changes(child):
            key = (child.lineno, child.col_offset, what)
            if key in seen:
                continue
            seen.add(key)
            _put(parent, field, index, ast.copy_location(changed, child))
            text = f"{what}: {ast.unparse(child)} -> {ast.unparse(changed)}"
            yield child.lineno, text, ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, field, index, child)


def _put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", choices=list(FILES), help="only the mutants of this file")
    parser.add_argument("--sample", type=int, default=0, help="only so many, chosen at random; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=Path, help="only those that survived by the output of an earlier run")
    parser.add_argument("--part", default="1/1", help="only the K-th of N equal parts, as K/N")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=900, help="for the tests of one mutant")
    flags = parser.parse_args()
    sources = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in FILES if flags.file in (None, name)}
    found = [
        (name, f"{name}:{line}: {what}", mutant)
        for name, source in sources.items()
        for line, what, mutant in mutants(source)
    ]
    total = len(found)
    if flags.only:
        wanted = {line.removeprefix("survived: ") for line in flags.only.read_text(encoding="utf-8").splitlines()}
        found = [mutant for mutant in found if mutant[1] in wanted]
    if flags.sample:
        found = Random(flags.seed).sample(found, min(flags.sample, total))
    part, parts = (int(x) for x in flags.part.split("/"))
    found = found[part - 1 :: parts]
    for name in {str(FILES[name]): name for name, _, _ in found}.values():
        if not survives(name, sources[name], FILES[name], flags.seconds):
            print(f"the tests of {name} fail, or take too long, before anything is changed: {' '.join(FILES[name])}")
            return 1
    alive, done, begin = 0, 0, time.monotonic()
    with ThreadPoolExecutor(flags.workers) as pool:
        asked = {
            pool.submit(survives, name, source, FILES[name], flags.seconds): label for name, label, source in found
        }
        for answer in as_completed(asked):
            done += 1
            if answer.result():
                alive += 1
                print(f"survived: {asked[answer]}", flush=True)
            elif done % 20 == 0:
                print(f"{done} of {len(found)}, {time.monotonic() - begin:.0f} s", flush=True)
    killed = len(found) - alive
    print(f"{killed} of {len(found)} mutants noticed ({total} in all), {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
