"""Scripts about records: Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch, InitProducerId."""

from __future__ import annotations

from compat_tests import batches
from compat_tests.batches import RECENT_MS
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

BATCH = batches.build([b"one", b"two", b"three"])
UNKNOWN_ID = bytes(range(16))

BAD_BATCHES = {
    "bad CRC": BATCH[:-1] + b"\xff",
    "empty": b"",
    "truncated": BATCH[:-5],
    "two batches": BATCH + BATCH,
    "count over delta": batches.patch_header(BATCH, 57, "i", 4),
    "no records": batches.patch_header(BATCH, 57, "i", 0),
    "delta off": batches.patch_header(BATCH, 23, "i", 9),
    "count and delta wrong": batches.patch_header(batches.patch_header(BATCH, 57, "i", 9), 23, "i", 8),
    "garbage records": batches.with_records(BATCH, b"\xff" * 40),
    "key length lies": batches.patch_header(BATCH, 65, "b", 8),
    "value length lies": batches.patch_header(BATCH, 69, "b", 4),
    "header count lies": batches.patch_header(BATCH, 73, "b", 2),
    "trailing bytes": batches.with_records(BATCH, BATCH[61:] + b"\x00\x00"),
    "control": batches.patch_header(BATCH, 21, "h", 0x20),
    "producer without sequence": batches.patch_header(BATCH, 43, "q", 5),
    "transactional without id": batches.patch_header(BATCH, 21, "h", 0x10),
    "far future": batches.build([b"x"], timestamp=9_000_000_000_000),
    "magic 1": BATCH[:16] + b"\x01" + BATCH[17:],
    "magic 3": BATCH[:16] + b"\x03" + BATCH[17:],
    "size 3": batches.patch_header(BATCH, 8, "i", 3),
    "negative size": batches.patch_header(BATCH, 8, "i", -1),
    "too large": batches.build([b"x" * 1_100_000]),
    "unknown codec": batches.patch_header(BATCH, 21, "h", 5),
    "no gzip": batches.patch_header(BATCH, 21, "h", batches.GZIP),
}


def by_id(topic_id: bytes, batch: bytes) -> ProduceRequest:
    data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])


def produce_versions(script: Transcript, name: str) -> None:
    topic_id = script.create_topic(name)
    for version in range(3, 13):
        script.ask("a batch", produce_request(name, {0: BATCH}), ProduceResponse, version)
        script.ask("unknown topic", produce_request(name + "-absent", {0: BATCH}), ProduceResponse, version)
        script.ask("unknown partition", produce_request(name, {7: BATCH}), ProduceResponse, version)
        script.ask("acks 2", produce_request(name, {0: BATCH}, acks=2), ProduceResponse, version)
    script.ask("a batch", by_id(topic_id, BATCH), ProduceResponse, 13)
    script.ask("unknown topic", by_id(UNKNOWN_ID, BATCH), ProduceResponse, 13)
    script.ask("no topics", ProduceRequest(acks=1), ProduceResponse, 9)


def produce_bad_batches(script: Transcript, name: str) -> None:
    script.create_topic(name)
    for label, batch in BAD_BATCHES.items():
        script.ask(label, produce_request(name, {0: batch}), ProduceResponse, 9)
    script.create_topic(name + "-compacted", cleanup_policy="compact")
    no_key = batches.build([b"a", b"b"], key=None)
    for version in (7, 8, 9):
        script.ask("no key", produce_request(name + "-compacted", {0: no_key}), ProduceResponse, version)
    script.ask("internal", produce_request("__consumer_offsets", {0: BATCH}), ProduceResponse, 9)
    script.create_topic(name + "-append-time", message_timestamp_type="LogAppendTime")
    script.ask("append time", produce_request(name + "-append-time", {0: BATCH}), ProduceResponse, 9)


def produce_idempotent(script: Transcript, name: str) -> None:
    """The fifth batch back is still known as a duplicate, the sixth is not; gaps and old epochs are refused."""
    script.create_topic(name)

    def send(label: str, sequence: int, epoch: int = 0, producer_id: int = 4_000_000) -> None:
        batch = batches.build([b"a", b"b"], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        script.ask(label, produce_request(name, {0: batch}), ProduceResponse, 9)

    for number in range(7):
        send(f"sequence {2 * number}", 2 * number)
    for number in range(7):
        send(f"again {2 * number}", 2 * number)
    send("gap", 40)
    send("overlap", 13)
    send("next", 14)
    send("new epoch not at 0", 5, epoch=1)
    send("new epoch", 0, epoch=1)
    send("old epoch", 16, epoch=0)
    send("unknown producer at 17", 17, producer_id=4_000_001)
    send("wraps", 2147483647, producer_id=4_000_002)
    send("wrapped", 1, producer_id=4_000_002)


def fetch_of(name: str, offset: int = 0, topic_id: bytes = bytes(16), **more: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    for field, value in more.items():
        setattr(wanted, field, value)
    topic = FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])
    return FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def fetch_versions(script: Transcript, name: str) -> None:
    topic_id = script.create_topic(name)
    for number in range(3):
        script.ask(f"fill {number}", produce_request(name, {0: BATCH}), ProduceResponse, 9)
    for version in range(4, 19):
        known = topic_id if version > 12 else bytes(16)
        unknown = UNKNOWN_ID if version > 12 else bytes(16)
        for offset in (0, 1, 3, 8, 9):
            script.ask(f"offset {offset}", fetch_of(name, offset, known), FetchResponse, version)
        script.ask("offset 10", fetch_of(name, 10, known), FetchResponse, version)
        script.ask("offset -5", fetch_of(name, -5, known), FetchResponse, version)
        script.ask("unknown topic", fetch_of(name + "-absent", 0, unknown), FetchResponse, version)
        script.ask("unknown partition", fetch_of(name, 0, known, partition=5), FetchResponse, version)
        script.ask("one byte", fetch_of(name, 0, known, partition_max_bytes=1), FetchResponse, version)
        script.ask("100 bytes", fetch_of(name, 0, known, partition_max_bytes=100), FetchResponse, version)


def fetch_epochs_and_isolation(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.ask("fill", produce_request(name, {0: BATCH}), ProduceResponse, 9)
    for epoch in (0, 1, 7):
        script.ask(f"leader epoch {epoch}", fetch_of(name, 0, current_leader_epoch=epoch), FetchResponse, 12)
        script.ask(f"fetched epoch {epoch}", fetch_of(name, 3, last_fetched_epoch=epoch), FetchResponse, 12)
    committed = fetch_of(name)
    committed.isolation_level = 1
    script.ask("read committed", committed, FetchResponse, 11)


def fetch_sessions(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.ask("fill", produce_request(name, {0: BATCH}), ProduceResponse, 9)
    opening = fetch_of(name)
    opening.session_epoch = 0
    opened = script.ask("open", opening, FetchResponse, 11)
    session_id = opened.session_id if opened else 0

    def next_in(label: str, epoch: int, request: FetchRequest, session: int = session_id) -> None:
        request.session_id, request.session_epoch = session, epoch
        script.ask(label, request, FetchResponse, 11)

    nothing = FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=1 << 20)
    next_in("unchanged", 1, nothing)
    next_in("moved on", 2, fetch_of(name, 3))
    script.ask("more", produce_request(name, {0: BATCH}), ProduceResponse, 9)
    next_in("sees more", 3, FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20))
    next_in("wrong epoch", 9, FetchRequest(max_wait_ms=50))
    next_in("unknown session", 1, FetchRequest(max_wait_ms=50), session=session_id + 12345 if session_id else 77)
    forgotten = [ForgottenTopic(topic=name, partitions=[0])]
    next_in("forget", 4, FetchRequest(max_wait_ms=50, min_bytes=1, forgotten_topics_data=forgotten))
    next_in("close", -1, FetchRequest(max_wait_ms=50))
    next_in("closed", 5, FetchRequest(max_wait_ms=50))


def list_offsets_of(name: str, timestamp: int, **more: int) -> ListOffsetsRequest:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    for field, value in more.items():
        setattr(part, field, value)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[part])], timeout_ms=5000)


def list_offsets(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.create_topic(name + "-empty")
    for number, second in enumerate((0, 5, 2)):
        batch = batches.build([b"a", b"b"], timestamp=RECENT_MS + 1000 * second)
        script.ask(f"fill {number}", produce_request(name, {0: batch}), ProduceResponse, 9)
    times = {"before": -1000, "first": 0, "between": 1000, "third": 2000, "highest": 5000, "after": 6000}
    for label, milliseconds in times.items():
        script.ask_every_version(label, list_offsets_of(name, RECENT_MS + milliseconds), ListOffsetsResponse)
    for special in range(-8, 0):
        script.ask_every_version(f"special {special}", list_offsets_of(name, special), ListOffsetsResponse)
        empty = list_offsets_of(name + "-empty", special)
        script.ask(f"empty special {special}", empty, ListOffsetsResponse, 11)
    script.ask_every_version("unknown topic", list_offsets_of(name + "-absent", -1), ListOffsetsResponse)
    script.ask_every_version("unknown partition", list_offsets_of(name, -1, partition_index=9), ListOffsetsResponse)
    for epoch in (0, 3):
        fenced = list_offsets_of(name, -1, current_leader_epoch=epoch)
        script.ask(f"epoch {epoch}", fenced, ListOffsetsResponse, 7)
    twice = list_offsets_of(name, -1)
    twice.topics[0].partitions *= 2
    script.ask("twice", twice, ListOffsetsResponse, 7)
    committed = list_offsets_of(name, -1)
    committed.isolation_level = 1
    script.ask("read committed", committed, ListOffsetsResponse, 7)


def delete_records(script: Transcript, name: str) -> None:
    script.create_topic(name)
    for number in range(4):
        script.ask(f"fill {number}", produce_request(name, {0: BATCH}), ProduceResponse, 9)

    def delete(label: str, offset: int, version: int = 2, topic: str = name) -> None:
        part = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=5000)
        script.ask(label, request, DeleteRecordsResponse, version)

    for version in range(3):
        delete(f"to {version + 2}", version + 2, version)
    delete("backwards", 1)
    delete("beyond", 13)
    delete("unknown topic", 1, topic=name + "-absent")
    delete("all", -1)
    script.ask("earliest", list_offsets_of(name, -2), ListOffsetsResponse, 7)
    script.ask("below the start", fetch_of(name, 3), FetchResponse, 11)
    script.create_topic(name + "-compacted", cleanup_policy="compact")
    delete("compacted", 0, topic=name + "-compacted")


def leader_epochs(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.ask("fill", produce_request(name, {0: BATCH}), ProduceResponse, 9)

    def epoch(label: str, leader_epoch: int, current: int = -1, topic: str = name, partition: int = 0) -> None:
        part = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[part])])
        script.ask_every_version(label, request, OffsetForLeaderEpochResponse)

    epoch("epoch 0", 0)
    epoch("epoch 5", 5)
    epoch("fenced", 0, current=3)
    epoch("current", 0, current=0)
    epoch("unknown topic", 0, topic=name + "-absent")
    epoch("unknown partition", 0, partition=4)


def producer_ids(script: Transcript, name: str) -> None:
    probe = Transcript(script.port)
    tries = iter(range(1_000_000))

    def has_a_block() -> bool:
        """Kafka asks its controller for a block of ids when first asked for one, and says so."""
        asked = InitProducerIdRequest(transactional_id=None)
        answer = probe.ask(f"probe {next(tries)}", asked, InitProducerIdResponse, 4)
        return answer is not None and answer.error_code == 0

    until(has_a_block)
    probe.close()
    script.ask_every_version("fresh", InitProducerIdRequest(transactional_id=None), InitProducerIdResponse)
    script.ask("empty transactional id", InitProducerIdRequest(transactional_id=""), InitProducerIdResponse, 4)
    half = InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=-1)
    script.ask("id without epoch", half, InitProducerIdResponse, 4)


SCRIPTS = (
    produce_versions,
    produce_bad_batches,
    produce_idempotent,
    fetch_versions,
    fetch_epochs_and_isolation,
    fetch_sessions,
    list_offsets,
    delete_records,
    leader_epochs,
    producer_ids,
)
