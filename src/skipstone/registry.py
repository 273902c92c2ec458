"""Things that are known by name, such as tasks and models; `register` adds one of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from skipstone.errors import InvalidInput, did_you_mean, require_kind

_Thing = TypeVar("_Thing")

_registries: list[Registry[Any]] = []


class Registry(Mapping[str, _Thing], Generic[_Thing]):
    """Things of one kind by name, in the order in which they were registered."""

    def __init__(self, noun: str, accepts: Callable[[Any], bool]):
        """A registry of each `noun`, the things for which `accepts` is true."""
        self.noun = noun
        self.accepts = accepts
        self._things: dict[str, _Thing] = {}
        _registries.append(self)

    def add(self, thing: _Thing, name: str) -> None:
        """Register a thing. Adding it again is fine; another one under its name is an error."""
        require_kind(f"the name of a {self.noun} must be a text", name, str)
        if self._things.setdefault(name, thing) is not thing:
            raise InvalidInput(
                f"each {self.noun} must have a name of its own; {name!r} is taken. Give another "
                "one: skipstone.register(thing, name=...)."
            )

    def find(self, name: str) -> _Thing:
        """The thing of that name, or the one at an import path, `package.module:attribute`."""
        require_kind(f"the name of a {self.noun} must be a text", name, str)
        if name in self._things:
            return self._things[name]
        if ":" in name:
            return self._imported(name)
        raise InvalidInput(f"there is no {self.noun} {name!r}. {did_you_mean(name, self._things)}")

    def _imported(self, path: str) -> _Thing:
        module, _, attribute = path.partition(":")
        try:
            thing = getattr(import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidInput(
                f"{path!r} must be a name or an import path, package.module:attribute; {error}."
            ) from error
        if not self.accepts(thing):
            raise InvalidInput(f"{path} must be a {self.noun}; it is {thing!r}.")
        return thing

    def names(self) -> list[str]:
        """The names of all, in the order of registration."""
        return list(self._things)

    def __getitem__(self, name: str) -> _Thing:
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


def register(thing: Any, name: str | None = None) -> None:
    """Make a task or a model class known by name, so that commands and run folders can use it.

    By default the name is the thing's own `name`, or that of the class in lower case.
    """
    for registry in _registries:
        if registry.accepts(thing):
            registry.add(thing, name or _own_name(thing))
            return
    nouns = " or ".join(registry.noun for registry in _registries) or "task or model"
    raise InvalidInput(f"what is registered must be a {nouns}; got {thing!r}.")


def _own_name(thing: Any) -> str:
    own = getattr(thing, "name", None)
    return own if isinstance(own, str) else thing.__name__.lower()
