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
    FibonacciVectorEnv,
    Game2048Env,
    Game2048VectorEnv,
    ThreesEnv,
    ThreesPhoneEnv,
    ThreesPhoneVectorEnv,
    ThreesVectorEnv,
    id_of,
)

__all__ = [
    "BoardEnv",
    "BoardVectorEnv",
    "FibonacciEnv",
    "FibonacciVectorEnv",
    "Game2048Env",
    "Game2048VectorEnv",
    "ThreesEnv",
    "ThreesPhoneEnv",
    "ThreesPhoneVectorEnv",
    "ThreesVectorEnv",
    "id_of",
]


def _register() -> None:
    for game in games.names():
        one, many = PAGES.get(game, (BoardEnv, BoardVectorEnv))
        gymnasium.register(
            id=id_of(game),
            entry_point=f"tilesage.environments:{one.__name__}",
            vector_entry_point=f"tilesage.environments:{many.__name__}",
            kwargs={} if game in PAGES else {"game": game},
        )
    gymnasium.register(
        id="tilesage/Game-v0",
        entry_point="tilesage.environments:BoardEnv",
        vector_entry_point="tilesage.environments:BoardVectorEnv",
    )


_register()
