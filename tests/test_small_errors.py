"""What scripts/small_errors.py does can still be done: the text to change is there, and so are the tests."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def names_in(file: Path) -> set[str]:
    """Its functions and classes, test functions among them."""
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scripts" / "small_errors").glob("*.toml")), ids=lambda path: path.stem
)
def test_every_small_error_can_be_made(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    errors = importlib.import_module("small_errors").read_errors(path)
    assert len({error.name for error in errors}) == len(errors) > 0
    for error in errors:
        assert error.old != error.new, error.name
        ast.parse(error.source())  # the old text is there exactly once, and the new one is Python
        assert error.tests, error.name
        for test in error.tests:
            file, *inside = test.split("::")
            assert {name.partition("[")[0] for name in inside} <= names_in(ROOT / file), f"{error.name}: {test}"
