"""Take the pictures of the page for the documentation, in a real browser on a real server.

python scripts/draw_page.py docs/images                  play, watch, replay, phone, with the built-in players
python scripts/draw_page.py docs/images --runs runs      and learn, with the runs of that folder
python scripts/draw_page.py docs/images --only play,phone
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from web_support import launch, serving

from tilesage import agent, game

PATIENCE = 600_000  # milliseconds: a player may compile first, and a 32768 takes its time
DESK = {"viewport": {"width": 1240, "height": 840}, "device_scale_factor": 1.5}
WIDE = {"viewport": {"width": 1720, "height": 960}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}
BOARD = "2 4 0 2 8 16 4 0 64 32 128 256 16384 8192 2048 512 score=365812"
KEYS = ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")
MOVES = 90  # of the game on the phone
FASTEST = "7"
LARGEST_IS = "tile => Number(document.getElementById('second').textContent.replaceAll(',', '')) >= tile"


def ask(page: Page) -> None:
    """Ask the chosen agent, twice: the first answer may have had to be compiled."""
    for _ in range(2):
        page.click("#ask")
        expect(page.locator("#bars .bar.best")).to_have_count(1)
        page.wait_for_timeout(1000)


def play(page: Page) -> None:
    page.click("#edit")
    page.fill("#editor-text", BOARD)
    page.click("#editor-use")
    expect(page.locator("#score")).to_have_text("365,812")
    ask(page)
    page.evaluate("scrollTo(0, 0)")


def phone(page: Page) -> None:
    page.click('#games [data-value="threes"]')
    expect(page.locator("#board")).to_have_attribute("data-palette", "threes")
    page.fill("#seed", "2")
    page.click("#seed-form button")
    player, state = agent("greedy", "threes"), game("threes").new(seed=2)
    while state.moves < MOVES:
        action = player.choose(state)
        state = state.play(action)
        page.keyboard.press(KEYS[action])
        expect(page.locator("#moves")).to_have_text(str(state.moves))
    ask(page)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def watch(page: Page) -> None:
    """The built-in player, just after it has made a 32768; it may take a few games."""
    page.locator("#speed").fill(FASTEST)
    page.click("#watch-play")
    page.wait_for_function(LARGEST_IS, arg=32768)
    page.click("#watch-play")


def replay(page: Page) -> None:
    """A game of the built-in greedy player, analysed by a search."""
    page.click("#tab-watch")
    page.select_option("#agent", "greedy")
    page.locator("#speed").fill(FASTEST)
    page.click("#watch-play")
    page.wait_for_function(LARGEST_IS, arg=8192)
    page.click("#watch-play")
    page.click("#watch-analyse")
    expect(page.locator("#crumb")).to_contain_text("greedy")
    page.select_option("#agent", "expectimax:2")
    page.click("#judge")
    expect(page.locator("#judge")).to_have_text("Analyse")
    expect(page.locator("#here")).to_contain_text("better")
    ask(page)


def learn(page: Page) -> None:
    page.wait_for_selector("#learn-table tbody tr")


PICTURES: dict[str, tuple[str, dict[str, Any], Callable[[Page], None]]] = {
    "play": ("#play", DESK | LIGHT, play),
    "watch": ("#watch", DESK | DARK, watch),
    "replay": ("#replay", WIDE | LIGHT, replay),
    "learn": ("#learn", DESK | LIGHT, learn),
    "phone": ("#play", PHONE | DARK, phone),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    names = wanted.only.split(",") if wanted.only else [name for name in PICTURES if name != "learn" or wanted.runs]
    expect.set_options(timeout=PATIENCE)
    with (
        tempfile.TemporaryDirectory() as empty,
        serving(wanted.runs or Path(empty) / "runs") as address,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        for name in names:
            where, looks, prepare = PICTURES[name]
            context = browser.new_context(**looks)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.goto(f"{address}/{where}")
            page.wait_for_selector("#link-state.up", state="attached")
            prepare(page)
            page.wait_for_timeout(1500)  # until everything that moves has arrived
            page.screenshot(path=wanted.folder / f"web-{name}.png")
            print(f"{wanted.folder}/web-{name}.png", flush=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
