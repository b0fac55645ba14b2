"""Group ids go to the partition that Java's hash gives."""

from __future__ import annotations

import pytest

from kafkacompat.wire.java_hash import java_string_hash, partition_for_key


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("é", 233),
        ("😀", 0xD83D * 31 + 0xDE00),
        ("polygenelubricants", -(2**31)),
        ("my-group", -1906497762),
        ("spark-kafka-source-éß", 758472497),
    ],
)
def test_the_hash_is_that_of_java(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@pytest.mark.parametrize(("key", "partition"), [("hello", 99162322 % 50), ("polygenelubricants", 0), ("my-group", 12)])
def test_a_key_belongs_to_the_partition_of_its_absolute_hash(key: str, partition: int) -> None:
    assert partition_for_key(key, 50) == partition
