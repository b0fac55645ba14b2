"""Answers to items that a client may not use, built from the declarations of request and response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkacompat.wire.apis import find_api
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request, Response, Struct

_INDEXES = ("partition_index", "index", "partition", "key", "group_id", "transactional_id")
"""The fields of an answer that name an item which is a number or a text in the request."""
_NAMES = frozenset(
    {"name", "topic", "topic_id", "group_id", "resource_type", "resource_name", "producer_id", *_INDEXES}
)
"""The fields that an answer has from the request."""
_ERRORS = ("error_code", "partition_error_code")
MESSAGES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
}
"""What a refusal says, in Kafka's words: clients show it."""

_NO_FIELDS: Mapping[str, Any] = {}


def _find_element(owner: Any, field: str) -> Any:
    """Return the class of the elements of a list."""
    element = owner.FIELDS[field].element
    assert element is not None
    return element.struct


def make_response(request: Request, **fields: Any) -> Any:
    """Return a response to a request with these fields."""
    build: Callable[..., Response] = find_api(request.API_KEY).response
    return build(**fields)


def find_struct(request: Request, field: str) -> Any:
    """Return the class of the elements of a list of the response to a request."""
    return _find_element(find_api(request.API_KEY).response, field)


class Items(NamedTuple):
    """The lists that lead to the items of a request, and those that lead to their answers.

    ``unset`` are the values that fields of a refused item have, where a message's default is another.
    """

    asked: Sequence[str]
    answered: Sequence[str]
    unset: Mapping[str, Any] = _NO_FIELDS


def refuse_items(request: Request, items: Items, owners: Iterable[Any], code: ErrorCode) -> list[Any]:
    """Return the answers to some elements of a request's outer list, each of whose items gets the error."""
    return refuse_parts(find_api(request.API_KEY).response, items, owners, code)


def refuse_parts(answer: Any, items: Items, owners: Iterable[Any], code: ErrorCode) -> list[Any]:
    """Return the same for the list in *answer*, a part of the response."""
    struct = _find_element(answer, items.answered[0])
    return [_refuse(struct, owner, items.asked[1:], items.answered[1:], items.unset, code) for owner in owners]


def _refuse(
    struct: type[Struct],
    owner: Any,
    asked: Sequence[str],
    answered: Sequence[str],
    unset: Mapping[str, Any],
    code: ErrorCode,
) -> Any:
    """Return the answer to one element: with the same names, and with an error, or with the answers to its own items."""
    if isinstance(owner, Struct):
        values = {name: getattr(owner, name) for name in struct.FIELDS if name in _NAMES and hasattr(owner, name)}
        if "topic_name" in struct.FIELDS:
            values["topic_name"] = owner.name  # type: ignore[attr-defined]
    else:
        values = {next(name for name in _INDEXES if name in struct.FIELDS): owner}
    if asked:
        inner = _find_element(struct, answered[0])
        values[answered[0]] = [
            _refuse(inner, item, asked[1:], answered[1:], unset, code) for item in getattr(owner, asked[0]) or ()
        ]
    else:
        values[next(name for name in _ERRORS if name in struct.FIELDS)] = code
        if "error_message" in struct.FIELDS:
            values["error_message"] = MESSAGES.get(code)
        values.update((name, value) for name, value in unset.items() if name in struct.FIELDS)
    return struct(**values)


def refuse_whole(request: Request, code: ErrorCode, **fields: Any) -> Any:
    """Return the response that carries the error of a whole request. Versions without such a field leave it out."""
    if "error_message" in find_api(request.API_KEY).response.FIELDS:
        fields["error_message"] = MESSAGES[code]
    return make_response(request, error_code=code, **fields)


def refuse_request(request: Request, items: Items, code: ErrorCode) -> Any:
    """Return the response in which every item of a request gets the error."""
    refused = refuse_items(request, items, getattr(request, items.asked[0]) or (), code)
    return make_response(request, **{items.answered[0]: refused})
