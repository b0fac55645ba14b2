"""Requests about very many things, cut into portions so that others have their turn between them.

Where a request is nothing but a list of things that are answered each by itself, it may be handled as several
requests. What is named again is asked for once: a thing may be much larger than its name.
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
"""So many things, at some ten microseconds each, are a portion."""

_NAMES = frozenset(
    {"name", "topic", "topic_id", "topic_name", "group_id", "resource_type", "resource_name", "path", "log_dir"}
)


class DivisibleRequest(NamedTuple):
    """How a request may be cut: the lists inside each other that lead to its things, and to their answers.

    With ``repeats`` what is named several times is done several times, else once.
    """

    asked: Sequence[str]
    answered: Sequence[str]
    repeats: bool = True


# API key -> how; a request may have one list or another, by its version.
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
}


def in_portions(request: Request, handle: Handle, clock: Clock) -> Pending[Response] | None:
    """Answer a request portion by portion; None where it is to be handled as it is."""
    for way in DIVISIBLE.get(request.API_KEY, ()):
        if _room_behind(request, way.asked, PORTION) < 0:
            parts = (part for part, _ in _split_struct(request, way.asked))
            asked = parts if way.repeats else _each_once(parts, way.asked)
            return answer_in_order(_answer_portions(asked, way.answered, handle, clock))
    return None


def _room_behind(owner: Struct, path: Sequence[str], room: int) -> int:
    """How many more things a portion takes than a struct has; of what is below 0 nobody wants to know how far."""
    name, *inner = path
    things = getattr(owner, name)
    if not things or not inner:
        return room - len(things or (owner,))
    for thing in things:
        room = _room_behind(thing, inner, room)
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
        found: Any = handle(request)
        answer = await found.response if isinstance(found, Pending) else found
        if getattr(answer, "error_code", 0):
            # What is wrong with all of the request is all that its answer says.
            return answer  # type: ignore[no-any-return]
        if whole is None:
            whole = answer
        else:
            _join_responses(whole, answer, answered)
    return whole  # type: ignore[no-any-return]


def _join_responses(whole: Struct, more: Struct, path: Sequence[str]) -> None:
    name, *inner = path
    things, further = getattr(whole, name), getattr(more, name)
    if inner and things and further and _identify(things[-1]) == _identify(further[0]):
        _join_responses(things[-1], further.pop(0), inner)
    things += further


def _split_struct(owner: StructT, path: Sequence[str]) -> Iterator[tuple[StructT, int]]:
    """Copies of a struct that have each no more things than a portion, and how many."""
    name, *inner = path
    things = getattr(owner, name)
    if not things:
        yield owner, 1
    elif inner:
        held, size = list[Any](), 0
        for part, count in (part for thing in things for part in _split_struct(thing, inner)):
            if held and size + count > PORTION:
                yield _with_list(owner, name, held), size
                held, size = [], 0
            held.append(part)
            size += count
        yield _with_list(owner, name, held), size
    else:
        for start in range(0, len(things), PORTION):
            few = things[start : start + PORTION]
            yield _with_list(owner, name, few), len(few)


def _each_once(requests: Iterator[Request], path: Sequence[str]) -> Iterator[Request | None]:
    """The requests with each thing only in the first that has it; None for one with nothing left."""
    seen = set[Any]()
    for request in requests:
        rest = _without_seen(request, path, seen, ())
        # An empty list asks for everything in some requests.
        yield rest if getattr(rest, path[0]) else None


def _without_seen(owner: StructT, path: Sequence[str], seen: set[Any], names: tuple[Any, ...]) -> StructT:
    """The struct without the things that were *seen*."""
    list_name, *inner = path
    kept = []
    for thing in getattr(owner, list_name) or ():
        name = (*names, _identify(thing))
        if inner and getattr(thing, inner[0]):
            rest = _without_seen(thing, inner, seen, name)
            if getattr(rest, inner[0]):
                kept.append(rest)
        elif name not in seen:
            seen.add(name)
            kept.append(thing)
    return _with_list(owner, list_name, kept)


def _identify(thing: Any) -> Any:
    return (
        tuple(getattr(thing, name) for name in thing.FIELDS if name in _NAMES) if isinstance(thing, Struct) else thing
    )


def _with_list(owner: StructT, name: str, things: list[Any]) -> StructT:
    changed = copy(owner)
    setattr(changed, name, things)
    return changed
