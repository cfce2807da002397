"""The fields of all that a visitor can send, and the shapes of what is answered: each is written down once, here."""

from __future__ import annotations

from tilesage import games
from tilesage.app.web.fields import SENT, Form, Schema, flag, number, text, whole
from tilesage.app.web.limits import BOARD_CHARACTERS, MOST_MOVES, RECORDS_BYTES
from tilesage.games.board import ACTIONS

SEEDS = 2**63
EXAMPLE = "2 4 8 16 0 0 2 4 0 0 0 2 0 0 0 0"
GAME = text("A game.", among=games.names)


def board(otherwise: object = SENT) -> Schema:
    """A position as a text."""
    about = "A position: sixteen tile numbers, or four rows of indices; in Threes! also hint=1."
    return text(about, otherwise, EXAMPLE, longest=BOARD_CHARACTERS)


def seed(otherwise: object = SENT) -> Schema:
    """A seed of chance."""
    return whole("The seed of chance.", otherwise, 1, high=SEEDS - 1)


PLAYER: Form = {
    "agent": text(
        "best, greedy, expectimax:2, expectimax:200ms, mcts:400, rollouts:100 …", "best", "best", longest=40
    ),
    "model": text("A name of /api/models; empty for the built-in one of the game.", "", longest=200),
}
POSITION: Form = {"game": GAME, "board": board()}
RECORDED: Form = {
    "record": text("One line of a records file; or else game, seed, board and actions.", None, longest=RECORDS_BYTES),
    "game": text("A game.", None, among=games.names),
    "seed": seed(0),
    "board": board(None),
    "actions": text("Letters U R D L from the start that the seed gives.", None, "LDLD", longest=MOST_MOVES),
}
MOVES = text("Letters U R D L.", longest=MOST_MOVES)
STEP: Form = {"game": GAME, "line": board(), "action": whole("0 up, 1 right, 2 down, 3 left.", high=3)}
PLAYED: Form = {
    "game": GAME,
    "lines": text("The positions of a game, one a line.", longest=RECORDS_BYTES),
    "actions": MOVES,
}
SPEED: Form = {"speed": number("Moves a second; 0 is as fast as it goes.", high=1000), "paused": flag()}


def an_object(required: str, **properties: Schema) -> Schema:
    """The shape of an answer; the names of `required` are always there."""
    return {"type": "object", "required": required.split(), "properties": properties}


WHOLE: Schema = {"type": "integer"}
WORDS: Schema = {"type": "string"}
LIST: Schema = {"type": "array"}
VALUES: Schema = {
    "type": "array",
    "items": {"type": ["number", "null"]},
    "minItems": 4,
    "maxItems": 4,
    "description": "Figures of up, right, down, left; null where not legal, or no opinion.",
}
POSITION_TOLD = an_object(
    "game cells score moves largest legal over hint text",
    game=WORDS,
    cells={"type": "array", "items": WHOLE, "minItems": 16, "maxItems": 16},
    score=WHOLE,
    moves=WHOLE,
    largest=WHOLE,
    legal={"type": "array", "items": WHOLE},
    over={"type": "boolean"},
    hint={"type": ["array", "null"], "items": WHOLE},
    text=WORDS,
)
HINT_TOLD = an_object(
    "game agent model values losses figure best action think_ms",
    game=WORDS,
    agent=WORDS,
    model={**WORDS, "description": "The one that was asked for; empty if the agent reads none."},
    values=VALUES,
    losses={**VALUES, "description": "What each of them gives away against the move that the agent makes."},
    figure={**WORDS, "description": "What the figures are, such as: expected final score."},
    best=WHOLE,
    action={"type": "string", "enum": list(ACTIONS)},
    think_ms={"type": "number"},
)
REPLAY_TOLD = an_object("game positions", game=WORDS, positions=LIST)
ERROR_TOLD = an_object("error", error=WORDS)
