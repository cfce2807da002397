"""The page in a real browser: play, watch, replay, learn, as a person does, checked against the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from web_support import LETTERS, launch, play_letters, save_small_models, serving, some_legal_letters

from tilesage import games
from tilesage.records.record import record_of, write_records

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
PATIENCE = 120_000  # milliseconds: the first use of an agent compiles it, on a busy machine slowly
expect.set_options(timeout=PATIENCE)

KEYS = {"U": "ArrowUp", "R": "ArrowRight", "D": "ArrowDown", "L": "ArrowLeft"}
CELLS = """board => {
  const cells = new Array(16).fill(0);
  const at = (tile, axis) => Number(tile.style.getPropertyValue(axis));
  for (const tile of board.querySelectorAll(".tile"))
    cells[at(tile, "--x") + 4 * at(tile, "--y")] = Number(tile.dataset.tile);
  return cells;
}"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web") / "runs"


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    save_small_models(runs.parent / "models")
    with serving(runs, "--models", str(runs.parent / "models")) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


# The numbers that an element shows, one after the other.
NOTE_NUMBERS = """id => {
    window.shown = [];
    const element = document.getElementById(id);
    const observer = new MutationObserver(() => shown.push(Number(element.textContent.replace(",", ""))));
    observer.observe(element, { childList: true, characterData: true, subtree: true });
}"""


class Visit:
    """A page opened by one visitor; complains of anything that goes wrong in it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.address = address
        self.context = browser.new_context(**({"viewport": {"width": 1200, "height": 860}} | options))
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.wrong.append(said.text))
        self.page.on(
            "request", lambda asked: asked.url.startswith((address, "data:", "blob:")) or self.wrong.append(asked.url)
        )

    def open(self, where: str = "#play") -> Any:
        self.page.goto(f"{self.address}/{where}")
        self.page.wait_for_selector("#link-state.up", state="attached")
        if where.startswith("#play"):
            self.page.wait_for_selector("#play-board .tile")
        return self.page

    def start(self, game: str, seed: int) -> Any:
        page = self.open()
        page.click(f'#play-games [data-value="{game}"]')
        expect(page.locator("#play-board")).to_have_attribute("data-palette", game)
        page.fill("#play-seed", str(seed))
        page.click("#play-seed-form button")
        expect(page.locator("#play-moves")).to_have_text("0")
        self.expect_board("play", games.get(game).new(seed).cells)
        return page

    def press(self, letters: str) -> None:
        """Play these letters from the start of the game, each after the one before has been shown."""
        for number, letter in enumerate(letters, 1):
            self.page.keyboard.press(KEYS[letter])
            expect(self.page.locator("#play-moves")).to_have_text(str(number))

    def cells(self, tab: str) -> list[int]:
        found: list[int] = self.page.eval_on_selector(f"#{tab}-board", CELLS)
        return found

    def expect_board(self, tab: str, cells: list[int]) -> None:
        self.page.wait_for_function(
            f"([tab, cells]) => JSON.stringify(({CELLS})(document.getElementById(tab + '-board'))) === cells",
            arg=[tab, str(cells).replace(" ", "")],
        )

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    visit = Visit(browser, address)
    yield visit
    visit.close()


@pytest.mark.parametrize("game", games.names())
def test_play_by_keyboard_is_the_engines_game(visit: Visit, game: str) -> None:
    page, state = visit.start(game, 7), games.get(game).new(7)
    letters = some_legal_letters(state, 24)
    for number, letter in enumerate(letters):
        other = {"U": "wk", "R": "dl", "D": "sj", "L": "ah"}[letter]
        page.keyboard.press((KEYS[letter], other[0], other[1])[number % 3])
        expect(page.locator("#play-moves")).to_have_text(str(number + 1))
    state = play_letters(state, letters)
    visit.expect_board("play", state.cells)
    expect(page.locator("#play-score")).to_have_text(f"{state.score:,}")
    expect(page.locator("#play-live")).to_contain_text(f"Score {state.score}")
    shown = page.locator("#play-next .mini").all_inner_texts()
    assert [int(tile) for tile in shown] == list(state.hint)


def test_an_illegal_move_changes_nothing(visit: Visit) -> None:
    page, state = visit.start("2048", 3), games.get("2048").new(3)
    letters = some_legal_letters(state, 30)
    while len(state.legal) == 4:
        state = state.play(LETTERS.index(letters[state.moves]))
    visit.press(letters[: state.moves])
    visit.expect_board("play", state.cells)
    page.keyboard.press(KEYS[LETTERS[next(iter(set(range(4)) - set(state.legal)))]])
    page.keyboard.press(KEYS[LETTERS[state.legal[0]]])
    visit.expect_board("play", state.play(state.legal[0]).cells)
    expect(page.locator("#play-moves")).to_have_text(str(state.moves + 1))


def test_play_by_touch(browser: Any, address: str) -> None:
    visit = Visit(browser, address, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page, state = visit.start("2048", 11), games.get("2048").new(11)
    letters = some_legal_letters(state, 8)
    page.evaluate("window.scrollTo(0, 40)")
    box = page.locator("#play-board").bounding_box()
    touch = visit.context.new_cdp_session(page)
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for number, letter in enumerate(letters, 1):
        dx, dy = {"U": (0, -1), "R": (1, 0), "D": (0, 1), "L": (-1, 0)}[letter]
        for kind, far in (("touchStart", 0), ("touchMove", 30), ("touchMove", 70)):
            point = {"x": middle[0] + dx * far, "y": middle[1] + dy * far}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect(page.locator("#play-moves")).to_have_text(str(number))
    visit.expect_board("play", play_letters(state, letters).cells)
    assert page.evaluate("window.scrollY") == 40, "a swipe on the board must not scroll the page"
    visit.close()


def test_undo_goes_back_and_the_same_chance_comes_again(visit: Visit) -> None:
    page, state = visit.start("2048", 5), games.get("2048").new(5)
    letters = some_legal_letters(state, 6)
    visit.press(letters)
    visit.expect_board("play", play_letters(state, letters).cells)
    page.keyboard.press("u")
    visit.expect_board("play", play_letters(state, letters[:5]).cells)
    page.click("#play-undo")
    visit.expect_board("play", play_letters(state, letters[:4]).cells)
    page.keyboard.press(KEYS[letters[4]])
    visit.expect_board("play", play_letters(state, letters[:5]).cells)
    for _ in range(5):
        page.click("#play-undo")
    visit.expect_board("play", state.cells)
    expect(page.locator("#play-undo")).to_be_disabled()


def test_a_reload_brings_the_game_and_the_best_score_back(visit: Visit) -> None:
    page, state = visit.start("2048", 9), games.get("2048").new(9)
    letters = some_legal_letters(state, 20)
    visit.press(letters)
    state = play_letters(state, letters)
    expect(page.locator("#play-moves")).to_have_text("20")
    page.reload()
    visit.expect_board("play", state.cells)
    page.click("#play-restart")
    expect(page.locator("#play-moves")).to_have_text("0")
    expect(page.locator("#play-best")).to_have_text(f"{state.score:,}")
    page.keyboard.press("u")  # a new game by mistake is no loss
    visit.expect_board("play", state.cells)


def test_a_restarted_server_brings_the_game_back(browser: Any, tmp_path: Path) -> None:
    state = games.get("2048").new(6)
    letters = some_legal_letters(state, 10)
    with serving(tmp_path / "runs") as address:
        visit = Visit(browser, address)
        page = visit.start("2048", 6)
        visit.press(letters[:6])
    expect(page.locator("#link-state")).to_have_class(re.compile("down"))
    with serving(tmp_path / "runs", port=int(address.rpartition(":")[2])):
        page.wait_for_selector("#link-state.up", state="attached")
        visit.expect_board("play", play_letters(state, letters[:6]).cells)
        for number, letter in enumerate(letters[6:], 7):
            page.keyboard.press(KEYS[letter])
            expect(page.locator("#play-moves")).to_have_text(str(number))
        visit.expect_board("play", play_letters(state, letters).cells)
        visit.context.close()  # the browser noted that the server was away


def test_ask_shows_what_each_move_is_worth(visit: Visit) -> None:
    page = visit.start("2048", 4)
    page.select_option("#play-agent", "greedy")
    page.select_option("#play-model", "models/small-2048")
    page.keyboard.press("e")
    expect(page.locator("#play-bars .bar.best .bar-number")).to_have_text(re.compile(r"^-?[\d,]+$"))
    expect(page.locator("#play-ask-note")).to_contain_text("greedy would go")
    numbers = page.locator("#play-bars .bar-number").all_inner_texts()
    legal = games.get("2048").new(4).legal
    assert [text != "not legal" for text in numbers] == [action in legal for action in range(4)]
    page.check("#play-auto", force=True)
    page.keyboard.press(KEYS[LETTERS[legal[0]]])
    expect(page.locator("#play-moves")).to_have_text("1")
    expect(page.locator("#play-bars .bar.best")).to_have_count(1)


def test_an_agent_can_be_written_in(visit: Visit) -> None:
    page = visit.start("2048", 4)
    page.once("dialog", lambda asked: asked.accept("rollouts:7"))
    page.select_option("#play-agent", "…")
    expect(page.locator("#play-ask-note")).to_contain_text("rollouts:7 would go")
    expect(page.locator("#play-agent")).to_have_value("rollouts:7")
    page.once("dialog", lambda asked: asked.accept("rollouts:many"))
    page.select_option("#play-agent", "…")
    expect(page.locator(".toast.bad")).to_contain_text("rollouts takes random games a legal move")
    page.once("dialog", lambda asked: asked.dismiss())
    page.select_option("#play-agent", "…")
    expect(page.locator("#play-agent")).to_have_value("rollouts:many")


def test_set_up_and_share_a_board(visit: Visit) -> None:
    page = visit.start("2048", 1)
    page.click("#play-edit")
    page.fill("#editor-text", "2 4 8 16 32 64")
    expect(page.locator("#editor-error")).to_contain_text("sixteen tile numbers")
    page.fill("#editor-text", "65536 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 score=100")
    expect(page.locator("#editor-grid input").first).to_have_value("65536")
    page.locator("#editor-grid input").nth(2).click()
    page.click("#editor-use")
    visit.expect_board("play", [65536, 2, 2, *[0] * 13])
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#play-moves")).to_have_text("1")
    expect(page.locator('#play-board [data-tile="4"]').first).to_be_visible()
    assert visit.cells("play")[:2] == [65536, 4]
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click("#play-share")
    link = page.evaluate("window.copied")
    shared = visit.cells("play")
    page.goto("about:blank")
    page.goto(link)
    visit.expect_board("play", shared)


def test_watch_at_one_move_a_second_step_and_at_full_speed(visit: Visit) -> None:
    page = visit.open("#watch")
    page.select_option("#watch-model", "models/small-2048")
    page.select_option("#watch-agent", "greedy")
    moves = page.locator("#watch-moves")
    page.click("#watch-step")
    expect(moves).to_have_text("1")
    page.evaluate(NOTE_NUMBERS, "watch-moves")
    page.click("#watch-play")
    expect(page.locator("#watch-speed-text")).to_have_text("1 move a second")
    page.wait_for_function("() => shown.length >= 3")
    shown = page.evaluate("shown")
    assert shown == list(range(2, 2 + len(shown))), "one move after the other"
    expect(page.locator("#watch-bars .bar.best")).to_have_count(1)
    expect(page.locator("#watch-time")).to_contain_text("a move")
    page.locator("#watch-speed").fill("7")
    expect(page.locator("#watch-speed-text")).to_have_text("as fast as it goes")
    page.wait_for_function(
        "() => Number(document.getElementById('watch-games-done').textContent.replace(',', '')) >= 2"
    )
    page.click("#watch-play")
    score = page.locator("#watch-score").inner_text()
    assert int(score.replace(",", "")) >= 0
    page.click("#watch-to-replay")
    page.wait_for_selector("#panel-replay:not([hidden])")


def recorded_games(path: Path, game: str, how_many: int) -> list[list[list[int]]]:
    """A records file of random games, and the boards of each."""
    random, records, boards = Random(1), [], []
    for seed in range(how_many):
        start = state = games.get(game).new(seed)
        actions, seen = [], [state.cells]
        while not state.over:
            actions.append(random.choice(state.legal))
            state = state.play(actions[-1])
            seen.append(state.cells)
        records.append(record_of(start, actions, slider="tester"))
        boards.append(seen)
    write_records(path, records)
    return boards


@pytest.mark.parametrize("game", games.names())
def test_replay_a_records_file_and_scrub(visit: Visit, tmp_path: Path, game: str) -> None:
    boards = recorded_games(tmp_path / "records.txt", game, 3)
    page = visit.open("#replay")
    expect(page.locator("#replay-empty")).to_be_visible()
    page.set_input_files("#replay-file", tmp_path / "records.txt")
    expect(page.locator("#replay-list .item")).to_have_count(3)
    visit.expect_board("replay", boards[0][0])
    page.locator("#replay-list .item").nth(1).click()
    visit.expect_board("replay", boards[1][0])
    page.locator("#replay-board").focus()
    page.keyboard.press("ArrowRight")
    visit.expect_board("replay", boards[1][1])
    middle = len(boards[1]) // 2
    page.locator("#replay-scrub").fill(str(middle))
    visit.expect_board("replay", boards[1][middle])
    page.click("#replay-back")
    visit.expect_board("replay", boards[1][middle - 1])
    page.click("#replay-last")
    visit.expect_board("replay", boards[1][-1])
    expect(page.locator("#replay-move")).to_have_text(str(len(boards[1]) - 1))


def test_replay_finds_the_mistakes_of_a_random_game_and_plays_on(visit: Visit, tmp_path: Path) -> None:
    boards = recorded_games(tmp_path / "records.txt", "2048", 1)
    page = visit.open("#replay")
    page.set_input_files("#replay-file", tmp_path / "records.txt")
    visit.expect_board("replay", boards[0][0])
    page.select_option("#replay-agent", "greedy")
    page.select_option("#replay-model", "models/small-2048")
    page.click("#replay-mistakes")
    worst = page.locator("#replay-mistake-list .item")
    expect(worst.first).to_be_visible()
    at = int(worst.first.get_attribute("data-move"))
    visit.expect_board("replay", boards[0][at])
    losses = [int(re.sub(r"\D", "", text)) for text in page.locator("#replay-mistake-list .loss").all_inner_texts()]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0
    page.click("#replay-play-on")
    visit.expect_board("play", boards[0][at])


def test_a_file_that_is_no_record_is_refused_kindly(visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("roses are red\nviolets are blue\n")
    page = visit.open("#replay")
    page.set_input_files("#replay-file", tmp_path / "poem.txt")
    expect(page.locator(".toast.bad")).to_contain_text("line 1 is no game record")
    visit.wrong.clear()  # the browser notes the refusal


def test_dark_and_light(browser: Any, address: str) -> None:
    visit = Visit(browser, address, color_scheme="dark")
    page = visit.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert page.get_attribute("html", "data-theme") == "dark"
    page.click("#theme-toggle")
    assert page.get_attribute("html", "data-theme") == "light"
    assert page.evaluate(ground) != dark
    page.reload()
    assert page.get_attribute("html", "data-theme") == "light", "the choice is kept"
    visit.close()


@pytest.mark.parametrize("width", [320, 390, 820])
def test_every_tab_fits_a_narrow_screen(browser: Any, address: str, width: int) -> None:
    visit = Visit(browser, address, viewport={"width": width, "height": 780}, has_touch=True, is_mobile=True)
    page = visit.open()
    for tab in ("play", "watch", "replay", "learn"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        if tab != "learn":
            box = page.locator(f"#{tab}-board").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert abs(box["width"] - box["height"]) < 1
    visit.close()


def test_keyboard_alone_reaches_everything_and_all_is_named(visit: Visit) -> None:
    page = visit.open()
    page.locator("#tab-play").focus()
    for tab in ("watch", "replay", "learn", "play"):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#tab-{tab}")).to_be_focused()
        expect(page.locator(f"#panel-{tab}")).to_be_visible()
    nameless = page.evaluate("""() => {
      const all = [...document.querySelectorAll("button, input, select, textarea, [role=group], [role=img]")];
      const named = (e) => e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim() || e.title;
      return all.filter((e) => !named(e)).map((e) => e.outerHTML);
    }""")
    assert nameless == []
    assert page.locator("#play-table td").count() == 16
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert {"play-board", "play-undo", "play-ask", "play-agent", "play-edit", "theme-toggle"} - seen <= {"play-undo"}


def test_playing_shifts_nothing(visit: Visit) -> None:
    page = visit.start("2048", 2)
    page.evaluate("""() => {
      window.shifted = 0;
      const count = (list) => { for (const entry of list.getEntries()) window.shifted += entry.value; };
      new PerformanceObserver(count).observe({ type: "layout-shift" });
    }""")
    visit.press(some_legal_letters(games.get("2048").new(2), 40))
    page.wait_for_timeout(300)
    assert page.evaluate("window.shifted") < 0.01
