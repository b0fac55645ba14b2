"""Refusals of brokers as sentences that say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkacompat.wire.errors import ErrorCode, describe_code

EXIT_DONE, EXIT_REFUSED, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130
"""Done; the cluster refuses; the options are not valid or no broker answers; the user has ended the command."""

SIMILARITY = 0.6
"""Least share of the letters of both names that agree, as difflib counts them."""

NO_RIGHT = "the user of --command-config lacks the right: an administrator grants it by `kafkacompat acls add`"
_SENTENCES: Mapping[int, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: NO_RIGHT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: NO_RIGHT,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: NO_RIGHT,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NO_RIGHT,
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer: set authorizer.class.name in their properties",
    ErrorCode.TOPIC_DELETION_DISABLED: "the brokers delete no topics: set delete.topic.enable=true in their properties",
    ErrorCode.NON_EMPTY_GROUP: "the group has members: stop its clients first",
    ErrorCode.REQUEST_TIMED_OUT: "the brokers need longer, and the change may still happen: check it in a moment",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "the quota of changes is used up: try again later",
}
"""Sentences for errors whose name does not say what to do."""


class RemoteError(Exception):
    """A command cannot be done as wanted; the text is one sentence."""


def explain_refusal(code: int, message: str | None = None) -> str:
    """Return why a broker refuses a request: a sentence of this command's, or the broker's own message."""
    if code in _SENTENCES:
        return _SENTENCES[code]
    return message.strip().removesuffix(".") if message else describe_code(code, None)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean orders?)`, or an empty text where no known name is near."""
    from difflib import get_close_matches  # rarely needed, and importing it makes the start longer

    near = get_close_matches(name, list(known), 1, SIMILARITY)
    return f" (did you mean {near[0]}?)" if near else ""


def explain_missing_library(library: str, extra: str = "cli") -> str:
    """Return what to do without a library of an extra."""
    return f"{library} is not installed: run pip install '.[{extra}]' in a clone of kafkacompat"
