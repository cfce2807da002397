"""afterstate: a laboratory for 2048-like games."""

__version__ = "0.1.0"
