"""The headers of the batches that a broker's log holds where consumers see no record.

A consumer hides transaction markers, so a hole of one offset may be a marker or a lost record. A broker sends batches
as they lie in the log, markers among them. This module requests them with Kafka's own NetworkClient, which the consumer
uses too, one request for each hole. It reads only the 27 bytes that tell which offsets a batch covers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError, explain_failure
from spark_integration.topics.cluster import Cluster, add_token_login, client_properties
from spark_integration.topics.offsets import TopicPartition

TIMEOUT_MS = 10_000
# Kafka's defaults: when an idle connection is closed, and the first and the longest pause before a reconnect and a
# connect.
IDLE_MS = 540_000
RECONNECT_MS = (50, 1_000)
CONNECT_MS = (10_000, 30_000)
# Sizes of the send and receive buffers: those of the operating system.
SYSTEM_BUFFERS = (-1, -1)
FETCH_BYTES = 65_536
# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta
HEADER = struct.Struct(">qiibIhi")
# The batch's length does not count baseOffset and batchLength themselves.
UNCOUNTED = 12
CONTROL = 1 << 5


class LogBatch(NamedTuple):
    """The offsets that a batch in the log covers, `first` to `last`, and whether it is a transaction's marker."""

    first: int
    last: int
    is_control: bool


def parse_batches(data: bytes) -> Iterator[LogBatch]:
    """Parse the headers of batches of magic 2; older ones, and one that was cut off, are left out."""
    position = 0
    while position + HEADER.size <= len(data):
        first, length, _, magic, _, attributes, delta = HEADER.unpack_from(data, position)
        if magic == 2:
            yield LogBatch(first, first + delta, bool(attributes & CONTROL))
        position += UNCOUNTED + length


# Returns the batches from the one that covers the offset on, or else from the next one; None if the broker does not
# tell.
ReadLogBatches = Callable[[TopicPartition, int], "list[LogBatch] | None"]


class LogBatchReader:
    """Reads batches of one cluster's partitions from their leaders; *source* are Spark's options."""

    def __init__(self, spark: SparkSession, cluster: Cluster, source: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._kafka = jvm.org.apache.kafka
        self._java = jvm.java
        self._bytes = jvm.org.apache.kafka.common.utils.Utils.toArray
        self._time = jvm.org.apache.kafka.common.utils.Time.SYSTEM
        self._cluster = cluster
        self._leaders: dict[TopicPartition, Any] = {}
        self._properties = client_properties(source)
        self._client: Any = None

    def __enter__(self) -> LogBatchReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def __call__(self, partition: TopicPartition, offset: int) -> list[LogBatch] | None:
        """Return the batches from *offset* on; None if the broker does not send any.

        Raises PipelineError if the broker rejects the credentials, or if this release of Kafka's client cannot fetch
        batches.
        """
        try:
            data = self._fetch(partition, offset)
        except Py4JJavaError as failure:
            if "AuthenticationException" in str(failure):
                raise PipelineError(f"{self._cluster.bootstrap}: {explain_failure(failure)}") from failure
            return None
        except Py4JError as failure:
            release = self._kafka.common.utils.AppInfoParser.getVersion()
            raise PipelineError(
                f"Kafka's client {release} cannot ask for batches, so that holes in the offsets cannot be explained: "
                "give --examine 0 to leave them unexamined"
            ) from failure
        return None if data is None else list(parse_batches(data))

    def _fetch(self, partition: TopicPartition, offset: int) -> bytes | None:
        if partition not in self._leaders:
            self._leaders.update(self._cluster.find_leaders([partition.topic]))
        leader, topic_id = self._leaders[partition]
        self._client = self._client or self._make_client()
        clients = self._kafka.clients
        clients.NetworkClientUtils.awaitReady(self._client, leader, self._time, TIMEOUT_MS)
        request = self._client.newClientRequest(
            leader.idString(), self._build_request(partition, offset, topic_id), self._time.milliseconds(), True
        )
        answer = clients.NetworkClientUtils.sendAndReceive(self._client, request, self._time)
        return self._read_records(answer, partition, topic_id)

    def _build_request(self, partition: TopicPartition, offset: int, topic_id: Any) -> Any:
        requests = self._kafka.common.requests
        data = getattr(requests, "FetchRequest$PartitionData")
        wanted = self._java.util.LinkedHashMap()
        key = self._kafka.common.TopicPartition(partition.topic, partition.partition)
        wanted.put(key, data(topic_id, offset, -1, FETCH_BYTES, self._java.util.Optional.empty()))
        version = self._kafka.common.protocol.ApiKeys.FETCH.latestVersion()
        return getattr(requests, "FetchRequest$Builder").forConsumer(version, 0, 0, wanted).setMaxBytes(FETCH_BYTES)

    def _read_records(self, answer: Any, partition: TopicPartition, topic_id: Any) -> bytes | None:
        names = self._java.util.HashMap()
        names.put(topic_id, partition.topic)
        partitions = answer.responseBody().responseData(names, answer.requestHeader().apiVersion())
        data = partitions.get(self._kafka.common.TopicPartition(partition.topic, partition.partition))
        if data is None or data.errorCode() != 0:
            return None
        records = data.records()
        return b"" if records is None else bytes(self._bytes(records.buffer()))

    def _make_client(self) -> Any:
        """Assemble Kafka's client as Kafka's own classes do: 3.4.1, which Spark 3.5 has, has no function for it."""
        clients, network, log = self._kafka.clients, self._kafka.common.network, self._kafka.common.utils.LogContext()
        config = clients.admin.AdminClientConfig(add_token_login(self._jvm, self._properties))
        channels = clients.ClientUtils.createChannelBuilder(config, self._time, log)
        metrics = self._kafka.common.metrics.Metrics()
        selector = network.Selector(IDLE_MS, metrics, self._time, "audit", channels, log)
        updater, versions = clients.ManualMetadataUpdater(), clients.ApiVersions()
        waits = (*RECONNECT_MS, *SYSTEM_BUFFERS, TIMEOUT_MS, *CONNECT_MS)
        # From 3.8 on Kafka's client needs a strategy for the time when no broker is known any more (KIP-899).
        strategy = clients.MetadataRecoveryStrategy
        recovery = [strategy.NONE] if isinstance(strategy, JavaClass) else []
        return clients.NetworkClient(
            selector, updater, "kafkacompat-audit", 1, *waits, self._time, True, versions, log, *recovery
        )
