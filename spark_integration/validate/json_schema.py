"""JSON Schema: its types as Spark's types, and values checked against it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urljoin

import jsonschema_rs
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError, shorten_value
from spark_integration.validate.registry import Schema

SCALAR: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
CHOICES = ("oneOf", "anyOf")
TYPE_WORDS = frozenset(("type", "properties", "additionalProperties", "$ref", "allOf", *CHOICES))
FORMATS: Mapping[str, DataType] = {"date-time": TimestampType(), "date": DateType()}


class JsonSchemaValidator:
    """Checks values against a schema; *type* is Spark's type of the values that it describes."""

    def __init__(self, schema: Schema) -> None:
        try:
            document = json.loads(schema.text)
            references = {name: json.loads(text) for name, text in schema.references}
            self._validator = jsonschema_rs.validator_for(document, retriever=_local_retriever(references))
        except (ValueError, jsonschema_rs.ValidationError) as problem:
            reason = str(problem).splitlines()[0]
            raise PipelineError(
                f"the JSON Schema {shorten_value(schema.text)} cannot be used ({reason}): correct it"
            ) from problem
        self.type = _JsonSchemaTypes(document, references).of(document)

    def check(self, value: Any) -> None:
        """Raise DeadLetterError with the first violation of the schema."""
        for problem in self._validator.iter_errors(value):
            path = ".".join(["value", *map(str, problem.instance_path)])
            raise DeadLetterError("does-not-fit", f"{path}: {problem.message}")


def _local_retriever(references: Mapping[str, Any]) -> Any:
    """Return a function that resolves the registry's references; nothing is fetched from elsewhere."""

    def retrieve(uri: str) -> Any:
        if (document := _find_reference(references, uri)) is None:
            raise ValueError(f"{uri} is not among the schema's references")
        return document

    return retrieve


def _find_reference(references: Mapping[str, Any], uri: str) -> Any:
    matching = (document for name, document in references.items() if uri == name or uri.endswith(f"/{name}"))
    return next(matching, None)


class _JsonSchemaTypes:
    """Finds types. A schema without a type in Spark (several types at once, or itself within itself) becomes JSON text.

    *within* are the places on the way to *document*: a document's id and a pointer into it.
    """

    def __init__(self, document: Any, references: Mapping[str, Any], within: Sequence[tuple[int, str]] = ()) -> None:
        self._document = document
        self._references = references
        self._within = list(within)

    def of(self, schema: Any) -> DataType:
        if not isinstance(schema, dict):
            return StringType()
        if "$ref" not in schema and "allOf" not in schema:
            return self._find_own_type(schema)
        own = {word: value for word, value in schema.items() if word not in ("$ref", "allOf")}
        referred = [self._resolve_reference(schema["$ref"])] if "$ref" in schema else []
        return _merge_types(referred + [self.of(part) for part in [*schema.get("allOf", ()), own] if _says_type(part)])

    def _find_own_type(self, schema: Mapping[str, Any]) -> DataType:
        choices = [choice for word in CHOICES for choice in schema.get(word, ()) if _says_type(choice)]
        properties = schema.get("properties", {})
        if choices and not properties:
            return self._find_choice_type(choices)
        choices += [schema[word] for word in ("then", "else") if _says_type(schema.get(word))]
        # A column for each property of each branch would say less than the object as it is.
        return (
            StringType()
            if any(_adds_fields(choice, properties) for choice in choices)
            else self._find_single_type(schema)
        )

    def _find_single_type(self, schema: Mapping[str, Any]) -> DataType:
        kinds = schema.get("type", "object" if "properties" in schema else [])
        named = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"]
        if len(named) != 1:
            return DoubleType() if set(named) == {"integer", "number"} else StringType()
        if named[0] == "object":
            return self._find_object_type(schema)
        if named[0] == "array":
            return ArrayType(self.of(schema.get("items")))
        if named[0] == "string":
            return FORMATS.get(schema.get("format", ""), StringType())
        return SCALAR.get(named[0], StringType())

    def _find_object_type(self, schema: Mapping[str, Any]) -> DataType:
        if properties := schema.get("properties"):
            return StructType([StructField(name, self.of(inner)) for name, inner in properties.items()])
        if isinstance(schema.get("additionalProperties"), dict):
            return MapType(StringType(), self.of(schema["additionalProperties"]))
        return StringType()

    def _find_choice_type(self, branches: list[Any]) -> DataType:
        inner = [branch for branch in branches if not (isinstance(branch, dict) and branch.get("type") == "null")]
        return self.of(inner[0]) if len(inner) == 1 else StringType()

    def _resolve_reference(self, reference: str) -> DataType:
        name, _, pointer = reference.partition("#")
        document = self._find_document(unquote(name)) if name else self._document
        place = id(document), pointer.strip("/")
        if place in self._within or document is None:
            return StringType()
        target = _resolve_pointer(document, unquote(place[1]))
        return _JsonSchemaTypes(document, self._references, [*self._within, place]).of(target)

    def _find_document(self, name: str) -> Any:
        """Return the document of a name: this one, a part of it that has an id of its own, or another one."""
        own = str(self._document.get("$id", "")) if isinstance(self._document, dict) else ""
        uri = urljoin(own, name)
        matching = (
            part for part in _walk_objects(self._document) if urljoin(own, str(part.get("$id", ""))).rstrip("#") == uri
        )
        local = next(matching, None) if own else None
        return local if local is not None else _find_reference(self._references, uri)


def _resolve_pointer(document: Any, pointer: str) -> Any:
    """Return the target of a JSON pointer or an anchor; None if there is none."""
    anchored = next((part for part in _walk_objects(document) if pointer and part.get("$anchor") == pointer), None)
    target = document if anchored is None else anchored
    for step in pointer.split("/") if pointer and anchored is None else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list):
            target = target[int(name)] if name.isdecimal() and int(name) < len(target) else None
        else:
            target = target.get(name) if isinstance(target, dict) else None
    return target


def _walk_objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects of a schema."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, (dict, list)):
        for inner in schema.values() if isinstance(schema, dict) else schema:
            yield from _walk_objects(inner)


def _says_type(schema: Any) -> bool:
    return isinstance(schema, dict) and not TYPE_WORDS.isdisjoint(schema)


def _adds_fields(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    """Return whether a branch may have fields that are not among these properties."""
    more = TYPE_WORDS - {"type", "properties"}
    return not more.isdisjoint(schema) or not schema.get("properties", {}).keys() <= properties.keys()


def _merge_types(kinds: Sequence[DataType]) -> DataType:
    """Return the type of values that have all these types at once."""
    structs = [kind for kind in kinds if isinstance(kind, StructType)]
    if len(structs) != len(kinds) or not structs:
        return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else StringType()
    fields: dict[str, DataType] = {}
    for field in (field for kind in structs for field in kind.fields):
        known = fields.setdefault(field.name, field.dataType)
        fields[field.name] = _merge_types([known, field.dataType])
    return StructType([StructField(name, kind) for name, kind in fields.items()])
