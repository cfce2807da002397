"""The built-in players, one row each: how they are written, what their options mean, who builds them.

Reading a player's text, its error messages, `tilesage agents` and `make_agent` all go by these rows. Nothing here
imports the searches: a row names its builder, which is imported when a player is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilesage.games import Game
    from tilesage.networks.files import Model
    from tilesage.networks.outside import OutsideValue
    from tilesage.search.agents import Agent
    from tilesage.search.specs import Spec


@dataclass(frozen=True)
class Option:
    """A setting of a player, written option=value."""

    name: str
    meaning: str
    default: str


@dataclass(frozen=True)
class Budget:
    """What a player may spend on a move, written after the colon."""

    meaning: str
    units: tuple[str, ...] = ("", "ms", "s")  # "" is a number of what the player counts
    words: tuple[str, ...] = ()  # instead of a number


@dataclass(frozen=True)
class Row:
    """One built-in player."""

    name: str
    summary: str
    examples: tuple[str, ...]
    builder: str  # module:function of (spec, game, model) -> Agent
    needs_model: Callable[[Spec], bool]
    budget: Budget | None = None
    options: tuple[Option, ...] = ()
    stands_for: tuple[str, str] | None = None  # a name with a budget for which this one is short

    def build(self, spec: Spec, game: Game, model: Model | OutsideValue | None) -> Agent:
        module, _, function = self.builder.partition(":")
        made: Agent = getattr(importlib.import_module(module, __package__), function)(spec, game, model)
        return made

    def described(self) -> dict[str, Any]:
        """The row as `tilesage agents --json` writes it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "examples": list(self.examples),
            "budget": self.budget.meaning if self.budget else None,
            "options": [vars(option) for option in self.options],
        }


def always(spec: Spec) -> bool:
    return True


def never(spec: Spec) -> bool:
    return False


def reads_leaves(spec: Spec) -> bool:
    """Does this tree search ask a network at its leaves?"""
    return spec.word("leaf", ("rollouts", "value")) == "value"


BELOW = "legal; all for d1"
DOWNGRADE = Option("downgrade", "2048: from this tile on, search a board with smaller tiles", "never")
TABLE = Option("table", "the table of positions met has 2^table entries; 0 for none", "14")
LATE_GAME = (
    Option("endgames", "2048: solve the endgames up to this tile first (128, 256, 512 or 1024)", "none"),
    Option("wide", "2048: such tables up to this tile for boards with one large tile less, too: many more", "none"),
    Option("block", "2048: a model trained on 2048-block, to which its boards are handed over", "none"),
)
WALLS = "2048: a model trained on 2048-walls, to which its boards are handed over"

ROWS = (
    Row(
        "best",
        "expectimax:deep with everything that comes with the package for the game",
        ("best",),
        ".players:expectimax_agent",
        always,
        options=(TABLE, *LATE_GAME, Option("walls", WALLS, "2048-walls")),
        stands_for=("expectimax", "deep"),
    ),
    Row("random", "any legal move with equal chance", ("random",), ".agents:random_agent", never),
    Row(
        "greedy",
        "the move whose reward and value together are largest",
        ("greedy",),
        ".players:greedy_or_downgraded",
        always,
        options=(DOWNGRADE,),
    ),
    Row(
        "expectimax",
        "the best move against chance, some layers of moves deep",
        ("expectimax:3", "expectimax:deep", "expectimax:200ms"),
        ".players:expectimax_agent",
        always,
        Budget(
            "layers (expectimax:3), expectimax:deep, time a move (expectimax:200ms) or expectimax:5000nodes",
            ("", "ms", "s", "nodes"),
            ("deep",),
        ),
        (
            Option("width", "follow only so many of the best moves below the root", "4; 1 for deep and with a time"),
            Option("prune", "leave out what is less likely than this", "0; 0.01 for deep"),
            TABLE,
            DOWNGRADE,
            *LATE_GAME,
            Option("walls", WALLS, "none"),
        ),
    ),
    Row(
        "mcts",
        "Monte Carlo tree search: random games at the leaves, or a network's values",
        ("mcts:400", "mcts:1s", "mcts:d1"),
        ".players:tree_agent",
        reads_leaves,
        Budget("iterations (mcts:400), time a move (mcts:1s) or mcts:d1", words=("d1",)),
        (
            Option("leaf", "what a leaf is worth: rollouts, or value, which a network tells", "rollouts"),
            Option("c", "how much is explored", "1; 0.5 with leaf=value"),
            Option("below", "rollouts: moves of a node below the root: legal, or all, which may move nothing", BELOW),
            Option("gain", "rollouts: points count from the root, or of the rollout alone (root, rollout)", "root"),
        ),
    ),
    Row(
        "rollouts",
        "flat Monte Carlo: as many random games after each legal move, and the best mean wins",
        ("rollouts:100",),
        ".players:rollouts_agent",
        never,
        Budget("random games a legal move (rollouts:100) or time a move (rollouts:100ms)"),
    ),
)
REGISTRY = {row.name: row for row in ROWS}
EXAMPLES = ", ".join(example for row in ROWS for example in row.examples)
