"""Data directories of three releases of Apache Kafka, each with the records that it holds."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker, Kafka011Broker, Kafka28Broker, KafkaBroker
from compat_tests.processes import suspend_process
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.directory.meta_properties import find_cluster_id
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)

GROUP = "before-and-after"
COMMITTED = 42
SEVERAL, LONG, COMPACTED, GONE = "several", "long", "compacted", "gone"
OLD_FORMATS = ("0.8.2", "0.10.0")
"""Values of message.format.version whose logs hold messages of formats 0 and 1."""

QUIET = {"log_level": 0, "error_cb": lambda _: None}


RELEASES: dict[str, type[Broker]] = {"0.11": Kafka011Broker, "2.8": Kafka28Broker, "4.3": KafkaBroker}
CODECS = {
    "0.11": ("none", "gzip", "snappy", "lz4"),
    "2.8": ("none", "gzip", "snappy", "lz4", "zstd"),
    "4.3": ("none", "gzip", "snappy", "lz4", "zstd"),
}
PROPERTIES = {
    "log.segment.bytes": str(1 << 20),
    "offsets.topic.num.partitions": "3",
    "delete.topic.enable": "true",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
USER, QUOTA = "somebody", 123_456.0


class Stored(NamedTuple):
    """A record as a consumer gets it; the timestamp is None where the format has no place for it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int | None


@dataclass
class Predecessor:
    """A broker that ran, the records of its partitions, and copies of its data directory."""

    release: str
    broker: Broker
    records: dict[tuple[str, int], list[Stored]] = field(default_factory=dict)
    images: dict[str, Path] = field(default_factory=dict)
    """By "killed", which is how SIGKILL would have left it, and "stopped"."""

    def copy(self, image: str, target: Path) -> Path:
        """A data directory of its own for one test."""
        return Path(shutil.copytree(self.images[image], target))

    def topics(self) -> dict[str, int]:
        """The topics that were not deleted, with their numbers of partitions."""
        names = [topic for topic, _ in self.records]
        return {"__consumer_offsets": 3, **{name: names.count(name) for name in names}}


def run_predecessor(release: str, folder: Path) -> Predecessor:
    """Run a Kafka, fill it, copy its directory, stop it, copy it again."""
    broker = RELEASES[release](folder / "kafka", PROPERTIES)
    left = Predecessor(release, broker)
    broker.start()
    try:
        _fill_predecessor(left)
        left.images["killed"] = image_of_a_kill(broker, folder / "killed")
    finally:
        broker.stop()
    left.images["stopped"] = Path(shutil.copytree(broker.data_folder, folder / "stopped"))
    return left


def image_of_a_kill(broker: Broker, target: Path) -> Path:
    """A copy of the directory as SIGKILL would leave it, of a broker that goes on and can still end in order."""
    suspend_process(broker.pid)
    try:
        return Path(shutil.copytree(broker.data_folder, target))
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def open_left_directory(data_folder: Path) -> LogDirectory:
    """Open the directory of a stopped node 1 with our storage layer, as the broker does."""
    files, path = OsFiles(), str(data_folder)
    cluster_id = find_cluster_id(files, [path], node_id=1)
    assert cluster_id is not None, f"{path} says of no cluster that it belongs to it"
    return LogDirectory.open(files, path, node_id=1, cluster_id=cluster_id, new_directory_id=bytes(16))


def _make_admin(bootstrap: str) -> AdminClient:
    """A client that knows the controller: an old Kafka answers before it is one, and the client would wait for long."""
    settings = {"bootstrap.servers": bootstrap, **QUIET}
    until(lambda: AdminClient(settings).list_topics(timeout=10).controller_id >= 0)
    return AdminClient(settings)


def _fill_predecessor(left: Predecessor) -> None:
    admin = _make_admin(left.broker.bootstrap)
    old = {f"format-{version}": version for version in OLD_FORMATS if left.release == "0.11"}
    topics = [
        NewTopic(SEVERAL, 3, 1, config={"retention.ms": "987654321000", "max.message.bytes": "900000"}),
        NewTopic(LONG, 1, 1),
        NewTopic(COMPACTED, 1, 1, config={"cleanup.policy": "compact"}),
        NewTopic(GONE, 2, 1),
        *(NewTopic(name, 1, 1, config={"message.format.version": version}) for name, version in old.items()),
    ]
    _wait_for(admin.create_topics(topics))
    if left.release == "4.3":
        _set_up_user(left.broker, admin)
    for codec in CODECS[left.release]:
        with_headers = [_make_record(codec, index, headers=(("h", b"%d" % index),)) for index in range(90)]
        _produce_records(left, SEVERAL, 3, with_headers, {"compression.codec": codec, "enable.idempotence": True})
        _produce_records(
            left, COMPACTED, 1, [_make_record(codec, index) for index in range(20)], {"compression.codec": codec}
        )
        for name in old if codec != "lz4" else ():
            _produce_records(
                left, name, 1, [_make_record(codec, index) for index in range(150)], {"compression.codec": codec}
            )
    for name in (topic for topic, version in old.items() if version == OLD_FORMATS[0]):
        left.records[name, 0] = [record._replace(timestamp=None) for record in left.records[name, 0]]
    long = [_make_record("none", index, size_bytes=1100) for index in range(2200)]
    _produce_records(left, LONG, 1, long, {"enable.idempotence": True, "batch.size": 16_000})
    _produce_records(left, GONE, 2, [_make_record("none", index) for index in range(4)], {})
    del left.records[GONE, 0], left.records[GONE, 1]
    _wait_for(admin.delete_topics([GONE]))
    commit_offset(left.broker.bootstrap, COMMITTED)


def _set_up_user(broker: Broker, admin: AdminClient) -> None:
    password = UserScramCredentialUpsertion(USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret")
    _wait_for(admin.alter_user_scram_credentials([password]))
    user = EntityData(entity_type="user", entity_name=USER)
    entry = EntryData(entity=[user], ops=[OpData(key="producer_byte_rate", value=QUOTA)])
    with RawClient(broker.port) as client:
        answer = client.call(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)
    assert [result.error_code for result in answer.entries] == [0]


def _wait_for(futures: Mapping[str, Any]) -> None:
    for future in futures.values():
        future.result(30)


def _make_record(codec: str, index: int, headers: tuple[tuple[str, bytes], ...] = (), size_bytes: int = 30) -> Stored:
    value = b"%s %d " % (codec.encode(), index) + b"x" * size_bytes
    return Stored(b"key-%d" % index, value, headers, RECENT_MS + index)


def _produce_records(left: Predecessor, topic: str, partitions: int, records: Sequence[Stored], settings: Any) -> None:
    send_records(left.broker.bootstrap, topic, partitions, records, settings)
    for index, record in enumerate(records):
        left.records.setdefault((topic, index % partitions), []).append(record)


def send_records(bootstrap: str, topic: str, partitions: int, records: Sequence[Stored], settings: Any) -> None:
    """Produce records to the partitions in turn."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings, **QUIET})
    for index, (key, value, headers, timestamp) in enumerate(records):
        producer.produce(
            topic, value, key, partition=index % partitions, headers=list(headers), timestamp=timestamp or 0
        )
        producer.poll(0)
    assert producer.flush(30) == 0


def commit_offset(bootstrap: str, offset: int) -> None:
    """Commit an offset of the first partition; a new coordinator takes its time."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": False, **QUIET})

    def committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition(SEVERAL, 0, offset)], asynchronous=False)
        except KafkaException:
            return False
        return True

    until(committed)
    consumer.close()


def committed_offset(bootstrap: str) -> int:
    """Return the group's committed offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **QUIET})
    (committed,) = consumer.committed([TopicPartition(SEVERAL, 0)], timeout=30)
    consumer.close()
    return int(committed.offset)


def read_records(bootstrap: str, partitions: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], list[Stored]]:
    """Return the records of each partition from its beginning, at least as many as *partitions* asks for."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "check.crcs": True, **QUIET}
    )
    consumer.assign([TopicPartition(topic, index, 0) for topic, index in partitions])
    records: dict[tuple[str, int], list[Stored]] = {name: [] for name in partitions}

    def enough() -> bool:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            records[message.topic(), message.partition()].append(_as_stored(message))
        return all(len(records[name]) >= count for name, count in partitions.items())

    until(enough)
    consumer.close()
    return records


def _as_stored(message: Message) -> Stored:
    kind, timestamp = message.timestamp()
    return Stored(
        message.key(), message.value(), tuple(message.headers() or ()), timestamp if kind and timestamp >= 0 else None
    )
