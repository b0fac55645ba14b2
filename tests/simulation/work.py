"""The kinds of administrative work as a table, as in faults.py: each is one request to a broker that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.errors import RequestFailedError
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.simulation.settings import PORT, Settings, TopicSettings, host_of
from tests.simulation.world import World

Arguments = dict[str, Any]

TIMEOUT_S = 10.0
RETRY_S = 0.5
ATTEMPTS = 10
PREFERRED, UNCLEAN = 0, 1
TOPIC_RESOURCE = 2
EXTRA_TOPICS = ("extra-1", "extra-2")
"""Topics that come and go, apart from those of the clients."""


class Administrator:
    """Sends requests to brokers from a machine of its own, and repeats those without an answer at other brokers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._clock, network = world.new_host("administrator")
        self._rng = Random(f"{world.seed} administrator")
        self._connections = BrokerConnections(ConnectionSettings("administrator"), network, self._clock, self._rng)

    def send(self, kind: str, request: Request, attempts: int = ATTEMPTS) -> None:
        """Send a request, and count its outcome."""
        node = self._rng.choice(self._world.settings.nodes)
        address = BrokerAddress(node, host_of(node), PORT)
        sending = self._connections.request(address, "work", request, timeout_s=TIMEOUT_S)

        def failed(failure: Any) -> None:
            failure.trap(RequestFailedError)
            if attempts > 1:
                self._clock.callLater(RETRY_S, self.send, kind, request, attempts - 1)
            else:
                self._world.counts.happen(f"{kind}: no answer")

        sending.addCallbacks(self._answered, failed, callbackArgs=(kind, request, attempts))
        sending.addErrback(self._world.fail, f"{kind}: {request}")

    def _answered(self, response: Any, kind: str, request: Request, attempts: int) -> None:
        codes = list(_find_codes(response))
        if any(codes) and attempts > 1 and not isinstance(request, ProduceRequest):
            self._clock.callLater(RETRY_S, self.send, kind, request, attempts - 1)
            return
        self._world.counts.happen(f"{kind}: refused" if any(codes) else f"{kind}: done")


def _find_codes(answer: Any) -> list[int]:
    """Return all error codes in a response."""
    if isinstance(answer, list):
        return [code for item in answer for code in _find_codes(item)]
    codes = []
    for name in getattr(type(answer), "__slots__", ()) or getattr(answer, "__dict__", {}):
        value = getattr(answer, name, None)
        if name == "error_code":
            codes.append(int(value or 0))
        elif isinstance(value, list):
            codes += _find_codes(value)
    return codes


class Work(NamedTuple):
    """A kind of work; ``weight`` is how often it is drawn beside the others."""

    weight: int
    draw: Callable[[Settings, Random], Arguments]
    build: Callable[..., Request | None]


def build_create(topic: TopicSettings) -> CreateTopicsRequest:
    """Build the request that creates a topic."""
    properties = {"segment.ms": str(topic.segment_ms)}
    if topic.is_unclean:
        properties["unclean.leader.election.enable"] = "true"
    wanted = CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replicas,
        assignments=[],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in properties.items()],
    )
    return CreateTopicsRequest(topics=[wanted], timeout_ms=5000)


def _draw_extra(settings: Settings, rng: Random) -> Arguments:
    return {"topic": rng.choice(EXTRA_TOPICS)}


def _draw_place(settings: Settings, rng: Random) -> Arguments:
    topic = rng.choice(settings.topics)
    return {"topic": topic.name, "partition": rng.randrange(topic.partitions)}


def _draw_create(settings: Settings, rng: Random) -> Arguments:
    return {**_draw_extra(settings, rng), "partitions": rng.choice((1, 3)), "replicas": rng.choice((1, 2, 3))}


def _create(world: World, topic: str, partitions: int, replicas: int) -> Request:
    return build_create(TopicSettings(topic, partitions, replicas))


def _delete(world: World, topic: str) -> Request:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], topic_names=[topic], timeout_ms=5000)


def _grow(world: World, topic: str, count: int) -> Request:
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[wanted], timeout_ms=5000, validate_only=False)


def _write(world: World, topic: str) -> Request | None:
    """Append a record to partition 0, without any promise."""
    stored = world.stored.partitions.get((topic, 0))
    if stored is None:
        return None
    data = PartitionProduceData(index=0, records=build_batch([(int(world.timeline.now * 1000), b"k", b"v", [])]))
    topics = [TopicProduceData(name=topic, topic_id=stored.key.topic_id, partition_data=[data])]
    return ProduceRequest(acks=-1, timeout_ms=3000, topic_data=topics)


def _draw_reassign(settings: Settings, rng: Random) -> Arguments:
    place = _draw_place(settings, rng)
    replicas = next(topic.replicas for topic in settings.topics if topic.name == place["topic"])
    return {**place, "replicas": rng.sample(settings.nodes, rng.choice((replicas, replicas, min(3, replicas + 1))))}


def _reassign(world: World, topic: str, partition: int, replicas: list[int] | None = None) -> Request:
    wanted = ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [ReassignableTopic(name=topic, partitions=[wanted])]
    return AlterPartitionReassignmentsRequest(timeout_ms=5000, allow_replication_factor_change=True, topics=topics)


def _elect_preferred(world: World, topic: str, partition: int) -> Request:
    return _elect(topic, partition, PREFERRED)


def _elect_unclean(world: World, partition: int) -> Request | None:
    topic = next((topic.name for topic in world.settings.topics if topic.is_unclean), None)
    return None if topic is None else _elect(topic, partition, UNCLEAN)


def _elect(topic: str, partition: int, kind: int) -> Request:
    partitions = [TopicPartitions(topic=topic, partitions=[partition])]
    return ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=5000)


def _draw_config(settings: Settings, rng: Random) -> Arguments:
    name, value = rng.choice(
        (
            ("min.insync.replicas", str(settings.min_insync_replicas)),
            ("min.insync.replicas", "1"),
            ("segment.ms", "2000"),
            ("flush.messages", "3"),
            ("retention.ms", "604800000"),
        )
    )
    return {"topic": rng.choice(settings.topics).name, "name": name, "value": value}


def _configure(world: World, topic: str, name: str, value: str) -> Request:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


WORK: dict[str, Work] = {
    "create topic": Work(4, _draw_create, _create),
    "delete topic": Work(2, _draw_extra, _delete),
    "add partitions": Work(1, lambda s, r: {**_draw_extra(s, r), "count": r.choice((2, 4))}, _grow),
    "write": Work(3, _draw_extra, _write),
    "reassign": Work(4, _draw_reassign, _reassign),
    "cancel reassignment": Work(1, _draw_place, _reassign),
    "elect preferred": Work(3, _draw_place, _elect_preferred),
    "elect unclean": Work(1, lambda s, r: {"partition": 0}, _elect_unclean),
    "configure": Work(3, _draw_config, _configure),
}
