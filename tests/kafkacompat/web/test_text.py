"""Bytes of records as text."""

from __future__ import annotations

import json
from random import Random

import pytest

from kafkacompat.web.figures import format_bytes, format_number, format_time, parse_time
from kafkacompat.web.text import MAX_JSON_BYTES, dump_hex, format_json, reveal_hidden, show_bytes


@pytest.mark.parametrize(
    ("data", "form", "preview", "full"),
    [
        (None, "null", "", ""),
        (b"", "empty", "", ""),
        (b"plain", "text", "plain", ""),
        ("größer 🦊".encode(), "text", "größer 🦊", ""),
        (b"two\nlines", "text", "two lines", "two\nlines"),
        (b"17", "text", "17", ""),
        (b'{"a":1}', "json", '{"a":1}', '{\n  "a": 1\n}'),
        (b'{"a":', "text", '{"a":', ""),
        (b"\xff\xfe", "hex", "ff fe", "00000000  ff fe                                            .."),
        (b"\x00\x00\x01\x02", "hex", "00 00 01 02", "00000000  00 00 01 02                                      ...."),
        ("a\u202eb\u200b\x7f".encode(), "text", "a\\u202eb\\u200b\\u007f", ""),
    ],
)
def test_each_form(data: bytes | None, form: str, preview: str, full: str) -> None:
    shown = show_bytes(data)
    assert (shown.form, shown.preview, shown.full) == (form, preview, full)
    assert shown.size_bytes == len(data or b"") and not shown.is_cut


def test_what_is_shown_is_bounded() -> None:
    shown = show_bytes(b"x" * 1_000_000)
    assert shown.is_cut and shown.size_bytes == 1_000_000 and len(shown.full) == 2048 and len(shown.preview) == 161
    # The bound may lie within a character.
    for length in range(2045, 2051):
        shown = show_bytes(b"x" * length + "🦊".encode() * 9)
        assert shown.form == "text" and shown.is_cut
    assert show_bytes(bytes(100_000)).full.count("\n") == 63
    assert format_json("[" + "1," * MAX_JSON_BYTES + "1]") is None


def test_json_keeps_all_but_white_space() -> None:
    text = '{"a": 1.0000000000000000000001, "a": [ ], "b": {}, "c": ["{\\"}", 1e5, null, {"d": "\\u00e4, : ["}]}'
    pretty = format_json(text)
    assert pretty is not None
    assert pretty.splitlines()[:4] == ["{", '  "a": 1.0000000000000000000001,', '  "a": [],', '  "b": {},']
    assert json.loads(pretty, object_pairs_hook=list) == json.loads(text, object_pairs_hook=list)
    # Each element would be a line with hundreds of blanks.
    assert format_json("[" * 800 + "1," * 20_000 + "1" + "]" * 800) is None
    assert format_json("[" * 30_000 + "]" * 30_000) is None


def test_random_json_means_the_same() -> None:
    rng = Random(1)

    def make(depth: int) -> object:
        kind = rng.randrange(6 if depth else 4)
        if kind < 4:
            return [None, rng.random(), "".join(map(chr, rng.choices(range(32, 1000), k=5))), True][kind]
        values = [make(depth - 1) for _ in range(rng.randrange(4))]
        return values if kind == 4 else {f'{number}"\\': value for number, value in enumerate(values)}

    for _ in range(300):
        value = [make(4)]
        for indent in (None, 1):
            pretty = format_json(json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=indent))
            assert pretty is not None and json.loads(pretty) == value


def test_random_bytes_have_no_hidden_characters() -> None:
    rng = Random(2)
    for _ in range(500):
        data = bytes(rng.choices(range(256 if rng.random() < 0.5 else 128), k=rng.randrange(60)))
        shown = show_bytes(data)
        for text in (shown.preview, shown.full):
            assert text == reveal_hidden(text)
            text.encode()
    assert dump_hex(b"ab").endswith("ab")


def test_figures() -> None:
    assert [format_bytes(size) for size in (0, 999, 1000, 999_600, 1_234_567, 10**21)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1 MB",
        "1.23 MB",
        "1e+03 EB",
    ]
    assert [format_number(value) for value in (0, 1.25, 99, 1_234_567)] == ["0", "1.2", "99", "1\u202f234\u202f567"]
    assert format_time(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert [format_time(time_ms) for time_ms in (-1, 1 << 62)] == ["-1 ms", f"{1 << 62} ms"]
    expected = 1_700_000_000_000
    for text in ("2023-11-14 22:13:20", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "1700000000000"):
        assert parse_time(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2023-13-01", "9" * 30, "1969-12-31", "20231", "²" * 12])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)
