"""The compiled library of the fast path: built once per machine, on first use.

`python -m skipstone.models.fast` builds it ahead of time. Without a compiler, or with
`SKIPSTONE_FAST=0`, there is none, and the readable path runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import pathlib
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator

import platformdirs
import torch

from skipstone.files import make_folder, replacing

SWITCH = "SKIPSTONE_FAST"
"""Environment variable that turns the fast path off with 0."""

PRECISIONS = {torch.float32: "float", torch.float64: "double"}
"""What the library can be built for: a dtype and its name in C++."""

FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")
NATIVE = ("-march=native", "-mcpu=native")
"""Flags for the instructions of this processor; not every compiler knows the first."""

_HERE = pathlib.Path(__file__).parent
_LOG = logging.getLogger("skipstone")


class BuildFailed(Exception):
    """Why there is no library."""


@functools.cache
def library(dtype: torch.dtype) -> ctypes.CDLL | None:
    """The library for a precision, built if need be; None, and a message, if it cannot be."""
    if os.environ.get(SWITCH) == "0":
        _say(logging.INFO, f"The readable path runs, since {SWITCH} is 0.")
        return None
    try:
        return ctypes.CDLL(str(_built(PRECISIONS[dtype])))
    except (BuildFailed, OSError) as error:
        _say(
            logging.WARNING,
            f"PC-ODEs run on the readable path, which is slower, because {error}. For the fast "
            "path install a C++ compiler, g++ or clang++, and run "
            f"`python -m skipstone.models.fast`. {SWITCH}=0 turns this message off.",
        )
        return None


@functools.cache
def _say(level: int, message: str) -> None:
    """Once."""
    _LOG.log(level, message)


def _built(precision: str) -> pathlib.Path:
    """The file of the library; built unless it is there."""
    compiler = _compiler()
    path = cache_folder() / f"{precision}-{_key(compiler)}.so"
    if path.exists():
        return path
    with _lock(path.with_suffix(".lock")):
        if not path.exists():  # Another process may have built it in the meantime.
            compile_library(precision, path)
    return path


def cache_folder() -> pathlib.Path:
    """Where libraries are kept; safe to delete."""
    return platformdirs.user_cache_path("skipstone") / "native"


def _compiler() -> str:
    names = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        raise BuildFailed("no C++ compiler was found")
    return found


def _key(compiler: str) -> str:
    """Whatever decides what is built: sources, compiler, flags and processor."""
    found = hashlib.sha256()
    for source in sorted([*_HERE.glob("*.h"), *_HERE.glob("*.cpp")]):
        found.update(source.read_bytes())
    for fact in (os.path.realpath(compiler), FLAGS, NATIVE, platform.machine(), _processor()):
        found.update(repr(fact).encode())
    return found.hexdigest()[:16]


def _processor() -> str:
    """The instructions that it has: a cache can be shared by unlike machines."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")


@contextlib.contextmanager
def _lock(path: pathlib.Path) -> Iterator[None]:
    """One process builds, others wait; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # Where there is none, both build, and the last one's file stays.
        yield
        return
    make_folder(path.parent)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_library(precision: str, path: pathlib.Path) -> None:
    """Build the library into a file, which is complete once it is there."""
    compiler = _compiler()
    _LOG.info("Building the fast path of the PC-ODE, once: %s", path)
    began = time.perf_counter()
    source = str(_HERE / "native.cpp")
    with replacing(path) as beside:
        complaints = ""
        for native in NATIVE:
            command = [compiler, *FLAGS, native, f"-DREAL={precision}", source, "-o", str(beside)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
            complaints = complaints or done.stderr.strip()
        else:
            reason = (complaints.splitlines() or ["no reason given"])[0]
            raise BuildFailed(f"{compiler} could not build it ({reason})")
    _LOG.info("Built in %.0f seconds.", time.perf_counter() - began)
