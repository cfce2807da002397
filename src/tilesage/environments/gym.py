"""The environments: one game at a time, and many at once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilesage import games
from tilesage.core.compiler import Array
from tilesage.core.errors import InputError
from tilesage.drawing.pictures import picture
from tilesage.drawing.terminal import ansi
from tilesage.environments.batch import Batch, extras_in
from tilesage.games import Game

try:
    import gymnasium
except ImportError as error:  # pragma: no cover
    raise InputError("the environments need Gymnasium: pip install '.[gym]'") from error

from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

RENDER_MODES = ["ansi", "rgb_array"]
RENDER_FPS = 4


def _observation_space(game: Game) -> spaces.Space[Any]:
    """The board; in Threes! a dictionary of the board, the hint and the tiles left in the bag or deck."""
    highest, extras = len(game.tiles) - 1, extras_in(game)
    board = spaces.Box(0, highest, (4, 4), np.uint8)
    if not extras.hints:
        return board
    return spaces.Dict(
        board=board,
        hint=spaces.Box(0, highest, (extras.hints,), np.uint8),
        deck=spaces.Box(0, extras.copies, (3,), np.uint8),
    )


def _check_render_mode(mode: str | None) -> str | None:
    if mode is not None and mode not in RENDER_MODES:
        raise InputError(f"unknown render_mode {mode!r}: write one of {', '.join(RENDER_MODES)}, or None")
    return mode


def _option(options: dict[str, Any] | None, name: str) -> Any:
    """The only option of a reset; None where it is not given."""
    unknown = (options or {}).keys() - {name}
    if unknown:
        raise InputError(f"a reset has no option {unknown.pop()!r}: it takes {name}")
    return (options or {}).get(name)


def _frame(batch: Batch, i: int, mode: str) -> Any:
    state = batch.state(i)
    return ansi(state) if mode == "ansi" else np.asarray(picture(state))


class BoardEnv(gymnasium.Env[Any, Any]):
    """One game as an environment: what the environments of all games share.

    A game that has no page of its own in this file is played by this one: `gymnasium.make("tilesage/Game-v0",
    game="my_module:my_game")`. The observation is the board of tile indices; with a hint a dictionary of `board`,
    `hint` and `deck`. Rewards are points.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012
    game_name: ClassVar[str] = games.DEFAULT_GAME

    def __init__(self, render_mode: str | None = None, game: str | None = None, **parameters: float):
        self.render_mode = _check_render_mode(render_mode)
        self._batch = Batch(games.get(self.game_name if game is None else game, **parameters), 1)
        self.observation_space = _observation_space(self.game)
        self.action_space = spaces.Discrete(4)
        self._started = False

    @property
    def game(self) -> Game:
        """The game with its parameters."""
        return self._batch.game

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode; `options={"position": …}` begins it in a position, written as for the command hint."""
        super().reset(seed=seed)
        if seed is not None or not self._started:
            self._batch.seed(int(self.np_random.integers(2**63)) if seed is None else seed)
        position = _option(options, "position")
        if not isinstance(position, str | None):
            raise InputError(f"a position is a text such as '..1./..2./.3../1...', not {position!r}")
        if position is None:
            self._batch.begin()
        else:
            # A text without a seed reads as that of seed 0, and every episode would meet the same chance.
            self._batch.put(0, self.game.parse(position), its_chance="seed=" in position)
        self._started = True
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Slide, and let chance place a tile. An action that is not legal changes nothing."""
        played = np.asarray(action)
        if played.size != 1 or played.dtype.kind not in "biu" or not 0 <= played.item() < 4:
            raise InputError(f"an action is 0, 1, 2 or 3 (up, right, down, left), not {action}")
        self._batch.step(played.astype(np.int64).reshape(1))
        seen = self._batch.seen
        return self._observation(), float(seen.rewards[0]), bool(seen.terminated[0]), False, self._info()

    def action_masks(self) -> Array:
        """Which of the four actions are legal, where MaskablePPO of sb3-contrib looks for it."""
        return np.asarray(self._batch.masks[0], np.bool_)

    def render(self) -> Any:
        """A text or a picture of the position, by `render_mode`."""
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: make the environment with render_mode='ansi' or 'rgb_array'")
            return None
        return _frame(self._batch, 0, self.render_mode)

    @property
    def state(self) -> games.State:
        """The position as an object of `tilesage.games`."""
        return self._batch.state(0)

    def _observation(self) -> Any:
        board = self._batch.boards[0].copy()
        if not extras_in(self.game).hints:
            return board
        return {"board": board, "hint": self._batch.hints[0].copy(), "deck": self._batch.decks[0].copy()}

    def _info(self) -> dict[str, Any]:
        batch = self._batch
        return {
            "action_mask": batch.masks[0].copy(),
            "illegal": bool(batch.seen.illegal[0]),
            "score": int(batch.positions.scores[0]),
        }


class BoardVectorEnv(VectorEnv[Any, Any, Any]):
    """N games as one environment: a step is one compiled call.

    Environment i is seeded by (seed, i) and keeps its own generator, so its games do not depend on the others. Arrays
    in `infos` have one entry per environment. Beside the arguments of the single environment it takes:

    - `autoreset_mode`: what happens when a game ends, by Gymnasium's convention. `NEXT_STEP` (the default): the next
      step ignores that action, starts a new game, and returns its first observation with reward 0. `SAME_STEP`: the
      same step already returns the new game, and the last observation and info of the old one are in
      `infos["final_obs"]` and `infos["final_info"]`. `DISABLED`: games that are over stay as they are until
      `reset(options={"reset_mask": array_of_bools})`.
    - `max_episode_steps`: games are truncated after this many steps.
    - `copy=True`: hand out copies; with False the same arrays every time, which the next step overwrites.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": RENDER_MODES,
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        game: str = games.DEFAULT_GAME,
        **parameters: float,
    ):
        if num_envs < 1:
            raise InputError(f"num_envs is at least 1, not {num_envs}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise InputError(f"max_episode_steps is at least 1, or None, not {max_episode_steps}")
        self.num_envs, self.copy = num_envs, copy
        self.render_mode = _check_render_mode(render_mode)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self._batch = Batch(games.get(game, **parameters), num_envs, max_episode_steps)
        self.single_observation_space = _observation_space(self.game)
        self.single_action_space = spaces.Discrete(4)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._everywhere = np.ones(num_envs, np.bool_)
        self._started = False

    @property
    def game(self) -> Game:
        """The game with its parameters."""
        return self._batch.game

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """New episodes, in all environments or in those of `options={"reset_mask": …}`."""
        super().reset(seed=seed)
        if (options or {}).get("position") is not None:
            raise InputError("a position is for a single environment, and these are many: leave it out")
        chosen = self._chosen(_option(options, "reset_mask"))
        if not self._started:
            self._batch.seed(int(self.np_random.integers(2**63)) if seed is None else seed)
        elif seed is not None:
            self._batch.seed(seed, chosen)
        self._batch.begin(chosen)
        self._started = True
        return self._observations(), self._infos()

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One step of every environment; what follows an end is up to `autoreset_mode`."""
        played, batch = self._played(actions), self._batch
        batch.step(played, restart=self.autoreset_mode == AutoresetMode.NEXT_STEP)
        seen = batch.seen
        rewards, terminated, truncated = seen.rewards.copy(), seen.terminated.copy(), seen.truncated.copy()
        last: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and batch.positions.done.any():
            last = self._last_seen(batch.positions.done.copy())
        return self._observations(), rewards, terminated, truncated, {**self._infos(), **last}

    def render(self) -> tuple[Any, ...] | None:
        """A text or a picture of each position, by `render_mode`."""
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: make the environments with render_mode='ansi' or 'rgb_array'")
            return None
        return tuple(_frame(self._batch, i, self.render_mode) for i in range(self.num_envs))

    def state(self, i: int) -> games.State:
        """The position of environment i as an object of `tilesage.games`."""
        return self._batch.state(i)

    def _chosen(self, mask: Any) -> Array | None:
        """Where to start a new game: everywhere, or where `options["reset_mask"]` says."""
        if mask is None:
            return None
        chosen = np.asarray(mask)
        if chosen.shape != (self.num_envs,) or chosen.dtype != np.bool_ or not chosen.any():
            raise InputError(f"reset_mask is an array of {self.num_envs} bools with at least one True")
        return chosen

    def _played(self, actions: Any) -> Array:
        given = np.asarray(actions)
        if given.dtype.kind not in "biu":
            raise InputError(f"actions are whole numbers from 0 to 3 (up, right, down, left), not {given.dtype}")
        played = np.ascontiguousarray(given, dtype=np.int64)
        if played.shape != (self.num_envs,):
            raise InputError(
                f"give one action per environment, an array of shape ({self.num_envs},), not {played.shape}"
            )
        if played.min() < 0 or played.max() > 3:
            wrong = int(np.flatnonzero((played < 0) | (played > 3))[0])
            raise InputError(f"an action is 0, 1, 2 or 3 (up, right, down, left), not {played[wrong]} at {wrong}")
        return played

    def _last_seen(self, done: Array) -> dict[str, Any]:
        """The last observation and info of the games that are done, which then begin anew."""
        final_obs = np.full(self.num_envs, None, dtype=object)
        observations = self._observations(copied=True)
        for i in np.flatnonzero(done):
            if isinstance(observations, dict):
                final_obs[i] = {name: array[i] for name, array in observations.items()}
            else:
                final_obs[i] = observations[i]
        final_info = {name: array.copy() for name, array in self._infos().items()}
        for name in [name for name in final_info if name.startswith("_")]:
            final_info[name] = done
        self._batch.begin(done)
        return {"final_obs": final_obs, "_final_obs": done, "final_info": final_info, "_final_info": done}

    def _observations(self, copied: bool = False) -> Any:
        batch, copied = self._batch, copied or self.copy
        if not extras_in(self.game).hints:
            return batch.boards.copy() if copied else batch.boards
        seen = {"board": batch.boards, "hint": batch.hints, "deck": batch.decks}
        return {name: array.copy() for name, array in seen.items()} if copied else seen

    def _infos(self) -> dict[str, Any]:
        batch, given = self._batch, {}
        infos = {"action_mask": batch.masks, "illegal": batch.seen.illegal, "score": batch.positions.scores}
        for name, array in infos.items():
            given[name] = array.copy() if self.copy else array
            given[f"_{name}"] = self._everywhere
        return given


class Game2048Env(BoardEnv):
    """2048: slide, merge equal tiles, a new tile appears.

    ## Description
    Tiles on a 4×4 board slide as far as they go towards one side; two equal tiles that meet become one of their sum,
    each tile at most once a move. After every legal move a 2 (90 %) or a 4 appears on a random empty cell. The game
    goes on after 2048; the largest tile possible is 131072, and the rules are exact up to it.

    ## Action Space
    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. An action that moves nothing is illegal: it changes nothing, earns 0
    and sets `info["illegal"]`. `info["action_mask"]` tells the legal ones beforehand, in the form that
    `env.action_space.sample(info["action_mask"])` takes.

    ## Observation Space
    `Box(0, 17, (4, 4), uint8)`: the exponent of every tile, row by row from the top left: 0 for an empty cell, 1 for
    a 2, 2 for a 4, … 11 for 2048, 17 for 131072.

    ## Starting State
    Two tiles on random cells, each a 2 (90 %) or a 4. The game is a function of its seed and its actions:
    `reset(seed=s)` deals the game of `tilesage.games.get("2048").new(s)`. A reset without a seed goes on with the
    same generator.

    ## Rewards
    The sum of the tiles that the move made (2 2 2 2 → 4 4 earns 8), the score of the game. An illegal action earns 0.

    ## Episode End
    Termination when no action is legal. Truncation only where a `max_episode_steps` is given to `gymnasium.make`.

    ## Information
    - `action_mask`: `int8` array of 4, 1 where the action is legal.
    - `illegal`: the action just taken was illegal.
    - `score`: the score of the game so far.

    ## Arguments
    - `render_mode`: `"ansi"` for a coloured board as text, `"rgb_array"` for a picture, `None` for neither.
    - `four_rate=0.1`: the share of fours among the new tiles.
    - `reset(options={"position": "16 tile numbers, or a compact text"})` starts from a position; `seed=7` in the text
      takes the place of the seed.

    ## Versions
    - v0: the first.
    """

    game_name = "2048"


class ThreesEnv(BoardEnv):
    """Threes!, the course variant: every tile moves at most one cell, and the next tile is known.

    ## Description
    Each tile moves at most one cell. A 1 and a 2 make a 3, and from 3 on equal tiles make their sum, up to 6144,
    which never merges. After the slide the tile that the hint showed enters on a random empty cell of the side
    opposite to the slide. Tiles come from a bag of {1, 2, 3}, drawn without putting back and filled again when
    empty.

    ## Action Space
    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. An action that moves nothing is illegal: it changes nothing, earns 0
    and sets `info["illegal"]`. `info["action_mask"]` tells the legal ones beforehand.

    ## Observation Space
    A dictionary that is the whole state of the game, as a player who counts knows it:

    - `board`: `Box(0, 14, (4, 4), uint8)`, tile indices: 0 empty, 1, 2, 3 for the tiles 1, 2, 3, and every further
      index doubles the tile: 4 for 6, … 14 for 6144.
    - `hint`: `Box(0, 14, (1,), uint8)`, the index of the next tile.
    - `deck`: `Box(0, 1, (3,), uint8)`, which of 1, 2, 3 are in the bag from which the tile after it will come.

    `gymnasium.wrappers.FlattenObservation` makes one vector of it.

    ## Starting State
    Nine tiles from the bag on random cells. The game is a function of its seed and its actions: `reset(seed=s)` deals
    the game of `tilesage.games.get("threes").new(s)`. A reset without a seed goes on with the same generator.

    ## Rewards
    What the move adds to the value of the board, where a tile of index i ≥ 3 is worth 3^(i - 2): merges and the new
    tile. The score is the value of the board, so the rewards of a game sum to the final score less the 9 points of
    the three 3s that were dealt. An illegal action earns 0.

    ## Episode End
    Termination when no action is legal. Truncation only where a `max_episode_steps` is given to `gymnasium.make`.

    ## Information
    - `action_mask`: `int8` array of 4, 1 where the action is legal.
    - `illegal`: the action just taken was illegal.
    - `score`: the score of the game so far.

    ## Arguments
    - `render_mode`: `"ansi"` for a coloured board as text, `"rgb_array"` for a picture, `None` for neither.
    - `reset(options={"position": "16 tile numbers hint=1 bag=23"})` starts from a position; `seed=7` in the text
      takes the place of the seed.

    ## Versions
    - v0: the first.
    """

    game_name = "threes"


class ThreesPhoneEnv(BoardEnv):
    """Threes! as on the phone: a deck of twelve, bonus tiles, and a hint that may leave some doubt.

    ## Description
    As `tilesage/Threes-v0`, but: tiles come from a deck of twelve, four each of 1, 2, 3; a new tile enters only a
    line that moved; once the largest tile is 48 or more, each new tile is a bonus with probability 1/21, one of 6 …
    largest/8; 6144 and 6144 make 12288, which ends the game. (Community reconstructions, not official.)

    ## Action Space
    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. An action that moves nothing is illegal: it changes nothing, earns 0
    and sets `info["illegal"]`. `info["action_mask"]` tells the legal ones beforehand.

    ## Observation Space
    A dictionary that is the whole state of the game, as a player who counts knows it:

    - `board`: `Box(0, 15, (4, 4), uint8)`, tile indices: 0 empty, 1, 2, 3 for the tiles 1, 2, 3, and every further
      index doubles the tile: 4 for 6, … 15 for 12288.
    - `hint`: `Box(0, 15, (3,), uint8)`, the indices of the next tile: one value, or up to three equally likely ones
      for a bonus; 0 where there are fewer.
    - `deck`: `Box(0, 4, (3,), uint8)`, how many 1, 2, 3 are left in the deck.

    ## Starting State
    Nine tiles from the deck on random cells. The game is a function of its seed and its actions: `reset(seed=s)`
    deals the game of `tilesage.games.get("threes-phone").new(s)`. A reset without a seed goes on with the same
    generator.

    ## Rewards
    What the move adds to the value of the board, where a tile of index i ≥ 3 is worth 3^(i - 2): merges and the new
    tile. The score is the value of the board. An illegal action earns 0.

    ## Episode End
    Termination when no action is legal, or with a 12288 on the board. Truncation only where a `max_episode_steps` is
    given to `gymnasium.make`.

    ## Information
    - `action_mask`: `int8` array of 4, 1 where the action is legal.
    - `illegal`: the action just taken was illegal.
    - `score`: the score of the game so far.

    ## Arguments
    - `render_mode`: `"ansi"` for a coloured board as text, `"rgb_array"` for a picture, `None` for neither.
    - `reset(options={"position": "16 tile numbers hint=6+12+24 deck=4,3,2"})` starts from a position; `seed=7` in the
      text takes the place of the seed.

    ## Versions
    - v0: the first.
    """

    game_name = "threes-phone"


class FibonacciEnv(BoardEnv):
    """2584: 2048 with the Fibonacci numbers.

    ## Description
    Tiles on a 4×4 board slide as far as they go towards one side; two neighbours of the sequence 1, 2, 3, 5, 8, …
    that meet become the next one of it, and two 1s a 2, each tile at most once a move. Other equal tiles do not
    merge. After every legal move a 1 (90 %) or a 2 appears on a random empty cell. The game goes on after 2584; the
    largest tile possible is 3524578, and the rules are exact up to it.

    ## Action Space
    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. An action that moves nothing is illegal: it changes nothing, earns 0
    and sets `info["illegal"]`. `info["action_mask"]` tells the legal ones beforehand.

    ## Observation Space
    `Box(0, 32, (4, 4), uint8)`: the index of every tile, row by row from the top left: 0 for an empty cell, 1 for a
    1, 2 for a 2, 3 for a 3, 4 for a 5, … 17 for 2584, 32 for 3524578.

    ## Starting State
    Two tiles on random cells, each a 1 (90 %) or a 2. The game is a function of its seed and its actions:
    `reset(seed=s)` deals the game of `tilesage.games.get("fibonacci").new(s)`. A reset without a seed goes on with
    the same generator.

    ## Rewards
    The sum of the numbers that the move made (1 1 2 3 → 2 5 earns 7), the score of the game. An illegal action
    earns 0.

    ## Episode End
    Termination when no action is legal. Truncation only where a `max_episode_steps` is given to `gymnasium.make`.

    ## Information
    - `action_mask`: `int8` array of 4, 1 where the action is legal.
    - `illegal`: the action just taken was illegal.
    - `score`: the score of the game so far.

    ## Arguments
    - `render_mode`: `"ansi"` for a coloured board as text, `"rgb_array"` for a picture, `None` for neither.
    - `two_rate=0.1`: the share of twos among the new tiles.
    - `reset(options={"position": "16 tile numbers, or a compact text"})` starts from a position; `seed=7` in the text
      takes the place of the seed.

    ## Versions
    - v0: the first.
    """

    game_name = "fibonacci"


# Environments with a page of their own, by game.
PAGES: dict[str, type[BoardEnv]] = {
    "2048": Game2048Env,
    "threes": ThreesEnv,
    "threes-phone": ThreesPhoneEnv,
    "fibonacci": FibonacciEnv,
}


def id_of(game: str) -> str:
    """The environment of a game that has a name.

    >>> id_of("threes-phone")
    'tilesage/ThreesPhone-v0'
    """
    return f"tilesage/{game.title().replace('-', '')}-v0"
