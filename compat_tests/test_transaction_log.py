"""`__transaction_state`: Kafka reads this broker's records, and this broker reads Kafka's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.dumps import kafkas_dump, kafkas_records, list_complaints
from compat_tests.java_tools import run_java
from compat_tests.raw_client import RawClient
from compat_tests.same_answers.transactions import (
    OWN_EPOCHS,
    STATES,
    ProducerIdAndEpoch,
    a_producer,
    await_end,
    make_add_request,
    make_describe_request,
    make_end_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsResponse, TransactionState
from kafkacompat.wire.apis.end_txn import EndTxnResponse
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
TOPIC = "t"
OWN = "own epochs"


def transactions_in_every_state(broker: Broker) -> dict[str, ProducerIdAndEpoch]:
    """Return producers by transactional id: one is named after each state, and OWN's transactions have their own epochs."""
    with closing(Transcript(broker.port)) as script:
        wait_for_coordinator(script, "any")
        script.create_topic(TOPIC, 2)
        producers = {name: a_producer(script, name) for name in (*STATES, OWN)}
        for name, reach in STATES.items():
            reach(script, name, TOPIC, producers[name])
        added = script.client.call(make_add_request(OWN, producers[OWN], (TOPIC, 1)), AddPartitionsToTxnResponse, 3)
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        ended = script.client.call(make_end_request(OWN, producers[OWN]), EndTxnResponse, OWN_EPOCHS)
        producers[OWN] = (ended.producer_id, ended.producer_epoch)
        for name in producers:
            await_end(script, name)
    return producers


def describe_transactions(broker: Broker) -> dict[str, TransactionState]:
    with closing(Transcript(broker.port)) as script:
        answer = script.client.call(make_describe_request(*STATES, OWN), DescribeTransactionsResponse, 0)
    return {state.transactional_id: state for state in answer.transaction_states}


def record_count(broker: Broker) -> int:
    parts = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(50)]
    asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TRANSACTION_TOPIC, partitions=parts)])
    with RawClient(broker.port) as client:
        (topic,) = client.call(asked, ListOffsetsResponse, 5).topics
    assert not any(partition.error_code for partition in topic.partitions)
    return sum(partition.offset for partition in topic.partitions)


def show_transactions(broker: Broker) -> dict[str, list[dict[str, Any]]]:
    """Return the values of each transactional id as Kafka's formatter shows them, without fields that each broker generates."""
    everything = ("--topic", TRANSACTION_TOPIC, "--from-beginning", "--max-messages", str(record_count(broker)))
    options = ("--bootstrap-server", broker.bootstrap, "--formatter", FORMATTER, *everything)
    values: dict[str, list[dict[str, Any]]] = {}
    for record in _parse_objects(run_java(CONSUMER, options).stdout):
        values.setdefault(record["key"]["data"]["transactionalId"], []).append(_make_comparable(record["value"]))
    values.pop("any-ready")
    return values


def _parse_objects(text: str) -> Iterator[dict[str, Any]]:
    """Objects in JSON that follow each other without a line's end."""
    decoder = json.JSONDecoder()
    while text.startswith("{"):
        parsed, end = decoder.raw_decode(text)
        text = text[end:]
        yield parsed


def _make_comparable(value: Mapping[str, Any]) -> dict[str, Any]:
    data = dict(value["data"])
    assert data.pop("transactionLastUpdateTimestampMs") > 0
    started = data.pop("transactionStartTimestampMs")
    same = data.get("previousProducerId", -1) == data.pop("producerId")
    data.pop("previousProducerId", None)
    return {"version": value["version"], **data, "was the producer before": same, "has started": started > 0}


@pytest.mark.tools
def test_kafkas_formatter_shows_the_same_of_both(tmp_path: Path) -> None:
    values = []
    for broker in (KafkaBroker(tmp_path / "kafka"), KafkacompatBroker(tmp_path / "ours")):
        with broker:
            transactions_in_every_state(broker)
            values.append(show_transactions(broker))
    kafkas, ours = values
    assert [value["transactionStatus"] for value in ours["CompleteCommit"]] == [0, 1, 2, 4]
    assert ours == kafkas


@pytest.mark.tools
def test_kafkas_decoder_reads_our_files(tmp_path: Path) -> None:
    with KafkacompatBroker(tmp_path / "ours") as broker:
        producers = transactions_in_every_state(broker)
    files = sorted(broker.data_folder.glob("__transaction_state-*/*.log"))
    output, errors = kafkas_dump([path for path in files if path.stat().st_size], "--transaction-log-decoder")
    assert list_complaints(errors) == []
    keys = {json.loads(record["key"])["data"]["transactionalId"] for record in kafkas_records(output)}
    assert keys == {*producers, "any-ready"}


@pytest.mark.tools
def test_transactions_of_kafka_are_taken_over_in_every_state(tmp_path: Path) -> None:
    kafka = KafkaBroker(tmp_path / "kafka")
    with kafka:
        producers = transactions_in_every_state(kafka)
        before = describe_transactions(kafka)
        kafka.kill()
    ours = KafkacompatBroker(tmp_path / "ours", {"transaction.max.timeout.ms": "900000"})
    ours.folder.mkdir()
    kafka.data_folder.rename(ours.data_folder)
    with ours:
        until(lambda: not any(state.error_code for state in describe_transactions(ours).values()))
        assert describe_transactions(ours) == before
        with closing(Transcript(ours.port)) as script:
            ended = script.client.call(make_end_request("Ongoing", producers["Ongoing"]), EndTxnResponse, 4)
            assert ended.error_code == 0
            assert await_end(script, "Ongoing") == "CompleteCommit"
            assert a_producer(script, "Empty") == (producers["Empty"][0], producers["Empty"][1] + 1)
            again = script.client.call(
                make_end_request(OWN, (producers[OWN][0], producers[OWN][1] - 1)), EndTxnResponse, OWN_EPOCHS
            )
            assert (again.error_code, again.producer_id, again.producer_epoch) == (0, *producers[OWN])


def test_open_and_ended_transactions_survive_a_kill(tmp_path: Path) -> None:
    broker = KafkacompatBroker(tmp_path / "ours")
    with broker:
        producers = transactions_in_every_state(broker)
        before = describe_transactions(broker)
        broker.kill()
        broker.start()
        until(lambda: not any(state.error_code for state in describe_transactions(broker).values()))
        assert describe_transactions(broker) == before
        with closing(Transcript(broker.port)) as script:
            for committed, name in ((True, "CompleteCommit"), (False, "CompleteAbort")):
                assert (
                    script.client.call(make_end_request(name, producers[name], committed), EndTxnResponse, 4).error_code
                    == 0
                )
            assert (
                script.client.call(make_end_request("Ongoing", producers["Ongoing"]), EndTxnResponse, 4).error_code == 0
            )
        assert not re.search(r"ERROR|Traceback", broker.stderr())
