"""A Kafka cluster, asked through the same Java client and with the same options as Spark's source.

The Admin client comes with Spark's Kafka package; it is called through py4j in the driver (decision 007).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError, explain_failure
from spark_integration.topics.client_settings import KAFKA
from spark_integration.topics.offsets import Offsets, TopicPartition

TIMEOUT_MS = 15_000


class OffsetSpec(Enum):
    """An end of a partition (Kafka's OffsetSpec)."""

    EARLIEST = "earliest"
    LATEST = "latest"


class TopicDescription(NamedTuple):
    """A topic as the cluster describes it."""

    name: str
    topic_id: str
    partitions: int
    is_internal: bool


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the Kafka client among Spark's options: those that begin with ``kafka.``."""
    return {name.removeprefix(KAFKA): value for name, value in options.items() if name.startswith(KAFKA)}


def admin_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the Admin client; the user's override ours, and a request takes no longer than a call."""
    given = {"default.api.timeout.ms": str(TIMEOUT_MS), **client_properties(options)}
    return {"request.timeout.ms": min("10000", given["default.api.timeout.ms"], key=int), **given}


def add_token_login(jvm: Any, properties: Mapping[str, str]) -> Any:
    """Return properties of a Kafka client as a map of Java's.

    If Spark holds a delegation token for the cluster (``spark.kafka.clusters.*``), they log in by it, as those of
    Spark's source and sink do (its KafkaConfigUpdater).
    """
    given = jvm.java.util.HashMap()
    for name, value in properties.items():
        given.put(name, value)
    in_scala = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
    updater = jvm.org.apache.spark.kafka010.KafkaConfigUpdater("kafkacompat", in_scala)
    return updater.setAuthenticationConfigIfNeeded().build()


class Cluster:
    """The Admin client of one cluster; every failure is a PipelineError.

    *options* are Spark's: ``kafka.bootstrap.servers`` and all others that begin with ``kafka.``.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._jvm: Any = spark._jvm
        self.bootstrap = options[f"{KAFKA}bootstrap.servers"]
        with self._explain_failures():
            properties = add_token_login(self._jvm, admin_properties(options))
            self._admin: Any = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)

    def close(self) -> None:
        """Close the client without waiting."""
        self._admin.close(self._jvm.java.time.Duration.ZERO)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cluster_id(self) -> str:
        """Return the cluster's id."""
        return str(self._wait(self._admin.describeCluster().clusterId()))

    def topic_names(self) -> list[str]:
        """Return the names of all topics but the internal ones, sorted."""
        return sorted(str(name) for name in self._wait(self._admin.listTopics().names()))

    def find_matching_topics(self, pattern: str) -> list[str]:
        """Return the topics whose whole name matches *pattern*, a Java regular expression (subscribePattern)."""
        return self.names_matching(pattern, self.topic_names())

    def names_matching(self, pattern: str, names: Iterable[str]) -> list[str]:
        """Return those of *names*, which need not exist, that *pattern* matches as a whole."""
        try:
            compiled = self._jvm.java.util.regex.Pattern.compile(pattern)
        except IllegalArgumentException as failure:
            problem = explain_failure(failure)
            raise PipelineError(f"{pattern!r} is no regular expression of Java's ({problem}): correct it") from failure
        return [name for name in names if compiled.matcher(name).matches()]

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Describe those of *names* that exist."""
        futures = self._admin.describeTopics(self._list(names)).topicNameValues()
        descriptions = (self._describe(futures.get(name)) for name in list(futures.keySet()))
        return {topic.name: topic for topic in descriptions if topic is not None}

    def require(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Describe *names*; raises PipelineError that names a missing topic."""
        wanted = list(names)
        topics = self.topics(wanted)
        if missing := [name for name in wanted if name not in topics]:
            raise PipelineError(
                f"there is no topic {', '.join(missing)} on {self.bootstrap}: create it, or name one that exists"
            )
        return topics

    def partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        """Return every partition of *names*, which must exist."""
        topics = self.require(names).values()
        return [TopicPartition(topic.name, partition) for topic in topics for partition in range(topic.partitions)]

    def find_leaders(self, names: Iterable[str]) -> dict[TopicPartition, tuple[Any, Any]]:
        """Return for each partition of *names* its leader (Kafka's Node) and its topic's id (Kafka's Uuid)."""
        descriptions = self._wait(self._admin.describeTopics(self._list(names)).allTopicNames())
        return {
            TopicPartition(str(name), int(partition.partition())): (
                partition.leader(),
                descriptions.get(name).topicId(),
            )
            for name in list(descriptions.keySet())
            for partition in descriptions.get(name).partitions()
        }

    def offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec | int, *, read_committed: bool = False
    ) -> Offsets:
        """Return the offset of each partition at *spec*: an end, or the first offset at or after a time in ms.

        A partition without a record that late is left out. With *read_committed* LATEST is the last stable offset
        (KIP-98).
        """
        asked = self._jvm.java.util.HashMap()
        for partition in partitions:
            asked.put(self._partition(partition), self._offset_spec(spec))
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if read_committed else levels.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        answers = self._wait(self._admin.listOffsets(asked, options).all())
        return {
            partition: offset
            for partition, offset in self._read_by_partition(answers, lambda value: int(value.offset()))
            if offset >= 0
        }

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> bool:
        """Create a topic with the broker's replication factor; return False if it exists already."""
        optional = self._jvm.java.util.Optional
        topic = self._jvm.org.apache.kafka.clients.admin.NewTopic(name, optional.of(partitions), optional.empty())
        topic.configs(self._map(configs or {}))
        try:
            self._wait(self._admin.createTopics(self._list([topic])).all())
        except PipelineError as problem:
            if _cause_is(problem, "TopicExistsException"):
                return False
            raise
        return True

    def create_partitions(self, name: str, total: int) -> None:
        """Extend the topic to *total* partitions."""
        new = self._jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(total)
        wanted = self._jvm.java.util.HashMap()
        wanted.put(name, new)
        self._wait(self._admin.createPartitions(wanted).all())

    def topic_configs(self, name: str, *, with_defaults: bool = False) -> dict[str, str]:
        """Return the configs that were set for this topic, and its defaults if asked for."""
        types = getattr(self._jvm.org.apache.kafka.common.config, "ConfigResource$Type")
        resource = self._jvm.org.apache.kafka.common.config.ConfigResource(types.TOPIC, name)
        config = self._wait(self._admin.describeConfigs(self._list([resource])).all()).get(resource)
        # py4j iterates over arrays, lists and sets, but not over any other Collection.
        entries = [
            entry
            for entry in config.entries().toArray()
            if with_defaults or str(entry.source()) == "DYNAMIC_TOPIC_CONFIG"
        ]
        return {str(entry.name()): str(entry.value()) for entry in entries}

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit *offsets* for a group that has no members, for tools that show lag."""
        wanted = self._jvm.java.util.HashMap()
        for partition, offset in offsets.items():
            metadata = self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset)
            wanted.put(self._partition(partition), metadata)
        self._wait(self._admin.alterConsumerGroupOffsets(group, wanted).all())

    def read_committed(self, group: str) -> Offsets:
        """Return the offsets that the group has committed."""
        answers = self._wait(self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
        return dict(self._read_by_partition(answers, lambda value: int(value.offset())))

    def members(self, group: str) -> int:
        """Return the number of the group's members, 0 if it does not exist."""
        described = self._admin.describeConsumerGroups(self._list([group])).describedGroups()
        try:
            return int(self._wait(described.get(group)).members().size())
        except PipelineError as problem:
            if _cause_is(problem, "GroupIdNotFoundException"):
                return 0
            raise

    def _describe(self, future: Any) -> TopicDescription | None:
        try:
            description = self._wait(future)
        except PipelineError as problem:
            if _cause_is(problem, "UnknownTopicOrPartitionException", "InvalidTopicException"):
                return None
            raise
        return TopicDescription(
            description.name(), str(description.topicId()), description.partitions().size(), description.isInternal()
        )

    def _offset_spec(self, spec: OffsetSpec | int) -> Any:
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        if isinstance(spec, int):
            return specs.forTimestamp(spec)
        return getattr(specs, spec.value)()

    def _partition(self, partition: TopicPartition) -> Any:
        return self._jvm.org.apache.kafka.common.TopicPartition(partition.topic, partition.partition)

    def _list(self, values: Iterable[Any]) -> Any:
        wanted = self._jvm.java.util.ArrayList()
        for value in values:
            wanted.add(value)
        return wanted

    def _map(self, values: Mapping[str, str]) -> Any:
        wanted = self._jvm.java.util.HashMap()
        for name, value in values.items():
            wanted.put(name, value)
        return wanted

    def _read_by_partition(self, answers: Any, read: Callable[[Any], int]) -> Iterator[tuple[TopicPartition, int]]:
        for key in list(answers.keySet()):
            value = answers.get(key)
            if value is not None:
                yield TopicPartition(str(key.topic()), int(key.partition())), read(value)

    def _wait(self, future: Any) -> Any:
        with self._explain_failures():
            return future.get()

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as failure:
            raise PipelineError(f"{self.bootstrap}: {explain_failure(failure)}") from failure


def _cause_is(problem: PipelineError, *names: str) -> bool:
    return any(name in str(problem.__cause__) for name in names)
