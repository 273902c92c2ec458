"""Does a described model fit its weights? Asked before anything of its size is allocated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn.modules import module as modules

from skipstone.errors import InvalidInput

_Module = TypeVar("_Module", bound=nn.Module)

_EACH, _SPARE = 8, 64
"""Parameters, buffers and modules that may be made for each tensor of a file, and beyond them."""


def build_sized(
    build: Callable[[], _Module], shapes: dict[str, tuple[int, ...]], where: str
) -> _Module:
    """What `build` gives, a model whose tensors have these names and shapes; raise if it has not.

    It is first built where tensors have no memory, and given up when it has far more parts than
    there are tensors: what a file says can cost neither memory nor time. `where` begins an error.
    """
    with _at_most(_EACH * len(shapes) + _SPARE, where):
        _compare(build, shapes, where)
        try:
            return build()
        except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
            raise _impossible(where, error) from None


def _compare(
    build: Callable[[], nn.Module], shapes: dict[str, tuple[int, ...]], where: str
) -> None:
    try:
        with torch.device("meta"):
            found = {name: tuple(each.shape) for name, each in build().state_dict().items()}
    except (RuntimeError, TypeError, OverflowError) as error:
        if "meta" in str(error):
            # A model that computes while it is built needs memory for that. Its weights are
            # compared when they are loaded.
            return
        raise _impossible(where, error) from None
    for name in sorted(found.keys() | shapes.keys()):
        if found.get(name) != shapes.get(name):
            there, here = (_size(each.get(name)) for each in (found, shapes))
            raise InvalidInput(
                f"{where}; size mismatch for {name}: {there} by the config, {here} in the file."
            )


def _impossible(where: str, error: BaseException) -> InvalidInput:
    reason = str(error).partition("\n")[0].rstrip(".")
    return InvalidInput(f"{where}; a model of its sizes cannot be built: {reason}.")


def _size(shape: tuple[int, ...] | None) -> str:
    return "none" if shape is None else f"{list(shape)}"


@contextmanager
def _at_most(most: int, where: str) -> Iterator[None]:
    """Raise when this thread makes more parameters, buffers and modules than so many."""
    thread, count = threading.get_ident(), 0

    def register(*_: Any) -> None:
        nonlocal count
        count += threading.get_ident() == thread
        if count > most and threading.get_ident() == thread:
            raise InvalidInput(f"{where}; the model in the config has far more layers.")

    hooks = [
        modules.register_module_parameter_registration_hook(register),
        modules.register_module_buffer_registration_hook(register),
        modules.register_module_module_registration_hook(register),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
