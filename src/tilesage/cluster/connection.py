"""Ray clusters: starting a small one on this machine, or joining one that is there, with errors people can act on.

Ray itself is imported only here and only when asked for: it is an extra (`pip install '.[scale]'`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tilesage import __version__
from tilesage.core.errors import InputError
from tilesage.core.interrupts import postponed
from tilesage.core.processors import processors

PATIENCE = 30.0  # seconds that a cluster has to answer
KNOCK = 5.0  # seconds for its port to open
SMALLEST_STORE = 80 << 20  # bytes: Ray refuses less than 75 MB
PROBE = """
import logging, sys
logging.disable(logging.CRITICAL)
import ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
except BaseException as error:
    print(type(error).__name__, " ".join(str(error).split()), sep="\\t", flush=True)
    sys.exit(1)
"""


def need_ray() -> Any:
    """The module `ray`, with its own talk turned down."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.exceptions")
    except ImportError:
        raise InputError("--on ray needs Ray, which is not installed here: pip install '.[scale]'") from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


@contextlib.contextmanager
def cluster(address: str | None = None, workers: int | None = None, room: int = 0) -> Iterator[Any]:
    """The module `ray`, connected; the connection ends with the block.

    Without an address a cluster of `workers` processes starts on this machine, its object store large enough for
    `room` bytes. Inside a program that is connected already, that connection is used and left alone.
    """
    ray = need_ray()
    if ray.is_initialized():
        yield ray
        return
    if address is None:
        _start(ray, workers or processors(), room)
    else:
        join(ray, address)
    try:
        with contextlib.redirect_stdout(OutputOfOneThread(sys.stdout)):
            yield ray
    finally:
        ray.shutdown()


class OutputOfOneThread:
    """Standard output for the thread that made this; what threads of Ray print goes to standard error."""

    def __init__(self, output: Any) -> None:
        self.output, self.owner = output, threading.current_thread()

    def write(self, text: str) -> int:
        """To standard output from the one thread, to standard error from others."""
        return int((self.output if threading.current_thread() is self.owner else sys.stderr).write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.output, name)


def _start(ray: Any, workers: int, room: int) -> None:
    try:
        with postponed():  # Ctrl-C while Ray starts ends in a segmentation fault of Ray's
            ray.init(
                address="local",
                num_cpus=workers,
                include_dashboard=False,
                object_store_memory=SMALLEST_STORE + room * 5 // 4,
                log_to_driver=False,
                configure_logging=False,
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"Ray does not start on this machine: {_gist(error)}") from None


def join(ray: Any, address: str) -> None:
    """Connect to a running cluster. A process of its own tries first: Ray may wait for minutes, deaf to signals."""
    if address != "auto":
        _knock(address)
    try:
        probe = subprocess.run(
            [sys.executable, "-c", PROBE, address], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(_nobody(address, f"no answer within {PATIENCE:.0f} s")) from None
    if probe.returncode:
        line = next((line for line in probe.stdout.splitlines() if "\t" in line), "Error\tno reason given")
        raise InputError(_refusal(address, *line.split("\t", 1)))
    with postponed():
        ray.init(address=address, log_to_driver=False, configure_logging=False)


def _knock(address: str) -> None:
    """Is there anybody at this host and port?"""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"a Ray address is HOST:PORT, ray://HOST:PORT or auto, not {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK).close()
    except OSError as error:
        raise InputError(_nobody(address, _gist(error))) from None


def _nobody(address: str, reason: str) -> str:
    return (
        f"no Ray cluster answers at {address} ({reason}): start one there with `ray start --head`, "
        "or leave out --ray-address to use this machine"
    )


def _refusal(address: str, kind: str, text: str) -> str:
    """Why a cluster did not let us in, in one line."""
    if text.startswith("Version mismatch"):
        return f"the cluster at {address} runs other versions: {text.split(': ', 1)[1]}; install the same everywhere"
    if kind == "AuthenticationError":
        return f"the cluster at {address} wants its token: copy ~/.ray/auth_token of its head node to this machine"
    if "raylet" in text or "node_ip" in text:
        return (
            f"this machine is not a node of the cluster at {address}: run `ray start --address {address}` here, "
            "or connect from outside with --ray-address ray://HOST:10001"
        )
    return _nobody(address, text[:200] or kind)


def _gist(error: BaseException) -> str:
    return " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())[:200]


@cache
def build() -> str:
    """Names the code that runs here: games are the same on two machines only if this is."""
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    return f"{__version__}+{hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()[:8]}"


def check_build(wanted: str) -> None:
    """Called on a node: does it run the same code as the machine that gives the orders?"""
    if build() != wanted:
        raise InputError(
            f"node {socket.gethostname()} runs tilesage {build()}, this machine {wanted}: "
            "install the same version on every node"
        )


def cpus(ray: Any) -> int:
    """Processors of all living nodes."""
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


def explain(error: BaseException) -> BaseException:
    """What went wrong on a node, as an error for the user where the user can put it right."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, InputError):
        return InputError(str(cause))
    name, text = type(cause or error).__name__, _gist(cause or error)
    if "No module named 'tilesage" in str(error):
        return InputError("a node of the cluster has no tilesage: pip install '.[scale]' on every node")
    if name in ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ActorDiedError", "ObjectLostError"):
        return InputError(f"workers keep dying on the cluster ({name}): {text}")
    return error
