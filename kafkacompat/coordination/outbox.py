"""Responses that a coordinator holds back until the group's state is consistent.

When a waiting request gets its response, its connection may start the next request, which may be about the same group. So
every change of a group runs inside `Outbox.run`. Its responses are held until the outermost `run` ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Outbox:
    """Responses that are decided and not sent yet."""

    def __init__(self) -> None:
        self._depth = 0
        self._decided: deque[tuple[Deferred[Any], object]] = deque()

    def answer(self, waiting: Deferred[_Result], response: _Result) -> None:
        """Send *response* to the *waiting* request when the outermost `run` ends."""
        self._decided.append((waiting, response))

    def run(
        self, operation: Callable[_Parameters, _Result], /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        """Call *operation*, then send the responses that it decided on."""
        self._depth += 1
        try:
            return operation(*args, **kwargs)
        finally:
            self._depth -= 1
            while self._decided and not self._depth:
                waiting, response = self._decided.popleft()
                waiting.callback(response)
