"""`tilesage hint`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from tilesage.cli.flags import JsonFile, Limits, say, write_json
from tilesage.cli.players import WhoPlays
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.evaluation.advice import Advice, MoveAdvice
    from tilesage.search.agents import Agent, Memory


@dataclass
class Command(WhoPlays):
    """Say what each move is worth in a position.

    A board is sixteen tile numbers, or four rows of tile indices (1 is a 2, 2 is a 4, … A is 1024). Threes! also
    needs the next tile: hint=1, and knows more with bag=23 (phone: deck=4,3,2). score= adds the score so far.

    examples:
      tilesage hint "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"
      tilesage hint "..../..1./.124/1358 score=700" --agent expectimax:3 --playouts 100
      tilesage hint runs/first "..../..1./.124/1358"
      tilesage hint "31.2/1453/.786/2319 hint=2" --game threes --json -
      echo '{"board": "1.23/2345/.987/3A12"}' | tilesage hint --stdin
    """

    # The position; alone, or after a model.
    board: Annotated[str | None, Positional, arg(metavar="[BOARD]", help_behavior_hint="")] = None
    # Also finish this many games after each move, and tell their mean score and how many reached the next tile.
    playouts: Annotated[int, Limits(0)] = 0
    # Answer one line of JSON for each line on standard input: a board, or {"board": …, "score": …}.
    stdin: bool = False
    json: JsonFile = None


def run(command: Command) -> int:
    """Print the advice."""
    from tilesage.app.progress import PlayoutsView
    from tilesage.evaluation.advice import advise

    if command.board is None and (command.model_flag or not command.stdin):  # the only word is the position
        command.board, command.model = command.model, None
    if command.stdin and (command.board is not None or command.json):
        raise InputError("--stdin answers on standard output: leave out the board and --json")
    if command.stdin:
        return answer_lines(command.find_agent(), command.playouts)
    if command.board is None:
        raise InputError('which position? tilesage hint "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2", or --stdin')
    agent = command.find_agent()
    state = agent.game.parse(command.board)
    with PlayoutsView(quiet=not command.playouts) as view:
        advice = advise(agent, state, command.playouts, progress=view.update)
    if write_json(advice.summary(), command.json):
        say(table(advice))
    return 0


def answer_lines(agent: Agent, playouts: int) -> int:
    """One line of JSON a query; a query that makes no sense is answered by its error, and the next one is read."""
    memory = agent.new_memory()
    for line in sys.stdin:
        print(json.dumps(answer(agent, line.strip(), playouts, memory), ensure_ascii=False), flush=True)
    return 0


def answer(agent: Agent, line: str, playouts: int, memory: Memory) -> dict[str, Any]:
    """The advice for one line of `--stdin`, or what is wrong with the line."""
    from tilesage.evaluation.advice import advise

    try:
        return advise(agent, agent.game.parse(board_of(line)), playouts, memory).summary()
    except InputError as mistake:
        return {"error": str(mistake)}


def board_of(line: str) -> str:
    """The position of a query: the line itself, or what its JSON says."""
    if not line.startswith(("{", "[", '"')):
        return line
    try:
        query = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError('no JSON: write {"board": "1.23/2345/.987/3A12"} on one line') from None
    if isinstance(query, str):
        return query
    if not isinstance(query, dict) or not isinstance(query.get("board"), str | list):
        raise InputError('a query needs a board: {"board": "1.23/2345/.987/3A12"} or a list of sixteen tiles')
    board = query["board"]
    words = [board if isinstance(board, str) else " ".join(map(str, board))]
    words += [f"{name}={query[name]}" for name in ("hint", "bag", "deck", "score") if name in query]
    return " ".join(words)


def table(advice: Advice) -> str:
    """The board, then a line a move, the best one marked."""
    lines = [str(advice.state), "", f"score {advice.state.score:,}"]
    if advice.best < 0:
        return "\n".join([*lines, "no move is legal: the game is over"])
    head = f"{'expected':>24}"
    if any(move.played is not None for move in advice.moves):
        head += f"{'played on':>25}" + (f"   reach {advice.next_tile:,}" if advice.next_tile else "")
    brackets = "; in brackets what a move gives away" if any(move.loss for move in advice.moves) else ""
    lines += [f"the figure is the {advice.figure}{brackets}", head]
    return "\n".join([*lines, *(row(move, move.action == advice.best) for move in advice.moves)])


def row(move: MoveAdvice, best: bool) -> str:
    """What is said about one move."""
    from tilesage.games.board import ACTIONS

    start = f"{'→' if best else ' '} {ACTIONS[move.action]:6}"
    if not move.legal:
        return f"{start}   moves nothing"
    expected = "–" if move.expected is None else f"{move.expected:,.0f}"
    loss = f"(−{move.loss:,.0f})" if move.loss else ""
    played = "" if move.played is None else f"{move.played:,.0f}"
    reach = "" if move.reach is None else f"{100 * move.reach:.1f} %"
    return f"{start}{expected:>16}{loss:>12}{played:>13}{reach:>13}".rstrip()
