"""Is a move through the page the engine's? `python scripts/soak/page_moves.py --moves 10000`.

Plays random games of every kind through the page's WebSocket and the same games with the engine, and compares every
position to the last bit: the line of a position holds the board, the score and the generator of chance.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import websockets

from tilesage import games

LETTERS = "URDL"


async def ask(visit: Any, what: str, **fields: Any) -> dict[str, Any]:
    await visit.send(json.dumps({"id": 1, "do": what, **fields}))
    answer: dict[str, Any] = json.loads(await visit.recv())
    if "error" in answer:
        raise SystemExit(f"{what}: {answer['error']}")
    return answer


async def play(address: str, name: str, moves: int, dice: random.Random) -> int:
    """So many moves of one game after another; how many positions were not the engine's."""
    wrong, made, state, letters, seed = 0, 0, None, "", 0
    async with websockets.connect(address) as visit:
        while made < moves:
            if state is None or state.over:
                if state is not None:  # the whole game once more, by its actions
                    told = await ask(visit, "game.open", game=name, seed=seed, actions=letters)
                    wrong += told["positions"][-1]["line"] != state.line
                seed, letters = dice.randrange(10**9), ""
                state = games.get(name).new(seed)
                here = (await ask(visit, "game.open", game=name, seed=seed))["positions"][0]
            action = dice.choice(state.legal)
            here = await ask(visit, "game.step", game=name, line=here["line"], action=action)
            state, letters, made = state.play(action), letters + LETTERS[action], made + 1
            if here["line"] != state.line or tuple(here["legal"]) != state.legal:
                wrong, here = wrong + 1, {"line": state.line}
    return wrong


async def all_games(address: str, moves: int) -> int:
    names = games.names()
    shares = [play(address, name, -(-moves // len(names)), random.Random(7)) for name in names]
    return sum(await asyncio.gather(*shares))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=10_000)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tilesage", "serve", "--port", "0", "--runs", str(Path(folder) / "runs")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[3].replace("http", "ws") + "/ws"
            try:
                wrong = asyncio.run(all_games(address, flags.moves))
            finally:
                server.send_signal(signal.SIGINT)
    print(f"{flags.moves:,} moves of {', '.join(games.names())}: {wrong} positions that are not the engine's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
