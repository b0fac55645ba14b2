"""Scripts in the versions that Apache Kafka 4.0 dropped (KIP-896); Kafka 3.9.1 with ZooKeeper answers them all."""

from __future__ import annotations

from compat_tests import batches
from compat_tests.batches import RECENT_MS
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.groups import ask_offsets, make_commit_request, wait_for_coordinator
from compat_tests.same_answers.records import list_offsets_of
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.list_offsets import ListOffsetsResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.apis.produce import ProduceResponse

MEGABYTE = 1024 * 1024
FUTURE_MS = RECENT_MS + 10**12


def segment_starts(script: Transcript, name: str) -> None:
    script.create_topic(name, 2, segment_bytes=str(MEGABYTE))
    for number in range(3):
        batch = batches.build([b"x" * 400_000] * 2)
        script.ask(f"fill {number}", produce_request(name, {0: batch}), ProduceResponse, 9)

    def ask(label: str, timestamp: int, limit: int, index: int = 0, topic: str = name) -> None:
        asked = list_offsets_of(topic, timestamp, partition_index=index, max_num_offsets=limit)
        script.ask_dropped_versions(f"{label} {limit}", asked, ListOffsetsResponse)

    for limit in (0, 1, 2, 100):
        for label, timestamp in (("latest", -1), ("earliest", -2), ("long ago", 0), ("later", FUTURE_MS)):
            ask(label, timestamp, limit)
    for label, timestamp in (("latest", -1), ("earliest", -2), ("long ago", 0), ("later", FUTURE_MS)):
        ask(f"{label} of nothing", timestamp, 5, index=1)
    ask("largest timestamp", -3, 5)
    ask("less than none", -1, -1)
    ask("unknown partition", -1, 1, index=7)
    ask("unknown topic", -1, 1, topic=name + "-absent")
    twice = list_offsets_of(name, -1)
    twice.topics[0].partitions *= 2
    script.ask_dropped_versions("twice", twice, ListOffsetsResponse)


def first_offsets(script: Transcript, name: str) -> None:
    """Offsets committed by version 0 are fetched by version 0 only."""
    script.create_topic(name, 4)
    wait_for_coordinator(script, name)

    def fetch(label: str, group: str = name, topic: str = name) -> None:
        wanted = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 3, 9])]
        for version in (0, 1):
            script.ask(label, OffsetFetchRequest(group_id=group, topics=wanted), OffsetFetchResponse, version)

    fetch("nothing yet")
    script.ask("commit", make_commit_request(name, name, 11), OffsetCommitResponse, 0)
    fetch("by the first")
    script.ask("commit", make_commit_request(name, name, 22), OffsetCommitResponse, 1)
    fetch("by the second")
    script.ask("commit again", make_commit_request(name, name, 7), OffsetCommitResponse, 0)
    fetch("again")
    fetch("unknown group", group=name + "-absent")
    fetch("unknown topic", topic=name + "-absent")


def first_commits(script: Transcript, name: str) -> None:
    script.create_topic(name)
    wait_for_coordinator(script, name)

    def ask(label: str, topic: str = name, offset: int = 5, index: int = 0, note: str | None = "note") -> None:
        request = make_commit_request(name, topic, offset)
        part = request.topics[0].partitions[0]
        part.partition_index, part.committed_metadata = index, note
        script.ask_dropped_versions(label, request, OffsetCommitResponse)
        ask_offsets(script, f"after {label}", name, name, bytes(16), 0)
        ask_offsets(script, f"after {label}", name, name, bytes(16), 1)

    ask("good")
    ask("unknown topic", topic=name + "-absent")
    ask("unknown partition", index=9)
    ask("negative", offset=-5)
    ask("no note", note=None)
    ask("long note", note="x" * 5000)
    stranger = make_commit_request(name, name, 5, generation_id_or_member_epoch=3, member_id="m")
    script.ask("as a member", stranger, OffsetCommitResponse, 1)
    unknown = make_commit_request(name + "-absent", name, 5, generation_id_or_member_epoch=3, member_id="m")
    script.ask("as a member of nothing", unknown, OffsetCommitResponse, 1)
    script.ask("no group", make_commit_request("", name, 5), OffsetCommitResponse, 1)
    script.ask("no topics", OffsetFetchRequest(group_id=name, topics=[]), OffsetFetchResponse, 0)


def first_topics(script: Transcript, name: str) -> None:
    def ask(label: str, *topics: CreatableTopic) -> None:
        request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000)
        script.ask_dropped_versions(label, request, CreateTopicsResponse)

    def topic(suffix: str, partitions: int = 1, replication: int = 1, **configs: str) -> CreatableTopic:
        given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        return CreatableTopic(
            name=name + suffix, num_partitions=partitions, replication_factor=replication, configs=given
        )

    chosen = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    assigned = CreatableTopic(name=name + "-assigned", num_partitions=-1, replication_factor=-1, assignments=chosen)
    for version in (0, 1):
        request = CreateTopicsRequest(topics=[topic(f"-{version}", 2, retention_ms="1000")], timeout_ms=10_000)
        script.ask("new", request, CreateTopicsResponse, version)
        script.ask("exists", request, CreateTopicsResponse, version)
    checked = CreateTopicsRequest(topics=[topic("-checked")], timeout_ms=10_000, validate_only=True)
    script.ask("checked only", checked, CreateTopicsResponse, 1)
    script.ask("checked only again", checked, CreateTopicsResponse, 1)
    script.ask("assigned", CreateTopicsRequest(topics=[assigned], timeout_ms=10_000), CreateTopicsResponse, 0)
    script.ask("assigned again", CreateTopicsRequest(topics=[assigned], timeout_ms=10_000), CreateTopicsResponse, 1)
    ask("no partitions", topic("-none", 0))
    ask("three replicas", topic("-three", 1, 3))
    ask("bad name", CreatableTopic(name="a b", num_partitions=1, replication_factor=1))
    ask("bad config", topic("-config", retention_ms="soon"))
    for label, doomed in (("delete", "-0"), ("delete again", "-0"), ("delete what never was", "-absent")):
        deletion = DeleteTopicsRequest(topic_names=[name + doomed], timeout_ms=10_000)
        script.ask_dropped_versions(label, deletion, DeleteTopicsResponse)


def first_leader_epochs(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.ask("fill", produce_request(name, {0: batches.build([b"v"] * 3)}), ProduceResponse, 9)
    for label, epoch, index, topic in (
        ("epoch 0", 0, 0, name),
        ("epoch 5", 5, 0, name),
        ("unknown partition", 0, 4, name),
        ("unknown topic", 0, 0, name + "-absent"),
    ):
        part = OffsetForLeaderPartition(partition=index, leader_epoch=epoch, current_leader_epoch=3)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[part])])
        script.ask_dropped_versions(label, request, OffsetForLeaderEpochResponse)


SCRIPTS = (segment_starts, first_offsets, first_commits, first_topics, first_leader_epochs)
