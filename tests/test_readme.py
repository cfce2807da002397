"""The documents: links that lead somewhere, and the README's example as a reader would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilesage import cli

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link writes after # for each heading: small letters, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_the_example_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 6


def test_the_passages_of_the_library_run(tmp_path: Path) -> None:
    """One after another, as one script, in an empty folder where nothing is left."""
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == page.count("print(")
    assert list(tmp_path.iterdir()) == [script]


def test_every_command_in_the_documents_exists() -> None:
    for page in PAGES:
        for block in re.findall(r"```.*?```", page.read_text(encoding="utf-8"), re.DOTALL):
            for name in re.findall(r"^(?:\$ )?tilesage ([a-z-]+)", block, re.MULTILINE):
                assert name in cli.COMMANDS, f"{page.name}: tilesage {name}"
