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

import torch

from skipstone.errors import InvalidInput
from skipstone.files import make_folder, replacing, user_cache, write_text

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
    except BuildFailed as error:
        _say(logging.WARNING, _slower(error, "install a C++ compiler, g++ or clang++"))
    except (InvalidInput, OSError) as error:  # Nowhere to keep it, or not to be run from there.
        folder = "a folder that can be written to and run from"
        _say(logging.WARNING, _slower(error, f"set XDG_CACHE_HOME to {folder}"))
    return None


def _slower(error: Exception, remedy: str) -> str:
    return (
        "PC-ODEs run on the readable path, which is slower, because of this: "
        f"{str(error).rstrip('.')}. For the fast path {remedy}, and run `python -m "
        f"skipstone.models.fast`. {SWITCH}=0 turns this message off."
    )


@functools.cache
def _say(level: int, message: str) -> None:
    """Once."""
    _LOG.log(level, message)


def _built(precision: str) -> pathlib.Path:
    """The file of the library; built unless it is there, as it was built."""
    compiler = _compiler()
    path = cache_folder() / f"{precision}-{_key(compiler)}.so"
    if _is_whole(path):
        return path
    with _lock(path.with_suffix(".lock")):
        if not _is_whole(path):  # Another process may have built it in the meantime.
            compile_library(precision, path)
            write_text(_checksum_of(path), _sha256(path))
    return path


def _is_whole(path: pathlib.Path) -> bool:
    """Whether a library has the bytes that were built: a damaged one can crash, or compute
    something else."""
    checksum = _checksum_of(path)
    return path.is_file() and checksum.is_file() and checksum.read_bytes() == _sha256(path).encode()


def _checksum_of(path: pathlib.Path) -> pathlib.Path:
    return path.with_suffix(".sha256")


def _sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cache_folder() -> pathlib.Path:
    """Where libraries are kept; safe to delete."""
    return user_cache() / "native"


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
