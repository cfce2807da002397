"""A recorded game is replayed exactly: the same positions, hints, bags and scores that the engine had."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tilesage import games
from tilesage.app.web.fields import read
from tilesage.app.web.forms import RECORDED
from tilesage.app.web.positions import LETTERS
from tilesage.app.web.replays import LISTED, Replay, from_record, list_records
from tilesage.core.errors import InputError
from tilesage.games import State
from tilesage.records.record import format_record, parse_record, record_of


def random_game(game: str, seed: int) -> list[State]:
    random, states = Random(seed), [games.get(game).new(seed)]
    while not states[-1].over:
        states.append(states[-1].play(random.choice(states[-1].legal)))
    return states


def actions_of(states: list[State]) -> list[int]:
    return [next(a for a in range(4) if s.slides[a] and s.play(a) == t) for s, t in itertools.pairwise(states)]


@pytest.mark.parametrize("game", games.names())
def test_a_record_gives_the_engines_positions_back(game: str) -> None:
    for seed in range(6):
        states = random_game(game, seed)
        actions = actions_of(states)
        replay = from_record(parse_record(format_record(record_of(states[0], actions))))
        assert [(s.board, s.aux, s.score, s.moves) for s in replay.states] == [
            (s.board, s.aux, s.score, s.moves) for s in states
        ]
        assert replay.actions == "".join(LETTERS[action] for action in actions)


@pytest.mark.parametrize("game", games.names())
def test_a_seed_and_actions_give_the_same_replay_as_the_record(game: str) -> None:
    states = random_game(game, 3)
    letters = "".join(LETTERS[action] for action in actions_of(states))
    told = Replay.of(read(RECORDED, {"game": game, "seed": 3, "actions": letters})).told()
    line = format_record(record_of(states[0], actions_of(states)))
    record = Replay.of(read(RECORDED, {"record": line})).told()
    for one, other in zip(told["positions"], record["positions"], strict=True):
        assert one["line"].partition(" rng=")[0] == other["line"].partition(" rng=")[0]
        assert {**one, "line": ""} == {**other, "line": ""}
    assert len(told["positions"]) == len(states)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "no game record"),
        ("a:b@1|0111#U32|b@2", "action 3 of the record: illegal slide"),
        ("a:b@1|0111#L[4]11#R|b@2", "stops where a placement must follow"),
        ("a:b@1|0111#L[4]01|b@2", "illegal placement: no tile of index 1 can land on cell 0"),
        ("a:b@1||b@2", "stops where a placement must follow"),
        ("a:b@1|#L|b@2", "illegal slide"),
        ("a:b@1|0111#L[4]#R11|b@2", "another slide follows"),
        ("a:b@1|0111#L[4]1121|b@2", "a slide is due, but a placement follows"),
        ("a:b@1|0111#L[4]1Z|b@2", "no tile of index 35"),
    ],
)
def test_a_broken_record_is_refused_with_a_reason(line: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Replay.of(read(RECORDED, {"record": line}))


def test_the_list_of_a_file_goes_on_past_what_is_no_record_and_says_what_was_left_out() -> None:
    states = random_game("2048", 1)
    line = format_record(record_of(states[0], actions_of(states), slider="me"))
    told = list_records(f"{line}\nnonsense\n{line}\n\n{line}\n")
    assert (told["wrong"], told["first_wrong"], told["more"]) == (1, "line 2 is no game record", 0)
    assert [(g["line"], g["score"], g["moves"], g["player"]) for g in told["games"]] == [
        (number, states[-1].score, states[-1].moves, "me") for number in (1, 3, 5)
    ]
    many = list_records(f"{line}\n" * (LISTED + 3))
    assert (len(many["games"]), many["more"]) == (LISTED, 3)
    with pytest.raises(InputError, match="line 1 is no game record"):
        list_records("\x00\x01\x02")
