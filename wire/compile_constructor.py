"""Builds the constructor of a struct when its first instance is created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkacompat.wire.compile_function import compile_function

_ABSENT = object()


def compile_constructor(class_name: str, defaults: Mapping[str, Any]) -> Callable[..., None]:
    """Build ``__init__`` with one optional argument for each field, in the order of *defaults*.

    A default that is a type stands for a fresh instance of it.
    """
    arguments, body = [], []
    names: dict[str, Any] = {"_absent": _ABSENT}
    for name, default in defaults.items():
        names[f"_default_{name}"] = default
        if isinstance(default, type):
            arguments.append(f"{name}=_absent")
            body.append(f"    self.{name} = _default_{name}() if {name} is _absent else {name}")
        else:
            arguments.append(f"{name}=_default_{name}")
            body.append(f"    self.{name} = {name}")
    source = [f"def __init__({', '.join(['self', *arguments])}):", *(body or ["    pass"])]
    constructor: Callable[..., None] = compile_function(source, "__init__", names, f"<{class_name} constructor>")
    return constructor
