"""Changes and properties of instances as IncrementalAlterConfigs and DescribeConfigs carry them.

A string of the protocol has at most 32,767 bytes, and a whitelist of ten thousand networks has more. A long list goes in parts:
as several operations of one config, which the broker carries out one after the other, and as several entries of one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult
from kafkacompat.wire.apis.incremental_alter_configs import AlterableConfig

MAX_PART_LENGTH = 30_000
"""Characters of a part in ASCII; a quarter of them otherwise, as a character has up to four bytes."""
DEFAULT_SOURCE = 5
"""The config source of a default value."""


def split_list(text: str) -> Iterator[str]:
    """Yield a list in parts that fit into strings of the protocol, each a list of whole elements."""
    start, length = 0, MAX_PART_LENGTH if text.isascii() else MAX_PART_LENGTH // 4
    while len(text) - start > length:
        end = text.rfind(",", start, start + length)
        if end <= start:
            break
        yield text[start:end]
        start = end + 1
    yield text[start:]


def encode_changes(changes: Iterable[ConfigOperation]) -> list[AlterableConfig]:
    """Return the operations of a request. A long value is set by its first part; the other parts are appended."""
    return [
        AlterableConfig(name=change.name, config_operation=int(operation), value=value)
        for change in changes
        for operation, value in _split_change(change)
    ]


def _split_change(change: ConfigOperation) -> Iterator[tuple[ConfigOperationType, str | None]]:
    operation = change.operation
    if change.value is None:
        yield operation, None
        return
    for part in split_list(change.value):
        yield operation, part
        if operation is ConfigOperationType.SET:
            operation = ConfigOperationType.APPEND


def decode_properties(entries: Iterable[DescribeConfigsResourceResult]) -> dict[str, str]:
    """Return the properties that an instance has been given; secrets are left out."""
    properties: dict[str, str] = {}
    for entry in entries:
        if entry.value is not None and entry.config_source != DEFAULT_SOURCE:
            before = properties.get(entry.name)
            properties[entry.name] = entry.value if before is None else f"{before},{entry.value}"
    return properties
