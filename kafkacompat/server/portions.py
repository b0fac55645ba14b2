"""Handling a request with many items in portions, so that other requests have their turn in between.

A request that is only a list of items, each answered by itself, can be handled as several requests. An item that a
request names twice may be answered once: the answer can be much larger than the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kafkacompat.handlers.context import Pending
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.timers import Clock, yield_in_turns
from kafkacompat.wire.schema import Request, Response, Struct

StructT = TypeVar("StructT", bound=Struct)
Handle: TypeAlias = "Callable[[Request], Response | Pending[Response] | None]"

PORTION = 250
"""Items in a portion, at some ten microseconds each."""

_NAMES = frozenset(
    {"name", "topic", "topic_id", "topic_name", "group_id", "resource_type", "resource_name", "path", "log_dir"}
)


class DivisibleRequest(NamedTuple):
    """How a request may be cut: the nested lists that lead to its items, and those that lead to the items' answers.

    With ``repeats`` an item that is named several times is handled several times, else once.
    """

    asked: Sequence[str]
    answered: Sequence[str]
    repeats: bool = True


# By API key. A request has one list or another, depending on its version.
DIVISIBLE: dict[int, Sequence[DivisibleRequest]] = {
    0: [DivisibleRequest(("topic_data", "partition_data"), ("responses", "partition_responses"))],  # Produce
    2: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # ListOffsets
    8: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # OffsetCommit
    9: [  # OffsetFetch
        DivisibleRequest(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"), repeats=False),
        DivisibleRequest(("topics", "partition_indexes"), ("topics", "partitions"), repeats=False),
    ],
    10: [DivisibleRequest(("coordinator_keys",), ("coordinators",))],  # FindCoordinator
    13: [DivisibleRequest(("members",), ("members",))],  # LeaveGroup
    15: [DivisibleRequest(("groups",), ("groups",), repeats=False)],  # DescribeGroups
    19: [DivisibleRequest(("topics",), ("topics",))],  # CreateTopics
    20: [
        DivisibleRequest(("topic_names",), ("responses",)),
        DivisibleRequest(("topics",), ("responses",)),
    ],  # DeleteTopics
    21: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # DeleteRecords
    23: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # OffsetForLeaderEpoch
    24: [DivisibleRequest(("transactions",), ("results_by_transaction",))],  # AddPartitionsToTxn, from version 4 on
    27: [DivisibleRequest(("markers",), ("markers",))],  # WriteTxnMarkers
    28: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # TxnOffsetCommit
    32: [DivisibleRequest(("resources",), ("results",), repeats=False)],  # DescribeConfigs
    33: [DivisibleRequest(("resources",), ("responses",))],  # AlterConfigs
    34: [DivisibleRequest(("dirs", "topics", "partitions"), ("results", "partitions"))],  # AlterReplicaLogDirs
    37: [DivisibleRequest(("topics",), ("results",))],  # CreatePartitions
    42: [DivisibleRequest(("groups_names",), ("results",), repeats=False)],  # DeleteGroups
    43: [  # ElectLeaders
        DivisibleRequest(("topic_partitions", "partitions"), ("replica_election_results", "partition_result"))
    ],
    44: [DivisibleRequest(("resources",), ("responses",))],  # IncrementalAlterConfigs
    45: [DivisibleRequest(("topics", "partitions"), ("responses", "partitions"))],  # AlterPartitionReassignments
    47: [DivisibleRequest(("topics", "partitions"), ("topics", "partitions"))],  # OffsetDelete
    50: [DivisibleRequest(("users",), ("results",))],  # DescribeUserScramCredentials
    61: [  # DescribeProducers
        DivisibleRequest(("topics", "partition_indexes"), ("topics", "partitions"), repeats=False)
    ],
    65: [  # DescribeTransactions
        DivisibleRequest(("transactional_ids",), ("transaction_states",), repeats=False)
    ],
    69: [DivisibleRequest(("group_ids",), ("groups",), repeats=False)],  # ConsumerGroupDescribe
}


def answer_in_portions(request: Request, handle: Handle, clock: Clock) -> Pending[Response] | None:
    """Answer a request portion by portion; return None for one that fits into a portion or cannot be cut."""
    for paths in DIVISIBLE.get(request.API_KEY, ()):
        if _room_after(request, paths.asked, PORTION) < 0:
            parts = (part for part, _ in _split_struct(request, paths.asked))
            asked = parts if paths.repeats else _without_repetitions(parts, paths.asked)
            return answer_in_order(_answer_portions(asked, paths.answered, handle, clock))
    return None


def _room_after(owner: Struct, path: Sequence[str], room: int) -> int:
    """Return *room* less the number of items in a struct; counting ends once the result is negative."""
    name, *inner = path
    items = getattr(owner, name)
    if not items or not inner:
        return room - len(items or (owner,))
    for item in items:
        room = _room_after(item, inner, room)
        if room < 0:
            break
    return room


async def _answer_portions(
    requests: Iterator[Request | None], answered: Sequence[str], handle: Handle, clock: Clock
) -> Response:
    whole: Any = None
    async for request in yield_in_turns(clock, requests):
        if request is None:
            continue
        result: Any = handle(request)
        answer = await result.response if isinstance(result, Pending) else result
        if getattr(answer, "error_code", 0):
            # An error of the whole request replaces all answers to its items.
            return answer  # type: ignore[no-any-return]
        if whole is None:
            whole = answer
        else:
            _join_responses(whole, answer, answered)
    return whole  # type: ignore[no-any-return]


def _join_responses(whole: Struct, more: Struct, path: Sequence[str]) -> None:
    name, *inner = path
    items, more_items = getattr(whole, name), getattr(more, name)
    if inner and items and more_items and _identify_item(items[-1]) == _identify_item(more_items[0]):
        _join_responses(items[-1], more_items.pop(0), inner)
    items += more_items


def _split_struct(owner: StructT, path: Sequence[str]) -> Iterator[tuple[StructT, int]]:
    """Yield copies of a struct with at most a portion of its items each, and the number of items."""
    name, *inner = path
    items = getattr(owner, name)
    if not items:
        yield owner, 1
    elif inner:
        held, size = list[Any](), 0
        for part, count in (part for item in items for part in _split_struct(item, inner)):
            if held and size + count > PORTION:
                yield _with_list(owner, name, held), size
                held, size = [], 0
            held.append(part)
            size += count
        yield _with_list(owner, name, held), size
    else:
        for start in range(0, len(items), PORTION):
            portion = items[start : start + PORTION]
            yield _with_list(owner, name, portion), len(portion)


def _without_repetitions(requests: Iterator[Request], path: Sequence[str]) -> Iterator[Request | None]:
    """Yield the requests with each item only in the first that names it; None for a request without items left."""
    seen = set[Any]()
    for request in requests:
        rest = _without_seen(request, path, seen, ())
        # In some requests an empty list would mean everything.
        yield rest if getattr(rest, path[0]) else None


def _without_seen(owner: StructT, path: Sequence[str], seen: set[Any], names: tuple[Any, ...]) -> StructT:
    """Return the struct without the items in *seen*, and add its other items there."""
    list_name, *inner = path
    kept = []
    for item in getattr(owner, list_name) or ():
        name = (*names, _identify_item(item))
        if inner and getattr(item, inner[0]):
            rest = _without_seen(item, inner, seen, name)
            if getattr(rest, inner[0]):
                kept.append(rest)
        elif name not in seen:
            seen.add(name)
            kept.append(item)
    return _with_list(owner, list_name, kept)


def _identify_item(item: Any) -> Any:
    return tuple(getattr(item, name) for name in item.FIELDS if name in _NAMES) if isinstance(item, Struct) else item


def _with_list(owner: StructT, name: str, items: list[Any]) -> StructT:
    changed = copy(owner)
    setattr(changed, name, items)
    return changed
