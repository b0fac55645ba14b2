"""Requests of tools to the controller, and notifications from brokers."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import administration

ISR_CHANGE = "/isr_change_notification/isr_change_0000000001"
LOG_DIR_EVENT = "/log_dir_event_notification/log_dir_event_0000000001"


def test_a_reassignment() -> None:
    value = administration.encode_reassignment({("t", 0): (2, 1), ("u", 5): (3,)})
    assert json.loads(value) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [2, 1]},
            {"topic": "u", "partition": 5, "replicas": [3]},
        ],
    }
    assert administration.decode_reassignment(value) == {("t", 0): (2, 1), ("u", 5): (3,)}


def test_an_election_of_preferred_leaders() -> None:
    value = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":0}]}'
    assert administration.decode_preferred_election(value) == {("t", 0)}


def test_a_change_of_in_sync_sets() -> None:
    value = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":1}]}'
    assert administration.decode_isr_change(ISR_CHANGE, value) == {("t", 0), ("u", 1)}


def test_a_failed_log_directory() -> None:
    value = administration.encode_log_dir_event(4)
    assert json.loads(value) == {"version": 1, "broker": 4, "event": 1}
    assert administration.decode_log_dir_event(LOG_DIR_EVENT, value) == 4


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b'{"version":1}', 'it has no "partitions"'),
        (b'{"partitions":{}}', '"partitions" is {}, not a list of objects'),
        (b'{"partitions":[1]}', '"partitions" is [1], not a list of objects'),
        (b'{"partitions":[{"partition":0,"replicas":[1]}]}', 'it has no "topic"'),
        (b'{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}', '"partition" is -1'),
        (b'{"partitions":[{"topic":"t","partition":0,"replicas":"1"}]}', "\"replicas\" is '1'"),
    ],
)
def test_a_damaged_reassignment(value: bytes, problem: str) -> None:
    with pytest.raises(StoreError) as error:
        administration.decode_reassignment(value)
    assert str(error.value).startswith(f"the metadata is damaged at /admin/reassign_partitions: {problem}")


def test_damaged_notifications_are_named() -> None:
    with pytest.raises(StoreError, match=f'damaged at {LOG_DIR_EVENT}: it has no "broker"'):
        administration.decode_log_dir_event(LOG_DIR_EVENT, b"{}")
    with pytest.raises(StoreError, match=f"damaged at {ISR_CHANGE}: it is no JSON"):
        administration.decode_isr_change(ISR_CHANGE, b"")
    with pytest.raises(StoreError, match=r"damaged at /admin/preferred_replica_election: it has no \"partitions\""):
        administration.decode_preferred_election(b"{}")
