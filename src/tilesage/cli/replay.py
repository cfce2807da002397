"""`tilesage replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from tilesage import games
from tilesage.cli.flags import Delay, Limits, MaybePath, MaybeText, MaybeWhole, say
from tilesage.cli.players import find_agent
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.records.replay import Moment


@dataclass
class Command:
    """Look at a recorded game again, or make a picture or a film of it.

    keys: space plays, arrows step, page up and down 20 moves, home, end, + and - change the speed, q leaves;
    e lets the agent judge the moves, n and p go to the next mistake and the one before

    examples:
      tilesage replay records.txt 3
      tilesage replay records.txt best --gif best.gif --every 5
      tilesage replay records.txt --mp4 film.mp4 --fps 12 --theme dark
      tilesage replay records.txt --move 100 --png board.png --svg board.svg
    """

    # A file of game records.
    records: Annotated[Path, Positional, arg(metavar="RECORDS")]
    # Which game: its number in the file, from 1, or best for the one with the highest score.
    which: Annotated[str | None, Positional, arg(metavar="[NUMBER]", help_behavior_hint="")] = None
    # The same as a flag.
    number: str = "1"
    # Whose rules to apply, such as my_module:my_game; by default what the records say.
    game: MaybeText = None
    # Write a GIF to this file.
    gif: MaybePath = None
    # Write a film to this file, where the program ffmpeg is there.
    mp4: MaybePath = None
    # Write a picture of one position to this file.
    png: MaybePath = None
    # Write a drawing of one position to this file.
    svg: MaybePath = None
    # The move after which --png and --svg show the board; the last one by default.
    move: MaybeWhole = None
    # Moves from one frame to the next; by default as many as make a film of up to 300 frames.
    every: MaybeWhole = None
    # Frames a second.
    fps: Annotated[float, Limits(0.1, 50)] = 8.0
    # The size of the pictures: 1 is 480 × 552 points.
    scale: Annotated[float, Limits(0.1, 4)] = 1.0
    # The colours.
    theme: Literal["light", "dark"] = "light"
    # On the screen: play at once, with this many seconds between moves.
    delay: Delay = None
    # On the screen: who judges the moves.
    agent: str = "best"
    # The model that the agent reads: a file, a run folder, or the name of a built-in one.
    model: MaybeText = None


def run(command: Command) -> int:
    """Show the game, or write its pictures."""
    from tilesage.app.film import save_gif, save_mp4
    from tilesage.app.live import Adviser, show_replay
    from tilesage.drawing.pictures import save
    from tilesage.records.record import find_record
    from tilesage.records.replay import moments_of

    for kind in ("gif", "mp4", "png", "svg"):
        path: Path | None = getattr(command, kind)
        if path and path.suffix.lower() != f".{kind}":
            raise InputError(f"--{kind} {path}: name a file that ends in .{kind}")
    numbered = command.game == "best" or (command.game or "").isdecimal()  # a number where a game is meant
    rules = games.get(command.game).name if command.game and not numbered else "auto"
    wanted = command.which or (command.game if command.game and numbered else command.number)
    record, number = find_record(command.records, wanted, rules)
    moments = moments_of(record)
    if not (command.gif or command.mp4 or command.png or command.svg):

        def adviser() -> Adviser:
            return Adviser(find_agent(command.agent, command.model, record.game))

        show_replay(moments, command.delay, "dark", f"{record.slider} · game {number:,}", adviser)
        return 0
    for film, write in ((command.gif, save_gif), (command.mp4, save_mp4)):
        if film:
            frames = write(film, moments, command.every, command.fps, command.theme, command.scale)
            say(f"{film}: game {number:,}, {frames:,} frames, {film.stat().st_size / 1000:,.0f} kB")
    for picture in filter(None, (command.png, command.svg)):
        state = pick(moments, command.move).state
        save(state, picture, command.theme, 2 * command.scale)
        say(f"{picture}: game {number:,}, move {state.moves:,}")
    return 0


def pick(moments: list[Moment], move: int | None) -> Moment:
    """The position after this move, the last one by default."""
    if move is None:
        return moments[-1]
    if not 0 <= move < len(moments):
        raise InputError(f"there is no move {move}: the game has {len(moments) - 1}")
    return moments[move]
