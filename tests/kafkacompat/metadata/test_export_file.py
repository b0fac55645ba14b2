"""The file of a single node's metadata: written, read, and refused when it is damaged."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.export_file import format_export, parse_export
from kafkacompat.metadata.store import StoreError

VALUES = {
    "/brokers/topics/t": b'{"version":3,"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"0":[1]},"adding_replicas":{},'
    b'"removing_replicas":{}}',
    "/brokers/topics/t/partitions/0/state": b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":7,"isr":[1]}',
    "/cluster/id": b'{"version":"1","id":"4L6g3nShT-eMCtK--X86sw"}',
    "/config/topics/t": '{"version":1,"config":{"x":"\u00e4\u2028"}}'.encode(),
    "/consumers/g/offsets/t/0": b"42",
}


def lines_of(values: dict[str, bytes] = VALUES) -> list[bytes]:
    return [f"{line}\n".encode() for line in format_export(values)]


def test_an_export_is_read_again() -> None:
    assert parse_export(lines_of(), "file") == VALUES


def test_each_key_is_one_line() -> None:
    lines = lines_of()
    assert len(lines) == len(VALUES) + 2
    assert json.loads(lines[2])["key"] == "/brokers/topics/t/partitions/0/state"


def test_metadata_without_a_cluster_are_not_exported() -> None:
    with pytest.raises(StoreError, match="names no cluster"):
        lines_of({key: value for key, value in VALUES.items() if key != "/cluster/id"})


@pytest.mark.parametrize("key", ["/brokers/topics/t", "/cluster/id", "/consumers/g/offsets/t/0"])
def test_damaged_metadata_are_not_exported(key: str) -> None:
    with pytest.raises(StoreError, match=key):
        lines_of({**VALUES, key: b"{"})


DAMAGED = {
    "it is empty": ([], "is no export"),
    "it is another file": ([b'{"a":1}\n'], "is no export"),
    "it is no JSON": ([*lines_of()[:2], b"\xff\n", *lines_of()[3:]], "line 3 is no JSON object"),
    "a line is a list": ([*lines_of()[:2], b"[]\n", *lines_of()[3:]], "line 3 is no JSON object"),
    "a key is missing": ([*lines_of()[:2], b'{"value":"1"}\n', *lines_of()[3:]], "line 3 has no key and value"),
    "its end is missing": (lines_of()[:-1], "is incomplete after line 6"),
    "a line is missing": ([*lines_of()[:2], *lines_of()[3:]], "is incomplete"),
    "a key comes twice": ([*lines_of()[:2], lines_of()[1], *lines_of()[3:]], "has a key twice"),
    "it is newer": ([b'{"format":"kafkacompat-metadata","version":2}\n', *lines_of()[1:]], "newer kafkacompat"),
    "a value is damaged": ([line.replace(b"leader_epoch", b"leader_ep") for line in lines_of()], "is damaged"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_refused(case: str) -> None:
    lines, reason = DAMAGED[case]
    with pytest.raises(StoreError, match=reason):
        parse_export(lines, "file")
