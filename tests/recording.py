"""Games played by the references and written down as records, and records checked by the references.

`play_game` lets a test tamper with chance; `is_in_order` is the slow second opinion on what the referee says.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

import reference
from reference import State

from tilesage.records.notation import TOLD_BY_FORM, notation_of
from tilesage.records.record import Action, Place, Record, Slide

CLOCK = 1667102958189

Choices = list[tuple]  # each begins with its probability
Chooser = Callable[[str, Choices, Random], tuple]


def fair(kind: str, choices: Choices, random: Random) -> tuple:
    """One of the choices, by their probabilities; `kind` is "place" or "draw"."""
    return random.choices(choices, [float(choice[0]) for choice in choices])[0]


def play_game(
    game: str, seed: int, choose: Chooser = fair, slider: Callable[[State, list[int], Random], int] | None = None
) -> Record:
    """One game with random moves (or those of `slider`), as a record."""
    rules, random = reference.get(game), Random(seed)
    actions: list[Action] = []
    state = _start(game, random, choose, actions)
    while legal := rules.legal(state):
        action = slider(state, legal, random) if slider else random.choice(legal)
        after, reward, _ = rules.slide(state.cells, action)
        actions.append(Slide(action, reward))
        _, cell, tile = choose("place", rules.placements(state, action), random)
        state = _land(game, State(after, state.hint, state.bag), cell, tile, random, choose, actions)
    placer = "place" if game in TOLD_BY_FORM else notation_of(game).placer
    return Record(game, actions, "unknown", placer, CLOCK + seed, CLOCK + seed + len(actions))


def _land(
    game: str, state: State, cell: int, tile: int, random: Random, choose: Chooser, actions: list[Action]
) -> State:
    rules = reference.get(game)
    cells = (*state.cells[:cell], tile, *state.cells[cell + 1 :])
    _, hint, bag = choose("draw", rules.draws(cells, state.bag), random)
    actions.append(Place(cell, tile, hint, rules.value((tile,)) if rules.NEW_TILES_COUNT else 0))
    return State(cells, hint, bag)


def _start(game: str, random: Random, choose: Chooser, actions: list[Action]) -> State:
    rules = reference.get(game)
    state = State((0,) * 16)
    if rules.COPIES:
        _, hint, bag = choose("draw", rules.draws(state.cells, (rules.COPIES,) * 3), random)
        state = State(state.cells, hint, bag)
    for _ in range(rules.STARTING_TILES):
        state = _land(game, state, *_anywhere(game, state, random, choose), random, choose, actions)
    return state


def _anywhere(game: str, state: State, random: Random, choose: Chooser) -> tuple[int, int]:
    empty = [cell for cell in range(16) if not state.cells[cell]]
    tiles = [(Fraction(9, 10), 1), (Fraction(1, 10), 2)] if not state.hint else [(Fraction(1), state.hint[0])]
    _, cell, tile = choose("place", [(p / len(empty), cell, e) for cell in empty for p, e in tiles], random)
    return cell, tile


def is_in_order(record: Record) -> bool:
    """Does a record obey the rules, by the references?"""
    rules = reference.get(record.game)
    start = rules.STARTING_TILES
    actions = record.actions
    if len(actions) < start or (len(actions) - start) % 2 or record.end_ms < record.start_ms:
        return False
    states = [State((0,) * 16)]
    if rules.COPIES and isinstance(actions[0], Place):
        states = [State((0,) * 16, hint, bag) for _, hint, bag in rules.draws((0,) * 16, (rules.COPIES,) * 3)]
    for i, action in enumerate(actions):
        slide = i >= start and (i - start) % 2 == 0
        if slide != isinstance(action, Slide):
            return False
        if isinstance(action, Slide):
            continue
        before = actions[i - 1] if i >= start else None
        states = [s for state in states for s in _follow(record.game, state, before, action)]
    return bool(states) and all(rules.over(state) for state in states)


def _follow(game: str, state: State, slide: Action | None, place: Place) -> list[State]:
    """The one state that a slide (if any) and a placement lead to, or none when something is against the rules."""
    rules = reference.get(game)
    if isinstance(slide, Slide):
        after, reward, _ = rules.slide(state.cells, slide.action)
        if slide.action not in rules.legal(state) or reward != slide.reward:
            return []
        possible = [(cell, tile) for _, cell, tile in rules.placements(state, slide.action)]
    else:
        after = state.cells
        tiles = state.hint or (1, 2)
        possible = [(cell, tile) for cell in range(16) if not after[cell] for tile in tiles]
    if (place.cell, place.tile) not in possible:
        return []
    if place.reward != (rules.value((place.tile,)) if rules.NEW_TILES_COUNT else 0):
        return []
    cells = (*after[: place.cell], place.tile, *after[place.cell + 1 :])
    return [State(cells, hint, bag) for _, hint, bag in rules.draws(cells, state.bag) if hint == place.hint]
