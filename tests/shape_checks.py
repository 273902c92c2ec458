"""The run-time type checker that the tests put on every annotated function.

A check takes longer than most of what is checked. A test that rolls out a model a thousand times
would spend most of its time on arguments of the same shapes, so these are checked a few times in
each test, and whenever they have new ones.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import jaxtyping
import numpy as np
import torch
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))

ENOUGH = 8
"""Checks of one function with arguments of the same shapes in one test."""

checks: Counter[tuple[Any, ...]] = Counter()
"""By function, and by shapes or types of its arguments: emptied before each test."""

_jaxtyped = jaxtyping.jaxtyped
_ARRAYS = (torch.Tensor, np.ndarray)


def _is_known(args: Iterable[Any]) -> bool:
    """Whether all shapes are numbers: an export has sizes that cannot be compared."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    return all(type(size) is int for tensor in tensors for size in tensor.shape)


def _key(function: Callable[..., Any], args: Iterable[Any]) -> tuple[Any, ...]:
    """What a check depends on: shapes and dtypes of arrays, the types of anything else."""
    return function, *[(a.shape, a.dtype) if isinstance(a, _ARRAYS) else type(a) for a in args]


def _sparing(function: Any, typechecker: Callable[..., Any]) -> Any:
    checked = _jaxtyped(function, typechecker=typechecker)
    if not inspect.isfunction(function):
        return checked

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if jaxtyping.config.jaxtyping_disable:
            return function(*args, **options)
        if not _is_known([*args, *options.values()]):
            return checked(*args, **options)
        key = _key(function, args)
        if options:
            key += (*options, *_key(function, options.values()))
        if checks.get(key, 0) >= ENOUGH:
            return function(*args, **options)
        checks[key] += 1
        return checked(*args, **options)

    return call


def install() -> None:
    """Before anything imports skipstone: check every annotated shape and type in it."""
    # The hook looks this name up in every module that it rewrites.
    jaxtyping.jaxtyped = lambda *, typechecker: functools.partial(_sparing, typechecker=typechecker)
    jaxtyping.install_import_hook("skipstone", "shape_checks.check")
