"""What the brokers of a cluster hold: topics with their sizes, groups, transactional ids and users; and whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

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
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance

ResponseType = TypeVar("ResponseType", bound=Response)


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
    responses = _ask_brokers(client, contents, ListGroupsRequest(), ListGroupsResponse, "groups")
    return sorted({group.group_id for response in responses for group in response.groups})


def list_transactional_ids(client: InstanceClient, contents: ClusterContents) -> list[str]:
    """Return all transactional ids; raises NoResponseError and InstanceError."""
    request, noun = ListTransactionsRequest(), "transactional ids"
    responses = _ask_brokers(client, contents, request, ListTransactionsResponse, noun)
    return sorted({state.transactional_id for response in responses for state in response.transaction_states})


def _ask_brokers(
    client: InstanceClient,
    contents: ClusterContents,
    request: Request,
    response_type: type[ResponseType],
    noun: str,
) -> Iterator[ResponseType]:
    """Yield the response of each broker; raises InstanceError for one that does not list its *noun*."""
    for node_id, response in visit_brokers(
        contents.addresses, client.connect, lambda connection: connection.request(request, response_type)
    ):
        code: int = response.error_code  # type: ignore[attr-defined]
        if code:
            raise InstanceError(f"broker {node_id} does not list its {noun} (error {code}): try again")
        yield response


def list_users(client: InstanceClient) -> list[str]:
    """Return the users with SCRAM credentials; raises NoResponseError and InstanceError."""
    response = client.request(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
    if response.error_code:
        raise InstanceError(f"the users cannot be listed: {response.error_message or response.error_code}")
    return sorted(result.user for result in response.results if not result.error_code)


def select_own(instance: Instance, entity: str, names: Iterable[str]) -> list[str]:
    """Return the physical names of *names* that belong to an instance."""
    return [name for name in names if instance.owns(entity, name)]


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
