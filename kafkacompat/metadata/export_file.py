"""The file that moves the metadata of a single node: one line of JSON for each key.

The first line names the format, the last one the number of keys between them, so that a file which was cut off is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkacompat.metadata.codec import CLUSTER_ID, decode_store
from kafkacompat.metadata.store import OFFSETS_FOLDER, MetadataStore, StoreEntry, StoreError
from kafkacompat.metadata.znodes.cluster import decode_cluster_id
from kafkacompat.metadata.znodes.values import parse_text

FORMAT = "kafkacompat-metadata"
FORMAT_VERSION = 1


async def read_whole_store(store: MetadataStore) -> dict[str, bytes]:
    """Return the values of all keys of a store, also those of OFFSETS_FOLDER; raises StoreError."""
    entries = dict(await store.load())
    entries.update(await store.read(await store.keys(OFFSETS_FOLDER)))
    return {key: entry.value for key, entry in sorted(entries.items())}


def format_export(values: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines of the file. Raises StoreError if the values are not those of a cluster."""
    check_values(values)
    yield json.dumps({"format": FORMAT, "version": FORMAT_VERSION})
    for key, value in values.items():
        yield json.dumps({"key": key, "value": parse_text(key, value)})
    yield json.dumps({"keys": len(values)})


def parse_export(lines: Iterable[bytes], name: str) -> dict[str, bytes]:
    """Return the values of the file *name*; raises StoreError for a file that is damaged or incomplete."""
    rows = [_parse_line(line, number, name) for number, line in enumerate(lines, 1)]
    if not rows or rows[0].get("format") != FORMAT:
        raise StoreError(f"{name} is no export of metadata; name a file that `kafkacompat metadata export` wrote")
    if rows[0].get("version") != FORMAT_VERSION:
        raise StoreError(
            f"{name} has version {rows[0].get('version')}, not {FORMAT_VERSION}: import it with a newer kafkacompat"
        )
    if len(rows) < 2 or rows[-1] != {"keys": len(rows) - 2}:
        raise StoreError(f"{name} is incomplete after line {len(rows)}; export the metadata again")
    values = dict(_read_row(row, number, name) for number, row in enumerate(rows[1:-1], 2))
    if len(values) != len(rows) - 2:
        raise StoreError(f"{name} is damaged: it has a key twice; export the metadata again")
    try:
        check_values(values)
    except StoreError as problem:
        raise StoreError(f"{name} is damaged: {problem}") from problem
    return values


def check_values(values: Mapping[str, bytes]) -> str:
    """Check that the values are those of a cluster, and return its id; raises StoreError."""
    if CLUSTER_ID not in values:
        raise StoreError("the metadata names no cluster; start the broker once, and stop it")
    for key, value in values.items():
        if key.startswith(OFFSETS_FOLDER) and not value.isdigit():
            raise StoreError(f"{key} is damaged: it is no offset")
    decode_store({key: StoreEntry(value, 0) for key, value in values.items()})
    return decode_cluster_id(values[CLUSTER_ID])


def _parse_line(line: bytes, number: int, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise StoreError(f"{name} is damaged: line {number} is no JSON object; export the metadata again")
    return row


def _read_row(row: Mapping[str, Any], number: int, name: str) -> tuple[str, bytes]:
    key, value = row.get("key"), row.get("value")
    if not isinstance(key, str) or not isinstance(value, str) or not key.startswith("/"):
        raise StoreError(f"{name} is damaged: line {number} has no key and value; export the metadata again")
    return key, value.encode("utf-8", "surrogatepass")
