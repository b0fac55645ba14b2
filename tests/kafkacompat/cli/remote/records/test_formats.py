"""Records as lines, as JSON, and as raw bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.cli.remote.records.consume_run import Presentation, make_format
from kafkacompat.cli.remote.records.decoding import Failures
from kafkacompat.cli.remote.records.failures import MOST_REASONS, OptionError
from kafkacompat.cli.remote.records.input_records import NewRecord, make_json_parser
from tests.kafkacompat.cli.remote.records.fake_client import FakeMessage

RECORDS = [
    FakeMessage(b"v1", key=b"k", offset=7, headers=[("a", b"1"), ("b", None)]),
    FakeMessage(None, partition=2, timestamp=(2, 1234)),
    FakeMessage(b"\xffv\x1b[31m\n", key=b"\x00", timestamp=(0, 0), headers=[("h", b"\xfe")]),
]


def write(
    presentation: Presentation, records: list[Any] = RECORDS, *, as_json: bool = False, is_terminal: bool = False
) -> tuple[bytes, list[str]]:
    failures = Failures()
    form = make_format(presentation, failures, as_json=as_json, is_terminal=is_terminal)
    return form(records), failures.sentences


def test_values_are_lines_of_their_own_bytes() -> None:
    assert write(Presentation()) == (b"v1\nnull\n\xffv\x1b[31m\n\n", [])
    assert write(Presentation(), RECORDS[:1])[0] == b"v1\n"


def test_raw_values_have_nothing_between_them() -> None:
    assert write(Presentation(is_raw=True))[0] == b"v1\xffv\x1b[31m\n"


def test_fields_are_as_kafkas_console_consumer_writes_them() -> None:
    fields = ("value", "key", "headers", "offset", "partition", "timestamp")
    output, _ = write(Presentation(fields))
    assert output.split(b"\n")[:3] == [
        b"CreateTime:1000\tPartition:0\tOffset:7\ta:1,b:null\tk\tv1",
        b"LogAppendTime:1234\tPartition:2\tOffset:0\tNO_HEADERS\tnull\tnull",
        b"NO_TIMESTAMP\tPartition:0\tOffset:0\th:\xfe\t\x00\t\xffv\x1b[31m",
    ]
    assert write(Presentation(("key", "value"), "=>"), RECORDS[:1])[0] == b"k=>v1\n"


def test_a_terminal_receives_no_control_characters() -> None:
    output, _ = write(Presentation(("key", "value")), is_terminal=True)
    assert output == b"k\tv1\nnull\tnull\n\\x00\t\\xffv\\x1b[31m\n\n"


def test_json_has_every_field_and_produces_the_same_record() -> None:
    output, _ = write(Presentation(), as_json=True)
    lines = output.splitlines()
    assert json.loads(lines[0]) == {
        "topic": "t",
        "partition": 0,
        "offset": 7,
        "timestamp": 1000,
        "timestamp_type": "CreateTime",
        "key": "k",
        "value": "v1",
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }
    assert json.loads(lines[2])["value_base64"] == "/3YbWzMxbQo="
    assert "timestamp" not in json.loads(lines[2])
    parse = make_json_parser(NewRecord(None))
    assert [parse(line) for line in lines] == [
        NewRecord(b"v1", b"k", [("a", b"1"), ("b", None)], 0, 1000),
        NewRecord(None, None, None, 2, 1234),
        NewRecord(b"\xffv\x1b[31m\n", b"\x00", [("h", b"\xfe")], 0, 0),
    ]


def test_pretty_json_shows_control_characters_by_their_codes() -> None:
    record = FakeMessage("\x1b[31m\x85\u202e".encode())
    output, _ = write(Presentation(), [record], as_json=True, is_terminal=True)
    text = output.decode()
    assert r"\u001b[31m\u0085\u202e" in text
    assert text.startswith("{\n")


def test_json_values_are_decoded_and_others_are_counted() -> None:
    records = [
        FakeMessage(b'{"a": [1, "\xc3\xa9"]}'),
        FakeMessage(b"{"),
        FakeMessage(b"\xff"),
        FakeMessage(b'"\\ud800"'),
    ]
    output, failures = write(Presentation(value_decoder="json"), records)
    assert output == b'{"a":[1,"\xc3\xa9"]}\n{\n\xff\n"\\ud800"\n'
    assert failures == ["2 keys or values could not be decoded: it is no JSON"]
    output, _ = write(Presentation(value_decoder="json"), records[:1], as_json=True)
    assert json.loads(output)["value"] == {"a": [1, "é"]}


def test_many_kinds_of_failures_become_one() -> None:
    failures = Failures()
    for number in range(MOST_REASONS + 5):
        failures.count(f"reason {number}")
    assert len(failures.counts) == MOST_REASONS + 1
    assert failures.sentences[0] == "5 keys or values could not be decoded: other reasons"


def test_a_registry_needs_an_address() -> None:
    with pytest.raises(OptionError, match="needs --schema-registry URL"):
        write(Presentation(key_decoder="registry"))
    with pytest.raises(OptionError, match="is no address of a schema registry"):
        write(Presentation(value_decoder="registry", registry="localhost:8081"))


def test_numbers_that_json_has_not_are_no_json() -> None:
    values = [b"[NaN]", b"[-Infinity]", b"[1e999]", b"[1e9]"]
    output, sentences = write(
        Presentation(value_decoder="json"), [FakeMessage(value) for value in values], as_json=True
    )
    assert [json.loads(line)["value"] for line in output.splitlines()] == ["[NaN]", "[-Infinity]", "[1e999]", [1e9]]
    assert sentences == ["3 keys or values could not be decoded: it is no JSON"]
