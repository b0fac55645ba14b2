"""Transactions that an Apache Kafka with ZooKeeper left open continue here: producers end them, or their timeout does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.brokers import Kafka011Broker, Kafka28Broker, KafkacompatBroker, OldKafkaBroker
from compat_tests.confluent import read_all
from compat_tests.predecessors import QUIET
from compat_tests.same_answers.transactions import await_end, make_describe_request, make_end_request
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsResponse, TransactionState
from kafkacompat.wire.apis.end_txn import EndTxnResponse

TOPIC = "t"
ONE_REPLICA = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
}
LEFT_OPEN = {"committed here": 60_000, "taken up again": 60_000, "out of time": 5_000}
"""Transactional id -> timeout of its transaction in ms."""


def start_producer(bootstrap: str, name: str, timeout_ms: int = 60_000) -> Producer:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": timeout_ms, **QUIET}
    producer = Producer(settings)
    producer.init_transactions(60)
    return producer


def begin_transaction(producer: Producer, value: str) -> None:
    producer.begin_transaction()
    producer.produce(TOPIC, value, partition=0)
    assert producer.flush(30) == 0


def describe_transaction(script: Transcript, name: str) -> TransactionState:
    answer = script.client.call(make_describe_request(name), DescribeTransactionsResponse, 0)
    state: TransactionState = answer.transaction_states[0]
    return state


@pytest.mark.migration
@pytest.mark.parametrize("release", [Kafka011Broker, Kafka28Broker], ids=["0.11", "2.8"])
def test_open_transactions_of_an_older_kafka_continue(release: type[OldKafkaBroker], tmp_path: Path) -> None:
    kafka = release(tmp_path / "kafka", ONE_REPLICA)
    with kafka:
        before = start_producer(kafka.bootstrap, "before")
        begin_transaction(before, "before")
        before.commit_transaction(30)
        open_producers = {
            name: start_producer(kafka.bootstrap, name, timeout_ms) for name, timeout_ms in LEFT_OPEN.items()
        }
        for name, open_producer in open_producers.items():
            begin_transaction(open_producer, name)
        kafka.kill()
    ours = KafkacompatBroker(tmp_path / "ours", {"transaction.max.timeout.ms": "900000"})
    ours.folder.mkdir()
    kafka.data_folder.rename(ours.data_folder)
    with ours:
        with closing(Transcript(ours.port)) as script:
            until(lambda: not describe_transaction(script, "committed here").error_code)
            ongoing = describe_transaction(script, "committed here")
            assert ongoing.transaction_state == "Ongoing"
            producer = (ongoing.producer_id, ongoing.producer_epoch)
            assert script.client.call(make_end_request("committed here", producer), EndTxnResponse, 1).error_code == 0
            assert await_end(script, "committed here") == "CompleteCommit"
            again = start_producer(ours.bootstrap, "taken up again")
            begin_transaction(again, "after")
            again.commit_transaction(30)
            until(lambda: describe_transaction(script, "out of time").transaction_state == "CompleteAbort")
        # The consumer reads committed records; the aborted ones lie between these.
        values = [message.value().decode() for message in read_all(ours, TOPIC, 3)]
        assert values == ["before", "committed here", "after"]
