"""Requests to a whole broker with an authorizer: what waits, what closes connections, and what is written down."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.security.acls.model import AclOperation, AclPermission, AclResourceType, PatternType
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.guards.world import GuardedWorld

ADMIN, CLIENT = "10.0.0.1", "10.0.0.2"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class RuledWorld(GuardedWorld):
    """A broker with the topic t, where clients of ADMIN may do everything."""

    def __init__(self, folder: Path, **properties: str) -> None:
        super().__init__(folder, allow_everyone_if_no_acl_found="true", **properties)
        self.rule(*(self.make(ADMIN, "ALL", kind) for kind in AclResourceType))
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        assert self.ask(ADMIN, CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0

    @staticmethod
    def make(
        host: str, operation: str, kind: AclResourceType = AclResourceType.TOPIC, permission: str = "ALLOW"
    ) -> AclCreation:
        return AclCreation(
            resource_type=kind,
            resource_name="kafka-cluster" if kind is AclResourceType.CLUSTER else "*",
            resource_pattern_type=PatternType.LITERAL,
            principal="User:ANONYMOUS",
            host=host,
            operation=AclOperation[operation],
            permission_type=AclPermission[permission],
        )

    def rule(self, *rules: AclCreation) -> None:
        created = self.ask(ADMIN, CreateAclsRequest(creations=list(rules)), 3)
        assert not any(result.error_code for result in created.results), created

    def produce(self, address: str, value: bytes = b"v", acks: int = -1) -> Any:
        batch = build_batch([(int(self.clock.seconds() * 1000), b"k", value, [])])
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
        return self.ask(address, ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data]), 9)

    def end_offset(self) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
        return int(self.ask(ADMIN, request, 5).topics[0].partitions[0].offset)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RuledWorld]:
    world = RuledWorld(tmp_path)
    yield world
    world.close()


def make_fetch(**fields: Any) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(**{"max_wait_ms": 5000, "min_bytes": 1, "topics": topics, **fields})


def code_of(response: Any) -> int:
    (partition,) = response.responses[0].partitions
    return int(partition.error_code)


def test_a_fetch_that_waits_ends_when_its_right_is_taken_away(world: RuledWorld) -> None:
    world.rule(world.make(CLIENT, "READ"))
    request = make_fetch()
    waiting = world.begin(CLIENT, request, 11)
    world.clock.advance(0.5)
    assert not waiting.is_complete
    world.rule(world.make(CLIENT, "READ", permission="DENY"))
    assert world.produce(ADMIN).responses[0].partition_responses[0].error_code == 0
    response = world.finish(waiting, request, 11)
    assert code_of(response) == DENIED and not response.responses[0].partitions[0].records


def test_a_session_is_asked_at_each_fetch(world: RuledWorld) -> None:
    world.rule(world.make(CLIENT, "READ"))
    world.produce(ADMIN)
    first = world.ask(CLIENT, make_fetch(session_epoch=0), 11)
    assert code_of(first) == 0 and first.session_id > 0
    world.rule(world.make(CLIENT, "READ", permission="DENY"))
    second = world.ask(CLIENT, make_fetch(session_id=first.session_id, session_epoch=1, topics=[]), 11)
    assert code_of(second) == DENIED


def test_a_follower_without_the_right_gets_nothing(world: RuledWorld) -> None:
    world.rule(world.make(CLIENT, "READ"))
    world.produce(ADMIN)
    assert code_of(world.ask(CLIENT, make_fetch(replica_id=7), 11)) == DENIED


@pytest.mark.parametrize("allowed", [False, True])
def test_producing_without_acks(world: RuledWorld, allowed: bool) -> None:
    if allowed:
        world.rule(world.make(CLIENT, "WRITE"))
    batch = build_batch([(0, b"k", b"v", [])])
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
    exchange = world.begin(CLIENT, ProduceRequest(acks=0, timeout_ms=1000, topic_data=[data]), 9)
    world.clock.pump([0.1] * 10)
    assert exchange.is_closed is not allowed and exchange.received == b""
    assert world.end_offset() == int(allowed)


def test_a_large_request_is_cut_into_guarded_portions(world: RuledWorld) -> None:
    """What is refused in one portion is answered once, and what is allowed in another one is written."""
    world.rule(world.make(CLIENT, "DESCRIBE"))
    names = [f"missing-{number}" for number in range(900)]
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsTopic(name=name, partitions=[partition] * 10) for name in (*names, "t")]
    response = world.ask(CLIENT, ListOffsetsRequest(replica_id=-1, topics=topics), 5)
    assert len(response.topics) == 901
    response = world.ask("10.0.0.3", ListOffsetsRequest(replica_id=-1, topics=topics), 5)
    codes = [part.error_code for topic in response.topics for part in topic.partitions]
    assert (len(codes), set(codes)) == (9010, {DENIED})


def test_many_topics_in_one_request(world: RuledWorld) -> None:
    world.rule(world.make(CLIENT, "DESCRIBE"))
    wanted = [MetadataRequestTopic(name=f"missing-{number}") for number in range(3000)]
    for address, code in ((CLIENT, DENIED), (ADMIN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=address == CLIENT)
        topics = world.ask(address, request, 9).topics
        assert [(topic.name, topic.error_code) for topic in topics] == [(topic.name, code) for topic in wanted]


def test_nobody_learns_whether_a_topic_exists(world: RuledWorld) -> None:
    wanted = [MetadataRequestTopic(name=name) for name in ("t", "missing")]
    existing, missing = world.ask(CLIENT, MetadataRequest(topics=wanted), 9).topics
    assert {**vars(existing), "name": ""} == {**vars(missing), "name": ""}
    assert world.ask(CLIENT, MetadataRequest(topics=None), 9).topics == []
    assert world.ask(CLIENT, MetadataRequest(topics=[]), 0).topics == []
    answer = world.ask(CLIENT, MetadataRequest(topics=wanted[:1]), 0)
    assert [topic.name for topic in answer.topics] == ["t"] and answer.brokers
    assert "missing" not in world.broker.metadata.image.topics


def test_a_pattern_matches_what_the_client_may_describe(world: RuledWorld) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("open-1", "secret-1")]
    created = world.ask(ADMIN, CreateTopicsRequest(topics=topics), 7).topics
    ids = {topic.name: topic.topic_id for topic in created}
    coordinator = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    world.turn_until(lambda: not world.ask(ADMIN, coordinator, 4).coordinators[0].error_code)
    describe = world.make(CLIENT, "READ")
    describe.resource_name, describe.resource_pattern_type = "open", PatternType.PREFIXED
    world.rule(describe, world.make(CLIENT, "READ", AclResourceType.GROUP))
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*-1",
        topic_partitions=[],
    )
    joined = world.ask(CLIENT, joining, 1)
    assert joined.error_code == 0
    assert [topic.topic_id for topic in joined.assignment.topic_partitions] == [ids["open-1"]]


def test_refusals_are_written_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "audit.log"
    (tmp_path / "data").mkdir()
    world = RuledWorld(tmp_path / "data", **{"kafkacompat_audit_log": str(path)})
    world.produce(ADMIN)
    assert world.produce(CLIENT).responses[0].partition_responses[0].error_code == DENIED
    world.close()
    (line,) = map(json.loads, path.read_text().splitlines())
    assert (line["principal"], line["host"], line["listener"]) == ("User:ANONYMOUS", CLIENT, "PLAINTEXT")
    assert (line["api"], line["operation"], line["resource_type"], line["resource"], line["allowed"]) == (
        "Produce",
        "WRITE",
        "TOPIC",
        "t",
        False,
    )
    assert "Principal = User:ANONYMOUS is Denied operation = WRITE from host = 10.0.0.2" in caplog.text


def test_permissions_are_written_down_by_choice(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    (tmp_path / "data").mkdir()
    properties = {"kafkacompat_audit_log": str(path), "kafkacompat_audit_log_allowed": "true"}
    world = RuledWorld(tmp_path / "data", **properties)
    world.produce(ADMIN)
    world.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["allowed"] for line in lines)
    assert ("Produce", "WRITE", "t") in {(line["api"], line["operation"], line["resource"]) for line in lines}


def test_an_audit_log_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").mkdir()
    world = RuledWorld(tmp_path / "data", **{"kafkacompat_audit_log": str(tmp_path / "missing" / "audit.log")})
    for _ in range(3):
        world.produce(CLIENT)
        world.clock.advance(1)
    assert world.produce(ADMIN).responses[0].partition_responses[0].error_code == 0
    world.close()
    assert len([record for record in caplog.records if "cannot be written" in record.getMessage()]) == 1


def test_rules_survive_a_restart(tmp_path: Path) -> None:
    world = RuledWorld(tmp_path)
    table = world.broker.metadata.image.acls
    world.close()
    again = GuardedWorld(tmp_path)
    assert again.broker.metadata.image.acls == table
    assert again.ask(CLIENT, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9).topics[0].error_code == DENIED
    again.close()
