"""The page in a real browser: play, watch, replay, learn, as a person does, checked against the engine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from web_support import LETTERS, launch, play_letters, save_small_models, serving, some_legal_letters

from tilesage import games
from tilesage.games.board import ACTIONS
from tilesage.records.record import record_of, write_records

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
PATIENCE = int(
    os.environ.get("TILESAGE_PATIENCE", "120000")
)  # milliseconds: the first use of an agent compiles it, on a busy machine slowly
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
        self.page = self.new_page()

    wrong: list[str]

    def new_page(self) -> Any:
        page = self.context.new_page()
        self.wrong = wrong = getattr(self, "wrong", [])
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on(
            "request", lambda asked: asked.url.startswith((self.address, "data:", "blob:")) or wrong.append(asked.url)
        )
        return page

    def open(self, where: str = "#play", page: Any = None) -> Any:
        page = page or self.page
        page.goto(f"{self.address}/{where}")
        page.wait_for_selector("#link-state.up", state="attached")
        if where.startswith("#play"):
            page.wait_for_selector("#board .tile")
        return page

    def start(self, game: str, seed: int) -> Any:
        page = self.open()
        page.click(f'#games [data-value="{game}"]')
        expect(page.locator("#board")).to_have_attribute("data-palette", game)
        page.fill("#seed", str(seed))
        page.click("#seed-form button")
        expect(page.locator("#moves")).to_have_text("0")
        self.expect_board(games.get(game).new(seed).cells)
        return page

    def press(self, letters: str, first: int = 1) -> None:
        """Play these letters, each after the one before has been shown."""
        for number, letter in enumerate(letters, first):
            self.page.keyboard.press(KEYS[letter])
            expect(self.page.locator("#moves")).to_have_text(str(number))

    def cells(self) -> list[int]:
        found: list[int] = self.page.eval_on_selector("#board", CELLS)
        return found

    def expect_board(self, cells: list[int], page: Any = None) -> None:
        (page or self.page).wait_for_function(
            f"(cells) => JSON.stringify(({CELLS})(document.getElementById('board'))) === cells",
            arg=str(cells).replace(" ", ""),
        )

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    visit = Visit(browser, address)
    yield visit
    visit.close()


# --- playing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", games.names())
def test_play_by_keyboard_is_the_engines_game(visit: Visit, game: str) -> None:
    page, state = visit.start(game, 7), games.get(game).new(7)
    letters = some_legal_letters(state, 24)
    for number, letter in enumerate(letters):
        other = {"U": "wk", "R": "dl", "D": "sj", "L": "ah"}[letter]
        page.keyboard.press((KEYS[letter], other[0], other[1])[number % 3])
        expect(page.locator("#moves")).to_have_text(str(number + 1))
    state = play_letters(state, letters)
    visit.expect_board(state.cells)
    expect(page.locator("#score")).to_have_text(f"{state.score:,}")
    expect(page.locator("#live")).to_contain_text(f"Score {state.score}")
    assert page.locator("#board-table td").all_inner_texts() == [str(tile or "empty") for tile in state.cells]
    shown = page.locator("#next .mini").all_inner_texts()
    assert [int(tile) for tile in shown] == list(state.hint)


def test_an_illegal_move_changes_nothing(visit: Visit) -> None:
    page, state = visit.start("2048", 3), games.get("2048").new(3)
    letters = some_legal_letters(state, 30)
    while len(state.legal) == 4:
        state = state.play(LETTERS.index(letters[state.moves]))
    visit.press(letters[: state.moves])
    visit.expect_board(state.cells)
    page.keyboard.press(KEYS[LETTERS[next(iter(set(range(4)) - set(state.legal)))]])
    page.keyboard.press(KEYS[LETTERS[state.legal[0]]])
    visit.expect_board(state.play(state.legal[0]).cells)
    expect(page.locator("#moves")).to_have_text(str(state.moves + 1))


def test_arrow_keys_move_tiles_after_a_click_on_a_control(visit: Visit) -> None:
    page = visit.open()
    page.click('#games [data-value="threes"]')
    expect(page.locator("#board")).to_have_attribute("data-palette", "threes")
    for key in ("ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("#moves")).not_to_have_text("0")
    assert games.get("threes").title == page.locator("#games [aria-checked=true]").inner_text(), (
        "the game has not changed"
    )
    page.select_option("#agent", "greedy")
    page.locator("#auto").check(force=True)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#agent")).to_have_value("greedy")


def test_play_by_touch(browser: Any, address: str) -> None:
    visit = Visit(browser, address, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page, state = visit.start("2048", 11), games.get("2048").new(11)
    letters = some_legal_letters(state, 8)
    page.evaluate("window.scrollTo(0, 40)")
    box = page.locator("#board").bounding_box()
    touch = visit.context.new_cdp_session(page)
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for number, letter in enumerate(letters, 1):
        dx, dy = {"U": (0, -1), "R": (1, 0), "D": (0, 1), "L": (-1, 0)}[letter]
        for kind, far in (("touchStart", 0), ("touchMove", 30), ("touchMove", 70)):
            point = {"x": middle[0] + dx * far, "y": middle[1] + dy * far}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        expect(page.locator("#moves")).to_have_text(str(number))
    visit.expect_board(play_letters(state, letters).cells)
    assert page.evaluate("window.scrollY") == 40, "a swipe on the board must not scroll the page"
    visit.close()


def test_undo_stops_at_the_start_and_redo_brings_everything_back(visit: Visit) -> None:
    page, state = visit.start("2048", 5), games.get("2048").new(5)
    letters = some_legal_letters(state, 6)
    visit.press(letters)
    page.keyboard.press("u")
    visit.expect_board(play_letters(state, letters[:5]).cells)
    page.click("#undo")
    visit.expect_board(play_letters(state, letters[:4]).cells)
    page.keyboard.press(KEYS[letters[4]])
    visit.expect_board(play_letters(state, letters[:5]).cells)
    for _ in range(9):
        page.keyboard.press("u")
    visit.expect_board(state.cells)
    expect(page.locator("#undo")).to_be_disabled()
    for _ in range(6):
        page.keyboard.press("y")
    visit.expect_board(play_letters(state, letters).cells)


def test_another_move_than_before_is_a_variation(visit: Visit) -> None:
    page, state = visit.start("2048", 5), games.get("2048").new(5)
    letters = some_legal_letters(state, 5)
    visit.press(letters)
    page.keyboard.press("u")
    before = play_letters(state, letters[:4])
    other = next(action for action in before.legal if LETTERS[action] != letters[4])
    page.keyboard.press(KEYS[LETTERS[other]])
    visit.expect_board(before.play(other).cells)
    expect(page.locator("#variation-list .item")).to_have_count(1)
    page.wait_for_timeout(600)
    page.reload()
    visit.expect_board(before.play(other).cells)
    page.locator("#variation-list .item").click()
    visit.expect_board(play_letters(state, letters).cells)


def test_chance_by_hand_puts_the_tile_where_a_cell_is_clicked(visit: Visit) -> None:
    page, state = visit.start("2048", 5), games.get("2048").new(5)
    action = state.legal[0]
    page.locator("#by-hand").check(force=True)
    page.keyboard.press(KEYS[LETTERS[action]])
    visit.expect_board(state.play(action).cells)
    slid = state.slide(action)
    cell = max(cell for cell in range(16) if not int(slid.board) >> 4 * cell & 15)
    box = page.locator("#board").bounding_box()
    at = {"x": (cell % 4 + 0.5) * box["width"] / 4, "y": (cell // 4 + 0.5) * box["height"] / 4}
    boards = [one.cells for _, one in slid.outcomes() if one.cells[cell] and not int(slid.board) >> 4 * cell & 15]
    page.locator("#board").click(position=at)
    page.wait_for_function(
        f"(boards) => boards.includes(JSON.stringify(({CELLS})(document.getElementById('board'))))",
        arg=[str(one).replace(" ", "") for one in boards],
    )
    first = visit.cells()
    page.locator("#board").click(position=at)
    visit.expect_board(next(one for one in boards if one != first))


@pytest.mark.skipif("TILESAGE_SOAK" not in os.environ, reason="long: TILESAGE_SOAK=10000 asks for that many")
def test_thousands_of_moves_through_the_page_are_the_engines(visit: Visit) -> None:
    made, seed = 0, 100
    while made < int(os.environ["TILESAGE_SOAK"]):
        page, state, letters, random = visit.start("2048", seed), games.get("2048").new(seed), "", Random(seed)
        while not state.over:
            letters += LETTERS[random.choice(state.legal)]
            state = state.play(LETTERS.index(letters[-1]))
        page.evaluate(
            """async ([keys]) => {
              const moves = document.getElementById("moves");
              for (const [i, key] of keys.entries()) {
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                const shown = () => moves.textContent.replace(",", "") === String(i + 1);
                while (!shown()) await new Promise((then) => setTimeout(then, 1));
              }
            }""",
            [[KEYS[letter] for letter in letters]],
        )
        visit.expect_board(state.cells)
        expect(page.locator("#score")).to_have_text(f"{state.score:,}")
        made, seed = made + len(letters), seed + 1


# --- nothing is lost ----------------------------------------------------------------------------------------------


def test_a_reload_brings_the_game_and_the_best_score_back(visit: Visit) -> None:
    page, state = visit.start("2048", 9), games.get("2048").new(9)
    letters = some_legal_letters(state, 20)
    visit.press(letters)
    state = play_letters(state, letters)
    page.reload()
    visit.expect_board(state.cells)
    page.click("#restart")
    expect(page.locator("#moves")).to_have_text("0")
    expect(page.locator("#second")).to_have_text(f"{state.score:,}")
    page.select_option("#before", index=1)
    visit.expect_board(state.cells)


def test_a_shared_link_leaves_the_visitors_own_game_alone(visit: Visit) -> None:
    page, state = visit.start("2048", 9), games.get("2048").new(9)
    letters = some_legal_letters(state, 20)
    visit.press(letters)
    page.wait_for_timeout(600)
    page.goto("about:blank")
    page.goto(f"{visit.address}/#play?game=2048&board=2+2+0+0+0+0+0+0+0+0+0+0+0+0+0+0")
    visit.expect_board([2, 2] + [0] * 14)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#moves")).to_have_text("1")
    page.keyboard.press("u")
    page.keyboard.press("u")
    visit.expect_board([2, 2] + [0] * 14)
    page.locator("#before option", has_text="20 moves").wait_for(state="attached")
    page.select_option("#before", page.locator("#before option", has_text="20 moves").first.get_attribute("value"))
    visit.expect_board(play_letters(state, letters).cells)


def test_two_tabs_do_not_overwrite_each_other(visit: Visit) -> None:
    page, state = visit.start("2048", 9), games.get("2048").new(9)
    letters = some_legal_letters(state, 12)
    visit.press(letters[:6])
    page.wait_for_timeout(600)
    other = visit.open("#play", visit.new_page())
    visit.expect_board(play_letters(state, letters[:6]).cells, other)
    third = next(action for action in play_letters(state, letters[:6]).legal if LETTERS[action] != letters[6])
    other.keyboard.press(KEYS[LETTERS[third]])
    expect(other.locator("#moves")).to_have_text("7")
    page.bring_to_front()
    visit.press(letters[6:], 7)
    page.wait_for_timeout(600)
    other.reload()
    visit.expect_board(play_letters(state, letters[:6]).play(third).cells, other)
    page.reload()
    visit.expect_board(play_letters(state, letters).cells)


def test_the_last_ten_games_are_kept(visit: Visit) -> None:
    page = visit.start("2048", 0)
    for seed in range(12):
        page.fill("#seed", str(seed))
        page.click("#seed-form button")
        visit.expect_board(games.get("2048").new(seed).cells)
        visit.press(some_legal_letters(games.get("2048").new(seed), 1))
    page.reload()
    page.wait_for_selector("#board .tile")
    expect(page.locator("#before option")).to_have_count(10)  # "Games before", and nine beside the one on the board


def test_a_restarted_server_brings_play_and_watch_back(browser: Any, tmp_path: Path) -> None:
    state = games.get("2048").new(6)
    letters = some_legal_letters(state, 10)
    with serving(tmp_path / "runs") as address:
        visit = Visit(browser, address)
        page = visit.start("2048", 6)
        visit.press(letters[:6])
        page.click("#tab-watch")
        page.select_option("#agent", "random")
        for number in range(1, 4):
            page.click("#watch-step")
            expect(page.locator("#moves")).to_have_text(str(number))
        page.wait_for_timeout(300)  # until every tile has arrived
    watched = visit.cells()
    expect(page.locator("#link-state")).to_have_class(re.compile("down"))
    with serving(tmp_path / "runs", port=int(address.rpartition(":")[2])):
        page.wait_for_selector("#link-state.up", state="attached")
        page.wait_for_timeout(500)
        visit.expect_board(watched)
        page.click("#watch-step")
        expect(page.locator("#moves")).to_have_text("4")
        page.click("#tab-play")
        visit.expect_board(play_letters(state, letters[:6]).cells)
        visit.press(letters[6:], 7)
        visit.expect_board(play_letters(state, letters).cells)
        visit.context.close()  # the browser noted that the server was away


def test_back_and_forward_go_from_tab_to_tab(visit: Visit) -> None:
    page = visit.open()
    for tab in ("watch", "learn"):
        page.click(f"#tab-{tab}")
        expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
    page.wait_for_timeout(300)
    for tab in ("watch", "play"):
        page.go_back()
        expect(page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
    page.go_forward()
    expect(page.locator("#tab-watch")).to_have_attribute("aria-selected", "true")


# --- advice -------------------------------------------------------------------------------------------------------


def test_ask_shows_the_best_move_and_what_the_others_give_away(visit: Visit) -> None:
    page = visit.start("2048", 4)
    page.select_option("#agent", "greedy")
    page.select_option("#model", "models/small-2048")
    page.keyboard.press("e")
    expect(page.locator("#bars .bar.best .bar-number")).to_have_text(re.compile(r"^-?[\d,]+$"))
    expect(page.locator("#advice-note")).to_contain_text("network's value")
    texts, legal = page.locator("#bars .bar-number").all_inner_texts(), games.get("2048").new(4).legal
    assert [text != "not legal" for text in texts] == [action in legal for action in range(4)]
    best = page.locator("#bars .bar").evaluate_all("bars => bars.findIndex(bar => bar.classList.contains('best'))")
    expect(page.locator(".arrow")).to_have_attribute("data-action", ACTIONS[best])
    expect(page.locator(".chip:visible")).to_have_count(len(legal))
    page.locator("#bars .bar").nth(best).click()
    expect(page.locator("#moves")).to_have_text("1")
    page.locator("#auto").check(force=True)
    expect(page.locator("#bars .bar.best")).to_have_count(1)


def test_an_agent_can_be_written_in_and_a_wrong_one_is_not_remembered(visit: Visit) -> None:
    page = visit.start("2048", 4)
    page.once("dialog", lambda asked: asked.accept("rollouts:7"))
    page.select_option("#agent", "…")
    expect(page.locator("#advice-note")).to_contain_text("Mean final score of random games")
    expect(page.locator("#agent")).to_have_value("rollouts:7")
    page.once("dialog", lambda asked: asked.accept("rollouts:many"))
    page.select_option("#agent", "…")
    expect(page.locator(".toast.bad")).to_contain_text("rollouts takes random games a legal move")
    expect(page.locator("#agent")).to_have_value("rollouts:7")
    page.once("dialog", lambda asked: asked.dismiss())
    page.select_option("#agent", "…")
    expect(page.locator("#agent")).to_have_value("rollouts:7")


# --- setting up, saving, opening ----------------------------------------------------------------------------------


def test_a_board_is_set_up_by_palette_keys_and_text(visit: Visit) -> None:
    page = visit.start("2048", 1)
    page.click("#edit")
    page.fill("#editor-text", "2 4 8 16 32 64")
    expect(page.locator("#editor-error")).to_contain_text("sixteen tile numbers")
    page.fill("#editor-text", "65536 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 score=100")
    cells = page.locator("#editor-grid input")
    expect(cells.first).to_have_value("65536")
    page.click('#editor-palette [data-tile="16384"]')
    cells.nth(2).click()
    expect(cells.nth(2)).to_have_value("16384")
    cells.nth(1).focus()
    page.keyboard.press("ArrowDown")
    expect(cells.nth(5)).to_be_focused()
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    expect(page.locator("#editor")).to_be_hidden()
    visit.expect_board([65536, 2, 16384, 0, 0, 8] + [0] * 10)
    expect(page.locator("#score")).to_have_text("100")


def test_the_hint_and_the_bag_are_chosen(visit: Visit) -> None:
    page = visit.start("threes", 1)
    page.click("#edit")
    page.select_option('#editor-next [data-field="hint"]', "3")
    page.select_option('#editor-next [data-field="bag"]', "12")
    page.click("#editor-use")
    expect(page.locator("#next .mini")).to_have_text("3")


def test_a_link_brings_the_whole_game(visit: Visit) -> None:
    page, state = visit.start("threes", 1), games.get("threes").new(1)
    letters = some_legal_letters(state, 9)
    visit.press(letters)
    page.keyboard.press("u")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click("#copy-link")
    link = page.evaluate("window.copied")
    page.goto("about:blank")
    page.goto(link)
    visit.expect_board(play_letters(state, letters[:8]).cells)
    page.keyboard.press("ArrowRight")
    visit.expect_board(play_letters(state, letters).cells)
    page.keyboard.press("Home")
    visit.expect_board(state.cells)


def test_a_game_is_saved_and_opened_again(visit: Visit, tmp_path: Path) -> None:
    page, state = visit.start("2048", 5), games.get("2048").new(5)
    letters = some_legal_letters(state, 9)
    visit.press(letters)
    for kind, begins in (("record", b"tilesage:"), ("gif", b"GIF89a"), ("png", b"\x89PNG")):
        with page.expect_download() as saved:
            page.click(f"#save-{kind}")
        saved.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(begins)
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData("text", text);
          document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
        }""",
        (tmp_path / "record").read_text(),
    )
    expect(page.locator("#tab-replay")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    visit.expect_board(play_letters(state, letters).cells)


# --- watching -----------------------------------------------------------------------------------------------------


def test_watch_at_one_move_a_second_step_and_at_full_speed(visit: Visit) -> None:
    page = visit.open("#watch")
    page.select_option("#model", "models/small-2048")
    page.select_option("#agent", "greedy")
    moves = page.locator("#moves")
    page.click("#watch-step")
    expect(moves).to_have_text("1")
    page.evaluate(NOTE_NUMBERS, "moves")
    page.click("#watch-play")
    expect(page.locator("#speed-text")).to_have_text("1 move a second")
    page.wait_for_function("() => shown.length >= 3")
    shown = page.evaluate("shown")
    assert shown == list(range(2, 2 + len(shown))), "one move after the other"
    expect(page.locator("#bars .bar.best")).to_have_count(1)
    expect(page.locator("#advice-note")).to_contain_text("The move just made")
    expect(page.locator("#watch-time")).to_contain_text("a move")
    page.locator("#speed").fill("7")
    expect(page.locator("#speed-text")).to_have_text("as fast as it goes")
    done = "Number(document.getElementById('watch-games-done').textContent.replace(',', ''))"
    page.wait_for_function(f"() => {done} >= 2")
    assert page.evaluate("getComputedStyle(document.querySelector('.bar-fill')).transitionDuration") == "0s"
    page.click("#watch-play")
    page.wait_for_timeout(300)
    if moves.inner_text() == "0":  # a game that has just begun
        page.click("#watch-step")
        expect(moves).to_have_text("1")
        page.wait_for_timeout(300)
    watched, played = visit.cells(), moves.inner_text()
    page.click("#watch-analyse")
    expect(page.locator("#crumb")).to_contain_text("Game of greedy")
    expect(moves).to_have_text(played)
    visit.expect_board(watched)


def test_a_reload_brings_the_watched_game_back(visit: Visit) -> None:
    page = visit.open("#watch")
    page.select_option("#agent", "random")
    for number in range(1, 6):
        page.click("#watch-step")
        expect(page.locator("#moves")).to_have_text(str(number))
    page.wait_for_timeout(300)  # until every tile has arrived
    page.wait_for_timeout(300)
    watched = visit.cells()
    page.reload()
    visit.expect_board(watched)


# --- replaying and analysing --------------------------------------------------------------------------------------


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
    page.set_input_files("#file", tmp_path / "records.txt")
    expect(page.locator("#records .item")).to_have_count(3)
    visit.expect_board(boards[0][0])
    page.locator("#records .item").nth(1).click()
    visit.expect_board(boards[1][0])
    page.locator("#board").focus()
    page.keyboard.press("ArrowRight")
    visit.expect_board(boards[1][1])
    middle = len(boards[1]) // 2
    page.locator("#scrub").fill(str(middle))
    visit.expect_board(boards[1][middle])
    page.click("#back")
    visit.expect_board(boards[1][middle - 1])
    page.wait_for_timeout(600)
    page.reload()
    visit.expect_board(boards[1][middle - 1])
    page.click("#last")
    visit.expect_board(boards[1][-1])
    expect(page.locator("#moves")).to_have_text(str(len(boards[1]) - 1))


def test_a_game_is_analysed_and_played_on(visit: Visit, tmp_path: Path) -> None:
    boards = recorded_games(tmp_path / "records.txt", "2048", 1)
    page = visit.open("#replay")
    page.set_input_files("#file", tmp_path / "records.txt")
    visit.expect_board(boards[0][0])
    page.select_option("#agent", "greedy")
    page.click("#judge")
    moves = len(boards[0]) - 1
    page.wait_for_function(f"() => document.getElementById('graph').dataset.judged === '{moves}'")
    expect(page.locator("#analysis-sum")).to_contain_text("Accuracy")
    worst = page.locator("#incidents .item")
    expect(worst.first).to_be_visible()
    losses = [int(re.sub(r"\D", "", text)) for text in page.locator("#incidents .loss").all_inner_texts()]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0
    worst.first.click()
    at = int(worst.first.get_attribute("data-move"))
    visit.expect_board(boards[0][at])
    expect(page.locator("#here")).to_contain_text("better")
    page.keyboard.press(" ")
    expect(page.locator("#replay-play")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press(" ")
    page.locator("#scrub").fill(str(at))
    page.click("#play-on")
    expect(page.locator("#tab-play")).to_have_attribute("aria-selected", "true")
    visit.expect_board(boards[0][at])


def test_a_file_that_is_no_record_is_refused_kindly(visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("roses are red\nviolets are blue\n")
    page = visit.open("#replay")
    page.set_input_files("#file", tmp_path / "poem.txt")
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


SIZES = [(320, 568), (390, 844), (844, 390), (768, 1024), (1280, 800), (1920, 1080), (2560, 1440)]
OVERLAPPING = """() => {
  const wanted = "main button, main input, main select, .stat, .card";
  const shown = [...document.querySelectorAll(wanted)].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && !one.closest(".sr-only, .veil, .list, .switch, dialog"));
  const boxes = shown.map((one) => [one, one.getBoundingClientRect()]);
  const apart = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) <= 1
    || Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) <= 1;
  const bad = [];
  for (const [one, a] of boxes)
    for (const [other, b] of boxes)
      if (!one.contains(other) && !other.contains(one) && !apart(a, b))
        bad.push([one, other].map((it) => it.id || it.outerHTML.slice(0, 80)));
  return bad;
}"""


@pytest.mark.parametrize("size", SIZES if os.environ.get("TILESAGE_SCREENS") else SIZES[1:3] + SIZES[4:5], ids=str)
def test_every_tab_fits_every_screen_and_the_board_stays_where_it_is(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    width, height = size
    touch = {"has_touch": True, "is_mobile": True} if min(size) < 800 and width < 1200 else {}
    scheme = "dark" if width % 3 else "light"
    visit = Visit(browser, address, viewport={"width": width, "height": height}, color_scheme=scheme, **touch)
    page, boxes = visit.open(), []
    for tab in ("play", "watch", "replay", "learn"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        assert page.evaluate(OVERLAPPING) == [], tab
        if tab != "learn":
            boxes.append(page.locator("#board").bounding_box())
    assert boxes[0] == boxes[1] == boxes[2], "the board jumps from tab to tab"
    assert abs(boxes[0]["width"] - boxes[0]["height"]) < 1
    assert boxes[0]["x"] >= 0
    assert boxes[0]["x"] + boxes[0]["width"] <= width
    assert boxes[0]["y"] + boxes[0]["height"] <= height, "the whole board is on the screen"
    visit.close()


def test_keyboard_alone_reaches_everything_and_all_is_named(visit: Visit) -> None:
    page = visit.open()
    page.locator("#tab-play").focus()
    for tab in ("watch", "replay", "learn", "play"):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#tab-{tab}")).to_be_focused()
        expect(page.locator(f"#panel-{'learn' if tab == 'learn' else 'board'}")).to_be_visible()
    nameless = page.evaluate("""() => {
      const all = [...document.querySelectorAll("button, input, select, textarea, [role=group], [role=img]")];
      const named = (e) => e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim() || e.title;
      return all.filter((e) => !named(e)).map((e) => e.outerHTML);
    }""")
    assert nameless == []
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert {"board", "restart", "ask", "agent", "edit", "save-gif", "theme-toggle"} <= seen


def test_the_skip_link_leads_to_the_board_of_the_tab_that_is_open(visit: Visit) -> None:
    page = visit.open("#watch")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#board")).to_be_focused()
    expect(page.locator("#tab-watch")).to_have_attribute("aria-selected", "true")


def test_the_only_live_regions_are_those_for_people(visit: Visit) -> None:
    page = visit.open()
    spoken = page.evaluate(
        "[...document.querySelectorAll('output, [aria-live], [role=status]')].map((one) => one.id)"
    )
    assert set(spoken) == {"link-state", "live", "learn-live", "learn-lost", "toasts"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, address: str, scheme: str) -> None:
    script = os.environ.get("TILESAGE_AXE")  # the path of axe.min.js: `npm pack axe-core`
    if not script:
        pytest.skip("TILESAGE_AXE names no axe.min.js")
    visit = Visit(browser, address, color_scheme=scheme, bypass_csp=True)
    page = visit.open()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(1000)  # until the last of them is made
    page.select_option("#agent", "greedy")
    expect(page.locator("#bars .bar.best")).to_have_count(1)
    page.click("#judge")
    expect(page.locator("#analysis-sum")).to_contain_text("Accuracy")
    page.add_script_tag(path=script)
    for tab in ("play", "watch", "replay", "learn"):
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(300)
        found = page.evaluate("async () => (await axe.run()).violations.map((v) => [v.id, v.nodes[0].html])")
        assert found == [], tab
    page.click("#tab-play")
    page.click("#edit")
    assert page.evaluate("async () => (await axe.run()).violations.map((v) => [v.id, v.nodes[0].html])") == []
    visit.close()


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
