"""What the brokers of a cluster hold: topics with their sizes, groups, transactional ids and users; and whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.instances.client import InstanceClient, InstanceError, visit_brokers
from kafkacompat.wire import entities
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance


@dataclass
class TopicContents:
    """One topic; ``stored_bytes`` counts all replicas, ``partition_bytes`` the largest one of each partition."""

    partitions: int = 0
    replicas: int = 0
    brokers: set[int] = field(default_factory=set)
    stored_bytes: int = 0
    partition_bytes: int = 0


@dataclass
class ClusterContents:
    """The topics of a cluster by name, and the addresses of its brokers."""

    addresses: dict[int, tuple[str, int]]
    topics: dict[str, TopicContents]


def read_contents(client: InstanceClient, *, with_sizes: bool = True) -> ClusterContents:
    """Read the topics of a cluster, with their sizes on all brokers if *with_sizes*; raises NoResponseError."""
    metadata = client.request(MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse)
    contents = ClusterContents({broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}, {})
    for topic in metadata.topics:
        contents_of_topic = contents.topics[topic.name or ""] = TopicContents(len(topic.partitions))
        for partition in topic.partitions:
            contents_of_topic.replicas += len(partition.replica_nodes)
            contents_of_topic.brokers.update(partition.replica_nodes)
    if with_sizes:
        _add_sizes(client, contents)
    return contents


def _add_sizes(client: InstanceClient, contents: ClusterContents) -> None:
    largest = Counter[tuple[str, int]]()
    request = DescribeLogDirsRequest(topics=None)
    for _, response in visit_brokers(
        contents.addresses, client.connect, lambda connection: connection.request(request, DescribeLogDirsResponse)
    ):
        for topic in (topic for directory in response.results for topic in directory.topics):
            contents_of_topic = contents.topics.get(topic.name)
            if contents_of_topic is None:
                continue
            for partition in topic.partitions:
                contents_of_topic.stored_bytes += partition.partition_size
                key = (topic.name, partition.partition_index)
                largest[key] = max(largest[key], partition.partition_size)
    for (name, _), size in largest.items():
        contents.topics[name].partition_bytes += size


def list_groups(client: InstanceClient, contents: ClusterContents) -> list[str]:
    """Return the ids of all groups; raises NoResponseError and InstanceError."""
    groups: set[str] = set()
    for node_id, response in visit_brokers(
        contents.addresses,
        client.connect,
        lambda connection: connection.request(ListGroupsRequest(), ListGroupsResponse),
    ):
        _check(node_id, response, "groups")
        groups.update(group.group_id for group in response.groups)
    return sorted(groups)


def list_transactional_ids(client: InstanceClient, contents: ClusterContents) -> list[str]:
    """Return all transactional ids; raises NoResponseError and InstanceError."""
    ids: set[str] = set()
    for node_id, response in visit_brokers(
        contents.addresses,
        client.connect,
        lambda connection: connection.request(ListTransactionsRequest(), ListTransactionsResponse),
    ):
        _check(node_id, response, "transactional ids")
        ids.update(state.transactional_id for state in response.transaction_states)
    return sorted(ids)


def list_users(client: InstanceClient) -> list[str]:
    """Return the users with SCRAM credentials; raises NoResponseError and InstanceError."""
    response = client.request(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
    if response.error_code:
        raise InstanceError(f"the users cannot be listed: {response.error_message or response.error_code}")
    return sorted(result.user for result in response.results if not result.error_code)


def _check(node_id: int, response: Any, noun: str) -> None:
    if response.error_code:
        raise InstanceError(f"broker {node_id} does not list its {noun} (error {response.error_code}): try again")


def select_own(instance: Instance, entity: str, names: Iterable[str]) -> list[str]:
    """Return the physical names of *names* that belong to an instance."""
    adopted = set(instance.tables.get(entity, {}).values())
    return [name for name in names if name in adopted or name.startswith(instance.prefix)]


def measure_usage(instance: Instance, contents: ClusterContents, groups: Iterable[str]) -> dict[str, int]:
    """Return what an instance has, by the same names as its limits."""
    topics = [contents.topics[name] for name in select_own(instance, entities.TOPIC, contents.topics)]
    counts_all = instance.string("limit.storage.counts") == "replicas"
    return {
        "topics": len(topics),
        "partitions": sum(topic.partitions for topic in topics),
        "groups": len(select_own(instance, entities.GROUP, groups)),
        "storage.bytes": sum(topic.stored_bytes if counts_all else topic.partition_bytes for topic in topics),
    }


def find_brokers(instance: Instance, contents: ClusterContents) -> list[int]:
    """Return the brokers that hold replicas of an instance's topics."""
    names = select_own(instance, entities.TOPIC, contents.topics)
    return sorted({node_id for name in names for node_id in contents.topics[name].brokers})
