"""The pages: a table of paths, each with the function that reads what its template shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.config.resources import ResourceType
from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.web import brokers, groups, instances, topics
from kafkacompat.web.figures import parse_time
from kafkacompat.web.messages import NEWEST, OLDEST, MessagePage, MessageReader, MessageSelection, SelectedMessage
from kafkacompat.web.plots import make_plots
from kafkacompat.web.rendering import build_link
from kafkacompat.web.text import HEADER_BYTES, LIST_BYTES, MESSAGE_BYTES, ShownBytes, show_bytes
from kafkacompat.web.throughput import STEP_S, Rates
from kafkacompat.web.visits import Visit

MAX_MESSAGES = 200
MAX_HEADERS = 20
MAX_PAGES = 1_000_000
BUSY_TOPICS = 8
COUNTS = (10, 50, 100, 200)


class TemplatePage(NamedTuple):
    """A template and its values; ``section`` is the entry of the navigation."""

    template: str
    section: str
    title: str
    values: Mapping[str, Any]


Show: TypeAlias = "Callable[[Visit], Awaitable[TemplatePage]]"


async def show_overview(visit: Visit) -> TemplatePage:
    """The cluster, and live plots."""
    cluster = await brokers.describe_cluster(visit.requests)
    totals = await brokers.count_partitions(visit.requests, cluster.brokers)
    values = {"cluster": cluster, "totals": totals, **await _read_live(visit, "", cluster.may_describe)}
    return TemplatePage("overview.html", "overview", "Overview", values)


async def show_live(visit: Visit) -> TemplatePage:
    """The plots alone, for the script: of the topic that the query names, or of all."""
    topic = visit.text("topic")
    if topic:
        await topics.describe_topic(visit.requests, topic)
        return TemplatePage("live.html", "", "Throughput", await _read_live(visit, topic, False))
    cluster = await brokers.describe_cluster(visit.requests)
    return TemplatePage("live.html", "", "Throughput", await _read_live(visit, "", cluster.may_describe))


async def _read_live(visit: Visit, topic: str, may_describe: bool) -> dict[str, Any]:
    """Return the values of the plots of a topic, or of all that the user may see."""
    throughput, tenant = visit.services.throughput, visit.user.tenant
    busy: list[tuple[str, Rates]] = []
    if topic:
        history = throughput.read_topic(visit.find_physical_topic(topic))
    elif tenant is not None:
        history = throughput.read_instance(tenant.name)
    elif may_describe:
        history = throughput.read_all()
        rates = throughput.list_busy_topics().items()
        busy = sorted(rates, key=lambda item: item[1].bytes_moved, reverse=True)[:BUSY_TOPICS]
    else:
        return {"plots": [], "busy": [], "live": "", "step_s": STEP_S}
    return {
        "plots": make_plots(history),
        "busy": busy,
        "live": build_link(("live",), topic=topic),
        "step_s": STEP_S,
    }


async def show_topics(visit: Visit) -> TemplatePage:
    """A page of topics."""
    search, after = visit.text("search"), visit.text("after")
    page = await topics.list_topics(visit.requests, search, after)
    find_rates = visit.services.throughput.find_topic_rates
    rates = {topic.name: find_rates(visit.find_physical_topic(topic.name)) for topic in page.topics}
    values = {"page": page, "search": search, "after": after, "rates": rates}
    return TemplatePage("topics.html", "topics", "Topics", values)


async def show_topic(visit: Visit) -> TemplatePage:
    """One topic with a page of its partitions and its configuration."""
    name, number = visit.path[1], visit.number("page", 0, most=MAX_PAGES) or 0
    topic = await topics.describe_topic(visit.requests, name)
    first = number * topics.PARTITIONS_A_PAGE
    shown = topics.TopicState(
        name, topic.topic_id, topic.is_internal, topic.partitions[first:][: topics.PARTITIONS_A_PAGE]
    )
    await topics.add_offsets(visit.requests, shown.partitions, visit.services.node_id)
    await topics.add_sizes(visit.requests, [shown])
    configs = await topics.describe_configs(visit.requests, ResourceType.TOPIC, name)
    is_whole = len(shown.partitions) == len(topic.partitions)
    values = {
        "topic": topic,
        "shown": shown,
        "records": _count_records(shown.partitions) if is_whole else None,
        "size_bytes": shown.size_bytes if is_whole else None,
        "configs": configs,
        "number": number,
        "has_next": first + topics.PARTITIONS_A_PAGE < len(topic.partitions),
        **await _read_live(visit, name, False),
    }
    return TemplatePage("topic.html", "topics", name, values)


def _count_records(partitions: list[topics.PartitionRow]) -> int | None:
    """Return the offsets that partitions have; None if this broker does not have them all."""
    counts = [
        None
        if partition.end_offset is None or partition.start_offset is None
        else partition.end_offset - partition.start_offset
        for partition in partitions
    ]
    return sum(count for count in counts if count is not None) if None not in counts else None


class ShownMessage(NamedTuple):
    """A message with its key, value and headers as texts."""

    message: SelectedMessage
    key: ShownBytes
    value: ShownBytes
    headers: list[tuple[str, ShownBytes]]


async def show_messages(visit: Visit) -> TemplatePage:
    """Messages of a topic, filtered."""
    name = visit.path[1]
    selection, index = _read_selection(visit), visit.number("partition", most=(1 << 31) - 1)
    topic = await topics.describe_topic(visit.requests, name)
    partitions = [partition for partition in topic.partitions if index is None or partition.index == index]
    if not partitions:
        raise HttpError(404, f"the topic {name} has no partition {index}")
    if index is None and selection.offset is not None:
        raise HttpError(400, "an offset needs a partition: choose one")
    reader = MessageReader(visit.requests, visit.services.run, name, visit.services.node_id)
    page = await reader.read(partitions, selection)
    most_bytes = MESSAGE_BYTES if selection.size == 1 else LIST_BYTES
    values = {
        "topic": topic,
        "messages": await visit.services.run(_show_messages, page.messages, most_bytes),
        "page": page,
        "selection": selection,
        "partition": index,
        "given": {key: visit.text(key) for key in ("since", "until", "key", "begin", "offset")},
        "counts": COUNTS,
        "newest": NEWEST,
        "oldest": OLDEST,
        "older": _find_older(page, selection, index),
        "newer": _find_newer(page, selection, index),
    }
    return TemplatePage("messages.html", "topics", f"Messages of {name}", values)


def _read_selection(visit: Visit) -> MessageSelection:
    begin = visit.text("begin") or NEWEST
    if begin not in (NEWEST, OLDEST):
        raise HttpError(400, f"begin={begin} is not valid: it takes {NEWEST} or {OLDEST}")
    size = visit.number("count", 50, least=1, most=MAX_MESSAGES)
    assert size is not None
    return MessageSelection(
        size=size,
        begin=begin,
        offset=visit.number("offset"),
        since_ms=_read_time(visit, "since"),
        until_ms=_read_time(visit, "until"),
        key=visit.text("key").encode(errors="replace"),
    )


def _read_time(visit: Visit, name: str) -> int | None:
    text = visit.text(name)
    if not text:
        return None
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        example = "2026-01-31 12:00 (UTC), or milliseconds since 1970"
        raise HttpError(400, f"{name}={text} is not valid: it takes a time such as {example}") from None


def _show_messages(messages: list[SelectedMessage], most_bytes: int) -> list[ShownMessage]:
    """Return messages as texts; takes milliseconds."""
    return [_show_message(message, most_bytes) for message in messages]


def _show_message(message: SelectedMessage, most_bytes: int) -> ShownMessage:
    record = message.record
    if record is None:
        nothing = show_bytes(None)
        return ShownMessage(message, nothing, nothing, [])
    headers = [(name[:HEADER_BYTES], show_bytes(value, HEADER_BYTES)) for name, value in record.headers[:MAX_HEADERS]]
    return ShownMessage(message, show_bytes(record.key, most_bytes), show_bytes(record.value, most_bytes), headers)


def _find_older(page: MessagePage, selection: MessageSelection, partition: int | None) -> int | None:
    """Return the offset of the page with the messages before these, in a single partition; None if there is none."""
    if partition is None or len(page.reads) != 1:
        return None
    (read,) = page.reads
    first = min((message.offset for message in page.messages), default=read.begin)
    return max(first - selection.size, read.start) if first > read.start else None


def _find_newer(page: MessagePage, selection: MessageSelection, partition: int | None) -> int | None:
    """Return the offset of the page with the messages after these, in a single partition; None if there is none."""
    if partition is None or len(page.reads) != 1:
        return None
    (read,) = page.reads
    is_full = len(page.messages) >= selection.size
    following = max(message.offset for message in page.messages) + 1 if is_full else read.end
    return following if following < read.limit else None


async def show_groups(visit: Visit) -> TemplatePage:
    """A page of groups."""
    search, number = visit.text("search"), visit.number("page", 0, most=MAX_PAGES) or 0
    page = await groups.list_groups(visit.requests, visit.services.clock, search, number, visit.services.node_id)
    return TemplatePage("groups.html", "groups", "Groups", {"page": page, "search": search})


async def show_group(visit: Visit) -> TemplatePage:
    """One group with its members and a page of its offsets."""
    number = visit.number("page", 0, most=MAX_PAGES) or 0
    details = await groups.describe_group(
        visit.requests, visit.services.clock, visit.path[1], number, visit.services.node_id
    )
    values = {
        "details": details,
        "number": number,
        "has_next": details.has_next,
        "live": build_link(visit.path, page=number or None),
        "step_s": STEP_S,
    }
    return TemplatePage("group.html", "groups", visit.path[1], values)


async def show_brokers(visit: Visit) -> TemplatePage:
    """The brokers, and the directories and the configuration of this one."""
    cluster = await brokers.describe_cluster(visit.requests)
    totals = await brokers.count_partitions(visit.requests, cluster.brokers)
    node_id = visit.services.node_id
    values = {
        "cluster": cluster,
        "totals": totals,
        "directories": await brokers.list_directories(visit.requests),
        "configs": await topics.describe_configs(visit.requests, ResourceType.BROKER, str(node_id)),
    }
    return TemplatePage("brokers.html", "brokers", "Brokers", values)


async def show_partitions(visit: Visit) -> TemplatePage:
    """Partitions with problems."""
    after = visit.text("after")
    problems = await topics.list_problems(visit.requests, after)
    values = {**problems._asdict(), "after": after}
    return TemplatePage("partitions.html", "partitions", "Partitions with problems", values)


async def show_instances(visit: Visit) -> TemplatePage:
    """All instances for a user of the cluster, the user's own one for others."""
    tenant, describe_usage = visit.user.tenant, visit.services.describe_usage
    if tenant is not None:
        shown, count = [instances.make_state(tenant.instance, describe_usage)], 1
    else:
        shown, count = await instances.list_instances(visit.requests, describe_usage)
    return TemplatePage("instances.html", "instances", "Instances", {"instances": shown, "count": count})


NAME = "*"
PAGES: Mapping[tuple[str, ...], Show] = {
    (): show_overview,
    ("live",): show_live,
    ("topics",): show_topics,
    ("topics", NAME): show_topic,
    ("topics", NAME, "messages"): show_messages,
    ("groups",): show_groups,
    ("groups", NAME): show_group,
    ("brokers",): show_brokers,
    ("partitions",): show_partitions,
    ("instances",): show_instances,
}
"""By the parts of the path below /ui; the second one is a name."""


def make_pattern(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path with `NAME` for its name, as in the tables of pages and of actions."""
    return (path[0], NAME, *path[2:]) if len(path) > 1 else path


def find_page(path: tuple[str, ...]) -> Show:
    """Return the function of a path; raises HttpError."""
    show = PAGES.get(make_pattern(path))
    if show is None:
        raise HttpError(404, "there is no such page")
    return show
