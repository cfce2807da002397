"""A recorded game as a film: GIF or MP4 of its positions."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilesage.core.errors import InputError
from tilesage.drawing.pictures import picture
from tilesage.records.replay import Moment

if TYPE_CHECKING:
    from PIL.Image import Image

SHORT, LONGEST = 300, 3000  # frames of a film: unless told otherwise, and at most
LAST = 2.5  # seconds for which the end is shown


def chosen(moments: Sequence[Moment], every: int | None) -> list[int]:
    """Which moments are shown: every `every`-th and the last one; by default as many as make a short film."""
    if every is not None and every < 1:
        raise InputError(f"--every counts moves from one frame to the next, at least 1, not {every}")
    step, last = every or max(1, -(-len(moments) // SHORT)), len(moments) - 1
    found = [*range(0, last, step), last]
    if len(found) > LONGEST:
        raise InputError(f"{len(found):,} frames are too many: --every {-(-len(moments) // LONGEST)} or more")
    return found


def frame(moments: Sequence[Moment], at: int, theme: str = "light", scale: float = 1.0, ring: bool = True) -> Image:
    """One moment as a picture, with a ring about the new tile; at the end of the game it says so."""
    state, new = moments[at].state, moments[at].new if ring else None
    over = at == len(moments) - 1 and state.over
    return picture(state, theme, scale, new=new, veil="game over" if over else "")


def save_gif(
    path: str | Path,
    moments: Sequence[Moment],
    every: int | None,
    fps: float,
    theme: str = "light",
    scale: float = 1.0,
) -> int:
    """Write an endless GIF with one palette for all frames; returns how many there are."""
    from PIL import Image as Images

    shown = chosen(moments, every)
    ring = shown == list(range(len(moments)))  # where moves are left out, it would only flicker
    few = [frame(moments, shown[round(k * (len(shown) - 1) / 11)], theme, scale, ring) for k in range(12)]
    width, height = few[0].size
    sheet = Images.new("RGB", (width * 4, height * 3))
    for k, image in enumerate(few):
        sheet.paste(image, (k % 4 * width, k // 4 * height))
    colours = sheet.quantize(255, method=Images.Quantize.MEDIANCUT, dither=Images.Dither.NONE)
    flat = (
        frame(moments, at, theme, scale, ring).quantize(palette=colours, dither=Images.Dither.NONE) for at in shown
    )
    times = [round(1000 / fps)] * (len(shown) - 1) + [round(1000 * LAST)]
    next(flat).save(path, "GIF", save_all=True, append_images=flat, duration=times, loop=0, optimize=True)
    return len(shown)


def save_mp4(
    path: str | Path,
    moments: Sequence[Moment],
    every: int | None,
    fps: float,
    theme: str = "light",
    scale: float = 1.0,
) -> int:
    """Write a film with ffmpeg; returns how many frames it has."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise InputError("MP4 needs the program ffmpeg, which is not here: install it, or write a GIF with --gif")
    shown = chosen(moments, every)
    ring = shown == list(range(len(moments)))
    shown += shown[-1:] * round(LAST * fps)
    width, height = frame(moments, 0, theme, scale).size
    read = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    shape = ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-pix_fmt", "yuv420p"]
    write = ["-c:v", "libx264", *shape, "-crf", "18", "-movflags", "+faststart", "-f", "mp4", str(path)]
    command = [program, "-y", "-v", "error", *read, *write]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as encoder:
        assert encoder.stdin is not None
        assert encoder.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            for at in shown:
                encoder.stdin.write(frame(moments, at, theme, scale, ring).tobytes())
            encoder.stdin.close()
        complaint = encoder.stderr.read().decode(errors="replace").strip()
    if encoder.returncode:
        raise InputError(f"ffmpeg could not write {path}: {complaint[-200:]}")
    return len(shown)
