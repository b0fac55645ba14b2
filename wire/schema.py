"""The vocabulary of protocol declarations.

A message is a class that declares each field once, with the versions that have it::

    class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible="4+"):
        group_id: str = string()
        generation_id: int = int32()
        member_id: str = string()
        group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)

A declaration compiles nothing: `kafkacompat.wire.compiler` and its parts build the constructor of a class at its first
instance, and the read and write function of a version at their first use.

Version ranges are written as Kafka writes them: ``"3+"``, ``"0-4"``, ``"7"`` or ``""`` (never).
A field that a version does not have has its default when read, and is not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Any:
        return lambda cls: cls


from kafkacompat.wire.compile_constructor import compile_constructor
from kafkacompat.wire.primitives import ZERO_UUID

MAX_VERSION = 32767


@dataclass(frozen=True)
class Versions:
    """An inclusive range of message versions; empty when ``first > last``."""

    first: int
    last: int

    @classmethod
    @cache
    def parse(cls, text: str) -> Versions:
        """Read ``"3+"``, ``"0-4"``, ``"7"`` or ``""``."""
        if not text:
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), MAX_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __iter__(self) -> Any:
        return iter(range(self.first, self.last + 1))


NO_VERSIONS = Versions.parse("")


@dataclass(frozen=True)
class Field:
    """One declared field.

    ``kind`` is a primitive's name, ``"array"`` or ``"struct"``; ``element`` is the element field of
    an array, ``struct`` the class of a struct. ``entity`` says what a name or an id is the name of: see `kafkacompat.wire.entities`.
    """

    kind: str
    versions: Versions
    nullable: Versions
    default: Any
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    flexible: bool = True
    element: Field | None = None
    struct: type[Struct] | None = None
    entity: str | None = None


def _declare_field(
    kind: str,
    *,
    versions: str,
    default: Any,
    nullable: str = "",
    tag: int | None = None,
    tagged: str | None = None,
    flexible: bool = True,
    element: Field | None = None,
    struct: type[Struct] | None = None,
    entity: str | None = None,
) -> Any:
    tagged_in = NO_VERSIONS if tag is None else Versions.parse(versions if tagged is None else tagged)
    return Field(
        kind,
        Versions.parse(versions),
        Versions.parse(nullable),
        default,
        tag,
        tagged_in,
        flexible,
        element,
        struct,
        entity,
    )


def _make_number_declaration(kind: str) -> Any:
    def declare(
        *,
        versions: str = "0+",
        default: int = 0,
        tag: int | None = None,
        tagged: str | None = None,
        entity: str | None = None,
    ) -> Any:
        return _declare_field(kind, versions=versions, default=default, tag=tag, tagged=tagged, entity=entity)

    declare.__doc__ = f"Declare a big-endian {kind}."
    return declare


int8 = _make_number_declaration("int8")
int16 = _make_number_declaration("int16")
uint16 = _make_number_declaration("uint16")
int32 = _make_number_declaration("int32")
uint32 = _make_number_declaration("uint32")
int64 = _make_number_declaration("int64")


def float64(*, versions: str = "0+", default: float = 0.0) -> Any:
    """Declare an IEEE 754 double."""
    return _declare_field("float64", versions=versions, default=default)


def boolean(*, versions: str = "0+", default: bool = False, tag: int | None = None, tagged: str | None = None) -> Any:
    """Declare a one-byte boolean."""
    return _declare_field("bool", versions=versions, default=default, tag=tag, tagged=tagged)


def uuid(*, versions: str = "0+", tag: int | None = None, tagged: str | None = None, entity: str | None = None) -> Any:
    """Declare a UUID: 16 raw bytes, all zero for none."""
    return _declare_field("uuid", versions=versions, default=ZERO_UUID, tag=tag, tagged=tagged, entity=entity)


def string(
    *,
    versions: str = "0+",
    nullable: str = "",
    default: str | None = "",
    tag: int | None = None,
    tagged: str | None = None,
    flexible: bool = True,
    entity: str | None = None,
) -> Any:
    """Declare a UTF-8 string; ``flexible=False`` keeps its int16 length in flexible versions."""
    return _declare_field(
        "string",
        versions=versions,
        nullable=nullable,
        default=default,
        tag=tag,
        tagged=tagged,
        flexible=flexible,
        entity=entity,
    )


def bytestring(
    *,
    versions: str = "0+",
    nullable: str = "",
    default: bytes | None = b"",
    tag: int | None = None,
    tagged: str | None = None,
    entity: str | None = None,
) -> Any:
    """Declare a byte string, read as ``bytes``."""
    return _declare_field(
        "bytes", versions=versions, nullable=nullable, default=default, tag=tag, tagged=tagged, entity=entity
    )


def batches(*, versions: str = "0+", nullable: str = "") -> Any:
    """Declare a field of record batches.

    Read as a memoryview into the frame; written from any buffer, or from an object with
    ``size_bytes`` (a file region), which becomes a part of its own in the output.
    """
    return _declare_field("records", versions=versions, nullable=nullable, default=None)


def struct(
    of: type[Struct], *, versions: str = "0+", nullable: str = "", tag: int | None = None, tagged: str | None = None
) -> Any:
    """Declare a nested struct; its default is None if it may be null, else a struct of defaults."""
    default = None if nullable else of
    return _declare_field(
        "struct", versions=versions, nullable=nullable, default=default, tag=tag, tagged=tagged, struct=of
    )


def array(
    of: Any,
    *,
    versions: str = "0+",
    nullable: str = "",
    default: Any = list,
    tag: int | None = None,
    tagged: str | None = None,
) -> Any:
    """Declare an array of structs (``array(Topic)``) or of primitives (``array(int32())``)."""
    element = of if isinstance(of, Field) else struct(of)
    return _declare_field(
        "array", versions=versions, nullable=nullable, default=default, tag=tag, tagged=tagged, element=element
    )


@dataclass_transform(kw_only_default=True)
class Struct:
    """A group of fields; an instance is a plain object with one attribute for each field."""

    FIELDS: ClassVar[dict[str, Field]] = {}

    def __init_subclass__(cls) -> None:
        cls.FIELDS = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        for name in cls.FIELDS:
            delattr(cls, name)

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            cls = type(self)
            defaults = {
                name: field.default if field.tag is None else shared_default(field)
                for name, field in cls.FIELDS.items()
            }
            cls.__init__ = compile_constructor(cls.__name__, defaults)
            cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


_SHARED_STRUCTS: dict[type[Struct], Struct] = {}


def shared_default(field: Field) -> Any:
    """Return the default that all messages share; tagged structs are nearly always left at it. It cannot be changed."""
    if field.struct is None or field.default is None:
        return field.default
    if field.struct not in _SHARED_STRUCTS:
        _SHARED_STRUCTS[field.struct] = _make_unchangeable(field.struct)
    return _SHARED_STRUCTS[field.struct]


def _make_unchangeable(of: type[Struct]) -> Struct:
    """Return a struct of defaults that rejects changes, as a change would show in every message that shares it."""
    shared = of()

    def refuse(_: Struct, name: str, value: object) -> None:
        raise AttributeError(
            f"{of.__name__}.{name} = {value!r} would change a shared default; assign a new {of.__name__}"
        )

    frozen = type(of.__name__, (of,), {"__setattr__": refuse, "__eq__": _equals_its_base, "__hash__": None})
    frozen.FIELDS = of.FIELDS  # type: ignore[attr-defined]
    shared.__class__ = frozen
    return shared


def _equals_its_base(shared: Struct, other: object) -> bool:
    return isinstance(other, type(shared).__mro__[1]) and vars(other) == vars(shared)


class Message(Struct):
    """A struct with versions: a header, a request, a response or a log record."""

    VERSIONS: ClassVar[Versions] = NO_VERSIONS
    FLEXIBLE: ClassVar[Versions] = NO_VERSIONS

    def __init_subclass__(cls, *, versions: str = "", flexible: str = "") -> None:
        super().__init_subclass__()
        cls.VERSIONS = Versions.parse(versions)
        cls.FLEXIBLE = Versions.parse(flexible)


class Request(Message):
    """The request of one API.

    ``SIZED_BY_CLUSTER`` marks a request of a controller: it may have as many elements as the cluster has partitions.
    """

    API_KEY: ClassVar[int] = -1
    SIZED_BY_CLUSTER: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, api_key: int, versions: str, flexible: str = "", sized_by_cluster: bool = False
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.API_KEY = api_key
        cls.SIZED_BY_CLUSTER = sized_by_cluster


class Response(Message):
    """The response of one API."""

    API_KEY: ClassVar[int] = -1

    def __init_subclass__(cls, *, api_key: int, versions: str, flexible: str = "") -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.API_KEY = api_key
