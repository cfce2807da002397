"""What the server was told when it started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    threads: int = 2
    think_seconds: float = 2.0  # the longest a visitor may let the engine think about a move
    trainings: int = 1  # at once, started from the page; 0 allows none
