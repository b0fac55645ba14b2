"""The values of topics and of partitions' states, as Kafka 0.8 to 3.9 writes them."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.topics import (
    Assignment,
    LeaderIsrAndControllerEpoch,
    TopicAssignment,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from kafkacompat.wire.primitives import ZERO_UUID

UUID = bytes(range(16))
TOPIC = TopicImage(
    "orders",
    UUID,
    (
        PartitionImage(0, 1, 4, (1, 2), (1,), 3),
        PartitionImage(1, 2, 0, (2, 1, 3), (2, 1), 0, adding_replicas=(3,), removing_replicas=(1,)),
    ),
)
STORED = {
    "version": 3,
    "topic_id": "AAECAwQFBgcICQoLDA0ODw",
    "partitions": {"0": [1, 2], "1": [2, 1, 3]},
    "adding_replicas": {"1": [3]},
    "removing_replicas": {"1": [1]},
}
STATE = {"controller_epoch": 7, "leader": 1, "version": 1, "leader_epoch": 4, "isr": [1, 2]}


def test_a_topic_in_a_reassignment() -> None:
    assert json.loads(encode_topic(TOPIC)) == STORED
    assignments = (Assignment((1, 2)), Assignment((2, 1, 3), (3,), (1,)))
    assert decode_topic("orders", encode_topic(TOPIC)) == TopicAssignment(UUID, assignments)


@pytest.mark.parametrize(
    "value",
    [
        b'{"version":1,"partitions":{"1":[2],"0":[1]}}',
        b'{"version":2,"partitions":{"0":[1],"1":[2]},"adding_replicas":{},"removing_replicas":{}}',
        b'{"version":3,"partitions":{"0":[1],"1":[2]},"topic_id":null}',
    ],
)
def test_older_versions_have_no_topic_id(value: bytes) -> None:
    assert decode_topic("t", value) == TopicAssignment(ZERO_UUID, (Assignment((1,)), Assignment((2,))))


def test_ten_partitions_are_in_the_order_of_their_numbers() -> None:
    value = json.dumps({"version": 1, "partitions": {str(index): [index] for index in range(11)}}).encode()
    assert [replicas for (replicas, _, _) in decode_topic("t", value).partitions] == [(index,) for index in range(11)]


def test_a_topic_without_an_id_is_written_without_one() -> None:
    written = json.loads(encode_topic(TOPIC._replace(topic_id=ZERO_UUID)))
    assert "topic_id" not in written and written["version"] == 3


def test_a_change_of_a_topic_keeps_unknown_fields() -> None:
    before = {**STORED, "version": 4, "partitions": {"0": [9]}, "observers": {"0": [3]}}
    assert json.loads(encode_topic(TOPIC, json.dumps(before).encode())) == {
        **STORED,
        "version": 4,
        "observers": {"0": [3]},
    }
    old = b'{"version":1,"partitions":{"0":[1]}}'
    assert json.loads(encode_topic(TOPIC, old)) == STORED


def test_a_partition_s_state() -> None:
    partition = PartitionImage(0, 1, 4, (1, 2), (1, 2), 3)
    value = encode_partition_state("t", partition, 7)
    assert json.loads(value) == STATE
    assert decode_partition_state("t", 0, value) == LeaderIsrAndControllerEpoch(1, 4, (1, 2), False, 7)


def test_a_partition_that_recovers_says_so_until_it_has() -> None:
    recovering = PartitionImage(0, 1, 4, (1, 2), (1, 2), 3, is_recovering=True)
    value = encode_partition_state("t", recovering, 7)
    assert json.loads(value) == {**STATE, "leader_recovery_state": 1}
    assert decode_partition_state("t", 0, value).is_recovering
    recovered = encode_partition_state("t", recovering._replace(is_recovering=False), 8, value)
    assert json.loads(recovered) == {**STATE, "controller_epoch": 8}


def test_a_change_of_a_state_keeps_unknown_fields() -> None:
    before = json.dumps({**STATE, "version": 2, "leader": 9, "elr": [4]}).encode()
    written = json.loads(encode_partition_state("t", PartitionImage(0, 1, 4, (1, 2), (1, 2), 3), 7, before))
    assert written == {**STATE, "version": 2, "elr": [4]}


def test_a_leader_during_a_deletion_is_no_leader() -> None:
    assert decode_partition_state("t", 0, json.dumps({**STATE, "leader": -2}).encode()).leader == NO_LEADER


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "it is no JSON: Expecting value"),
        (b"\xff", "it is no JSON: it has bytes that are no text"),
        (b'"\\ud800"', "it is no JSON: it has bytes that are no text"),
        (b"[" * 100_000, "it is no JSON: it is nested too deeply"),
        (b'{"a":NaN}', "it is no JSON: NaN is no number"),
        (b"[]", "it is no JSON object"),
        (b"{}", 'it has no "partitions"'),
        (b'{"partitions":[]}', '"partitions" is [], not an object'),
        (b'{"partitions":{"1":[1]}}', "the partitions are not numbered from 0 without gaps"),
        (b'{"partitions":{"0":[1],"00":[1]}}', "the partitions are not numbered"),
        (b'{"partitions":{"\\u0660":[1]}}', "the partitions are not numbered"),
        (b'{"partitions":{"0":1}}', '"0" is 1, not a list of broker ids'),
        (b'{"partitions":{"0":[true]}}', '"0" is [True], not a list of broker ids'),
        (b'{"partitions":{"0":[-1]}}', '"0" is [-1], not a list of broker ids'),
        (b'{"partitions":{"0":[1.0]}}', '"0" is [1.0], not a list of broker ids'),
        (b'{"partitions":{"0":[2147483648]}}', '"0" is [2147483648], not a list of broker ids'),
        (b'{"partitions":{"0":[1,1]}}', '"0" is [1, 1], not a list of different broker ids'),
        (b'{"partitions":{"0":[1]},"adding_replicas":{"0":"x"}}', "\"0\" is 'x', not a list of broker ids"),
        (b'{"partitions":{},"topic_id":"short"}', '"topic_id" is "short", not an id'),
        (b'{"partitions":{},"topic_id":5}', '"topic_id" is 5, not a text'),
    ],
)
def test_a_damaged_topic(value: bytes, problem: str) -> None:
    with pytest.raises(StoreError) as error:
        decode_topic("orders", value)
    message = str(error.value)
    assert message.startswith(f"the metadata is damaged at /brokers/topics/orders: {problem}")
    assert "\n" not in message and len(message) < 500


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"leader": "1"}, "\"leader\" is '1', not a whole number from -2147483648 to 2147483647"),
        ({"leader_epoch": 2**31}, '"leader_epoch" is 2147483648, not a whole number'),
        ({"isr": None}, 'it has no "isr"'),
        ({"isr": {}}, '"isr" is {}, not a list of broker ids'),
        ({"leader_recovery_state": 2}, '"leader_recovery_state" is 2, not a whole number from 0 to 1'),
        ({"controller_epoch": True}, '"controller_epoch" is True, not a whole number'),
    ],
)
def test_a_damaged_state(change: dict[str, object], problem: str) -> None:
    with pytest.raises(StoreError) as error:
        decode_partition_state("t", 5, json.dumps({**STATE, **change}).encode())
    assert str(error.value).startswith(f"the metadata is damaged at /brokers/topics/t/partitions/5/state: {problem}")


def test_an_endless_number_is_refused_and_not_shown() -> None:
    text = json.dumps(STATE).replace('"leader": 1', f'"leader": 1{"0" * 100_000}')
    with pytest.raises(StoreError, match="damaged at /brokers/topics/t/partitions/5/state: ") as error:
        decode_partition_state("t", 5, text.encode())
    assert len(str(error.value)) < 500


def test_a_change_over_a_damaged_value_is_refused() -> None:
    with pytest.raises(StoreError, match="damaged at /brokers/topics/orders: it is no JSON"):
        encode_topic(TOPIC, b"{")
