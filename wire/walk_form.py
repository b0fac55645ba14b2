"""Which form of the walk over records runs: compiled, or plain Python.

An install with a C compiler builds `compiled_record_walk` beside `record_walk`. The compiled module carries the sources that
it was built from. If they have changed since, the plain form runs, and the broker warns at its start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeAlias

from kafkacompat.wire import record_walk

PLAIN_WALK_VARIABLE = "KAFKACOMPAT_PLAIN_WALK"
"""Environment variable that selects the plain form if it is "1"; worker processes inherit it."""

Walk: TypeAlias = "Callable[[bytes, int, bool], tuple[int, list[int]]]"
SliceRecords: TypeAlias = "Callable[[bytes, int, int], tuple[list[record_walk.RecordSlice], int]]"

_COMPILED_MODULE = "kafkacompat.wire.compiled_record_walk"
_SOURCES = ("record_walk.py", "record_walk.pxd")


class StaleModuleError(Exception):
    """The compiled module was built from other sources than those beside it, or cannot be imported."""


class WalkForm(NamedTuple):
    """The chosen form and its functions; ``reason`` says why it is the plain one."""

    name: str
    walk: Walk
    slice_records: SliceRecords
    reason: str = ""
    is_stale: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})" if self.reason else self.name


def _make_form(name: str, module: ModuleType, reason: str = "", is_stale: bool = False) -> WalkForm:
    return WalkForm(name, module.walk, module.slice_records, reason, is_stale)


def load_compiled_walk() -> ModuleType:
    """Return the compiled module.

    Raises ModuleNotFoundError if this Python has none, StaleModuleError if the one it has cannot be used.
    """
    try:
        compiled = import_module(_COMPILED_MODULE)
    except ImportError as problem:
        if isinstance(problem, ModuleNotFoundError) and problem.name == _COMPILED_MODULE:
            raise
        # It may import a name that is gone from the newer sources.
        raise StaleModuleError(f"{problem}; install kafkacompat again") from problem
    try:
        sources = tuple(Path(__file__).with_name(name).read_bytes() for name in _SOURCES)
        is_current = sources == compiled.SOURCES
    except (OSError, AttributeError) as problem:
        raise StaleModuleError(f"{compiled.__file__} cannot be compared with its source ({problem})") from problem
    if not is_current:
        raise StaleModuleError(f"{compiled.__file__} is older than its source; install kafkacompat again")
    return compiled


def choose_walk(plain_wanted: bool) -> WalkForm:
    """Choose the compiled form where it can run, unless the plain one is wanted."""
    if plain_wanted:
        return _make_form("plain", record_walk, f"{PLAIN_WALK_VARIABLE}=1")
    try:
        return _make_form("compiled", load_compiled_walk())
    except ModuleNotFoundError:
        return _make_form("plain", record_walk, "not compiled for this Python")
    except StaleModuleError as problem:
        return _make_form("plain", record_walk, str(problem), is_stale=True)


FORM = choose_walk(os.environ.get(PLAIN_WALK_VARIABLE) == "1")
walk = FORM.walk
slice_records = FORM.slice_records
