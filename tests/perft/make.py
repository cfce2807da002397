"""Write the perft files anew, with counts by the plain-Python reference: `python tests/perft/make.py [game …]`.

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

from perft.positions import HERE, read_position, write_position

LARGEST_COUNT = 60_000  # the reference counts no deeper than this


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
    highest = getattr(rules, "LARGEST_IN_PLAY", rules.LARGEST)
    cells = [random.randint(1, highest) for _ in range(16)]
    for cell in random.sample(range(16), random.randint(1, 8)):
        cells[cell] = 0
    full = rules.COPIES
    if not full:
        return State(tuple(cells))
    bag = (random.randint(0, full), random.randint(0, full), random.randint(1, full))
    hint: tuple[int, ...] = (random.randint(1, 3),)
    if hasattr(rules, "windows") and seed % 2:
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
    for game in sys.argv[1:] or reference.names():
        states = [read_position(game, text) for text in reference.get(game).SPECIAL]
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
