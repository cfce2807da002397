"""The Gymnasium environments: their contract, their games, their ends, one at a time and thousands at once."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import tilesage.environments  # noqa: E402
from tilesage import games  # noqa: E402
from tilesage.core.random import seed_of  # noqa: E402
from tilesage.games import legal  # noqa: E402
from tilesage.games.board import nth, nth_cell, pack  # noqa: E402
from tilesage.games.state import start_from  # noqa: E402

IDS = {name: tilesage.environments.id_of(name) for name in games.names()}
STUCK = (1, 3, 5, 7)  # indices of tiles that do not merge side by side, in any game
HEADINGS = ["Description", "Action Space", "Observation Space", "Rewards", "Episode End", "Arguments", "Versions"]
every_game = pytest.mark.parametrize("name", IDS)


def board_of(observation):
    return observation["board"] if isinstance(observation, dict) else observation


def same(one, other):
    if isinstance(one, dict):
        return all(np.array_equal(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


def legal_actions(masks, rng):
    """A random legal action per row; 0 where there is none."""
    return np.argmax(masks * rng.random(masks.shape), axis=1)


# --- the contract -------------------------------------------------------------------------------------------------


@every_game
@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
def test_gymnasium_checks_the_environment_without_a_warning(name, mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(IDS[name], render_mode=mode)
        check_env(env.unwrapped)
        env.reset(seed=1)
        env.step(0)
        env.close()


@every_game
def test_gymnasium_makes_the_vector_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec(IDS[name], num_envs=3, vectorization_mode="vector_entry_point")
        observations, _ = envs.reset(seed=1)
        assert observations in envs.observation_space
        for _ in range(300):
            observations, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
            assert observations in envs.observation_space
        assert rewards.dtype == np.float64
        assert terminated.dtype == truncated.dtype == np.bool_
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        envs.close()


def test_the_name_of_the_module_is_enough_to_make_one():
    assert gymnasium.make("tilesage.environments:tilesage/2048-v0").unwrapped.game.name == "2048"


@every_game
def test_gymnasiums_own_vector_takes_the_single_environment(name):
    envs = gymnasium.make_vec(IDS[name], num_envs=2, vectorization_mode="sync")
    _, infos = envs.reset(seed=5)
    assert infos["action_mask"].shape == (2, 4)


def test_the_ids_that_people_know():
    known = {"2048": "2048", "threes": "Threes", "threes-phone": "ThreesPhone", "fibonacci": "Fibonacci"}
    assert {name: IDS[name] for name in known} == {name: f"tilesage/{kind}-v0" for name, kind in known.items()}


@pytest.mark.parametrize("kind", tilesage.environments.PAGES.values())
def test_the_docstring_is_a_page(kind):
    positions = [kind.__doc__.index(f"## {heading}\n") for heading in HEADINGS]
    assert positions == sorted(positions)


def stuck_to_the_top(game):
    """A position in which only one slide is legal, down."""
    row = " ".join(str(game.tiles[index]) for index in STUCK)
    return f"{row} 0 0 0 0 0 0 0 0 0 0 0 0" + (" hint=1" if game.hint else "")


# --- the games ----------------------------------------------------------------------------------------------------


@every_game
def test_a_game_is_the_game_of_its_seed_and_actions(name):
    env, state = gymnasium.make(IDS[name]).unwrapped, games.get(name).new(seed=11)
    observation, info = env.reset(seed=11)
    rng, total = np.random.default_rng(1), state.score
    while not state.over:
        assert board_of(observation).ravel().tolist() == state.indices
        assert [action for action in range(4) if info["action_mask"][action]] == list(state.legal)
        action = int(rng.choice(state.legal))
        observation, reward, terminated, truncated, info = env.step(action)
        state = state.play(action)
        total += reward
        assert (info["score"], terminated, truncated) == (state.score, state.over, False)
    assert total == state.score
    assert env.state.text == state.text


def test_threes_shows_the_hint_and_the_bag():
    env = gymnasium.make(IDS["threes"]).unwrapped
    observation, _ = env.reset(options={"position": "1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 hint=2 bag=13"})
    assert observation["hint"].tolist() == [2]
    assert observation["deck"].tolist() == [1, 0, 1]


def test_phone_threes_shows_the_window_of_a_bonus_and_the_deck():
    env = gymnasium.make(IDS["threes-phone"]).unwrapped
    position = "768 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0"
    observation, _ = env.reset(options={"position": position + " hint=6+12+24 deck=4,3,2"})
    assert observation["hint"].tolist() == [4, 5, 6]
    assert observation["deck"].tolist() == [4, 3, 2]
    observation, _ = env.reset(options={"position": position + " hint=3 deck=0,0,1"})
    assert observation["hint"].tolist() == [3, 0, 0]


@every_game
def test_an_illegal_action_changes_nothing_earns_nothing_and_says_so(name):
    env = gymnasium.make(IDS[name]).unwrapped
    before, info = env.reset(options={"position": stuck_to_the_top(env.game)})
    assert info["action_mask"].tolist() == [0, 0, 1, 0]
    after, reward, terminated, truncated, info = env.step(0)
    assert same(before, after)
    assert (reward, terminated, truncated, info["illegal"]) == (0.0, False, False, True)
    _, _, _, _, info = env.step(2)
    assert not info["illegal"]


def test_tiles_past_32768_are_seen_as_they_are():
    env = gymnasium.make(IDS["2048"]).unwrapped
    observation, _ = env.reset(options={"position": "32768 32768 65536 131072 0 0 0 0 0 0 0 0 0 0 0 65536"})
    assert observation.ravel().tolist() == [15, 15, 16, 17, *[0] * 11, 16]
    observation, reward, *_ = env.step(3)
    assert observation[0].tolist()[:3] == [16, 16, 17]
    assert reward == 65536


def test_tiles_past_987_are_seen_as_they_are():
    env = gymnasium.make(IDS["fibonacci"]).unwrapped
    observation, _ = env.reset(options={"position": "EFGH/..../UVVW/...."})
    assert observation.ravel().tolist() == [14, 15, 16, 17, 0, 0, 0, 0, 30, 31, 31, 32, 0, 0, 0, 0]
    observation, reward, *_ = env.step(3)
    assert observation[0].tolist()[:2] == [16, 18]
    assert observation[2].tolist()[:3] == [32, 31, 32]
    assert reward == 1597 + 4181 + 3524578


def test_the_rate_of_fours_is_an_argument():
    only_fours = gymnasium.make_vec(IDS["2048"], num_envs=50, four_rate=1.0)
    observations, _ = only_fours.reset(seed=1)
    assert set(np.unique(observations)) == {0, 2}


@pytest.mark.parametrize("action", [-1, 4])
def test_an_action_that_is_none_is_refused(action):
    env = gymnasium.make(IDS["2048"]).unwrapped
    env.reset(seed=1)
    with pytest.raises(games.InputError, match="an action is 0, 1, 2 or 3"):
        env.step(action)
    envs = gymnasium.make_vec(IDS["2048"], num_envs=2)
    envs.reset(seed=1)
    with pytest.raises(games.InputError, match=f"not {action} at 1"):
        envs.step(np.array([0, action]))
    with pytest.raises(games.InputError, match=r"shape \(2,\)"):
        envs.step(np.array([0]))


# --- many at once -------------------------------------------------------------------------------------------------


@every_game
def test_environment_i_plays_the_game_of_seed_and_i_whatever_the_number_of_environments(name):
    many, few = (gymnasium.make_vec(IDS[name], num_envs=n) for n in (9, 4))
    seen_by_many, _ = many.reset(seed=3)
    seen_by_few, _ = few.reset(seed=3)
    for i in range(4):
        start = start_from(games.get(name), np.uint64(seed_of(np.uint64(3), np.uint64(i))))
        assert board_of(seen_by_many)[i].ravel().tolist() == start.indices
    rng = np.random.default_rng(2)
    for _ in range(400):
        actions = rng.integers(0, 4, 9)
        seen_by_many, rewards, *_ = many.step(actions)
        seen_by_few, fewer, *_ = few.step(actions[:4])
        assert np.array_equal(board_of(seen_by_many)[:4], board_of(seen_by_few))
        assert np.array_equal(rewards[:4], fewer)


@every_game
def test_a_finished_game_begins_anew_with_the_next_step(name):
    envs, rng = gymnasium.make_vec(IDS[name], num_envs=20), np.random.default_rng(3)
    _, infos = envs.reset(seed=4)
    ended, scores, begun = np.zeros(20, bool), np.zeros(20), 0
    for _ in range(600):
        observations, rewards, terminated, _, infos = envs.step(legal_actions(infos["action_mask"], rng))
        assert not rewards[ended].any()
        assert not terminated[ended].any()
        tiles = (board_of(observations) > 0).sum(axis=(1, 2))
        assert (tiles[ended] == games.get(name).starting_tiles).all()
        scores = np.where(ended, infos["score"], scores + rewards)
        if not games.get(name).score_is_value:
            assert np.array_equal(scores, infos["score"])
        begun, ended = begun + ended.sum(), terminated
        assert np.array_equal(terminated, ~infos["action_mask"].any(axis=1))
    assert begun > 20


@every_game
def test_same_step_autoreset_hands_out_the_last_observation(name):
    next_step, same_step = (
        gymnasium.make_vec(IDS[name], num_envs=1, autoreset_mode=mode) for mode in ("NextStep", "SameStep")
    )
    _, infos = next_step.reset(seed=6)
    same_step.reset(seed=6)
    rng, games_seen = np.random.default_rng(4), 0
    while games_seen < 3:
        action = legal_actions(infos["action_mask"], rng)
        observation, reward, terminated, _, infos = next_step.step(action)
        given, given_reward, given_terminated, _, given_infos = same_step.step(action)
        assert (reward, terminated) == (given_reward, given_terminated)
        if terminated[0]:
            games_seen += 1
            last = (
                {key: value[0] for key, value in observation.items()}
                if isinstance(observation, dict)
                else observation[0]
            )
            assert same(given_infos["final_obs"][0], last)
            assert given_infos["final_info"]["score"][0] == infos["score"][0]
            assert given_infos["_final_info"].tolist() == [True]
            observation, _, _, _, infos = next_step.step(action)
        assert same(given, observation)


def test_without_autoreset_a_game_stays_over_until_it_is_reset():
    envs, rng = gymnasium.make_vec(IDS["2048"], num_envs=3, autoreset_mode="Disabled"), np.random.default_rng(5)
    _, infos = envs.reset(seed=7)
    while infos["action_mask"].any():
        observations, _, terminated, _, infos = envs.step(legal_actions(infos["action_mask"], rng))
    assert terminated.all()
    again, infos = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(again[[0, 2]], observations[[0, 2]])
    assert (again[1] > 0).sum() == 2
    with pytest.raises(games.InputError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.zeros(3, bool)})


@pytest.mark.parametrize("name", IDS)
def test_without_autoreset_a_truncated_game_stays_as_it_is(name):
    envs = gymnasium.make_vec(IDS[name], num_envs=2, max_episode_steps=3, autoreset_mode="Disabled")
    _, infos = envs.reset(seed=1)
    for _ in range(3):
        _, _, _, truncated, infos = envs.step(infos["action_mask"].argmax(axis=1))
    assert truncated.all()
    before = [envs.unwrapped.state(i) for i in range(2)]
    _, rewards, _, truncated, infos = envs.step(infos["action_mask"].argmax(axis=1))
    assert [envs.unwrapped.state(i) for i in range(2)] == before
    assert (rewards.tolist(), truncated.tolist(), infos["illegal"].tolist()) == ([0, 0], [True, True], [True, True])


def test_a_seed_is_for_those_that_are_reset():
    envs = [gymnasium.make_vec(IDS["2048"], num_envs=3, autoreset_mode="Disabled") for _ in range(2)]
    for one in envs:
        one.reset(seed=1)
    envs[0].reset(seed=9, options={"reset_mask": np.array([False, True, False])})
    for _ in range(10):
        for one in envs:
            one.step(np.array([_ % 4] * 3))
    boards = [[one.unwrapped.state(i).board for i in range(3)] for one in envs]
    assert [mine == other for mine, other in zip(*boards)] == [True, False, True]


def test_max_episode_steps_truncates():
    envs = gymnasium.make_vec(IDS["2048"], num_envs=2, max_episode_steps=3)
    envs.reset(seed=1)
    cut = [envs.step(np.array([0, 1]))[3].tolist() for _ in range(5)]
    assert cut == [[False] * 2, [False] * 2, [True] * 2, [False] * 2, [False] * 2]


@every_game
def test_a_game_that_begins_anew_has_all_its_steps_before_it(name):
    """A reset in mid-game, of one environment: it is truncated so many steps after that, the other one on time."""
    envs = gymnasium.make_vec(IDS[name], num_envs=2, max_episode_steps=4, autoreset_mode="Disabled")
    _, infos = envs.reset(seed=1)
    cut, rng = [], np.random.default_rng(1)
    for step in range(6):
        if step == 2:
            _, infos = envs.reset(options={"reset_mask": np.array([False, True])})
            assert envs.unwrapped.state(1).moves == 0
        _, _, terminated, truncated, infos = envs.step(legal_actions(infos["action_mask"], rng))
        assert not terminated.any()
        cut.append(truncated.tolist())
    assert cut == [[False, False]] * 3 + [[True, False]] * 2 + [[True, True]]


@pytest.mark.parametrize("wrong", [{"num_envs": 0}, {"max_episode_steps": 0}])
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(games.InputError, match="at least 1"):
        tilesage.environments.BoardVectorEnv(**wrong)


def test_a_reset_without_a_seed_goes_on_with_the_generator():
    env = gymnasium.make(IDS["2048"]).unwrapped
    boards = [env.reset(seed=1)[0], env.reset()[0], env.reset(seed=1)[0], env.reset()[0]]
    assert np.array_equal(boards[0], boards[2])
    assert np.array_equal(boards[1], boards[3])
    assert not np.array_equal(boards[0], boards[1])


@every_game
def test_a_position_meets_the_chance_of_the_seed(name):
    env = gymnasium.make(IDS[name]).unwrapped
    position = stuck_to_the_top(env.game)

    def play(seed=None, named=""):
        _, info = env.reset(seed=seed, options={"position": position + named})
        return [env.step(int(np.argmax(info["action_mask"])))[0], *(env.step(k % 4)[0] for k in range(12))]

    def alike(one, other):
        return all(map(same, one, other))

    five, after_five = play(seed=5), [play(), env.reset()[0]]
    six, after_six = play(seed=6), [play(), env.reset()[0]]
    assert not alike(five, six)
    assert not alike(five, after_five[0])
    assert not alike(after_five[0], after_six[0])
    assert not same(after_five[1], after_six[1])
    assert alike(five, play(seed=5))
    assert alike(after_five[0], play())
    assert alike(play(seed=5, named=" seed=7"), play(seed=6, named=" seed=7"))


def test_a_position_that_names_its_seed_is_the_game_of_that_seed():
    env, text = gymnasium.make(IDS["2048"]).unwrapped, "2 2 4 8 / 0 0 0 0 / 0 0 0 0 / 0 0 0 0 seed=7"
    state = games.get("2048").parse(text)
    env.reset(seed=1, options={"position": text})
    for _ in range(20):
        action = state.legal[0]
        state = state.play(action)
        assert env.step(action)[0].ravel().tolist() == state.indices


def test_without_copies_the_same_arrays_are_filled_again():
    envs = gymnasium.make_vec(IDS["2048"], num_envs=2, copy=False)
    first, _ = envs.reset(seed=1)
    second, *_ = envs.step(np.array([0, 1]))
    assert first is second


@every_game
def test_a_copy_plays_on_by_itself(name):
    env = gymnasium.make(IDS[name])
    env.reset(seed=1)
    env.step(2)
    before = env.unwrapped.state
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin.unwrapped.state == before
        assert same(twin.step(1)[0], copy.deepcopy(env).step(1)[0])
    assert env.unwrapped.state == before


def test_other_processes_can_hold_environments():
    spawn = {"context": "spawn"}
    envs = gymnasium.make_vec(IDS["2048"], num_envs=2, vectorization_mode="async", vector_kwargs=spawn)
    observations, _ = envs.reset(seed=1)
    single, _ = gymnasium.make(IDS["2048"]).reset(seed=2)
    assert np.array_equal(observations[1], single)
    envs.close()


# --- pictures -----------------------------------------------------------------------------------------------------


@every_game
def test_rendering(name):
    text = gymnasium.make(IDS[name], render_mode="ansi")
    text.reset(seed=1)
    assert "\x1b[" in text.render()
    image = gymnasium.make(IDS[name], render_mode="rgb_array")
    image.reset(seed=1)
    pixels = image.render()
    assert pixels.dtype == np.uint8
    assert pixels.shape == (552, 480, 3)
    many = gymnasium.make_vec(IDS[name], num_envs=2, render_mode="rgb_array")
    many.reset(seed=1)
    assert np.array_equal(many.render()[0], pixels)


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(games.InputError, match="ansi, rgb_array"):
        tilesage.environments.Game2048Env(render_mode="human")


# --- legal moves without slides -----------------------------------------------------------------------------------


@every_game
@given(data=st.data())
def test_the_table_of_moving_rows_knows_the_legal_moves(name, data):
    game = games.get(name)
    cells = data.draw(st.lists(st.integers(0, len(game.tiles) - 1), min_size=16, max_size=16))
    board, aux = game.read(cells, {"hint": "1"} if game.hint else {})
    state = games.State(game, board, aux)
    expected = sum(1 << action for action in state.legal)
    assert legal.legal_moves(game, board, aux) == expected


def test_a_full_board_without_pairs_has_no_legal_move():
    game = games.get("2048")
    board = pack([1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 1])
    assert legal.legal_moves(game, board, np.uint64(0)) == 0


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_examples_of_the_page_run():
    page = (Path(__file__).resolve().parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert names["infos"]["action_mask"].shape == (4096, 4)
    assert names["terminated"].shape == (4096,)


# --- the choice of a cell -----------------------------------------------------------------------------------------


@given(chosen=st.sets(st.integers(0, 15), min_size=1))
def test_the_nth_cell_is_found_without_a_branch(chosen):
    cells = np.uint64(sum(1 << 4 * cell for cell in chosen))
    for n, cell in enumerate(sorted(chosen)):
        assert int(nth_cell(cells, np.uint64(n))) == 1 << 4 * cell
        assert int(nth(cells, np.uint64(n))) == 1 << 4 * cell


def test_what_masked_learners_ask_for_and_what_is_no_action():
    env = gymnasium.make("tilesage/2048-v0").unwrapped
    _, info = env.reset(seed=1, options={"position": "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"})
    masks = env.action_masks()
    assert masks.dtype == np.bool_
    assert masks.tolist() == info["action_mask"].astype(bool).tolist() == [False, False, True, True]
    for action in (1.0, 1.5, "1", None, [1, 2]):
        with pytest.raises(games.InputError, match="an action is 0, 1, 2 or 3"):
            env.step(action)
    env.step(np.int64(2))
    with pytest.raises(games.InputError, match="a position is a text"):
        env.reset(options={"position": 5})
    many = gymnasium.make_vec("tilesage/2048-v0", num_envs=2, vectorization_mode="vector_entry_point")
    with pytest.raises(games.InputError, match="no option 'pos'"):
        env.reset(options={"pos": "2 4"})
    with pytest.raises(games.InputError, match="my_module:my_game"):
        gymnasium.make("tilesage/Game-v0")
    with pytest.raises(games.InputError, match="a position is for a single environment"):
        many.reset(options={"position": "2 4 8 16 / 0 2 4 8 / 0 0 2 4 / 0 0 0 2"})
    many.reset(seed=1)
    with pytest.raises(games.InputError, match="actions are whole numbers"):
        many.step(np.array([1.0, 2.0]))
