"""The types of arguments that the helpers for tests accept, besides the plain ones."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

import kafkacompat.testing
from kafkacompat.testing import Acl, BrokerError
from kafkacompat.testing.arguments import check_arguments


def test_numbers_of_numpy_are_numbers() -> None:
    numpy: Any = pytest.importorskip("numpy")
    with kafkacompat.testing.cluster(numpy.int64(1)) as kafka:
        kafka.create_topic("t", partitions=numpy.int32(2), replicas=numpy.int64(1))
        kafka.produce("t", ["a"], partition=numpy.int64(1))
        assert [record.partition for record in kafka.records("t", numpy.uint8(1), within=numpy.float64(10))] == [1]
    for value in (numpy.float64(3), numpy.bool_(True), True):
        with pytest.raises(BrokerError, match=f"has the wrong type, {type(value).__name__}: give a number"):
            check_arguments(n=value)


def test_rules_are_any_sequence_of_rules() -> None:
    rule = Acl("alice", "READ", topic="t")
    sequences: tuple[object, ...] = ([rule], (rule,), deque([rule]), [])
    for rules in sequences:
        check_arguments(acls=rules)
    others: tuple[object, ...] = (iter([rule]), {rule}, "", b"", ["alice"])
    for rules in others:
        with pytest.raises(BrokerError, match="give a list of rules"):
            check_arguments(acls=rules)
