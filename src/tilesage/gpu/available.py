"""Is there a GPU to learn on, and if not, what is missing?"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from tilesage.core.errors import InputError

INSTALL = "install tilesage[gpu] (numba-cuda, and numpy older than 2.5)"


def require_gpu() -> None:
    """Raise an `InputError` that names what `--device cuda` lacks on this machine."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise InputError(f"--device cuda needs numba-cuda, which is not installed: {INSTALL}, or use --device cpu")
    try:
        usable = bool(_cuda().is_available())
        reason = "" if usable else _why_not()
    except ImportError as error:
        raise InputError(f"--device cuda cannot start numba-cuda ({_first_line(error)}): {INSTALL}") from None
    if not usable:
        raise InputError(
            f"--device cuda needs an NVIDIA GPU and its driver ({reason}): "
            "check that nvidia-smi lists one, or use --device cpu"
        )


def _cuda() -> Any:
    return importlib.import_module("numba.cuda")


def _why_not() -> str:
    try:
        _cuda().get_current_device()
    except Exception as error:  # whatever numba-cuda raises here, it is about the driver or the device
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" :")]
        return lines[-1].rstrip(".:") if lines else type(error).__name__
    return "none is visible"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def gpu_name() -> str:
    name = _cuda().get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)
