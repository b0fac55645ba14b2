"""The offset map of a mirror: a compacted topic of the target that relates the source's offsets to the target's.

A record says that all records before `sourceOffset` lie before `targetOffset`, and no others. There is one for each
partition and batch, of which compaction leaves one for every 100,000 offsets. Between two of them the records' own
headers of origin tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError, explain_failure
from spark_integration.topics.cluster import Cluster, OffsetSpec, client_properties
from spark_integration.topics.offsets import TopicPartition
from spark_integration.topics.written import read_between

SLOT_OFFSETS = 100_000
# The slot of the first pair, so that compaction does not replace it by a later one.
FIRST_SLOT = -1
POLICY, COMPACT = "cleanup.policy", "compact"


class MirrorLink(NamedTuple):
    """A partition and its mirror; the ids distinguish topics that were recreated under their names."""

    cluster: str
    topic: str
    topic_id: str
    partition: int
    target: str
    target_id: str

    @property
    def source_partition(self) -> TopicPartition:
        """The partition that is read."""
        return TopicPartition(self.topic, self.partition)

    @property
    def target_partition(self) -> TopicPartition:
        """The partition that is written."""
        return TopicPartition(self.target, self.partition)


class OffsetPair(NamedTuple):
    """Records with offsets below `source` lie below `target` there, and all others do not."""

    source: int
    target: int


class OffsetPairs:
    """The known pairs of each link, as the compacted topic keeps them."""

    def __init__(self) -> None:
        self._slots: dict[MirrorLink, dict[int, OffsetPair]] = {}
        self._named: dict[MirrorLink, set[MirrorLink]] = {}

    def put(self, link: MirrorLink, slot: int, pair: OffsetPair) -> None:
        """Keep a pair, in place of the one that its slot held."""
        self._slots.setdefault(link, {})[slot] = pair
        self._named.setdefault(_without_ids(link), set()).add(link)

    def slot_of(self, link: MirrorLink, source: int) -> int:
        """Return the slot of a pair with that source offset."""
        return source // SLOT_OFFSETS if link in self._slots else FIRST_SLOT

    def links(self) -> list[MirrorLink]:
        """Return all known links."""
        return list(self._slots)

    def namesakes(self, link: MirrorLink) -> set[MirrorLink]:
        """Return the links with the same names whose topics had other ids: one of the topics was recreated."""
        return self._named.get(_without_ids(link), set()) - {link}

    def furthest(self, link: MirrorLink) -> int:
        """Return the offset that the mirror has reached at least; -1 for an unknown link."""
        return max((pair.source for pair in self._slots.get(link, {}).values()), default=-1)

    def lower_bound(self, link: MirrorLink, source: int) -> int:
        """Return a target offset below which no record came from *source* or later; the link must be known."""
        pairs = self._slots[link].values()
        below = [pair.target for pair in pairs if pair.source <= source]
        return max(below, default=min(pair.target for pair in pairs))

    def upper_bound(self, link: MirrorLink, source: int) -> int | None:
        """Return a target offset from which on no record came from *source* or earlier; None if none is known."""
        return min((pair.target for pair in self._slots.get(link, {}).values() if pair.source > source), default=None)


class MirrorOffsetMap:
    """The topic of the map; its writer reads it once and then keeps the pairs up to date."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], topic: str) -> None:
        self._spark = spark
        self._options = options
        self.topic = topic
        self._producer: Any = None

    def read(self, cluster: Cluster) -> OffsetPairs:
        """Return the pairs that the topic holds; none if it does not exist."""
        pairs = OffsetPairs()
        if self.topic not in cluster.topics([self.topic]):
            return pairs
        partitions = cluster.partitions([self.topic])
        begin, end = (cluster.offsets(partitions, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
        rows = read_between(self._spark, self._options, begin, end).orderBy("partition", "offset")
        for key, value in rows.selectExpr("cast(key as string)", "cast(value as string)").toLocalIterator():
            pairs.put(*parse_entry(self.topic, key, value))
        return pairs

    def make(self, cluster: Cluster) -> None:
        """Create the topic; raises PipelineError if one exists that would lose pairs."""
        if cluster.create_topic(self.topic, 1, {POLICY: COMPACT}):
            return
        policy = cluster.topic_configs(self.topic, with_defaults=True)[POLICY]
        if policy != COMPACT:
            raise PipelineError(
                f"topic {self.topic} on {cluster.bootstrap} has {POLICY}={policy}, and an offset map must not lose "
                f"anything: set it to {COMPACT}, or name another topic by --offset-map"
            )

    def write(self, entries: Sequence[tuple[MirrorLink, int, OffsetPair]]) -> None:
        """Write pairs into their slots; returns when the broker has them. Raises PipelineError."""
        jvm: Any = self._spark._jvm
        if not entries:
            return
        try:
            producer = self._producer = self._producer or self._start_producer(jvm)
            sent = [producer.send(self._record(jvm, *entry)) for entry in entries]
            for future in sent:
                future.get()
        except Py4JJavaError as failure:
            raise PipelineError(f"{self.topic}: {explain_failure(failure)}") from failure

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close()

    def _start_producer(self, jvm: Any) -> Any:
        properties = jvm.java.util.Properties()
        for name, value in client_properties(self._options).items():
            properties.setProperty(name, value)
        strings = jvm.org.apache.kafka.common.serialization.StringSerializer
        return jvm.org.apache.kafka.clients.producer.KafkaProducer(properties, strings(), strings())

    def _record(self, jvm: Any, link: MirrorLink, slot: int, pair: OffsetPair) -> Any:
        key = json.dumps({**link._asdict(), "slot": slot}, sort_keys=True)
        value = json.dumps({"sourceOffset": pair.source, "targetOffset": pair.target})
        return jvm.org.apache.kafka.clients.producer.ProducerRecord(self.topic, key, value)


def _without_ids(link: MirrorLink) -> MirrorLink:
    return link._replace(topic_id="", target_id="")


def parse_entry(topic: str, key: str, value: str) -> tuple[MirrorLink, int, OffsetPair]:
    """Parse a record of the topic into link, slot and pair; raises PipelineError for a record of another kind of topic."""
    try:
        fields, offsets = json.loads(key), json.loads(value)
        slot = int(fields.pop("slot"))
        return MirrorLink(**fields), slot, OffsetPair(offsets["sourceOffset"], offsets["targetOffset"])
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise PipelineError(f"topic {topic} is no offset map of a mirror: name another by --offset-map") from problem
