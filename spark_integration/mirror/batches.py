"""One micro-batch of a mirror: topics made, what is there already left out, records written, the offset map kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.checkpoint import planned_batch
from spark_integration.cluster import KAFKA, Cluster, Spec, Topic
from spark_integration.mirror.offset_map import Link, OffsetMap, Pair, Pairs
from spark_integration.names import Names
from spark_integration.offsets import Offsets, TopicPartition
from spark_integration.origin import came_through, with_origin
from spark_integration.sink import in_order, write_batch
from spark_integration.topics import Made, copied_configs, make_topics
from spark_integration.written import unwritten, written

# How long a cluster may be away, as for Kafka's producers (delivery.timeout.ms); then the mirror ends with an error.
PATIENCE = {f"{KAFKA}default.api.timeout.ms": "120000"}


class Side:
    """A cluster: how Spark's sink writes to it, its Admin client, which waits for a broker that starts anew, its map."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], offset_map: str) -> None:
        clients = {name: value for name, value in options.items() if name.startswith(KAFKA)}
        self.options = {**PATIENCE, **clients}
        self.cluster = Cluster(spark, self.options)
        self.id = self.cluster.cluster_id()
        self.map = OffsetMap(spark, self.options, offset_map)

    def close(self) -> None:
        """Let its clients go."""
        self.map.close()
        self.cluster.close()


def links_of(cluster: str, topic: Topic, there: Topic) -> list[Link]:
    """Return the links of each partition of *topic* of that cluster and its mirror."""
    return [
        Link(cluster, topic.name, topic.topic_id, partition, there.name, there.topic_id)
        for partition in range(topic.partitions)
    ]


class Batches:
    """Writes each micro-batch (a foreachBatch function)."""

    def __init__(self, spark: SparkSession, source: Side, target: Side, names: Names, checkpoint: str) -> None:
        self._spark, self._source, self._target = spark, source, target
        self._names, self._checkpoint = names, checkpoint
        self._pairs = target.map.read(target.cluster)
        self._topics: dict[str, Topic] = {}
        self._links: dict[TopicPartition, Link] = {}
        self._left_out: set[str] = {source.map.topic}
        # How far this very run has come: what lies beyond it may be there from an earlier one.
        self._reached: dict[Link, int] = {}
        self.made = Made()
        self.written = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write what the batch has; called again with the same one it writes what is not there yet."""
        planned = planned_batch(self._spark, self._checkpoint, batch)
        begin = {one: max(0, offset) for one, offset in planned.start.items()}
        moved = {one: offset for one, offset in planned.end.items() if offset > begin[one]}
        self.know({one.topic for one in planned.end})
        links = {self._links[one]: offset for one, offset in moved.items() if one in self._links}
        if links:
            self._write(frame, {link: begin[link.source_partition] for link in links}, links)

    def _write(self, frame: DataFrame, begin: Mapping[Link, int], end: Mapping[Link, int]) -> None:
        before = self._ends(end)
        rows = self._left(frame.where(self._is_ours()), begin, before)
        write_batch(with_origin(rows, self._source.id).withColumn("topic", self._names.column()), self._target.options)
        after = self._ends(end)
        self.written += sum(after[link] - before[link] for link in end)
        further = {link: offset for link, offset in end.items() if offset > self._pairs.furthest(link)}
        self._record({link: Pair(offset, after[link]) for link, offset in further.items()})
        self._reached.update(further)

    def _is_ours(self) -> Column:
        """Records that have not been in the target before, of topics that are not its own."""
        return ~came_through(self._target.id) & ~sql.col("topic").isin(*self._left_out)

    def _left(self, frame: DataFrame, begin: Mapping[Link, int], ends: Mapping[Link, int]) -> DataFrame:
        """Leave out what an earlier run has written; where it was stopped is only known by looking."""
        low = {link: self._pairs.low(link, offset) for link, offset in begin.items()}
        doubtful = [link for link in begin if self._reached.get(link) != begin[link] and low[link] < ends[link]]
        if not doubtful:
            return frame
        earliest = self._target.cluster.offsets([link.target_partition for link in doubtful], Spec.EARLIEST)
        first = {one.target_partition: max(low[one], earliest[one.target_partition]) for one in doubtful}
        last = {one.target_partition: ends[one] for one in doubtful}
        there = written(self._spark, self._target.options, first, last, self._source.id)
        return in_order(unwritten(frame, there), max(1, len(begin)))

    def _ends(self, links: Iterable[Link]) -> dict[Link, int]:
        wanted = {link.target_partition: link for link in links}
        found: Offsets = self._target.cluster.offsets(wanted, Spec.LATEST)
        return {wanted[one]: offset for one, offset in found.items()}

    def _record(self, pairs: Mapping[Link, Pair]) -> None:
        entries = [(link, self._pairs.slot_of(link, pair.source), pair) for link, pair in pairs.items()]
        self._target.map.write(entries)
        for entry in entries:
            self._pairs.put(*entry)

    def know(self, topics: Iterable[str]) -> None:
        """Make the target's topics for those that come for the first time, have grown or were made anew."""
        described = self._source.cluster.topics(set(topics) - self._left_out)
        new = {topic.name: topic for topic in described.values() if self._topics.get(topic.name) != topic}
        if not new:
            return
        self._left_out |= self._mirrored_from_target(new)
        self._topics.update({name: topic for name, topic in new.items() if name not in self._left_out})
        names = self._names.check(self._topics)
        sources = {names[name]: topic for name, topic in new.items() if name in names}
        wanted = {name: topic.partitions for name, topic in sources.items()}
        there = make_topics(self._target.cluster, wanted, self.made, lambda name: self._configs(sources[name].name))
        self._link([link for name, topic in sources.items() for link in links_of(self._source.id, topic, there[name])])

    def _link(self, links: Iterable[Link]) -> None:
        self._links.update({link.source_partition: link for link in links})
        # Of a link that is not known the target holds nothing yet.
        ends = self._ends(link for link in links if self._pairs.furthest(link) < 0)
        self._record({link: Pair(0, end) for link, end in ends.items()})

    def _configs(self, topic: str) -> dict[str, str]:
        return copied_configs(self._source.cluster.topic_configs(topic))

    def _mirrored_from_target(self, topics: Iterable[str]) -> set[str]:
        """Return those that the target's topics are mirrored to: going back they would get names of their own."""
        pairs: Pairs = self._source.map.read(self._source.cluster)
        there = {link.target: link.topic for link in pairs.links() if link.cluster == self._target.id}
        return {topic for topic in topics if topic in there and self._names.of(topic) != there[topic]}
