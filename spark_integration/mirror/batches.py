"""Micro-batches of a mirror: topics are created, missing records written, and the offset map extended."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.mirror.offset_map import MirrorLink, MirrorOffsetMap, OffsetPair, OffsetPairs
from spark_integration.state.checkpoint import read_planned_batch
from spark_integration.topics.client_settings import KAFKA
from spark_integration.topics.cluster import Cluster, OffsetSpec, TopicDescription
from spark_integration.topics.creation import APPEARS_S, POLL_S, CreatedTopics, configs_to_copy, ensure_topics
from spark_integration.topics.names import TargetNames
from spark_integration.topics.offsets import Offsets, TopicPartition
from spark_integration.topics.origin import add_origin, has_passed_cluster
from spark_integration.topics.sink import PARTITION, renamed_topic, sort_partitions, write_batch
from spark_integration.topics.written import find_first_missing, find_written_records, select_unwritten

# How long a cluster may be away, as for Kafka's producers (delivery.timeout.ms); then the mirror ends with an error.
PATIENCE = {f"{KAFKA}default.api.timeout.ms": "120000"}


class MirrorSide:
    """One of the two clusters: the options of its clients, an Admin client, and its offset map.

    The Admin client waits for a broker that restarts.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str], offset_map: str) -> None:
        clients = {name: value for name, value in options.items() if name.startswith(KAFKA)}
        self.options = {**PATIENCE, **clients}
        self.cluster = Cluster(spark, self.options)
        self.id = self.cluster.cluster_id()
        self.map = MirrorOffsetMap(spark, self.options, offset_map)

    def close(self) -> None:
        """Close the clients."""
        self.map.close()
        self.cluster.close()


def partition_links(cluster: str, topic: TopicDescription, mirrored: TopicDescription) -> list[MirrorLink]:
    """Return a link for each partition of *topic*, which is of that *cluster*, and its mirror."""
    return [
        MirrorLink(cluster, topic.name, topic.topic_id, partition, mirrored.name, mirrored.topic_id)
        for partition in range(topic.partitions)
    ]


class TargetContents:
    """The records of some links that the target held when this run reached them.

    They are read once and kept until no batch needs them: all batches of a run that starts from the beginning look
    their records up there.
    """

    def __init__(self) -> None:
        self.links: set[MirrorLink] = set()
        self._read: list[DataFrame] = []
        self._frames: list[DataFrame] = []

    def add(self, links: Iterable[MirrorLink], read: DataFrame, valid: DataFrame) -> None:
        """Keep the records that were *read* of more links, and those among them that are *valid*."""
        self.links.update(links)
        self._read.append(read)
        self._frames.append(valid)

    def read_between(self, begin: int, end: int) -> DataFrame:
        """Return the records that came from the source's offsets *begin* up to *end*."""
        contents = functools.reduce(DataFrame.unionByName, self._frames)
        return contents.where((sql.col("offset") >= begin) & (sql.col("offset") < end))

    def forget(self) -> None:
        """Let Spark drop the records."""
        for frame in self._read:
            frame.unpersist()
        self.links, self._read, self._frames = set(), [], []


class MirrorBatchWriter:
    """Writes each micro-batch (a foreachBatch function).

    *named*: the user named the topics one by one, so none may be left out.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: MirrorSide,
        target: MirrorSide,
        names: TargetNames,
        checkpoint: str,
        named: bool,
    ) -> None:
        self._spark, self._source, self._target = spark, source, target
        self._names, self._checkpoint, self._named = names, checkpoint, named
        self._pairs = target.map.read(target.cluster)
        self._topics: dict[str, TopicDescription] = {}
        self._links: dict[TopicPartition, MirrorLink] = {}
        # Topics of the source that are mirrors of the target's topics.
        self.left_out: set[str] = set()
        # The end of what this run has written; records after it may be there from an earlier run.
        self._reached: dict[MirrorLink, int] = {}
        # The last offset of the source that was found in the target.
        self._latest_found: dict[MirrorLink, int] = {}
        # Links whose records this run writes from a missing one on, even those that the target has.
        self._rewritten: set[MirrorLink] = set()
        self._contents = TargetContents()
        self.created = CreatedTopics()
        self.written = 0

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write the batch; if it runs again, write only the records that the target lacks."""
        planned = read_planned_batch(self._spark, self._checkpoint, batch)
        begin = {partition: max(0, offset) for partition, offset in planned.start.items()}
        moved = {partition: offset for partition, offset in planned.end.items() if offset > begin[partition]}
        self._learn_topics_of_batch(begin, moved)
        links = {
            self._links[partition]: offset
            for partition, offset in moved.items()
            if partition.topic not in self._mirror_topics()
        }
        if links:
            self._write(frame, {link: begin[link.source_partition] for link in links}, links)

    def close(self) -> None:
        """Drop the contents of the target that were kept."""
        self._contents.forget()

    def _learn_topics_of_batch(self, begin: Offsets, moved: Iterable[TopicPartition]) -> None:
        """Learn all topics that the batch reads, waiting for brokers that do not yet know what another told Spark."""
        deadline = time.monotonic() + APPEARS_S
        while True:
            self.learn_topics({partition.topic for partition in begin}, begin)
            lacking = [
                partition
                for partition in moved
                if partition not in self._links and partition.topic not in self._mirror_topics()
            ]
            if not lacking:
                return
            if time.monotonic() > deadline:
                raise PipelineError(
                    f"partition {lacking[0].partition} of {lacking[0].topic} has records to be mirrored and does not "
                    f"appear on {self._source.cluster.bootstrap}: check its brokers, or give a new "
                    "--checkpointLocation if the topic was deleted"
                )
            threading.Event().wait(POLL_S)

    def _write(self, frame: DataFrame, begin: Mapping[MirrorLink, int], end: Mapping[MirrorLink, int]) -> None:
        before = self._find_ends(end)
        rows = self._select_rows(frame.where(self._is_to_be_mirrored()), begin, end, before)
        write_batch(
            add_origin(rows, self._source.id).withColumn("topic", renamed_topic(self._names)), self._target.options
        )
        after = self._find_ends(end)
        self.written += sum(after[link] - before[link] for link in end)
        further = {link: offset for link, offset in end.items() if self._is_further(link, offset)}
        self._record({link: OffsetPair(offset, after[link]) for link, offset in further.items()})
        self._reached.update(further)

    def _is_further(self, link: MirrorLink, offset: int) -> bool:
        """Return whether the target has no record of that offset or a later one; only then a pair with it is true."""
        return offset > self._pairs.furthest(link) and offset > self._latest_found.get(link, -1)

    def _is_to_be_mirrored(self) -> Column:
        """Whether a record has not been in the target before, and its topic is not one that a mirror made."""
        return ~has_passed_cluster(self._target.id) & ~sql.col("topic").isin(*self._mirror_topics())

    def _mirror_topics(self) -> set[str]:
        """Return the topics of the source that mirrors made."""
        return {self._source.map.topic, *self.left_out}

    def _select_rows(
        self,
        frame: DataFrame,
        begin: Mapping[MirrorLink, int],
        end: Mapping[MirrorLink, int],
        ends: Mapping[MirrorLink, int],
    ) -> DataFrame:
        """Return the rows that no earlier run has written; only the target's records tell where such a run was stopped."""
        low = {link: self._pairs.lower_bound(link, offset) for link, offset in begin.items()}
        known = {link for link in begin if link in self._rewritten or self._reached.get(link) == begin[link]}
        doubtful = [link for link in begin if link not in known and low[link] < ends[link]]
        if not doubtful:
            self._contents.forget()
            return frame
        if new := [link for link in doubtful if link not in self._contents.links]:
            self._read_target({link: low[link] for link in new}, ends)
        contents = self._contents.read_between(min(begin.values()), max(end.values()))
        first = find_first_missing(frame, contents)
        self._rewritten.update(link for link in doubtful if link.source_partition in first)
        all_of_it = {link.source_partition: begin[link] for link in begin if link not in doubtful}
        return sort_partitions(select_unwritten(frame, {**first, **all_of_it}), max(1, len(begin)))

    def _read_target(self, low: Mapping[MirrorLink, int], ends: Mapping[MirrorLink, int]) -> None:
        earliest = self._target.cluster.offsets([link.target_partition for link in low], OffsetSpec.EARLIEST)
        first = {link.target_partition: max(low[link], earliest[link.target_partition]) for link in low}
        last = {link.target_partition: ends[link] for link in low}
        written = find_written_records(self._spark, self._target.options, first, last, self._source.id).persist()
        self._contents.add(low, written, self._drop_out_of_order(written))

    def _drop_out_of_order(self, written: DataFrame) -> DataFrame:
        """Leave out records that precede ones which should come after them.

        An earlier run began again before them, and was stopped.
        """
        come = written.groupBy(*PARTITION).agg(
            sql.max("offset").alias("most"), sql.max_by("offset", "at").alias("last")
        )
        rows = come.collect()
        most = {self._links.get(TopicPartition(row.topic, row.partition)): row.most for row in rows}
        self._latest_found.update({link: offset for link, offset in most.items() if link is not None})
        known = sql.broadcast(self._spark.createDataFrame(rows, come.schema))
        return written.join(known, list(PARTITION)).where(sql.col("offset") <= sql.col("last")).select(*written.columns)

    def _find_ends(self, links: Iterable[MirrorLink], spec: OffsetSpec = OffsetSpec.LATEST) -> dict[MirrorLink, int]:
        wanted = {link.target_partition: link for link in links}
        offsets: Offsets = self._target.cluster.offsets(wanted, spec)
        return {wanted[partition]: offset for partition, offset in offsets.items()}

    def _record(self, pairs: Mapping[MirrorLink, OffsetPair]) -> None:
        entries = [(link, self._pairs.slot_of(link, pair.source), pair) for link, pair in pairs.items()]
        self._target.map.write(entries)
        for entry in entries:
            self._pairs.put(*entry)

    def learn_topics(self, topics: Iterable[str], begin: Mapping[TopicPartition, int]) -> None:
        """Create or extend the target's topics for those of the source that are new or have grown.

        *begin*: the offsets from which the batch reads the partitions that the checkpoint names. Raises PipelineError.
        """
        described = self._source.cluster.topics(set(topics) - self._mirror_topics())
        new = {topic.name: topic for topic in described.values() if self._topics.get(topic.name) != topic}
        if not new:
            return
        self._leave_out({name: topic for name, topic in new.items() if name not in self._topics})
        self._topics.update({name: topic for name, topic in new.items() if name not in self.left_out})
        names = self._names.check(self._topics)
        sources = {names[name]: topic for name, topic in new.items() if name in names}
        wanted = {name: topic.partitions for name, topic in sources.items()}
        created = ensure_topics(
            self._target.cluster, wanted, self.created, lambda name: self._read_configs(sources[name].name)
        )
        links = [
            link for name, topic in sources.items() for link in partition_links(self._source.id, topic, created[name])
        ]
        self._add_links(links, begin)

    def _add_links(self, links: Iterable[MirrorLink], begin: Mapping[TopicPartition, int]) -> None:
        new = [link for link in links if self._pairs.furthest(link) < 0]
        ends = self._find_ends(link for link in new if begin.get(link.source_partition, 0) > 0)
        for link, end in ends.items():
            self._check_not_anew(link, end)
        # A new link does not mean that the target is empty, since the map may have been lost. But records that a
        # deleted topic of the same name has left there are not this link's.
        links_with_namesake = {
            link
            for link in new
            if any(namesake.target_id == link.target_id for namesake in self._pairs.namesakes(link))
        }
        others = set(new) - links_with_namesake
        places = {**self._find_ends(links_with_namesake), **self._find_ends(others, OffsetSpec.EARLIEST)}
        self._record({link: OffsetPair(0, offset) for link, offset in places.items()})
        self._links.update({link.source_partition: link for link in links})

    def _check_not_anew(self, link: MirrorLink, end: int) -> None:
        """Raise PipelineError if the source's or the target's topic was recreated since the mirror began."""
        if before := self._pairs.namesakes(link):
            is_source = all(namesake.topic_id != link.topic_id for namesake in before)
            name, side = (link.topic, self._source) if is_source else (link.target, self._target)
            raise PipelineError(
                f"topic {name} on {side.cluster.bootstrap} was deleted and recreated, and its first records would be "
                "left out: give a new --checkpointLocation"
            )
        if end == 0:
            raise PipelineError(
                f"topic {link.target} on {self._target.cluster.bootstrap} holds no records, though the checkpoint says that some were "
                f"mirrored of {link.topic}: give a new --checkpointLocation"
            )

    def _read_configs(self, topic: str) -> dict[str, str]:
        return configs_to_copy(self._source.cluster.topic_configs(topic))

    def _leave_out(self, topics: Mapping[str, TopicDescription]) -> None:
        """Leave out mirrors of the target's topics: under this mirror's names they would go back as other topics."""
        pairs: OffsetPairs = self._source.map.read(self._source.cluster)
        back = [link for link in pairs.links() if link.cluster == self._target.id]
        origins = {link.target: link.topic for link in back if link.target_id == _topic_id_of(topics.get(link.target))}
        renamed = {topic: origin for topic, origin in origins.items() if self._names.of(topic) != origin}
        if renamed and self._named:
            topic, origin = min(renamed.items())
            raise PipelineError(
                f"{topic} is a mirror of {origin} on {self._target.cluster.bootstrap}, and would go back there "
                f"as {self._names.of(topic)}: leave it out, or give --map {topic}={origin}"
            )
        self.left_out |= renamed.keys()


def _topic_id_of(topic: TopicDescription | None) -> str | None:
    return topic.topic_id if topic else None
