"""The cluster's metadata as a broker learns it: UpdateMetadata requests of the controller, merged into the image.

A request holds all live brokers, and the partitions that changed since the last one. In ZooKeeper mode brokers do not read the
topics themselves (Apache Kafka 3.9, ZkMetadataCache).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cluster.order_checks import check_brokers, check_partitions, check_topic_ids
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.wire.apis.update_metadata import (
        UpdateMetadataBroker,
        UpdateMetadataPartitionState,
        UpdateMetadataRequest,
    )

LEADER_DURING_DELETE = -2
"""The leader of a partition whose topic is being deleted."""

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By their numbers in UpdateMetadata."""


class _Update(NamedTuple):
    """What a request says of one topic."""

    topic_id: bytes
    states: list[UpdateMetadataPartitionState]


def apply_update(image: MetadataImage, request: UpdateMetadataRequest) -> MetadataImage:
    """Return *image* with the brokers and the partitions of *request*; raises KafkaError for what no controller sends."""
    updates = _group_by_topic(request)
    check_partitions(
        image, {name: [state.partition_index for state in update.states] for name, update in updates.items()}
    )
    topics = dict(image.topics)
    for name, update in updates.items():
        topic = _merge_topic(topics.get(name), name, update)
        if topic is None:
            topics.pop(name, None)
        else:
            topics[name] = topic
    check_topic_ids(image, topics, updates)
    brokers = {broker.id: _build_broker(broker) for broker in request.live_brokers}
    check_brokers(brokers.values())
    return replace(image, controller_id=request.controller_id, brokers=brokers).with_topics(topics)


def _group_by_topic(request: UpdateMetadataRequest) -> Mapping[str, _Update]:
    """Return what the request says by topic; before version 5 each partition names its topic, before 7 no id is known."""
    updates = {topic.topic_name: _Update(topic.topic_id, topic.partition_states) for topic in request.topic_states}
    ungrouped: defaultdict[str, list[UpdateMetadataPartitionState]] = defaultdict(list)
    for state in request.ungrouped_partition_states:
        ungrouped[state.topic_name].append(state)
    return {**updates, **{name: _Update(ZERO_UUID, states) for name, states in ungrouped.items()}}


def _merge_topic(known: TopicImage | None, name: str, update: _Update) -> TopicImage | None:
    """Return the topic after an update; None when no partition is left, because the topic is being deleted."""
    is_same = known is not None and update.topic_id in (ZERO_UUID, known.topic_id)
    partitions = {partition.partition: partition for partition in known.partitions} if known and is_same else {}
    for state in update.states:
        if state.leader == LEADER_DURING_DELETE:
            partitions.pop(state.partition_index, None)
        elif not _is_older(state, partitions.get(state.partition_index)):
            partitions[state.partition_index] = _build_partition(state)
    if not partitions:
        return None
    topic_id = known.topic_id if known is not None and is_same else update.topic_id
    return TopicImage(name, topic_id, tuple(_fill_gaps(partitions)))


def _is_older(state: UpdateMetadataPartitionState, known: PartitionImage | None) -> bool:
    """Whether a state is older than the known one: a request that was repeated after a lost connection can be."""
    return known is not None and (state.leader_epoch, state.zk_version) < (known.leader_epoch, known.partition_epoch)


def _fill_gaps(partitions: Mapping[int, PartitionImage]) -> Iterator[PartitionImage]:
    """Yield the partitions from 0 on. One that the controller has not sent yet has no leader and no replicas."""
    for index in range(max(partitions) + 1):
        yield partitions.get(index) or PartitionImage(index, NO_LEADER, -1, (), (), -1)


def _build_partition(state: UpdateMetadataPartitionState) -> PartitionImage:
    return PartitionImage(
        state.partition_index,
        state.leader,
        state.leader_epoch,
        tuple(state.replicas),
        tuple(state.isr),
        state.zk_version,
        offline_replicas=tuple(state.offline_replicas),
    )


def _build_broker(broker: UpdateMetadataBroker) -> BrokerImage:
    """Build a broker; before version 3 a listener has the name of its protocol, in version 0 there is one, PLAINTEXT."""
    if not broker.endpoints:
        address = (broker.v0_host, broker.v0_port)
        return BrokerImage(
            broker.id, broker.rack or None, {"PLAINTEXT": address}, security_protocols={"PLAINTEXT": "PLAINTEXT"}
        )
    endpoints, protocols = {}, {}
    for endpoint in broker.endpoints:
        if not 0 <= endpoint.security_protocol < len(SECURITY_PROTOCOLS):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"no protocol has the number {endpoint.security_protocol}")
        protocol = SECURITY_PROTOCOLS[endpoint.security_protocol]
        listener = endpoint.listener or protocol
        endpoints[listener] = (endpoint.host, endpoint.port)
        protocols[listener] = protocol
    return BrokerImage(broker.id, broker.rack or None, endpoints, security_protocols=protocols)
