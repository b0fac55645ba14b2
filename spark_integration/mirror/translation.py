"""The pipeline `translate`: a consumer group continues in the mirror of the topics that it has read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.mirror.offset_map import MirrorLink, MirrorOffsetMap, OffsetPairs
from spark_integration.mirror.settings import OFFSET_MAP
from spark_integration.queries.summary import Summary
from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.offsets import Offsets, TopicPartition, format_offsets
from spark_integration.topics.origin import add_origin_columns
from spark_integration.topics.written import read_between


@dataclass(frozen=True)
class TranslateSummary(Summary):
    """The translated offsets of a group; *offsets* are the target's, as JSON."""

    partitions: int
    not_mirrored: int
    offsets: str
    committed: bool


def translate(
    spark: SparkSession,
    source: Mapping[str, str],
    target: Mapping[str, str],
    group: str,
    *,
    offset_map: str = OFFSET_MAP,
    commit: bool = True,
) -> TranslateSummary:
    """Translate the offsets that *group* has committed in *source* to those of the mirror in *target*, and commit them.

    The group then skips no record that it has not read, even if a mirror of the target wrote to the source. It may read
    records again that the target holds twice. It must have no members in the target. Partitions that no mirror wrote
    are counted, and not committed. Raises PipelineError.
    """
    with Cluster(spark, source) as read, Cluster(spark, target) as wrote:
        if commit and (members := wrote.members(group)):
            raise PipelineError(
                f"group {group} has {members} members on {wrote.bootstrap}, and only they may commit its offsets: "
                "end them first, or "
                "give --dry-run"
            )
        committed = read.read_committed(group)
        if not committed:
            raise PipelineError(f"group {group} has committed nothing on {read.bootstrap}: name one that has")
        pairs = MirrorOffsetMap(spark, target, offset_map).read(wrote)
        links = {link.source_partition: link for link in _current_links(read, wrote, pairs)}
        wanted = {links[partition]: offset for partition, offset in committed.items() if partition in links}
        if not wanted:
            raise PipelineError(
                f"{offset_map} on {wrote.bootstrap} maps no topic that group {group} has read: mirror them first"
            )
        offsets = _translate_offsets(spark, target, wrote, pairs, wanted)
        # The map is read before the source's ends are, so that its offsets lie before them.
        pairs_back = MirrorOffsetMap(spark, source, offset_map).read(read)
        back = _links_back(_current_links(wrote, read, pairs_back), wanted)
        limits = _find_unread_of_target(spark, source, read, pairs_back, back)
        earliest = wrote.offsets(limits, OffsetSpec.EARLIEST)
        offsets |= {place: max(earliest[place], min(offsets[place], limit)) for place, limit in limits.items()}
        if commit:
            wrote.commit(group, offsets)
    return TranslateSummary(len(offsets), len(committed) - len(wanted), format_offsets(offsets), commit)


def _current_links(source: Cluster, target: Cluster, pairs: OffsetPairs) -> list[MirrorLink]:
    """Return the links whose topics still have the ids that they had when the link was made."""
    cluster = source.cluster_id()
    links = [link for link in pairs.links() if link.cluster == cluster]
    sources, targets = source.topics({link.topic for link in links}), target.topics({link.target for link in links})
    ids = {*((name, topic.topic_id) for side in (sources, targets) for name, topic in side.items())}
    return [link for link in links if {(link.topic, link.topic_id), (link.target, link.target_id)} <= ids]


def _links_back(links: Iterable[MirrorLink], wanted: Mapping[MirrorLink, int]) -> dict[MirrorLink, int]:
    """Return the links among *links* that lead back from the targets of *wanted*, with their offsets.

    These are offsets of the topics that the links back write to.
    """
    offsets = {(link.target_partition, link.source_partition): offset for link, offset in wanted.items()}
    places = {link: (link.source_partition, link.target_partition) for link in links}
    return {link: offsets[place] for link, place in places.items() if place in offsets}


def _translate_offsets(
    spark: SparkSession,
    target: Mapping[str, str],
    cluster: Cluster,
    pairs: OffsetPairs,
    wanted: Mapping[MirrorLink, int],
) -> Offsets:
    """Return for each link the offset of the first record that came from the wanted offset or a later one."""
    places = [link.target_partition for link in wanted]
    earliest, latest = (cluster.offsets(places, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    begin: Offsets = {}
    end: Offsets = {}
    for link, offset in wanted.items():
        place = link.target_partition
        high = pairs.upper_bound(link, offset)
        end[place] = latest[place] if high is None else max(earliest[place], min(high, latest[place]))
        begin[place] = min(max(pairs.lower_bound(link, offset), earliest[place]), end[place])
    first_offsets = _first_by_partition(spark, read_between(spark, target, begin, end), wanted, "offset")
    return {place: first_offsets.get(place, end[place]) for place in places}


def _find_unread_of_target(
    spark: SparkSession, options: Mapping[str, str], source: Cluster, pairs: OffsetPairs, back: Mapping[MirrorLink, int]
) -> Offsets:
    """Return the first offset of the target's own records that the group may not have read in the source.

    Those are the records that lie after the group's offset in the source, mirrored by the links *back*, and those that
    this mirror has not reached.
    """
    if not back:
        return {}
    places = [link.target_partition for link in back]
    earliest, latest = (source.offsets(places, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    begin = {
        place: min(max(offset, earliest[place]), latest[place])
        for place, offset in zip(places, back.values(), strict=True)
    }
    first_offsets = _first_by_partition(
        spark, read_between(spark, options, begin, latest), dict.fromkeys(back, 0), "origin_offset"
    )
    furthest = {link: pairs.furthest(link) for link in back}
    return {
        link.source_partition: min(first_offsets.get(link.target_partition, end), end) for link, end in furthest.items()
    }


def _first_by_partition(
    spark: SparkSession, records: DataFrame, wanted: Mapping[MirrorLink, int], column: str
) -> Offsets:
    """Return the least *column* of the mirrored records of each partition, from the wanted offsets on."""
    rows = [(link.cluster, link.topic, link.partition, link.target, offset) for link, offset in wanted.items()]
    schema = "origin_cluster string, origin_topic string, origin_partition int, topic string, wanted bigint"
    asked = spark.createDataFrame(rows, schema)
    keys = ["origin_cluster", "origin_topic", "origin_partition", "topic"]
    mirrored = (
        add_origin_columns(records.select("topic", "partition", "offset", "headers"))
        .join(sql.broadcast(asked), keys)
        .where("origin_offset >= wanted and partition = origin_partition")
    )
    first = mirrored.groupBy("topic", "partition").agg(sql.min(column).alias("first"))
    return {TopicPartition(row.topic, row.partition): row["first"] for row in first.collect()}
