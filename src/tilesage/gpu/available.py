"""Is there a GPU to learn on, and if not, what is missing?"""

from __future__ import annotations

import importlib.util

from tilesage.core.errors import InputError

INSTALL = "pip install '.[gpu]' brings numba-cuda and the CUDA 13 toolkit, '.[gpu12]' those for older drivers"
ANY = (9, 0)  # a compute capability that every toolkit knows


def require_gpu() -> None:
    """Raise an `InputError` that names what `--device cuda` lacks on this machine."""
    if importlib.util.find_spec("numba_cuda") is None:
        raise InputError(f"--device cuda needs numba-cuda, which is not installed: {INSTALL}; or use --device cpu")
    try:
        from tilesage.gpu.machine import cuda

        usable = bool(cuda.is_available())
    except ImportError as error:
        raise InputError(f"--device cuda cannot start numba-cuda ({_last_line(error)}): {INSTALL}") from None
    if not usable:
        raise InputError(
            f"--device cuda needs an NVIDIA GPU and its driver ({_why_not()}): "
            "check that nvidia-smi lists one, or use --device cpu"
        )
    require_toolkit()


def require_toolkit() -> None:
    """Compile a kernel that does nothing. That takes the CUDA toolkit, which no driver brings."""
    from tilesage.gpu.machine import SIMULATED, cuda

    def nothing() -> None:
        return

    try:
        if not SIMULATED:
            cuda.compile_ptx(nothing, (), cc=ANY)
    except Exception as error:  # numba-cuda, nvrtc and nvvm have errors of their own
        missing = _last_line(error).partition(":")[0]
        raise InputError(f"--device cuda needs the CUDA toolkit ({missing}): {INSTALL}") from None


def _why_not() -> str:
    from tilesage.gpu.machine import cuda

    try:
        cuda.get_current_device()
    except Exception as error:  # whatever numba-cuda raises here, it is about the driver or the device
        return _last_line(error)
    return "none is visible"


def _last_line(error: BaseException) -> str:
    """What an error says last, which is the plainest."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" :")]
    return lines[-1].rstrip(".:") if lines else type(error).__name__


def gpu_name() -> str:
    """What the maker calls it."""
    from tilesage.gpu.machine import cuda

    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)
