"""Guards of requests about several resources: what a client may not use is answered here, the handler answers the rest."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from kafkacompat.handlers.guards.access import Access, Guard, Handle, change_response
from kafkacompat.handlers.guards.refusals import Items, make_response, refuse_items
from kafkacompat.handlers.guards.rights import AccessCheck
from kafkacompat.wire.errors import ErrorCode

NameOf = Callable[[Any, Access], "str | None"]
"""Returns the name of an element's resource; None for one that the handler rejects, because it names none."""


def name_field(field: str) -> NameOf:
    """Read the name in a field of the element."""
    return lambda item, access: getattr(item, field)


def name_itself(item: str, access: Access) -> str:
    """Return an element that is a name."""
    return item


def name_topic_from(version: int, field: str = "name") -> NameOf:
    """Read a topic's name, or from a version on the name of the topic that has the id; None if none has it."""

    def find_name(item: Any, access: Access) -> str | None:
        if access.version < version:
            name: str = getattr(item, field)
            return name
        return access.find_topic_name(item.topic_id, [data.index for data in getattr(item, "partition_data", ())])

    return find_name


def guard_items(check: AccessCheck, items: Items, find_name: NameOf) -> Guard:
    """Let the handler answer the elements of the outer list whose resources the client has a right on."""

    def guard(request: Any, access: Access, handle: Handle) -> Any:
        return answer_rest(request, items, handle, find_refused(request, items, check, find_name, access), check.error)

    return guard


def find_refused(request: Any, items: Items, check: AccessCheck, find_name: NameOf, access: Access) -> list[Any]:
    """Return the elements of a request's outer list whose resources the client has no right on."""
    named = [(item, find_name(item, access)) for item in getattr(request, items.asked[0]) or ()]
    allowed = access.select(check.operation, check.kind, (name for _, name in named if name is not None))
    if len(allowed) == len(named):
        return []
    return [item for item, name in named if name is not None and name not in allowed]


def answer_rest(request: Any, items: Items, handle: Handle, refused: list[Any], code: ErrorCode) -> Any:
    """Answer the refused elements with the error, and let the handler answer the others."""
    if not refused:
        return handle(request)
    refusals = refuse_items(request, items, refused, code)
    rest = leave_out(request, items.asked[0], refused)
    if not getattr(rest, items.asked[0]):
        return make_response(request, **{items.answered[0]: refusals})

    def add(answer: Any) -> Any:
        if answer is not None:
            getattr(answer, items.answered[0]).extend(refusals)
        return answer

    return change_response(handle(rest), add)


def leave_out(request: Any, field: str, refused: list[Any]) -> Any:
    """Return a request without some elements of a list."""
    if not refused:
        return request
    unwanted = {item if isinstance(item, str) else id(item) for item in refused}
    kept = [item for item in getattr(request, field) if (item if isinstance(item, str) else id(item)) not in unwanted]
    rest = copy(request)
    setattr(rest, field, kept)
    return rest
