"""Write the perft files anew, with counts by the plain-Python reference: `python tests/perft/make.py`.

Positions: starts, stages of random games, random boards with every tile in every cell (full top cells and tiles past
32768 among them), and boards made for one rule each. Takes a few minutes; the result is the same every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent.parent))

import reference
from reference import State

from perft.positions import GAMES, HERE, read_position, write_position

LARGEST_COUNT = 60_000  # the reference counts no deeper than this

SPECIAL = {
    "2048": [
        "1111/1111/1111/1111",
        "FFGG/HH../..../....",
        "FF../..../..../..FF",
        "GGFF/FEFE/EFEF/FEFE",
        "HHHH/HGHG/GHGH/HHHH",
        "HGFE/ABCD/9876/1112",
        "1212/2121/1212/2121",
        "1212/2121/1212/2122",
        "12FF/21EE/1212/212.",
        "F..F/..../..../F..F",
        "...8/...9/...A/89AF",
    ],
    "threes": [
        "1212/2121/1212/2121 hint=1 bag=23",
        "3333/3333/3333/3333 hint=3 bag=12",
        "EE../..../..../..EE hint=2 bag=123",
        "DDEE/EEDD/1122/2211 hint=1 bag=2",
        "1111/2222/1111/2222 hint=3 bag=1",
        "4567/89AB/CDE3/1313 hint=2 bag=13",
        "1313/3131/1313/3131 hint=1 bag=23",
        ".89A/BCDE/.EDC/BA98 hint=3 bag=123",
        "0333/3033/3303/3330 hint=3 bag=2".replace("0", "."),
    ],
    "threes-phone": [
        "7.../..../..../.... hint=6 deck=4,4,4",
        "8.../.3../..../.... hint=6+12 deck=0,0,1",
        "...9/.3../.1../...2 hint=6+12+24 deck=1,2,3",
        "E.../.3.3/..../...2 hint=384+768 deck=4,4,4".replace("384+768", "192+384+768"),
        "EE../..../..../.... hint=1 deck=4,4,4",
        "EE12/1313/3131/1313 hint=48+96+192 deck=0,4,0",
        "F.../..12/..../.... hint=2 deck=1,1,1",
        "DDEE/EEDD/1122/2211 hint=3 deck=4,0,0",
        "1212/2121/1212/212. hint=2 deck=0,0,1",
        "789A/BCDE/.EDC/BA98 hint=3 deck=2,3,4",
        "1313/3131/1313/3131 hint=1 deck=1,0,0",
        "6.6./..../6.6./.... hint=3 deck=0,1,0",
    ],
}


def stages_of_a_game(game: str, seed: int) -> list[State]:
    """The start of a random game, its middle, and the last positions before its end."""
    rules, random = reference.get(game), Random(seed)
    states = [rules.start(random)]
    while not rules.over(states[-1]):
        states.append(rules.play(states[-1], random.choice(rules.legal(states[-1])), random)[0])
    return [states[0], states[len(states) // 2], states[-4], states[-1]]


def random_board(game: str, seed: int) -> State:
    """Any tile in any cell, with one to eight cells empty."""
    rules, random = reference.get(game), Random(1000 + seed)
    highest = len(rules.TILES) - (2 if game == "threes-phone" else 1)
    cells = [random.randint(1, highest) for _ in range(16)]
    for cell in random.sample(range(16), random.randint(1, 8)):
        cells[cell] = 0
    if game == "2048":
        return State(tuple(cells))
    full = 1 if game == "threes" else 4
    bag = (random.randint(0, full), random.randint(0, full), random.randint(1, full))
    hint: tuple[int, ...] = (random.randint(1, 3),)
    if game == "threes-phone" and seed % 2:
        hint = random.choice(rules.windows(max(cells)) or [hint])
    return State(tuple(cells), hint, bag)


def counts(game: str, state: State) -> list[int]:
    """The counts of depth 1, 2, ... as far as they are worth the time."""
    rules = reference.get(game)
    found = [rules.perft(state, 1)]
    while 0 < found[-1] * max(found[0], 8) < LARGEST_COUNT and len(found) < 4:
        found.append(rules.perft(state, len(found) + 1))
    return found


def main() -> None:
    for game in GAMES:
        states = [read_position(game, text) for text in SPECIAL[game]]
        states += [state for seed in range(6) for state in stages_of_a_game(game, seed)]
        states += [random_board(game, seed) for seed in range(30)]
        lines = [f"# perft of {game}: position ; depth count ... (see positions.py; written by make.py)"]
        for state in dict.fromkeys(states):
            depths = "".join(f" ; {d} {n}" for d, n in enumerate(counts(game, state), 1))
            lines.append(write_position(game, state) + depths)
        (HERE / f"{game}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{game}: {len(lines) - 1} positions")


if __name__ == "__main__":
    main()
