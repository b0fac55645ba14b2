"""`kafkacompat groups reset`: other offsets for a group without members, in the words of kafka-consumer-groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

import click

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.group_listing import GroupListing, list_groups
from kafkacompat.cli.remote.administration.group_offsets import commit_offsets, read_committed_offsets
from kafkacompat.cli.remote.administration.log_offsets import (
    EARLIEST,
    LATEST,
    UNKNOWN,
    find_leaders,
    find_offsets,
)
from kafkacompat.cli.remote.administration.topic_names import explain_topic
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, RemoteError, explain_refusal
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output
    from kafkacompat.wire.apis.metadata import MetadataResponseTopic

NO_MEMBERS = ("Empty", "Dead")
COMMITTING_TYPES = ("classic", "consumer")
_DURATION = re.compile(
    r"P(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,6})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,3})?)S)?)?"
)


class OffsetBounds(NamedTuple):
    """What is known of a partition: its first offset, its end, and the committed offset or None."""

    earliest: int
    latest: int
    committed: int | None

    def limit(self, offset: int) -> int:
        """Return *offset*, or the nearest that the partition has."""
        return min(max(offset, self.earliest), self.latest)


class ResetDestination(NamedTuple):
    """Where offsets go: by the bounds of a partition, or to the first record of a time in ms since 1970."""

    choose: Callable[[OffsetBounds], int] | None = None
    timestamp: int | None = None


def _choose_current(bounds: OffsetBounds) -> int:
    return bounds.latest if bounds.committed is None else bounds.limit(bounds.committed)


def _shift(step: int) -> Callable[[OffsetBounds], int]:
    return lambda bounds: bounds.limit((bounds.latest if bounds.committed is None else bounds.committed) + step)


def choose_destination(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    now_ms: int,
) -> ResetDestination:
    """Return what the options of `reset` mean; raises click.UsageError unless exactly one is given."""
    chosen = []
    if to_earliest:
        chosen.append(ResetDestination(lambda bounds: bounds.earliest))
    if to_latest:
        chosen.append(ResetDestination(lambda bounds: bounds.latest))
    if to_current:
        chosen.append(ResetDestination(_choose_current))
    if to_offset is not None:
        chosen.append(ResetDestination(lambda bounds: bounds.limit(to_offset)))
    if shift_by is not None:
        chosen.append(ResetDestination(_shift(shift_by)))
    if to_datetime is not None:
        chosen.append(ResetDestination(timestamp=parse_datetime(to_datetime)))
    if by_duration is not None:
        chosen.append(ResetDestination(timestamp=max(0, now_ms - parse_duration_ms(by_duration))))
    if len(chosen) != 1:
        options = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime and --by-duration"
        raise click.UsageError(f"the new offsets need exactly one of {options}")
    return chosen[0]


def parse_datetime(text: str) -> int:
    """Return ms since 1970 of a time such as 2026-01-31T08:00:00.000, in UTC unless it names its zone; raises click.UsageError.

    Negative times have other meanings in requests: one before 1970 is 0.
    """
    try:
        moment = datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise click.UsageError(
            f"--to-datetime {text} is no time: it takes one such as 2026-01-31T08:00:00.000"
        ) from None
    return max(0, round((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000))


def parse_duration_ms(text: str) -> int:
    """Return the ms of a period of ISO 8601, such as P1DT2H30M; raises click.UsageError."""
    match = _DURATION.fullmatch(text)
    given = {unit: float(number) for unit, number in match.groupdict().items() if number} if match else {}
    if not given:
        raise click.UsageError(f"--by-duration {text} is no period: it takes one of ISO 8601, such as PT1H or P1DT12H")
    return round(timedelta(**given).total_seconds() * 1000)


def parse_topics(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """Return partitions by topic, None for all, from ``orders`` and ``orders:0,1``; raises click.UsageError."""
    wanted: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not topic or (colon and not all(number.isdecimal() and len(number) < 10 for number in numbers.split(","))):
            raise click.UsageError(
                f"--topic {text} is not valid: it takes a topic, or one with partitions such as orders:0,1"
            )
        given = wanted.get(topic, []) if colon else None
        wanted[topic] = None if given is None else [*given, *map(int, numbers.split(","))]
    return wanted


def reset_offsets(
    cluster: RemoteCluster,
    output: Output,
    group_id: str,
    wanted: Mapping[str, Sequence[int] | None] | None,
    destination: ResetDestination,
    *,
    is_executed: bool,
) -> int:
    """Write the new offsets, and commit them if *is_executed*; returns the exit code. *wanted* None means all topics of the group."""
    listing = next((group for group in list_groups(cluster) if group.group_id == group_id), None)
    _check_group(group_id, listing)
    topics = cluster.read_topics()
    committed = {name: position.offset for name, position in read_committed_offsets(cluster, group_id, topics).items()}
    names = _select_partitions(cluster, group_id, topics, wanted, committed)
    leaders = find_leaders(topics)
    offsets = _find_destinations(cluster, {name: leaders[name] for name in names}, committed, destination)
    refused = commit_offsets(cluster, group_id, offsets, topics) if is_executed else {}
    rows = [
        {"topic": name.topic, "partition": name.partition, "offset": committed.get(name), "new_offset": offset}
        for name, offset in offsets.items()
        if name not in refused
    ]
    if output.as_json:
        output.write_json({"group": group_id, "is_executed": is_executed, "offsets": rows})
    else:
        output.write_rows(rows, f"The group {group_id} has no offsets to reset")
        if rows and not is_executed:
            output.report("Nothing is changed yet: --execute resets the offsets")
    for name, code in refused.items():
        output.complain(f"the offset of {name.topic}-{name.partition} is not reset: {explain_refusal(code)}")
    return EXIT_REFUSED if refused else EXIT_DONE


def _check_group(group_id: str, listing: GroupListing | None) -> None:
    """Raise RemoteError for a group whose offsets cannot be reset; one that does not exist yet gets offsets to begin with."""
    if listing is None:
        return
    if listing.group_type not in COMMITTING_TYPES:
        raise RemoteError(f"the group {group_id} is of the type {listing.group_type}, whose offsets are not reset here")
    # Older brokers list no states, and refuse the commit instead.
    if listing.state and listing.state not in NO_MEMBERS:
        raise RemoteError(f"the group {group_id} has members (it is {listing.state}): stop its clients first")


def _select_partitions(
    cluster: RemoteCluster,
    group_id: str,
    topics: Sequence[MetadataResponseTopic],
    wanted: Mapping[str, Sequence[int] | None] | None,
    committed: Mapping[PartitionName, int],
) -> list[PartitionName]:
    """Return the partitions to reset; raises RemoteError for a topic or partition that is not there."""
    counts = {topic.name or "": len(topic.partitions) for topic in topics}
    if wanted is None:
        return sorted(name for name in committed if name.partition < counts.get(name.topic, 0))
    names = []
    for topic, indexes in wanted.items():
        if topic not in counts:
            raise RemoteError(
                f"the offsets of {group_id} are not reset: {explain_topic(cluster, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}"
            )
        for index in range(counts[topic]) if indexes is None else indexes:
            if index >= counts[topic]:
                raise RemoteError(f"the topic {topic} has no partition {index}: the last one is {counts[topic] - 1}")
            names.append(PartitionName(topic, index))
    return sorted(names)


def _find_destinations(
    cluster: RemoteCluster,
    leaders: Mapping[PartitionName, int],
    committed: Mapping[PartitionName, int],
    destination: ResetDestination,
) -> dict[PartitionName, int]:
    """Return the new offsets; raises RemoteError for a partition whose leader does not tell its offsets."""
    latest = find_offsets(cluster, leaders, LATEST)
    if destination.timestamp is not None:
        by_time = find_offsets(cluster, leaders, destination.timestamp)
        _check_all_known(leaders, by_time, latest)
        return {name: latest[name] if offset == UNKNOWN else offset for name, offset in by_time.items()}
    assert destination.choose is not None
    earliest = find_offsets(cluster, leaders, EARLIEST)
    _check_all_known(leaders, earliest, latest)
    return {
        name: destination.choose(OffsetBounds(earliest[name], latest[name], committed.get(name))) for name in leaders
    }


def _check_all_known(leaders: Iterable[PartitionName], *offset_tables: Mapping[PartitionName, int]) -> None:
    for name in leaders:
        if any(name not in offsets for offsets in offset_tables):
            raise RemoteError(
                f"the partition {name.topic}-{name.partition} has no leader that answers: try again later"
            )
