"""Subscriptions and assignments, with the version in front."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    read_topics,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.primitives import MalformedError

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["t"],
    user_data=b"u",
    owned_partitions=[TopicPartition(topic="t", partitions=[1])],
    generation_id=5,
    rack_id="r",
)
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="t", partitions=[0, 2])])
TOPICS, USER_DATA = "00000001" + "000174", "00000001" + "75"
OWNED, GENERATION, RACK = "00000001" + "000174" + "00000001" + "00000001", "00000005", "000172"


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "0000" + TOPICS + USER_DATA),
        (1, "0001" + TOPICS + USER_DATA + OWNED),
        (2, "0002" + TOPICS + USER_DATA + OWNED + GENERATION),
        (3, "0003" + TOPICS + USER_DATA + OWNED + GENERATION + RACK),
    ],
)
def test_a_subscription_grows_with_its_version(version: int, data: str) -> None:
    assert write_subscription(SUBSCRIPTION, version).hex() == data
    read = read_subscription(bytes.fromhex(data))
    assert read.topics == ["t"]
    assert read.owned_partitions == (SUBSCRIPTION.owned_partitions if version >= 1 else [])
    assert read.generation_id == (5 if version >= 2 else -1)
    assert read.rack_id == ("r" if version >= 3 else None)


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_the_same_in_all_versions(version: int) -> None:
    data = write_assignment(ASSIGNMENT, version)
    assert data.hex() == f"{version:04x}" + "00000001" + "000174" + "00000002" + "00000000" + "00000002" + "ffffffff"
    assert read_assignment(memoryview(data)) == ASSIGNMENT


def test_data_of_a_newer_client_is_read_in_its_known_fields() -> None:
    data = b"\x00\x63" + write_subscription(SUBSCRIPTION, 3)[2:] + b"something new"
    assert read_subscription(data) == SUBSCRIPTION


@pytest.mark.parametrize(
    "data", ["0000" + TOPICS + USER_DATA, "0003" + TOPICS + "ffffffff", "fffe" + TOPICS + USER_DATA + "7f"]
)
def test_topics_are_read_whatever_follows(data: str) -> None:
    assert read_topics(bytes.fromhex(data)) == ["t"]


@pytest.mark.parametrize("data", ["", "00", "0000", "000000000001" + "0009" + "74"])
def test_topics_that_are_cut_off_are_refused(data: str) -> None:
    with pytest.raises(MalformedError):
        read_topics(bytes.fromhex(data))


@pytest.mark.parametrize("read", [read_subscription, read_assignment])
@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\xff\xff" + bytes(30), b"\0\0\0\0\0\x01\0\x09t"])
def test_damaged_bytes_are_refused(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(MalformedError):
        read(data)
