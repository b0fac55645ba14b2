"""Requests of clients that have quotas: fetches that are withheld, and topics that are not created (KIP-599)."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock

from kafkacompat.cluster.administration import ClusterAdministration
from kafkacompat.handlers.context import Pending
from kafkacompat.handlers.throttle_time import raise_throttle_time
from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.rates import QuotaWindows
from kafkacompat.quotas.request_meter import begin_request
from kafkacompat.security.acls.authorizer import Attempt, Authorizer
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.connection import EncodedResponse, measure_part, measure_response
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.handlers.admin_node import AdminNode
from tests.handlers.data_node import T_ID, DataNode, make_batch
from tests.handlers.node import Answer, context_of, handle_request, reread_response
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.security.acls.rules import build_table

FETCH_VERSION = 12
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def make_quotas(**values: float) -> ClientQuotas:
    quotas = ClientQuotas(QuotaWindows(11, 1000), QuotaWindows(11, 1000))
    quotas.update({make_entity([("client-id", "test")]): ClientConfig(values)})
    return quotas


class Metered:
    """A client of a node whose requests are charged as its connection does."""

    def __init__(self, node: DataNode | AdminNode, quotas: ClientQuotas, clock: Clock) -> None:
        self.node, self.quotas, self.clock = node, quotas, clock
        self.throttle_ms = 0

    def ask(self, request: Request, answer: type[Answer], version: int) -> Answer:
        """The response; ``throttle_ms`` is for how long the client is muted."""
        context = context_of(version)
        meter = begin_request(
            self.quotas, request.API_KEY, version, context.principal.name, "test", self.clock.seconds()
        )
        response: Any = handle_request(request, context._replace(meter=meter), self.node.services)
        if isinstance(self.node, DataNode):
            self.node.node.work()
            read = self.node.read(response, answer, version)
        else:
            response = outcome(response.response) if isinstance(response, Pending) else response
            read = reread_response(response, answer, version)
        self.throttle_ms = 0 if meter is None else meter.finish(0, True, self.clock.seconds())
        return read


class Consumer(Metered):
    """A consumer of partition 0 of t, with a session of its own."""

    def __init__(self, **values: float) -> None:
        self.data = DataNode()
        super().__init__(self.data, make_quotas(**values), self.data.node.clock)
        self.session_id = self.epoch = 0

    def append(self, size_bytes: int) -> None:
        self.data.append("t", 0, make_batch(value=b"v" * size_bytes))

    def fetch(self, offset: int = 0, version: int = FETCH_VERSION, **fields: Any) -> FetchResponse:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
        request = FetchRequest(
            **{
                "min_bytes": 1,
                "max_bytes": 1_000_000,
                "topics": [FetchTopic(topic="t", topic_id=T_ID, partitions=[partition])],
                "session_id": self.session_id,
                "session_epoch": self.epoch,
                **fields,
            }
        )
        response = self.ask(request, FetchResponse, version)
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if self.session_id else 0
        return response


def count_bytes(response: FetchResponse) -> int:
    return sum(
        measure_part(part.records)
        for topic in response.responses
        for part in topic.partitions
        if part.records is not None
    )


def test_a_fetch_beyond_the_quota_returns_nothing_and_the_same_records_later() -> None:
    consumer = Consumer(consumer_byte_rate=1000)
    consumer.append(7000)
    assert count_bytes(consumer.fetch(0)) > 7000
    consumer.append(7000)
    assert consumer.throttle_ms == 0
    session_id = consumer.session_id
    assert session_id
    withheld = consumer.fetch(1)
    assert (withheld.error_code, withheld.responses, withheld.session_id) == (0, [], session_id)
    assert 3900 < consumer.throttle_ms < 4500
    consumer.clock.advance(11)
    again = consumer.fetch(1)
    assert count_bytes(again) > 7000
    assert again.responses[0].partitions[0].high_watermark == 2
    assert consumer.throttle_ms == 0


def test_a_withheld_response_tells_a_session_nothing() -> None:
    """What changes meanwhile, as the high watermark, is in the next response, though it has no records."""
    consumer = Consumer(consumer_byte_rate=1000)
    consumer.append(9500)
    consumer.fetch(0)
    consumer.append(3000)
    assert consumer.fetch(1).responses == []
    consumer.clock.advance(11)
    response = consumer.fetch(2)
    assert response.responses[0].partitions[0].high_watermark == 2


def test_a_session_does_not_begin_with_a_withheld_response() -> None:
    consumer = Consumer(consumer_byte_rate=1000)
    consumer.append(9500)
    consumer.fetch(0, session_epoch=-1)
    consumer.session_id = consumer.epoch = 0
    response = consumer.fetch(0)
    assert (response.session_id, response.responses) == (0, [])
    assert len(consumer.data.sessions) == 0


def test_a_withheld_response_releases_its_files() -> None:
    consumer = Consumer(consumer_byte_rate=1000)
    consumer.append(9500)
    consumer.fetch(0)
    consumer.append(9500)
    for _ in range(5):
        assert consumer.fetch(1).responses == []
    assert consumer.data.node.files.open_handles == 1


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
def test_a_fetch_counts_the_bytes_of_its_response(version: int) -> None:
    consumer = Consumer(consumer_byte_rate=1_000_000)
    consumer.append(500)
    response = consumer.fetch(0, version)
    size_bytes = len(encode_message(response, version)) + 4
    uses = consumer.quotas.find_uses("ANONYMOUS", "test", 0)
    assert uses is not None
    assert uses.fetch is not None
    assert uses.fetch.measure(int(consumer.clock.seconds() * 1000)) * 10 == size_bytes


def test_a_fetch_reads_at_most_what_its_quota_allows() -> None:
    consumer = Consumer(consumer_byte_rate=100)
    for _ in range(5):
        consumer.append(300)
    # The rest of the response is what is too much, for about half a second.
    assert consumer.fetch(0).responses == []
    assert 0 < consumer.throttle_ms < 1000
    consumer.clock.advance(consumer.throttle_ms / 1000)
    assert count_bytes(consumer.fetch(0)) == 1000


def test_old_consumers_are_throttled_too() -> None:
    consumer = Consumer(consumer_byte_rate=1000)
    consumer.append(9000)
    assert count_bytes(consumer.fetch(0, 3)) > 9000
    assert consumer.fetch(0, 3).responses == []
    assert consumer.throttle_ms > 0


def fetch_as_follower(enclosed: object, authorizer: Authorizer | None = None) -> int:
    """The throttle time of a client that fetches with the id of a replica."""
    consumer = Consumer(consumer_byte_rate=1)
    services: Any = consumer.data.services
    services.enclosed, services.authorizer = enclosed, authorizer
    consumer.append(9000)
    for _ in range(FETCHES):
        consumer.fetch(0, replica_id=2, session_epoch=-1)
    return consumer.throttle_ms


BETWEEN_BROKERS = object()
FETCHES = 3


@pytest.mark.parametrize("rules", [None, ["+ANONYMOUS CLUSTER_ACTION CLUSTER kafka-cluster"]])
def test_a_follower_is_not_throttled(rules: list[str] | None) -> None:
    table = None if rules is None else build_table(*rules)
    authorizer = None if table is None else Authorizer(lambda: table)
    assert fetch_as_follower(BETWEEN_BROKERS, authorizer) == 0


class Notes:
    """Notes the attempts of clients."""

    def __init__(self) -> None:
        self.allowed: list[Attempt] = []

    def note_denied(self, attempt: Attempt) -> None:
        raise AssertionError(f"{attempt} is allowed")

    def note_allowed(self, attempt: Attempt) -> None:
        self.allowed.append(attempt)


def test_the_right_of_a_follower_is_noted_once_for_each_fetch() -> None:
    table = build_table("+ANONYMOUS CLUSTER_ACTION CLUSTER kafka-cluster")
    authorizer = Authorizer(lambda: table)
    authorizer.observer = notes = Notes()
    authorizer.notes_allowed = True
    assert fetch_as_follower(BETWEEN_BROKERS, authorizer) == 0
    assert len(notes.allowed) == FETCHES


def test_a_client_that_only_has_the_id_of_a_replica_is_throttled() -> None:
    assert fetch_as_follower(enclosed=None) > 0
    table = build_table("+ANONYMOUS READ TOPIC t")
    assert fetch_as_follower(BETWEEN_BROKERS, Authorizer(lambda: table)) > 0


def test_a_large_response_is_measured_in_steps() -> None:
    topics = [FetchableTopicResponse(topic=f"t{number}", partitions=[]) for number in range(1000)]
    response = FetchResponse(responses=topics)
    steps = list(measure_response(response, FETCH_VERSION))
    assert len(steps) > 1
    assert steps[-1] == len(encode_message(response, FETCH_VERSION)) + 4


class Admin(Metered):
    """An administrator with a quota of changes."""

    def __init__(self, **values: float) -> None:
        self.admin = AdminNode(num_partitions="3")
        assert isinstance(self.admin.services.clock, Clock)
        super().__init__(self.admin, make_quotas(**values), self.admin.services.clock)
        self.clock.advance(1_700_000_000)

    def create(self, *topics: tuple[str, int], version: int = 7, **fields: Any) -> list[int]:
        wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
        request = CreateTopicsRequest(topics=wanted, **fields)
        return [topic.error_code for topic in self.ask(request, CreateTopicsResponse, version).topics]

    def delete(self, *names: str) -> list[int]:
        request = DeleteTopicsRequest(topic_names=list(names))
        return [topic.error_code for topic in self.ask(request, DeleteTopicsResponse, 5).responses]

    def grow(self, name: str, count: int) -> list[int]:
        request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)])
        return [topic.error_code for topic in self.ask(request, CreatePartitionsResponse, 3).results]


def test_topics_beyond_the_quota_are_rejected_one_by_one() -> None:
    admin = Admin(controller_mutation_rate=1)
    assert admin.create(("a", 6), ("b", 7), ("c", 1)) == [0, 0, THROTTLED]
    assert admin.throttle_ms == 2000
    assert sorted(admin.admin.holder.image.topics) == ["a", "b"]
    admin.clock.advance(2)
    assert admin.create(("c", 1)) == [0]
    assert admin.throttle_ms == 0


def test_the_message_of_a_rejected_topic_says_when_to_try_again() -> None:
    admin = Admin(controller_mutation_rate=1)
    admin.create(("a", 20))
    request = CreateTopicsRequest(topics=[CreatableTopic(name="b", num_partitions=1, replication_factor=1)])
    (topic,) = admin.ask(request, CreateTopicsResponse, 7).topics
    assert topic.error_message == "the client has used up its controller_mutation_rate=1: try again in 9000 ms"


def test_invalid_topics_use_nothing() -> None:
    admin = Admin(controller_mutation_rate=1)
    assert admin.create(("a b", 100), ("a", 0)) == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_PARTITIONS,
    ]
    assert admin.create(("a", 11)) == [0]
    assert admin.create(("b", 1)) == [0]
    assert admin.throttle_ms == 0


def test_a_validation_counts_as_in_kafka() -> None:
    admin = Admin(controller_mutation_rate=1)
    assert admin.create(("a", 13), validate_only=True) == [0]
    assert admin.create(("a", 13)) == [THROTTLED]


def test_deletions_and_new_partitions_count() -> None:
    admin = Admin(controller_mutation_rate=1)
    assert admin.create(("a", 5), ("b", 5)) == [0, 0]
    assert admin.grow("a", 8) == [0]
    assert admin.grow("a", 9) == [THROTTLED]
    assert admin.delete("b") == [THROTTLED]
    assert admin.throttle_ms == 2000
    admin.clock.advance(2)
    assert admin.delete("b") == [0]
    admin.clock.advance(4)
    assert admin.grow("a", 9) == [THROTTLED]
    admin.clock.advance(1)
    assert admin.grow("a", 9) == [0]


def test_older_versions_are_throttled_and_not_rejected() -> None:
    admin = Admin(controller_mutation_rate=1)
    assert admin.create(("a", 20), ("b", 1), version=5) == [0, 0]
    assert admin.throttle_ms == 10_000


def test_metadata_creates_no_topics_beyond_the_quota() -> None:
    admin = Admin(controller_mutation_rate=1)

    def describe(name: str) -> int:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        return admin.ask(request, MetadataResponse, 8).topics[0].error_code

    assert admin.create(("a", 10)) == [0]
    assert describe("b") == 0
    assert describe("c") != 0
    assert sorted(admin.admin.holder.image.topics) == ["a", "b"]
    assert admin.throttle_ms == 0


def test_another_broker_charges_the_topics_that_it_has_created() -> None:
    asked: list[CreateTopicsRequest] = []

    class Link:
        is_local = False

        def send(self, request: Any, timeout_s: float) -> Deferred[Any]:
            asked.append(request)
            return fail(KafkaError(ErrorCode.NOT_CONTROLLER, "no controller"))

    changes = ClusterAdministration(1, lambda: 1, lambda: None, Link(), ImageHolder(), lambda: 3)  # type: ignore[arg-type]
    charged: list[tuple[str, int]] = []

    def admit(topic: str, partitions: int) -> None:
        charged.append((topic, partitions))
        if topic != "a":
            raise KafkaError(THROTTLED, "too many")

    results = outcome(changes.create_topics([NewTopic("b", 7)], admit=admit))
    assert [result.code for result in results if isinstance(result, KafkaError)] == [THROTTLED]
    assert asked == []
    changes.create_topics([NewTopic("a"), NewTopic("c")], admit=admit).addErrback(lambda _: None)
    assert [topic.name for topic in asked[0].topics] == ["a"]
    assert charged == [("b", 7), ("a", 3), ("c", 3)]


def test_quotas_that_are_altered_count_at_once() -> None:
    node = AdminNode()
    quotas = ClientQuotas()
    node.holder.watch_clients(quotas.update)

    def alter(value: float, *, remove: bool = False) -> None:
        entry = EntryData(
            entity=[EntityData(entity_type="user", entity_name="u")],
            ops=[OpData(key="producer_byte_rate", value=value, remove=remove)],
        )
        node.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)

    def find_limit() -> float | None:
        uses = quotas.find_uses("u", "c", 0) if quotas.active else None
        return uses.produce.limit if uses is not None and uses.produce is not None else None

    assert find_limit() is None
    alter(1000)
    assert find_limit() == 1000
    alter(2000)
    assert find_limit() == 2000
    alter(0, remove=True)
    assert find_limit() is None
    assert not quotas.active


def test_other_changes_of_metadata_leave_the_quotas_alone() -> None:
    node = AdminNode()
    seen: list[object] = []
    node.holder.watch_clients(seen.append)
    assert len(seen) == 1
    node.make_topic("t")
    assert len(seen) == 1


# Throttle times in responses


def test_the_longer_throttle_time_stays() -> None:
    response = HeartbeatResponse(throttle_time_ms=30)
    assert raise_throttle_time(response, HeartbeatResponse, 4, 20) == 30
    assert raise_throttle_time(response, HeartbeatResponse, 4, 50) == 50
    assert response.throttle_time_ms == 50
    assert raise_throttle_time(response, HeartbeatResponse, 0, 70) == 70


@pytest.mark.parametrize("version", [4, 7])
def test_the_throttle_time_of_an_encoded_response_is_read_and_raised(version: int) -> None:
    def encode(throttle_ms: int) -> bytes:
        tags = b"\0" if version >= 5 else b""
        body = CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=[])
        return b"\0\0\0\7" + tags + encode_message(body, version)

    response = EncodedResponse(data=encode(300))
    assert raise_throttle_time(response, CreateTopicsResponse, version, 20) == 300
    assert response.data == encode(300)
    assert raise_throttle_time(response, CreateTopicsResponse, version, 500) == 500
    assert response.data == encode(500)


def test_forwarded_responses_but_those_for_tokens_have_their_throttle_time_first() -> None:
    from kafkacompat.handlers.controller_apis import CONTROLLER_APIS
    from kafkacompat.wire.apis import find_api

    for key in CONTROLLER_APIS.keys() - {38, 39, 40}:
        fields = find_api(key).response.FIELDS
        assert next(iter(fields)) == "throttle_time_ms", key
