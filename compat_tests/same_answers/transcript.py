"""Asks one broker and notes its answers in a form that can be compared with another's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from compat_tests.raw_client import Answer, ClosedError, RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Request, Response, Struct

# Fields whose values each broker makes up; they are compared by where the same value comes again.
MADE_UP = {
    "topic_id": "topic id",
    "cluster_id": "cluster id",
    "member_id": "member",
    "leader": "member",
    "port": "port",
    "log_dir": "directory",
    "session_id": "session",
    "producer_id": "producer",
    "log_append_time_ms": "time",
}
NOTHING = (None, "", -1, 0, ZERO_UUID)

# Times whose presence alone is compared.
TIMES = {"transaction_start_time_ms"}

# The words of an error may differ; that there are some may not.
IN_WORDS = {"error_message", "batch_index_error_message", "documentation"}

# A config without any effect, of a group without members.
GROUP = 32
MARK = "consumer.session.timeout.ms"

# Lists that Kafka sends in no order, and the fields that identify their entries.
UNORDERED = {
    "configs": ["name"],
    "config_resources": ["resource_type", "resource_name"],
    "results": ["group_id", "user"],
    "entries": ["entity"],
    "entity": ["entity_type"],
    "values": ["key"],
    "credential_infos": ["mechanism"],
    "groups": ["group_id"],
    "replica_election_results": ["topic"],
    "transaction_states": ["transactional_id"],
    "results_by_transaction": ["transactional_id"],
    "results_by_topic_v3_and_below": ["name"],
    "topic_results": ["name"],
    "results_by_partition": ["partition_index"],
}

# The APIs whose first versions Apache Kafka 4.3.1 no longer serves (KIP-896).
OLDEST_SERVED = {
    0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2, 20: 1, 23: 2, 29: 1, 30: 1, 31: 1, 32: 1, 34: 1, 35: 1, 38: 1, 39: 1, 40: 1, 41: 1,
}  # fmt: skip


class Transcript:
    """A connection to one broker and its responses so far, by the label of each request.

    Requests by ``client`` itself are not noted.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, Any] = {}
        self.client = RawClient(port)
        self._labels: dict[tuple[str, Any], str] = {}
        self._marks = 0

    def close(self) -> None:
        self.client.socket.close()

    def reconnect(self) -> None:
        """Go on with another connection."""
        self.close()
        self.client = RawClient(self.port)

    def ask(self, label: str, request: Request, answer: type[Answer], version: int) -> Answer | None:
        """Ask, note the answer, and return it; None when the broker closes the connection instead."""
        key = f"{label} v{version}"
        assert key not in self.answers, f"two questions have the label {key}"
        try:
            given = self.client.call(request, answer, version)
        except ClosedError:
            self.answers[key] = "closed"
            self.reconnect()
            return None
        self.answers[key] = self._plain("", given)
        return given

    def note(self, label: str, given: Any) -> None:
        """Note a part of a response."""
        assert label not in self.answers, f"two notes have the label {label}"
        self.answers[label] = self._plain("", given)

    def ask_every_version(self, label: str, request: Request, answer: type[Response]) -> None:
        """Ask once in each version that Apache Kafka 4.3.1 serves."""
        versions = find_api(request.API_KEY).request.VERSIONS
        for version in range(OLDEST_SERVED.get(request.API_KEY, 0), versions.last + 1):
            self.ask(label, request, answer, version)

    def ask_dropped_versions(self, label: str, request: Request, answer: type[Response]) -> None:
        """Ask once in each version that Apache Kafka 4.3.1 serves no longer."""
        for version in range(OLDEST_SERVED[request.API_KEY]):
            self.ask(label, request, answer, version)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic without noting it; return its id once all partitions are open."""
        given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given)
        created = self.client.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7).topics[0]
        assert created.error_code == 0, created
        until(lambda: self._is_open(name, partitions))
        return created.topic_id

    def settle(self) -> None:
        """Return once all changes made so far are in effect.

        Kafka answers first and applies its changes later, one after the other: when the second of two marks is
        seen, everything before the first is in effect.
        """
        for _ in range(2):
            self._marks += 1
            value = str(50_000 + self._marks % 10_000)
            config = AlterableConfig(name=MARK, config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=GROUP, resource_name="mark", configs=[config])
            marking = IncrementalAlterConfigsRequest(resources=[resource])
            marked = self.client.call(marking, IncrementalAlterConfigsResponse, 1).responses[0]
            assert marked.error_code == 0, marked
            until(partial(self._is_marked, value))

    def _is_marked(self, value: str) -> bool:
        asked = DescribeConfigsResource(resource_type=GROUP, resource_name="mark", configuration_keys=[MARK])
        answer = self.client.call(DescribeConfigsRequest(resources=[asked]), DescribeConfigsResponse, 4)
        return answer.results[0].configs[0].value == value

    def _is_open(self, name: str, partitions: int) -> bool:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        topic = self.client.call(wanted, MetadataResponse, 12).topics[0]
        parts = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions)]
        asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=parts)])
        offsets = self.client.call(asked, ListOffsetsResponse, 5).topics[0].partitions
        return topic.error_code == 0 and not any(part.error_code for part in offsets)

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Struct):
            return {field: self._plain(field, content) for field, content in vars(value).items()}
        if isinstance(value, list):
            return self._in_order(name, [self._plain(name, item) for item in _by_name(name, value)])
        if isinstance(value, memoryview):
            return bytes(value)
        if name in IN_WORDS:
            return "in words" if value else value
        if name in TIMES and value not in NOTHING:
            return "a time"
        if name in MADE_UP and value not in NOTHING:
            return self._label(MADE_UP[name], value)
        return value

    def _in_order(self, name: str, items: list[Any]) -> list[Any]:
        """Sort the lists that Kafka sends in the order of a hash table."""
        for key in UNORDERED.get(name, ()):
            if items and isinstance(items[0], dict) and key in items[0]:
                return sorted(items, key=lambda item: str(item[key]))
        return items

    def _label(self, kind: str, value: Any) -> str:
        known = sum(1 for other, _ in self._labels if other == kind)
        return self._labels.setdefault((kind, value), f"{kind} {known + 1}")


def _by_name(name: str, items: list[Any]) -> list[Any]:
    """In an order of ours before anything is labelled by where it comes first."""
    for key in UNORDERED.get(name, ()):
        if items and isinstance(getattr(items[0], key, None), str):
            return sorted(items, key=lambda item: str(getattr(item, key)))
    return items


@dataclass(frozen=True)
class Difference:
    """Two answers differ in one field."""

    where: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.where}: Kafka {self.kafka!r}, ours {self.ours!r}"


def find_differences(where: str, kafka: Any, ours: Any) -> Iterator[Difference]:
    """Find every field in which two plain answers differ."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in kafka.keys() | ours.keys():
            yield from find_differences(f"{where}.{name}" if where else name, kafka.get(name), ours.get(name))
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for number, (theirs, mine) in enumerate(zip(kafka, ours, strict=True)):
            yield from find_differences(f"{where}[{number}]", theirs, mine)
    elif kafka != ours:
        yield Difference(where, kafka, ours)
