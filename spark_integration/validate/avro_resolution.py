"""Schema resolution that fastavro lacks: defaults that JSON cannot hold, and logical types that the reader lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Named = Mapping[str, Any]
# The types of Avro that a JSON value can be a default of, for unions.
JSON_TYPES: Mapping[type, tuple[str, ...]] = {
    type(None): ("null",),
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("float", "double"),
    str: ("string", "bytes", "fixed", "enum"),
    list: ("array",),
    dict: ("record", "error", "map"),
}


def fill_defaults(named: Named) -> None:
    """Convert all defaults in parsed schemas to values of their types: text to bytes, and records with all fields."""
    for schema in named.values():
        for field in schema.get("fields", ()):
            if "default" in field:
                field["default"] = _fill_default(field["type"], field["default"], named)


def _fill_default(schema: Any, value: Any, named: Named) -> Any:
    branches = list(_list_branches(schema, named))
    kind = next((branch for branch in branches if branch["type"] in JSON_TYPES.get(type(value), ())), branches[0])
    if kind["type"] in ("bytes", "fixed") and isinstance(value, str):
        return value.encode("latin-1")
    if kind["type"] == "array":
        return [_fill_default(kind["items"], item, named) for item in value]
    if kind["type"] == "map":
        return {key: _fill_default(kind["values"], content, named) for key, content in value.items()}
    if "fields" in kind:
        return {
            field["name"]: _fill_default(field["type"], _field_default(value, field), named) for field in kind["fields"]
        }
    return value


def _field_default(value: Mapping[str, Any], field: Mapping[str, Any]) -> Any:
    return value[field["name"]] if field["name"] in value else field.get("default")


def drop_logical_types(writer: Any, reader: Any, named: tuple[Named, Named]) -> None:
    """Remove logical types from a writer's schema where the reader has none; *named* are the named types of both."""
    _LogicalTypeDropper(named).drop_unread(writer, reader)


class _LogicalTypeDropper:
    def __init__(self, named: tuple[Named, Named]) -> None:
        self._named = named
        self._seen: set[tuple[int, int]] = set()

    def drop_unread(self, writer: Any, reader: Any) -> None:
        wanted = list(_list_branches(reader, self._named[1]))
        for written in _list_branches(writer, self._named[0]):
            if not any("logicalType" in branch for branch in wanted):
                written.pop("logicalType", None)
            for branch in wanted:
                if (id(written), id(branch)) not in self._seen:
                    self._seen.add((id(written), id(branch)))
                    self._drop_within(written, branch)

    def _drop_within(self, written: Any, wanted: Any) -> None:
        for name in ("items", "values"):
            if name in written and name in wanted:
                self.drop_unread(written[name], wanted[name])
        fields = {
            name: field for field in wanted.get("fields", ()) for name in (field["name"], *field.get("aliases", ()))
        }
        for field in written.get("fields", ()):
            if field["name"] in fields:
                self.drop_unread(field["type"], fields[field["name"]]["type"])


def _list_branches(schema: Any, named: Named) -> Iterator[dict[str, Any]]:
    """Yield the branches of a union, or the type that another parsed schema stands for, as mappings with a `type`."""
    for branch in schema if isinstance(schema, list) else [schema]:
        if isinstance(branch, str):
            yield named.get(branch) or {"type": branch}
        elif isinstance(branch["type"], str) and branch["type"] not in named:
            yield branch
        else:
            yield from _list_branches(branch["type"], named)
