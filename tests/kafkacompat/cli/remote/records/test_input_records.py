"""Records from lines, JSON and whole files."""

from __future__ import annotations

import io

import pytest

from kafkacompat.cli.remote.records import input_records
from kafkacompat.cli.remote.records.input_records import (
    InputError,
    NewRecord,
    Parse,
    make_json_parser,
    make_text_parser,
    parse_lines,
    read_whole,
)

NOTHING = NewRecord(None)


def parse(text: bytes, parser: Parse) -> list[NewRecord]:
    return list(parse_lines(io.BytesIO(text), "x.txt", lambda _: None, parser))


def test_lines_are_values_without_their_ends() -> None:
    constant = NewRecord(None, b"k", [("h", b"1")], 4)
    records = parse(b"a\r\n\nb \xff\nNULL\nlast", make_text_parser(None, b"NULL", constant))
    assert [record.value for record in records] == [b"a", b"", b"b \xff", None, b"last"]
    assert {record[1:4] for record in [record._replace(headers=None) for record in records]} == {(b"k", None, 4)}
    assert records[0].headers == [("h", b"1")]


def test_lines_with_keys() -> None:
    records = parse(b"a::1::2\n::x\nb::NULL\n", make_text_parser(b"::", b"NULL", NOTHING))
    assert [record[:2] for record in records] == [(b"1::2", b"a"), (b"x", b""), (None, b"b")]


def test_a_line_without_the_separator_is_named() -> None:
    with pytest.raises(
        InputError, match=r"^x.txt, line 2, has no ':' between a key and a value: check --key-separator$"
    ):
        parse(b"a:1\nb2\n", make_text_parser(b":", None, NOTHING))


def test_json_has_all_fields() -> None:
    lines = (
        b'{"key": "k", "value": {"a": [1, "\xc3\xa9"]}, "headers": {"h": "1", "n": null}, "partition": 2, "timestamp": 5}\n'
        b'{"value_base64": "AP8=", "key_base64": "/w==", "headers": [{"name": "h", "value_base64": "gA=="}]}\n'
        b'{"topic": "t", "offset": 7, "timestamp_type": "CreateTime", "value": null}\n'
        b'{"value": "text", "value_schema_id": 3}\n'
        b"{}"
    )
    assert parse(lines, make_json_parser(NOTHING)) == [
        NewRecord('{"a":[1,"é"]}'.encode(), b"k", [("h", b"1"), ("n", None)], 2, 5),
        NewRecord(b"\x00\xff", b"\xff", [("h", b"\x80")]),
        NOTHING,
        NewRecord(b"text"),
        NOTHING,
    ]


def test_json_adds_to_what_all_records_share() -> None:
    constant = NewRecord(None, b"k", [("a", b"1")], 4)
    (first, second) = parse(b'{"key":"own","partition":0,"headers":{"b":"2"}}\n{}', make_json_parser(constant))
    assert first == NewRecord(None, b"own", [("a", b"1"), ("b", b"2")], 0)
    assert second == constant


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"no", "line 1, is no JSON"),
        (b"\xff", "line 1, is no JSON"),
        (b"[" * 100_000, "line 1, is no JSON"),
        (b'{"value": NaN}', "line 1, is no JSON"),
        (b'{"value": [1e999]}', "line 1, is no JSON"),
        (b"[1]", "line 1, is a JSON list, not an object"),
        (b'{"valu": 1}', "line 1, has the unknown field 'valu': choose from headers, key, key_base64, "),
        (b'{"partition": -1}', "line 1, has the partition -1, which is no whole number from 0 to 2147483647"),
        (b'{"partition": true}', "line 1, has the partition True"),
        (b'{"timestamp": 1.5}', "line 1, has the timestamp 1.5"),
        (b'{"value_base64": "!"}', "line 1, has value_base64 that is no base64"),
        (b'{"key_base64": 1}', "line 1, has key_base64 that is no base64"),
        (b'{"value": "\\ud800"}', "line 1, has value with half a surrogate pair"),
        (b'{"headers": 1}', "line 1, has headers that are neither an object nor a list"),
        (b'{"headers": [{"value": "x"}]}', "line 1, has a header without a name"),
        (b'{"headers": {"\\ud800": "x"}}', "line 1, has the header '\\ud800', whose name is no UTF-8"),
        (b'{"headers": {"a\\u0000b": "x"}}', "line 1, has the header 'a\\x00b', whose name has a NUL character"),
    ],
)
def test_json_that_is_no_record(line: bytes, words: str) -> None:
    with pytest.raises(InputError) as problem:
        parse(line, make_json_parser(NOTHING))
    assert str(problem.value).startswith(f"x.txt, {words}")


def test_a_record_without_an_end_takes_no_endless_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_records, "MOST_RECORD_BYTES", 10)
    monkeypatch.setattr(input_records, "STEP_BYTES", 4)
    with pytest.raises(InputError, match=r"^x.txt, line 2, has more than 10 bytes: split it$"):
        parse(b"a\n" + b"b" * 100, make_text_parser(None, None, NOTHING))
    with pytest.raises(InputError, match=r"^x.txt has more than 10 bytes, which no broker accepts"):
        read_whole(io.BytesIO(b"b" * 100), "x.txt", lambda _: None)
    assert read_whole(io.BytesIO(b"b" * 10), "x.txt", lambda _: None) == b"b" * 10


def test_each_byte_counts_for_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_records, "STEP_BYTES", 4)
    steps: list[int] = []
    list(parse_lines(io.BytesIO(b"abc\ndefg\nh"), "x", steps.append, make_text_parser(None, None, NOTHING)))
    assert (sum(steps), len(steps)) == (10, 2)
