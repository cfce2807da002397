"""The Learn tab in a real browser: a training is started, watched, compared, stopped, evaluated and deleted there."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_support import launch, serving

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
PATIENCE = 120_000  # milliseconds: a rule is compiled on first use, on a busy machine slowly
expect.set_options(timeout=PATIENCE)
DRAWN = "Number(document.getElementById('learn-chart').dataset.points || 0)"
QUICK = {"network": "tiny", "seconds": "600", "threads": "1"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@contextlib.contextmanager
def visiting(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """The tab, opened by somebody who says yes to all questions; what goes wrong in it fails the test."""
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda asked: asked.accept())
    page.goto(f"{address}/#learn")
    page.wait_for_selector("#panel-learn:not([hidden])")
    expect(page.locator("#train-form [name=network]")).not_to_have_value("")
    yield page
    context.close()
    assert wrong == []


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def start(page: Any, name: str, **settings: str) -> Any:
    """Start a training of one's own; its row."""
    page.evaluate("document.getElementById('train-settings').open = true")
    for field, value in {"name": name, **QUICK, **settings}.items():
        page.fill(f"#train-form [name={field}]", value)
    page.click("#train-start")
    return page.locator("#learn-table tbody tr", has_text=name)


def made_up(runs: Path, name: str, game: str, shares: dict[str, float]) -> None:
    """A run as a training leaves it, without its weights."""
    (runs / name).mkdir(parents=True)
    (runs / name / "run.toml").write_text(f'game = "{game}"\nnetwork = "tiny"\ngames = 300\n')
    lines = [
        {"games": 100 * i, "moves": 9000 * i, "seconds": i, "mean": 900.0 * i, "max": 4000, "moves_per_second": 9000}
        | {"reach": {tile: share * i / 3 for tile, share in shares.items()}}
        for i in (1, 2, 3)
    ]
    (runs / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_training_from_start_to_deletion(browser: Any, runs: Path) -> None:
    with serving(runs) as address, visiting(browser, address) as page:
        row = start(page, "mine")
        page.wait_for_function(f"() => {DRAWN} >= 1")
        first = page.evaluate(DRAWN)
        page.wait_for_function(f"(first) => {DRAWN} > first + 1", arg=first)
        expect(page.locator("#learn-empty")).to_be_hidden()
        expect(row).to_contain_text("learning")
        expect(row).to_contain_text("tiny · TC · λ 0.5")
        row.get_by_role("button", name="Stop mine").click()
        expect(row).to_contain_text("stopped")
        expect(row).to_contain_text("on disk")
        page.fill("#train-form [name=name]", "mine")
        page.click("#train-start")
        expect(page.locator(".toast.bad")).to_contain_text("a run called mine already")
        row.get_by_role("button", name="Evaluate mine").click()
        expect(row.locator(".played")).to_contain_text("greedy:")
        assert json.loads((runs / "mine" / "evaluation.json").read_text())["games"] == 100
        page.evaluate("document.addEventListener('watch-model', ({ detail }) => { window.watched = detail; })")
        row.get_by_role("button", name="Watch mine").click()
        assert page.evaluate("window.watched") == {"game": "2048", "model": "runs/mine"}
        page.click("#tab-learn")
        row.get_by_role("button", name="Delete mine").click()
        expect(row).to_have_count(0)
        assert not (runs / "mine").exists()


def test_the_recipes_fill_the_form_and_a_reload_keeps_it(browser: Any, runs: Path) -> None:
    with serving(runs) as address, visiting(browser, address) as page:
        form = page.locator("#train-form")
        expect(form.locator("[name=network]")).to_have_value("4x6+squares")
        expect(form.locator("[name=fold]")).to_have_value("4096")
        expect(form.locator("[name=by_age]")).to_be_checked()
        expect(page.locator("#train-about")).to_contain_text("a table entry met, at most 1.")
        page.select_option("#train-form [name=game]", "threes-phone")
        expect(form.locator("[name=by_hint]")).to_be_checked()
        page.evaluate("document.getElementById('train-settings').open = true")
        page.fill("#train-form [name=decay]", "0.3")
        expect(page.locator("#train-preset")).to_have_value("")
        page.reload()
        expect(form.locator("[name=decay]")).to_have_value("0.3")
        expect(form.locator("[name=game]")).to_have_value("threes-phone")


def test_what_is_refused_says_why(browser: Any, runs: Path) -> None:
    with serving(runs) as address, visiting(browser, address) as page:
        start(page, "wrong", fold="17")
        expect(page.locator(".toast.bad")).to_contain_text("fold takes a tile of 2048")
        row = start(page, "large", fold="", network="8x7", stages="1024,2048,4096,8192,16384,32768")
        expect(row.locator(".bad")).to_contain_text("memory")
        row.get_by_role("button", name="Forget large").click()
        expect(row).to_have_count(0)


def test_a_training_of_the_command_goes_on_over_a_restart_and_is_stopped(browser: Any, runs: Path) -> None:
    words = ["train", "--recipe", "plain", "--network", "tiny", "--seconds", "600", "--threads", "1", "--quiet"]
    command = subprocess.Popen([sys.executable, "-m", "tilesage", *words, "--out", str(runs / "by-hand")])
    with command:
        with serving(runs) as address:
            context = visiting(browser, address)
            page = context.__enter__()
            row = page.locator("#learn-table tbody tr", has_text="by-hand")
            expect(row).to_contain_text("learning")
        expect(page.locator("#learn-lost")).to_be_visible()
        before = page.evaluate(DRAWN)
        with serving(runs, port=int(address.rpartition(":")[2])):
            page.wait_for_function(f"(before) => {DRAWN} > before + 1", arg=before)
            expect(page.locator("#learn-lost")).to_be_hidden()
            row.get_by_role("button", name="Stop by-hand").click()
            expect(row).to_contain_text("stopped")
            context.__exit__(None, None, None)
        assert command.wait(60) in (0, 130)


def test_runs_of_one_game_are_compared_on_any_tile(browser: Any, runs: Path) -> None:
    for name, share in (("one", 0.3), ("two", 0.6)):
        made_up(runs, name, "2048", {"1024": 0.9, "2048": share})
    made_up(runs, "other", "threes", {"768": 0.5})
    (runs / "odd").mkdir()
    (runs / "odd" / "run.toml").write_text("[[[")
    with serving(runs) as address, visiting(browser, address) as page:
        rows = page.locator("#learn-table tbody tr")
        expect(rows).to_have_count(2)
        page.wait_for_function(f"() => {DRAWN} == 6")
        colours = page.eval_on_selector_all(".run-name", "all => all.map(e => e.style.getPropertyValue('--curve'))")
        assert len(set(colours)) == 2
        expect(page.locator("#learn-skipped")).to_contain_text("odd")
        page.select_option("#learn-metric", "reach:1024")
        expect(page.locator("#learn-reach-name")).to_have_text("1024")
        expect(rows.first).to_contain_text("90.0 %")
        assert "one: 90.0 % after 3 seconds" in page.get_attribute("#learn-chart", "aria-label")
        page.uncheck("[aria-label='Draw one']")
        page.wait_for_function(f"() => {DRAWN} == 3")
        page.click("#learn-games [data-value=threes]")
        expect(rows).to_have_count(1)
        expect(page.locator("#learn-reach-name")).to_have_text("384")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_it_fits_the_screen(browser: Any, runs: Path, width: int, height: int, scheme: str) -> None:
    made_up(runs, "a-run-with-a-name-as-long-as-it-gets-here", "2048", {"2048": 0.5})
    options = {"viewport": {"width": width, "height": height}, "has_touch": width < 500, "color_scheme": scheme}
    with serving(runs) as address, visiting(browser, address, **options) as page:
        expect(page.locator("#learn-table tbody tr")).to_have_count(1)
        page.evaluate("document.getElementById('train-settings').open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        overlapping = page.evaluate("""() => {
          const all = ["button", "input", "select"].map((kind) => `#panel-learn ${kind}`).join(", ");
          const boxes = [...document.querySelectorAll(all)].map((e) => [e, e.getBoundingClientRect()]);
          const seen = boxes.filter(([, box]) => box.width > 4);
          const apart = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
          const hits = (a, b) => !apart(a, b) && !apart(b, a);
          const others = (a, i) => seen.slice(i + 1).filter(([, b]) => hits(a, b));
          return seen.flatMap(([e, a], i) => others(a, i).map(([f]) => e.outerHTML + f.outerHTML));
        }""")
        assert overlapping == []


def test_a_server_for_strangers_only_shows(browser: Any, runs: Path) -> None:
    made_up(runs, "seen", "2048", {"2048": 0.5})
    with serving(runs, "--trainings", "0") as address, visiting(browser, address) as page:
        expect(page.locator("#learn-table tbody tr")).to_have_count(1)
        expect(page.locator("#learn-table button")).to_have_count(0)
        expect(page.locator("#train-start")).to_be_disabled()
