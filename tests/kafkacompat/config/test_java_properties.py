"""The rules of java.util.Properties, as its documentation and Java 17 itself have them."""

from __future__ import annotations

import pytest

from kafkacompat.config.java_properties import parse_properties


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t = \f b c ", {"a": "b c "}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n  ! b=2\n\n\t\nc=3", {"c": "3"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\n# b", {"a": "1# b"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\\\\\x", {"a": "\t\n\r\f\\x"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("log.dirs=C:\\data", {"log.dirs": "C:data"}),
    ],
)
def test_reads_as_java_does(text: str, entries: dict[str, str]) -> None:
    assert parse_properties(text) == entries


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u=1"])
def test_refuses_half_a_unicode_escape(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)
