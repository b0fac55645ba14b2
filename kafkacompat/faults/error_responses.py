"""Responses that carry an error, for every API: built from the request, or written into the response of the broker.

The error goes to the partitions where a response has some, else to the other items of the request, else to the response as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

from kafkacompat.faults.targets import Covers, list_topics
from kafkacompat.handlers.controller_apis import CONTROLLER_APIS, build_refusal
from kafkacompat.handlers.guards.refusals import Items, make_response, refuse_items, refuse_request
from kafkacompat.server.outgoing import release_regions
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.headers import FETCH_KEY
from kafkacompat.wire.schema import NO_VERSIONS, Request, Response, Struct, Versions

METADATA, OFFSET_FETCH, ADD_PARTITIONS, MOVE_REPLICAS, LOG_DIRS = 3, 9, 24, 34, 35
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a Fetch as a whole."""
_ERRORS = ("error_code", "partition_error_code")
_UNKNOWN = (
    *("base_offset", "log_append_time_ms", "log_start_offset", "high_watermark", "last_stable_offset", "low_watermark"),
    *("offset", "timestamp", "end_offset", "committed_offset", "leader_id", "leader_epoch"),
)
_UNREAD = {**dict.fromkeys(_UNKNOWN, -1), "records": b"", "partitions": [], "partition_responses": []}
"""The values that a partition's fields have beside an error, where their defaults differ."""


class _Place(NamedTuple):
    """The items of an API in some versions; ``whole`` are the versions in which an error without a topic goes to the response."""

    items: Items
    versions: Versions = Versions(0, 1 << 15)
    whole: Versions = NO_VERSIONS


_TOPICS = (("topics", "partitions"), ("topics", "partitions"))
_FROM_0 = Versions.parse("0+")

PLACES: dict[int, tuple[_Place, ...]] = {
    0: (
        _Place(
            Items(
                ("topic_data", "partition_data"),
                ("responses", "partition_responses"),
                {"base_offset": -1, "log_append_time_ms": -1, "log_start_offset": -1},
            )
        ),
    ),
    2: (_Place(Items(*_TOPICS, {"offset": -1, "timestamp": -1, "leader_epoch": -1})),),
    8: (_Place(Items(*_TOPICS)),),
    9: (
        _Place(
            Items(
                ("topics", "partition_indexes"),
                ("topics", "partitions"),
                {"committed_offset": -1, "committed_leader_epoch": -1},
            ),
            Versions.parse("0-7"),
            Versions.parse("2-7"),
        ),
        _Place(
            Items(
                ("groups", "topics", "partition_indexes"),
                ("groups", "topics", "partitions"),
                {"committed_offset": -1, "committed_leader_epoch": -1},
            ),
            Versions.parse("8+"),
        ),
    ),
    10: (_Place(Items(("coordinator_keys",), ("coordinators",), {"node_id": -1, "port": -1}), Versions.parse("4+")),),
    15: (_Place(Items(("groups",), ("groups",))),),
    21: (_Place(Items(*_TOPICS, {"low_watermark": -1})),),
    23: (_Place(Items(*_TOPICS, {"leader_epoch": -1, "end_offset": -1})),),
    24: (
        _Place(
            Items(("v3_and_below_topics", "partitions"), ("results_by_topic_v3_and_below", "results_by_partition")),
            Versions.parse("0-3"),
        ),
        _Place(
            Items(
                ("transactions", "topics", "partitions"),
                ("results_by_transaction", "topic_results", "results_by_partition"),
            ),
            Versions.parse("4+"),
            Versions.parse("4+"),
        ),
    ),
    27: (_Place(Items(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"))),),
    28: (_Place(Items(*_TOPICS)),),
    32: (_Place(Items(("resources",), ("results",))),),
    42: (_Place(Items(("groups_names",), ("results",))),),
    47: (_Place(Items(*_TOPICS), whole=_FROM_0),),
    61: (_Place(Items(("topics", "partition_indexes"), ("topics", "partitions"))),),
    65: (_Place(Items(("transactional_ids",), ("transaction_states",))),),
    69: (_Place(Items(("group_ids",), ("groups",))),),
    75: (_Place(Items(("topics",), ("topics",))),),
}
"""By API key. The APIs of `CONTROLLER_APIS` are rejected as the controller rejects them, all others as a whole."""

_GROUPS = Items(("groups",), ("groups",))
_MOVED = Items(("topics", "partitions"), ("results", "partitions"))

WHOLE_FIELDS: dict[int, Mapping[str, Any]] = {
    10: {"node_id": -1, "port": -1},
    11: {"generation_id": -1},
    22: {"producer_id": -1, "producer_epoch": -1},
}
"""Other fields of the response to a request that fails as a whole, by API key."""


def must_be_patched(api_key: int, version: int) -> bool:
    """Return whether an error can only be written into the broker's own response, as the request need not name its topics.

    These requests change nothing: a Fetch may name no partition of its session, a Metadata no topic.
    """
    return api_key in (FETCH_KEY, METADATA) or (api_key == LOG_DIRS and version < 3)


def reject_request(request: Request, version: int, code: ErrorCode, *, by_topic: bool) -> Any:
    """Return the response in which each item of a request has the error; *by_topic* if a rule has chosen the topics."""
    key = request.API_KEY
    if key in CONTROLLER_APIS:
        return build_refusal(request, KafkaError(code))
    if key == MOVE_REPLICAS:
        topics = [topic for directory in request.dirs for topic in directory.topics]  # type: ignore[attr-defined]
        return make_response(request, results=refuse_items(request, _MOVED, topics, code))
    if key == OFFSET_FETCH and version >= 8 and not by_topic:
        return refuse_request(request, _GROUPS, code)
    place = next((place for place in PLACES.get(key, ()) if version in place.versions), None)
    if place is None or (version in place.whole and not by_topic):
        return make_response(request, error_code=code, **WHOLE_FIELDS.get(key, {}))
    return refuse_request(request, place.items, code)


def patch_response(
    response: Response, version: int, code: ErrorCode, covers: Covers | None, *, by_partition: bool = False
) -> None:
    """Write an error into a response: to the covered partitions and topics, or, if *covers* is None, wherever it belongs.

    The error of a Metadata response goes to the topic unless *by_partition* is set. Records that are not sent then are released.
    """
    if response.API_KEY == FETCH_KEY and code in SESSION_ERRORS and _has_error_field(response, version):
        release_regions(response)
        response.error_code, response.responses = code, []  # type: ignore[attr-defined]
    elif covers is None and not _is_about_topics(response) and _has_error_field(response, version):
        response.error_code = code  # type: ignore[attr-defined]
    else:
        items = list(_list_items(response, version, covers, by_partition))
        for item in items:
            _fail_item(item, code)
        if not items and covers is None and _has_error_field(response, version):
            response.error_code = code  # type: ignore[attr-defined]


def _has_error_field(response: Response, version: int) -> bool:
    field = response.FIELDS.get("error_code")
    return field is not None and version in field.versions


def _is_about_topics(response: Response) -> bool:
    return response.API_KEY in (FETCH_KEY, METADATA) or (
        response.API_KEY in PLACES and response.API_KEY not in (OFFSET_FETCH, ADD_PARTITIONS)
    )


def _list_items(response: Response, version: int, covers: Covers | None, by_partition: bool) -> Iterator[Any]:
    """Yield the elements of a response that get the error: partitions where there are some, else topics, else all others."""
    topics = list(list_topics(response, version))
    if not topics and covers is None:
        yield from _list_other_items(response)
    for topic in topics:
        partitions = [(index, item) for index, item in topic.partitions if _find_error_field(item) is not None]
        if partitions and (response.API_KEY != METADATA or by_partition):
            yield from (item for index, item in partitions if covers is None or covers(topic.key, index))
        elif _find_error_field(topic.owner) is not None and (covers is None or covers(topic.key, None)):
            yield topic.owner


def _list_other_items(message: Struct) -> Iterator[Any]:
    for name, field in message.FIELDS.items():
        if field.element is not None and field.element.struct is not None:
            for item in getattr(message, name) or ():
                if _find_error_field(item) is not None:
                    yield item
                else:
                    yield from _list_other_items(item)


def _find_error_field(item: Any) -> str | None:
    return next((name for name in _ERRORS if name in item.FIELDS), None) if isinstance(item, Struct) else None


def _fail_item(item: Any, code: ErrorCode) -> None:
    if "records" in item.FIELDS:
        release_regions(item)
    for name in item.FIELDS:
        if name in _UNREAD:
            setattr(item, name, copy(_UNREAD[name]))
    setattr(item, _find_error_field(item) or "", code)
