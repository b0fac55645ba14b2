"""Scripts about records in transactions: accepted batches, stable offsets, and responses to readers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compat_tests.batches import RECENT_MS
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.records import fetch_of, list_offsets_of
from compat_tests.same_answers.transactions import (
    OWN_EPOCHS,
    ProducerIdAndEpoch,
    a_producer,
    await_end,
    make_add_request,
    make_end_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from kafkacompat.wire.apis.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from kafkacompat.wire.apis.end_txn import EndTxnResponse
from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse
from kafkacompat.wire.apis.list_offsets import ListOffsetsResponse
from kafkacompat.wire.apis.produce import ProduceRequest, ProduceResponse
from kafkacompat.wire.record_batch import NewRecord, build_batch, read_header, split_batches

ADDING = 12
"""The version of Produce from which on a partition comes to be part of the transaction by itself."""


def make_batch(
    producer: ProducerIdAndEpoch, sequence: int, *, count: int = 2, transactional: bool = True, at_ms: int = 0
) -> bytes:
    """A batch of a producer."""
    records: list[NewRecord] = [(RECENT_MS + at_ms + index, b"k", b"value", []) for index in range(count)]
    return build_batch(
        records,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=transactional,
    )


def make_produce_request(topic: str, name: str | None, *batches_of: bytes) -> ProduceRequest:
    request = produce_request(topic, dict(enumerate(batches_of)))
    request.transactional_id = name
    return request


def note_partition(script: Transcript, label: str, topic: str) -> None:
    """Note the view of readers and administrators."""
    for isolation in (0, 1):
        for offset in (0, 1, 3, 5, 8):
            asked = fetch_of(topic, offset)
            asked.isolation_level = isolation
            note_fetched(script, f"{label}: {isolation} from {offset}", asked)
        for timestamp in (-1, -2, -3, RECENT_MS, RECENT_MS + 500):
            listing = list_offsets_of(topic, timestamp)
            listing.isolation_level = isolation
            listed = script.client.call(listing, ListOffsetsResponse, 8)
            for part in listed.topics[0].partitions:
                part.timestamp = _make_comparable(part.timestamp)
            script.note(f"{label}: {isolation} at {_make_comparable(timestamp)}", listed)
    described = script.client.call(
        DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])]), DescribeProducersResponse, 0
    )
    for producer in described.topics[0].partitions[0].active_producers:
        producer.last_timestamp = _make_comparable(producer.last_timestamp)
    described.topics[0].partitions[0].active_producers.sort(key=lambda active: active.producer_id)
    script.note(f"{label}: producers", described)


def _make_comparable(timestamp: int) -> int:
    """That of a marker is the broker's time."""
    return 1 if timestamp > RECENT_MS + 1000 else timestamp


def note_fetched(script: Transcript, label: str, asked: FetchRequest, version: int = 11) -> None:
    """Note a response with its batches' fields instead of their bytes: a marker has the time of the broker."""
    answer = script.client.call(asked, FetchResponse, version)
    for topic in answer.responses:
        for part in topic.partitions:
            headers = [read_header(batch) for batch in split_batches(bytes(part.records or b""))]  # type: ignore[arg-type]
            fields = [
                (header.base_offset, header.last_offset, header.attributes, header.base_sequence) for header in headers
            ]
            part.records = repr([fields, [header.producer_epoch for header in headers]]).encode()
    script.note(label, answer)


def add_partition(script: Transcript, name: str, producer: ProducerIdAndEpoch, topic: str) -> None:
    """Add partition 0 to the transaction without a note."""

    def is_added() -> bool:
        answer = script.client.call(make_add_request(name, producer, (topic, 0)), AddPartitionsToTxnResponse, 3)
        return not answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    until(is_added)


def end_transaction(
    script: Transcript, name: str, producer: ProducerIdAndEpoch, committed: bool, version: int = 4
) -> None:
    """End a transaction in all its partitions without a note."""
    assert script.client.call(make_end_request(name, producer, committed), EndTxnResponse, version).error_code == 0
    await_end(script, name)


Send = Callable[[str, str, bytes], None]


def produce_in_transactions(script: Transcript, name: str) -> None:
    """By clients that add partitions themselves."""
    wait_for_coordinator(script, name)
    for version in (3, 9, 10, 11):
        topic, mine, other = f"{name}-{version}", f"{name}-{version}-a", f"{name}-{version}-b"
        script.create_topic(topic)
        a_producer(script, mine)
        producer, another = a_producer(script, mine), a_producer(script, other)
        send = partial(_send_batch, script, topic, version)
        send("not added", mine, make_batch(producer, 0))
        add_partition(script, mine, producer, topic)
        send("first", mine, make_batch(producer, 0))
        send("first again", mine, make_batch(producer, 0))
        send("second", mine, make_batch(producer, 2))
        send("gap", mine, make_batch(producer, 9))
        send("not in the transaction", mine, make_batch(producer, 4, transactional=False))
        send("older epoch", mine, make_batch((producer[0], producer[1] - 1), 4))
        send("newer epoch", mine, make_batch((producer[0], producer[1] + 1), 0))
        send("unknown producer", mine, make_batch((producer[0] + 500_000, 0), 0))
        send("unknown transactional id", f"{mine}-unknown", make_batch(another, 0))
        script.ask(
            f"no transactional id {version}",
            make_produce_request(topic, None, make_batch(producer, 4)),
            ProduceResponse,
            version,
        )
        note_partition(script, f"{version} open", topic)
        add_partition(script, other, another, topic)
        send("another one", other, make_batch(another, 0, at_ms=500))
        end_transaction(script, other, another, True)
        note_partition(script, f"{version} first still open", topic)
        end_transaction(script, mine, producer, False)
        note_partition(script, f"{version} aborted", topic)
        send("late", mine, make_batch(producer, 4))
        add_partition(script, mine, producer, topic)
        send("next transaction", mine, make_batch(producer, 4))
        note_partition(script, f"{version} next", topic)


def repetition_of_an_aborted_batch(script: Transcript, name: str) -> None:
    """A client gives up a batch, which was stored nevertheless, and continues with its sequence numbers."""
    wait_for_coordinator(script, name)
    script.create_topic(name)
    producer = a_producer(script, name)
    send = partial(_send_batch, script, name, 11)
    add_partition(script, name, producer, name)
    send("first", name, make_batch(producer, 0))
    end_transaction(script, name, producer, False)
    add_partition(script, name, producer, name)
    send("again", name, make_batch(producer, 0))


def transactions_in_the_brokers_time(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    script.create_topic(name, message_timestamp_type="LogAppendTime")
    for committed in (True, False):
        producer = a_producer(script, name)
        add_partition(script, name, producer, name)
        _send_batch(script, name, 11, f"a batch {committed}", name, make_batch(producer, 0))
        end_transaction(script, name, producer, committed)
        for isolation in (0, 1):
            asked = fetch_of(name)
            asked.isolation_level = isolation
            note_fetched(script, f"{committed} {isolation}", asked)


def readers_in_sessions(script: Transcript, name: str) -> None:
    """The view of a reader of committed records while a transaction continues, and after its end."""
    wait_for_coordinator(script, name)
    script.create_topic(name)
    producer = a_producer(script, name)
    opening = fetch_of(name)
    opening.isolation_level, opening.session_epoch = 1, 0
    opened = script.ask("open", opening, FetchResponse, 11)
    assert opened is not None
    add_partition(script, name, producer, name)
    for epoch, sequence in enumerate((0, 2, 4, None), 1):
        if sequence is None:
            end_transaction(script, name, producer, False)
        else:
            _send_batch(script, name, 11, f"batch {sequence}", name, make_batch(producer, sequence))
        following = FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=1 << 20, isolation_level=1)
        following.session_id, following.session_epoch = opened.session_id, epoch
        note_fetched(script, f"next {epoch}", following)


def produce_with_own_epochs(script: Transcript, name: str) -> None:
    """By clients that leave adding partitions to the broker."""
    wait_for_coordinator(script, name)
    script.create_topic(name)
    producer = a_producer(script, name)
    send = partial(_send_batch, script, name, ADDING)
    send("not at zero", name, make_batch(producer, 3))
    send("unknown producer", name, make_batch((producer[0] + 500_000, 0), 0))
    send("newer epoch", name, make_batch((producer[0], producer[1] + 1), 0))
    send("unknown transactional id", f"{name}-unknown", make_batch(producer, 0))
    for committed in (True, False):
        send(f"first {committed}", name, make_batch(producer, 0))
        send(f"again {committed}", name, make_batch(producer, 0))
        send(f"second {committed}", name, make_batch(producer, 2))
        note_partition(script, f"open {committed}", name)
        end_transaction(script, name, producer, committed, OWN_EPOCHS)
        note_partition(script, f"ended {committed}", name)
        send(f"late {committed}", name, make_batch(producer, 4))
        send(f"late repetition {committed}", name, make_batch(producer, 2))
        producer = (producer[0], producer[1] + 1)
        send(f"new epoch not at zero {committed}", name, make_batch(producer, 4))


def _send_batch(script: Transcript, topic: str, version: int, label: str, name: str, batch: bytes) -> None:
    """Send, again while the last transaction is being completed; note the answer."""

    def answered() -> ProduceResponse | None:
        answer = script.client.call(make_produce_request(topic, name, batch), ProduceResponse, version)
        code = answer.responses[0].partition_responses[0].error_code
        return None if code in PASSING else answer

    script.note(f"{label} v{version}", until(answered))


PASSING = (51, 19)
"""CONCURRENT_TRANSACTIONS, and the error code that older clients receive in place of it."""

SCRIPTS = (
    produce_in_transactions,
    repetition_of_an_aborted_batch,
    transactions_in_the_brokers_time,
    readers_in_sessions,
    produce_with_own_epochs,
)
