"""Building the constructor of a struct, when its first instance is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacompat.wire.compile_source import compile_source, shared_default
from kafkacompat.wire.schema import Struct

_ABSENT = object()


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Build ``__init__`` with one optional argument a field, in declaration order."""
    arguments, body = [], []
    names: dict[str, Any] = {"_absent": _ABSENT}
    for name, field in cls.FIELDS.items():
        names[f"_default_{name}"] = shared_default(field) if field.tag is not None else field.default
        if isinstance(names[f"_default_{name}"], type):
            arguments.append(f"{name}=_absent")
            body.append(f"    self.{name} = _default_{name}() if {name} is _absent else {name}")
        else:
            arguments.append(f"{name}=_default_{name}")
            body.append(f"    self.{name} = {name}")
    source = [f"def __init__({', '.join(['self', *arguments])}):", *(body or ["    pass"])]
    constructor: Callable[..., None] = compile_source(source, "__init__", names, f"<{cls.__name__} constructor>")
    return constructor
