"""What the server was told when it started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tilesage.core.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """Where to listen, what to show, how much to allow."""

    host: str = "127.0.0.1"
    port: int = 2048
    agents: tuple[str, ...] = ()  # players from outside the package (module:name), whom visitors may name
    models: tuple[Path, ...] = ()  # folders whose model files may be used
    runs: Path = Path("runs")
    hosts: tuple[str, ...] = ()  # further names by which the page may be opened
    visitors: int = 256
    threads: int = 3  # that think; of one address all but one
    think_seconds: float = 2.0  # the longest a visitor may let the engine think about a move
    trainings: int | None = None  # at once, started from the page; by default 1, and 0 when others can open it

    @property
    def is_private(self) -> bool:
        """Can only people on this machine open the page?"""
        return self.host in LOOPBACK and not self.hosts

    @property
    def most_trainings(self) -> int:
        """How many may run at once; 0: nobody starts, stops or deletes one from the page."""
        return (1 if self.is_private else 0) if self.trainings is None else self.trainings

    def check(self) -> None:
        """Refuse, before anything is promised, folders that cannot be what they should."""
        for folder in self.models:
            if not folder.is_dir():
                raise InputError(f"{folder} is no folder of models")
        if self.runs.exists() and not self.runs.is_dir():
            raise InputError(f"--runs {self.runs} is no folder: name the folder of your trainings")
        place = next(path for path in (self.runs, *self.runs.absolute().parents) if path.exists())
        if self.most_trainings and not os.access(place, os.W_OK | os.X_OK):
            raise InputError(
                f"no training can be written to {self.runs}: take another --runs, or only look, with --trainings 0"
            )
        if self.runs.exists() and not os.access(self.runs, os.R_OK | os.X_OK):
            raise InputError(f"{self.runs} cannot be read: take another --runs")
