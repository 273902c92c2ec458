"""Registries: things by name, in order, and clear errors for names that are unknown or taken."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skipstone
from skipstone import InvalidInput, registry
from skipstone.paper.tasks import TASKS, Observed, Task
from skipstone.registry import Registry


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers, and its registries."""
    monkeypatch.setattr(registry, "_registries", list(registry._registries))
    monkeypatch.setattr(TASKS, "_things", dict(TASKS))


def make_task(name: str = "noise") -> Task:
    return Task(name, "nothing but noise", lambda options, times, rng: Observed(times[..., None]))


def test_things_are_found_by_name_and_listed_in_order() -> None:
    numbers: Registry[int] = Registry("number", lambda thing: isinstance(thing, int))
    numbers.add(2, "two")
    numbers.add(1, "one")
    assert numbers.find("two") == 2
    assert numbers.names() == list(numbers) == ["two", "one"]
    assert dict(numbers) == {"two": 2, "one": 1}
    assert "three" not in numbers
    with pytest.raises(InvalidInput, match=r"there is no number 'tow'\. Did you mean two\?"):
        numbers.find("tow")
    with pytest.raises(InvalidInput, match=r"there is no number 'x'\. Use two, one\."):
        numbers.find("x")


def test_register_puts_a_thing_where_it_belongs() -> None:
    class Animal:
        pass

    animals: Registry[type[Animal]] = Registry(
        "animal", lambda thing: isinstance(thing, type) and issubclass(thing, Animal)
    )

    class Heron(Animal):
        pass

    task = make_task()
    for thing in (task, Heron):
        skipstone.register(thing)
    skipstone.register(Heron, name="bird")
    assert TASKS.find("noise") is task
    assert animals.names() == ["heron", "bird"]
    with pytest.raises(InvalidInput, match=r"must be a .*task.* or animal; got 3"):
        skipstone.register(3)


def test_the_same_thing_again_is_fine_and_another_under_its_name_is_not() -> None:
    task = make_task()
    skipstone.register(task)
    skipstone.register(task)
    with pytest.raises(InvalidInput, match="each task must have a name of its own; 'noise' is"):
        skipstone.register(make_task())
    skipstone.register(make_task(), name="more noise")
    assert TASKS.names()[-2:] == ["noise", "more noise"]


def test_an_import_path_is_a_name() -> None:
    assert TASKS.find("skipstone.paper.tasks.shapes:LINES") is TASKS["lines"]
    for path, message in [
        ("skipstone.nowhere:LINES", "No module named 'skipstone.nowhere'"),
        ("skipstone.paper.tasks.shapes:NONE", "has no attribute 'NONE'"),
        ("skipstone.paper.tasks.shapes:Task", "must be a task; it is <class"),
        (":", "must be a name or an import path"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            TASKS.find(path)


def test_registering_needs_no_torch() -> None:
    code = (
        "import sys; from skipstone.paper.tasks import Observed, Task; import skipstone\n"
        "skipstone.register(Task('own', 'mine', lambda *_: Observed()))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
