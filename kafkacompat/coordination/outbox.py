"""Answers leave only when the group is settled.

To answer a waiting request may make its connection start the next one, which may be about the same group.
So whatever changes a group runs inside `Outbox.run`, and the answers it decides on are held until the
outermost `run` is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Outbox:
    """Answers that are decided and not sent yet."""

    def __init__(self) -> None:
        self._depth = 0
        self._decided: deque[tuple[Deferred[Any], object]] = deque()

    def answer(self, waiting: Deferred[_Result], response: _Result) -> None:
        """Decide what *waiting* is answered with."""
        self._decided.append((waiting, response))

    def run(
        self, operation: Callable[_Parameters, _Result], /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        """Do *operation*, then send what was decided."""
        self._depth += 1
        try:
            return operation(*args, **kwargs)
        finally:
            self._depth -= 1
            while self._decided and not self._depth:
                waiting, response = self._decided.popleft()
                waiting.callback(response)
