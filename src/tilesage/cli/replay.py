"""`tilesage replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from tilesage import games
from tilesage.cli.flags import MaybeNumber, MaybePath, MaybeText, MaybeWhole, say
from tilesage.core.errors import InputError

if TYPE_CHECKING:
    from tilesage.records.replay import Moment


@dataclass
class Command:
    """Look at a recorded game again, or make a picture or a film of it.

    keys: space plays, arrows step, page up and down 20 moves, home, end, + and - change the speed, q leaves

    examples:
      tilesage replay records.txt 3
      tilesage replay records.txt best --gif best.gif --every 5
      tilesage replay records.txt --mp4 film.mp4 --fps 12 --theme dark
      tilesage replay records.txt --move 100 --png board.png --svg board.svg
    """

    # A file of game records.
    records: Annotated[Path, tyro.conf.Positional]
    # Which game: its number in the file, from 1, or best for the one with the highest score.
    which: Annotated[str | None, tyro.conf.Positional] = None
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
    fps: float = 8.0
    # The size of the pictures: 1 is 480 × 552 points.
    scale: float = 1.0
    # The colours.
    theme: Literal["light", "dark"] = "light"
    # On the screen: play at once, with this many seconds between moves.
    delay: MaybeNumber = None


def run(command: Command) -> int:
    """Show the game, or write its pictures."""
    from tilesage.app.film import save_gif, save_mp4
    from tilesage.app.live import show_replay
    from tilesage.drawing.pictures import save
    from tilesage.records.record import find_record
    from tilesage.records.replay import moments_of

    check(command)
    numbered = command.game == "best" or (command.game or "").isdecimal()  # a number where a game is meant
    rules = games.get(command.game).name if command.game and not numbered else "auto"
    wanted = command.which or (command.game if command.game and numbered else command.number)
    record, number = find_record(command.records, wanted, rules)
    moments = moments_of(record)
    if not (command.gif or command.mp4 or command.png or command.svg):
        show_replay(moments, command.delay, "dark", f"{record.slider} · game {number:,}")
        return 0
    for path, write in ((command.gif, save_gif), (command.mp4, save_mp4)):
        if path:
            frames = write(path, moments, command.every, command.fps, command.theme, command.scale)
            say(f"{path}: game {number:,}, {frames:,} frames, {path.stat().st_size / 1000:,.0f} kB")
    for path, kind in ((command.png, ".png"), (command.svg, ".svg")):
        if path:
            state = pick(moments, command.move).state
            save(state, path, command.theme, 2 * command.scale, kind)
            say(f"{path}: game {number:,}, move {state.moves:,}")
    return 0


def check(command: Command) -> None:
    """Refuse flags that do not fit."""
    for kind in ("gif", "mp4", "png", "svg"):
        path: Path | None = getattr(command, kind)
        if path and path.suffix.lower() != f".{kind}":
            raise InputError(f"--{kind} {path}: name a file that ends in .{kind}")
    if not 0.1 <= command.scale <= 4:
        raise InputError(f"--scale is a number from 0.1 to 4, not {command.scale:g}")
    if not 0.1 <= command.fps <= 50:
        raise InputError(f"--fps is a number from 0.1 to 50, not {command.fps:g}")
    if command.delay is not None and not 0 <= command.delay <= 3600:
        raise InputError(f"--delay is a number of seconds from 0 to 3600, not {command.delay:g}")


def pick(moments: list[Moment], move: int | None) -> Moment:
    """The position after this move, the last one by default."""
    if move is None:
        return moments[-1]
    if not 0 <= move < len(moments):
        raise InputError(f"there is no move {move}: the game has {len(moments) - 1}")
    return moments[move]
