"""The error codes in a response, wherever its schema has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kafkacompat.wire.schema import Struct

FindErrors: TypeAlias = Callable[[Any], list[int]]

FIELD = "error_code"


FINDERS: dict[Any, FindErrors] = {}
"""The compiled functions by type of response."""


def compile_error_finder(response: type[Struct]) -> FindErrors:
    """Return a function that lists the error codes of a response other than 0.

    It is one comprehension for each place of the schema that has an error code: every response passes through it.
    """
    parts = [_write_comprehension(path) for path in _list_paths(response)]
    function: FindErrors = eval(f"lambda response: {' + '.join(parts) or '[]'}")
    FINDERS[response] = function
    return function


def _list_paths(struct: type[Struct]) -> Iterator[tuple[str, ...]]:
    """Yield the lists that lead to each error code of a struct."""
    if FIELD in struct.FIELDS:
        yield ()
    for name, field in struct.FIELDS.items():
        if field.element is not None and field.element.struct is not None:
            yield from ((name, *path) for path in _list_paths(field.element.struct))


def _write_comprehension(path: tuple[str, ...]) -> str:
    owners = ["response", *(f"item{depth}" for depth in range(len(path)))]
    loops = "".join(
        f" for {item} in {owner}.{name} or ()" for owner, item, name in zip(owners, owners[1:], path, strict=False)
    )
    if not loops:
        return f"([response.{FIELD}] if response.{FIELD} else [])"
    return f"[{owners[-1]}.{FIELD}{loops} if {owners[-1]}.{FIELD}]"
