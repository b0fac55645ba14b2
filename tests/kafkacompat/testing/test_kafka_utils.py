"""The class with the interface of PySpark's KafkaUtils; Spark itself is asked in compat_tests."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.testing import BrokerError
from kafkacompat.testing.kafka_utils import KafkaUtils


def test_topics_and_messages() -> None:
    utils = KafkaUtils(kafka_version="7.4.0")
    utils.setup()
    try:
        assert utils.initialized and utils.broker == utils.kafka.bootstrap_servers
        utils.create_topics(["source", "sink"], num_partitions=1)
        utils.create_topics(["source"], num_partitions=3)
        utils.send_messages("source", [("key", 1), (None, None)])
        assert [(record.key, record.value) for record in utils.kafka.records("source")] == [
            (b"key", b"1"),
            (None, None),
        ]
        utils.delete_topics(["source", "missing"])
        utils.create_topics(["source"])
        assert utils.kafka.records("source") == []
    finally:
        utils.teardown()
    utils.teardown()
    assert not utils.initialized
    with pytest.raises(BrokerError, match=r"the broker of KafkaUtils does not run: call setup\(\) first"):
        utils.create_topics(["source"])


def test_waiting_for_a_result() -> None:
    results = iter([1, 2, 3])
    KafkaUtils().assert_eventually(lambda: next(results), 3, interval=0)
    with pytest.raises(AssertionError, match=r"after 0 s the result is 'a', not 'b'"):
        KafkaUtils().assert_eventually(lambda: "a", "b", timeout=0)


class Query:
    """A streaming query that is active after some checks, or has failed."""

    def __init__(self, checks: int, problem: Exception | None = None) -> None:
        self._checks = checks
        self._problem = problem

    def exception(self) -> Exception | None:
        return self._problem

    @property
    def status(self) -> dict[str, Any]:
        self._checks -= 1
        return {"isDataAvailable": False, "isTriggerActive": self._checks <= 0}


def test_waiting_for_a_query() -> None:
    KafkaUtils().wait_for_query_alive(Query(3), interval=0)
    with pytest.raises(AssertionError, match=r"the query is not active after 0 s: .*isTriggerActive"):
        KafkaUtils().wait_for_query_alive(Query(9), timeout=0)
    with pytest.raises(LookupError, match="of the query"):
        KafkaUtils().wait_for_query_alive(Query(1, LookupError("of the query")))
