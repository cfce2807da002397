"""Gymnasium environments, single and natively vectorised.

>>> import gymnasium, tilesage.environments
>>> env = gymnasium.make("tilesage/2048-v0")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
>>> envs = gymnasium.make_vec("tilesage/2048-v0", num_envs=4096)
>>> observations, infos = envs.reset(seed=1)

Importing this package registers them, or `gymnasium.make("tilesage.environments:tilesage/2048-v0")` does.
A game in a file of one's own is `gymnasium.make("tilesage/Game-v0", game="my_module:my_game")`.
"""

from __future__ import annotations

import gymnasium

from tilesage import games
from tilesage.environments.gym import (
    PAGES,
    BoardEnv,
    BoardVectorEnv,
    FibonacciEnv,
    Game2048Env,
    ThreesEnv,
    ThreesPhoneEnv,
    id_of,
)

__all__ = [
    "BoardEnv",
    "BoardVectorEnv",
    "FibonacciEnv",
    "Game2048Env",
    "ThreesEnv",
    "ThreesPhoneEnv",
    "id_of",
]


def _register(name: str, page: type[BoardEnv], **fixed: str) -> None:
    gymnasium.register(
        id=name,
        entry_point=f"tilesage.environments:{page.__name__}",
        vector_entry_point="tilesage.environments:BoardVectorEnv",
        kwargs=fixed,
    )


for _game in games.names():
    _register(id_of(_game), PAGES.get(_game, BoardEnv), game=_game)
_register("tilesage/Game-v0", BoardEnv, game="")
