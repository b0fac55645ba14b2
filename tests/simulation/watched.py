"""Attributes of the broker's classes that report when they are set: what the simulation checks without looking everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class WatchedAttribute:
    """A slot of a class whose every new value is reported with its object."""

    def __init__(self, slot: Any, report: Callable[[Any], object]) -> None:
        self._get = slot.__get__
        self._set = slot.__set__
        self._report = report

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self._get(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        self._set(instance, value)
        self._report(instance)


@contextmanager
def watch_attributes(owner: type, reports: Mapping[str, Callable[[Any], object]]) -> Iterator[None]:
    """Report every new value of attributes of a class with slots."""
    slots = {name: owner.__dict__[name] for name in reports}
    for name, report in reports.items():
        setattr(owner, name, WatchedAttribute(slots[name], report))
    try:
        yield
    finally:
        for name, slot in slots.items():
            setattr(owner, name, slot)
