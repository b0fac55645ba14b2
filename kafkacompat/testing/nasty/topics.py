"""Nasty topics, one call each: real logs with the shapes that consumers, and what is built on them, have failed at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.broker_access import BrokerAccess
from kafkacompat.testing.nasty.compacted import make_compacted_holes, make_empty_batch
from kafkacompat.testing.nasty.formats import make_mixed_formats
from kafkacompat.testing.nasty.retention import RetentionJump, make_retention_jump
from kafkacompat.testing.nasty.sizes import MOST_PARTITIONS, make_largest_record, make_many_partitions
from kafkacompat.testing.nasty.timestamps import make_mixed_timestamp_types, make_out_of_order_timestamps
from kafkacompat.testing.nasty.transactional import make_aborted_tail, make_transaction_gaps
from kafkacompat.testing.nasty.truncation import Plan, UncleanTruncation, make_in_cluster, make_on_one_node

if TYPE_CHECKING:
    from kafkacompat.broker import Broker
    from kafkacompat.testing.nasty.broker_access import Kafka
    from kafkacompat.testing.nasty.description import NastyTopic
    from kafkacompat.testing.nasty.truncation import Cluster

KAFKA_BATCH_LIMIT_BYTES = 1_048_588
"""max.message.bytes of a topic that sets none."""


class NastyTopics:
    """Makes nasty topics on a broker, or on a cluster: each with one replica, but for `unclean_truncation`.

    ``kafka`` runs functions in the reactor's thread, and ``list_brokers`` returns the running brokers there. ``cluster`` starts and
    stops brokers; a single broker has none. Each method creates the topic of the given name, which must not exist yet, and returns
    what a correct consumer must see of it. All of them raise NastyTopicError for a topic that cannot be created.
    """

    def __init__(
        self, kafka: Kafka, list_brokers: Callable[[], Sequence[Broker]], cluster: Cluster | None = None
    ) -> None:
        self._kafka = kafka
        self._access = BrokerAccess(list_brokers)
        self._cluster = cluster

    def transaction_gaps(self, topic: str, *, transactions: int = 10) -> NastyTopic:
        """Markers between the records: most offsets are followed by one without a record, and the last one has none.

        Each transaction has one record, and each third one is aborted. The last two transactions overlap, with a record of no
        transaction among theirs. The last offset is a marker.

        Incidents: Spark's DStreams and its Kafka source expected consecutive offsets (SPARK-24720, SPARK-25005).
        Hudi's Deltastreamer failed on topics of exactly-once producers (hudi 8258). Druid had the same check (druid 5404), and
        Pinot reported markers as lost data (pinot 14716, 19161). A server of Pinot did not become ready, as it waited for a
        record at the offset of the last marker (pinot 17962).
        """
        return self._make(make_transaction_gaps, topic, transactions)

    def aborted_tail(self, topic: str, *, transactions: int = 3, records: int = 1000) -> NastyTopic:
        """Ten records, and then aborted transactions to the end: more bytes than one fetch returns, and no record.

        Each transaction has this many records of 1 kB. A reader of committed records gets responses without a record, and
        must go on; its position must reach the end.

        Incidents: Pinot sought back to the offset of each empty answer, and stood still (pinot 12318, 18337). Beam took an empty
        poll for the end of the partition (beam 25962).
        """
        return self._make(make_aborted_tail, topic, transactions, records)

    def compacted_holes(self, topic: str) -> NastyTopic:
        """Holes of compaction: at the log's beginning, at the beginning, middle and end of batches, and 900 offsets long.

        The log starts at offset 0, and the first record has offset 16. One record is a tombstone. The last records were not
        compacted, so that their keys repeat.

        Incidents: consumers that fetched an offset without a record got stuck in kafka-python (1390, 1571, 1701), kafkajs
        (562), kafka-go (621, 813) and ruby-kafka (555). Storm's spout never committed past a hole (STORM-2505), and Spark's
        DStreams failed (SPARK-17147).
        """
        return self._make(make_compacted_holes, topic)

    def empty_batch(self, topic: str) -> NastyTopic:
        """A batch without records, which compaction keeps for the last sequence number of its producer; and one at the end.

        The second one is of an aborted transaction, and only its marker follows.

        Incidents: Sarama stopped at a batch with zero records (sarama 2053), and kafka-go had to learn to step over it
        (kafka-go 813).
        """
        return self._make(make_empty_batch, topic)

    def retention_jump(self, topic: str, *, records: int = 20_000) -> RetentionJump:
        """Four segments of 1 kB records; `jump` lets retention delete the first three while a consumer reads.

        Incidents: Hudi's jobs failed at offsets that had expired, or continued at the end (hudi 1653, 5823). Pinot added
        a gauge for records that expired before they were read (pinot 12608).
        """
        before = self._make(make_retention_jump, topic, records)
        return RetentionJump(self._kafka, self._access, before)

    def out_of_order_timestamps(self, topic: str) -> NastyTopic:
        """Timestamps that go back and forth, inside batches and between segments, from 1970 to 2100.

        `lookups` has the offsets that ListOffsets returns for timestamps: that of the first record, by offset, with this
        timestamp or a later one. The topic keeps its records for ever (retention.ms=-1): Kafka's default deletes the ones of 1970.

        Incidents: test data of 1970 was deleted at once (kafka 1808, 5748).
        """
        return self._make(make_out_of_order_timestamps, topic)

    def mixed_timestamp_types(self, topic: str) -> NastyTopic:
        """Batches with the producer's time, which is a day earlier, and with the time of the append, in turns.

        message.timestamp.type changed three times. In a batch with LogAppendTime all records have one timestamp, whatever their
        producer wrote; the bytes of the records still have the producer's.
        """
        return self._make(make_mixed_timestamp_types, topic)

    def mixed_formats(self, topic: str) -> NastyTopic:
        """Records of producers of three ages: message formats 0, 1 and 2, plain and compressed, in turns.

        The log holds them as the broker stores message sets of old producers, and as it converts old segments when it takes
        over a data directory: as batches of format 2. Those of format 0 have no timestamp (-1), and only those of
        format 2 have headers. Consumers from before 0.11 get all of them converted back.
        """
        return self._make(make_mixed_formats, topic)

    def largest_record(self, topic: str, *, batch_bytes: int = KAFKA_BATCH_LIMIT_BYTES) -> NastyTopic:
        """Records in batches of exactly max.message.bytes between small ones, the first of them after three records.

        By default that is Kafka's limit, 12 bytes more than consumers fetch from a partition by default
        (max.partition.fetch.bytes): a broker returns a first batch that is larger than the limit of its fetch (KIP-74).
        """
        return self._make(make_largest_record, topic, batch_bytes)

    def unclean_truncation(self, topic: str, *, records: int = 20, kept: int = 10) -> UncleanTruncation:
        """A log that loses its end: `truncate` keeps the first records, and writes others in a later leader epoch.

        On a single node the log ends as after a power failure that loses unsynced records. In a cluster the topic has two
        replicas, and its follower stops before the last records; `truncate` kills the leader, and starts the follower, which is
        elected though it was not in sync. All brokers of the cluster must run when the topic is created.

        Incidents: KIP-320 describes what consumers missed. Clients got its detection late: Java in 2.3 (KAFKA-7747), librdkafka
        with 4162, kafka-python with 2978; kafkajs has an open request for it (kafkajs 818).
        """
        plan = Plan(topic, records, kept)
        plan.check()
        if self._cluster is None:
            return make_on_one_node(self._kafka, self._access, plan)
        return make_in_cluster(self._cluster, self._access, plan)

    def many_partitions(self, topic: str, *, partitions: int = MOST_PARTITIONS) -> NastyTopic:
        """Ten thousand partitions; the first, the middle and the last have three records each.

        A response to Metadata for it has several hundred kB, and a consumer of all partitions fetches them from one broker.
        """
        return self._make(make_many_partitions, topic, partitions)

    def _make(self, make: Callable[..., object], topic: str, *arguments: int) -> NastyTopic:
        described: NastyTopic = self._kafka.call(make, self._access, topic, *arguments)
        return described
