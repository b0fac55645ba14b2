"""Reading Deferreds that have fired already."""

from __future__ import annotations

from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError

Result = TypeVar("Result")


def outcome(deferred: Deferred[Result]) -> Result:
    """The result of a Deferred that has fired; raises what it failed with, AssertionError if it has not fired."""
    results: list[Result | Failure] = []
    deferred.addBoth(results.append)
    assert results, "the Deferred has not fired"
    if isinstance(results[0], Failure):
        results[0].raiseException()
    assert not isinstance(results[0], Failure)
    return results[0]


def has_fired(deferred: Deferred[Result]) -> bool:
    """Whether a Deferred has its result (``called`` is true before that when it waits for another one)."""
    results: list[object] = []

    def keep(result: Result) -> Result:
        results.append(result)
        return result

    deferred.addBoth(keep)
    return bool(results)


def refusal(deferred: Deferred[Result]) -> ErrorCode:
    """The code of the KafkaError that a Deferred failed with."""
    with pytest.raises(KafkaError) as problem:
        outcome(deferred)
    return problem.value.code
